"""Lines with a pickled table and a seed -> lines with CPU seconds of training the default `vaeac` on it; by any condshap.

`training` starts it once for each of two versions, so it imports only what both of them have.
"""

from __future__ import annotations

import sys
import time
import warnings

import pandas as pd

from condshap.approaches import VAEAC
from condshap.coalitions import make_plan
from condshap.schema import FeatureSchema


def train(X: pd.DataFrame, seed: int, **options: int) -> float:
    """CPU seconds of the approach's own fit: networks and whatever is learned beside them."""
    schema = FeatureSchema.learn(X)
    rows, plan = schema.encode(X), make_plan(X.shape[1], None, seed=0)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        VAEAC(device="cpu", progress=False, **options).fit(rows, schema, plan=plan, seed=seed)
    return time.process_time() - start


def main() -> None:
    """Answer until there are no more lines; each table is fitted for an epoch first, so that everything is loaded."""
    for line in sys.stdin:
        path, _, seed = line.rpartition(" ")
        X = pd.read_pickle(path)
        train(X, 0, epochs=1)
        print(train(X, int(seed)), flush=True)


if __name__ == "__main__":
    main()
