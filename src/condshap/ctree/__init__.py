"""Training table -> conditional inference trees: multivariate mixed responses given mixed predictors.

The algorithm is that of R's ``party::ctree`` with quadratic test statistics, Bonferroni-adjusted chi-square p-values and
binary splits by the maximally selected two-sample statistic. They differ in one point: party treats a covariance below 1e-10
as zero, so its trees depend on the units; these do not, except for the side of levels that a node does not have, where two
rankings of a nominal predictor tie and party decides by the last bit. Everything works on encoded float64 arrays; the trees
know nothing about data frames or Shapley values.

>>> import numpy as np
>>> x = np.arange(60.0)
>>> table = TrainingTable.build(np.column_stack([x, x >= 20.0, np.sin(x)]), n_levels=[0, 2, 0])
>>> tree = grow_tree(table, predictors=[0], responses=[1, 2])
>>> tree.threshold[0], tree.n_leaves
(np.float64(19.0), 2)
>>> tree.leaf_of(np.array([[3.0, 0.0, 0.0], [40.0, 0.0, 0.0]]))
array([0, 1])
>>> tree.rows_of(0)[-1]
np.int32(19)
"""

from __future__ import annotations

from condshap.ctree.growing import grow_tree
from condshap.ctree.table import TrainingTable
from condshap.ctree.tree import NodeTests, Tree

__all__ = ["NodeTests", "TrainingTable", "Tree", "grow_tree"]
