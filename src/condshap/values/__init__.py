"""Samples, model -> v(S): who answers for which coalitions, the engine that draws, predicts and reduces, the table."""
