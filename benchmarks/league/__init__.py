"""Every approach on real tables from packages, in a half to tune on and a half that nobody looks at meanwhile.

The halves ``tuning`` and ``unseen`` were fixed by name in `tables` before any result. A forest of 500 trees and boosting
are explained; ``results/league.md`` has MSEv on held-out rows over the best approach's, with intervals paired over rows, CPU
seconds, and what MSEv does not see: means of numbers and values given a level beside those of the training rows, and
correlations of near-duplicate columns. The best approach is chosen by the same rows that the ratio is taken on, so a ratio
slightly above 1 is expected of equals. A cell is a line of ``results/league-TABLE.jsonl`` and is not run again; ``--tag``
keeps results of other code apart. A machine without the data packages reads files::

    python -m benchmarks league --export build/league-tables
    python -m benchmarks league --half tuning --tables build/league-tables --store build/league --jobs 16
"""
