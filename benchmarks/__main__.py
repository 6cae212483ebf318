"""Name -> that benchmark: ``python -m benchmarks`` lists them, ``python -m benchmarks NAME`` runs one."""

from __future__ import annotations

import runpy
import sys

BENCHMARKS = {
    "peers": "condshap beside shap and shapiq, one linear and one forest problem with known truth (make bench)",
    "cases": "the paper's cases beside its own and R shapr's CPU times; overhead with a forest of 500 trees",
    "growth": "how CPU time and memory grow with rows, features, samples, training rows and coalitions",
    "quick": "small versions, held against benchmarks/results/quick.json: fails if a ratio got worse (make bench-quick)",
    "overhead": "gaussian with a forest and a linear model: what explain costs beyond the model's predictions",
    "approaches": "every approach with a linear model beside R shapr",
    "ctree": "milliseconds per conditional inference tree beside R's party",
    "trees": "condshap's evaluation of tree ensembles beside the libraries' own",
    "burr": "accuracy on Burr data, M = 5, beside the paper",
    "vaeac": "accuracy and speed of VAEAC: accuracy, table or speed as the first argument",
}


def main(arguments: list[str]) -> int:
    """List the benchmarks, or run the one that is named first with the other arguments."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print("python -m benchmarks NAME [options], where NAME is one of")
        width = max(map(len, BENCHMARKS))
        print("\n".join(f"  {name:{width}}  {about}" for name, about in BENCHMARKS.items()))
        return 0
    name, *rest = arguments
    if name not in BENCHMARKS:
        print(f"A benchmark must be one of {', '.join(BENCHMARKS)}, got {name!r}.", file=sys.stderr)
        return 2
    sys.argv = [f"benchmarks.{name}", *rest]
    runpy.run_module(f"benchmarks.{name}", run_name="__main__", alter_sys=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
