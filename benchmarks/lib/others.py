"""Figures of others that stand beside ours: the paper's CPU minutes and R shapr's CPU seconds.

The paper's are those of its tables of computation times, of other machines and with K = 250; `vaeac` is the authors' code.
R's were measured with shapr 1.0.8.9003 on one core of such a machine as the page names, K = 250 and N_train = 1000; some
with fewer rows, which is said beside them and not scaled.
"""

from __future__ import annotations

PAPER_MINUTES = {
    ("burr-5", "gaussian"): 0.9,
    ("burr-5", "ctree"): 0.6,
    ("burr-5", "vaeac"): 2.1,
    ("burr-10", "gaussian"): 36.4,
    ("burr-10", "ctree"): 45.8,
    ("burr-10", "vaeac"): 39.7,
    ("burr-25", "gaussian"): 21.6,
    ("burr-25", "ctree"): 57.6,
    ("burr-25", "vaeac"): 41.8,
    ("burr-100", "gaussian"): 48.4,
    ("burr-100", "vaeac"): 167.2,
    ("mixed-4", "ctree"): 0.6,
    ("mixed-4", "vaeac"): 2.3,
    ("mixed-6", "ctree"): 2.9,
    ("mixed-6", "vaeac"): 2.7,
    ("mixed-25", "ctree"): 258.3,
    ("mixed-25", "vaeac"): 73.8,
}
"""By case and approach; N_train as in the case."""

SHAPR_SECONDS = {
    ("burr-5", "gaussian"): "60",
    ("burr-5", "ctree"): "42",
    ("burr-10", "gaussian"): "113 (5 rows)",
    ("burr-10", "ctree"): "91 (5 rows)",
    ("mixed-4", "ctree"): "43",
}
"""By case and approach; forests are ranger's, of 500 trees."""
