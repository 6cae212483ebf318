"""What do missing training entries cost `vaeac`, and does it help that its networks are told what is missing?

Answer: with 20 % of the entries missing at random, EC1 is 1.13 times that of complete rows. Where a value is missing for a
reason, telling the networks so takes EC1 to 0.22 of what it is without.

Two studies. Missing at random: the paper's Burr data, M = 5, N = 1000, a forest of 500 trees that sees everything. Missing
for a reason: three normals, of which the third is missing mostly where the second is negative (Appendix C.4 of the paper).
Every finished repetition is a line of ``results/missing_values.jsonl``, so a run that was stopped goes on where it was.
"""

from __future__ import annotations

import sys

import numpy as np

from benchmarks.lib.report import FOLDER, page_of, parser, table
from benchmarks.lib.sections import write_section
from condshap.studies.pages.summary import Results, mean_and_error, ratio_of_means, read_results
from condshap.studies.problems.cells import BurrCell
from condshap.studies.problems.informative_gaps import InformativeCell
from condshap.studies.running.runner import Study, run

STORE = FOLDER / "missing_values.jsonl"
UNTOLD = "vaeac:missing_flags=False"
COMPLETE, GAPS, REASON = BurrCell(5, 1000), BurrCell(5, 1000, missing=0.2), InformativeCell()
AT_RANDOM = Study("missing", (GAPS, COMPLETE), ("vaeac",), tuple(range(10)))
FOR_A_REASON = Study("informative", (REASON,), (UNTOLD, "vaeac"), tuple(range(6)))


def line_of(about: str, with_it: np.ndarray, without: np.ndarray) -> dict[str, str]:
    """EC1 of the same repetitions with something and without it, and their ratio with its paired standard error."""
    shown = [f"{mean:.4f} ± {error:.4f}" for mean, error in map(mean_and_error, (with_it, without))]
    ratio, error = ratio_of_means(with_it, without)
    repetitions = str(len(with_it))
    return {
        "what": about,
        "R": repetitions,
        "EC1": shown[0],
        "without": shown[1],
        "ratio": f"{ratio:.3f} ± {error:.3f}",
    }


def tables(at_random: Results, for_a_reason: Results) -> str:
    """Both comparisons."""
    return table(
        [
            line_of(
                "20 % of the training entries missing",
                at_random.values(GAPS, "vaeac", "ec1"),
                at_random.values(COMPLETE, "vaeac", "ec1"),
            ),
            line_of(
                "networks are told what is missing",
                for_a_reason.values(REASON, "vaeac", "ec1"),
                for_a_reason.values(REASON, UNTOLD, "ec1"),
            ),
        ]
    )


def main() -> int:
    """Run what the store lacks and print the table."""
    given = parser("missing_values", __doc__)
    given.add_argument("--jobs", type=int, default=1, help="repetitions at a time")
    options = given.parse_args()
    failures = [failure for study in (AT_RANDOM, FOR_A_REASON) for failure in run(study, options.jobs, STORE)]
    for failure in failures:
        print(f"FAILED {failure.cell} | {failure.method} | {failure.repetition}\n{failure.reason}", file=sys.stderr)
    text = tables(*(read_results(study, [STORE]) for study in (AT_RANDOM, FOR_A_REASON)))
    print(text)
    if options.write:
        write_section(page_of("missing_values"), "missing_values", text)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
