"""How precise: influence of coalitions, samples, error factors, members, targets and tolerances."""
