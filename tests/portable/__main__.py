"""Other kernels on this machine -> a table: do the tests of sameness pass, and how far do numbers of one seed differ?

``python tests/portable`` goes through all configurations (`make test-portable`, about a quarter of an hour), ``--quick``
through one with all old kernels at once, ``--only NAME ...`` through some. NumPy, BLAS, torch and numba choose their loops
by the CPU; environment variables make them choose those of an older one. Every configuration runs in processes of its
own. Exit 1 if a test fails, or if an approach without networks differs from the plain run by more than 1e-9 of its size.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

ROOT = Path(__file__).parents[2]
CACHE = ROOT / "build" / "portable"  # of numba, for another CPU
ONE_SEED = Path(__file__).with_name("one_seed.py")
ALLOWED = 1e-9
SAMENESS = "tests/properties/test_sameness.py"
WITH_TORCH = [SAMENESS, "tests/contract", "tests/unit/models/test_additive_curves.py", "-k", "vaeac"]
WITHOUT_TORCH = [
    SAMENESS, "tests/properties/test_invariance.py", "tests/golden", "tests/unit/test_seeding.py",
    "tests/unit/precision/test_target_error.py", "tests/unit/test_solvers.py", "-k", "not vaeac",
]  # fmt: skip
QUICK_TESTS = [SAMENESS, "tests/unit/test_seeding.py", "-k", "not vaeac"]
QUICK = "all old at once"


def features():
    """Names of what this CPU can do, by NumPy's words: what it dispatches on, and everything it knows."""
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

    return [name for name in __cpu_dispatch__ if __cpu_features__.get(name)], __cpu_features__


def configurations():
    """Environment variables by name of the configuration; only kernels that this CPU can run."""
    dispatched, has = features()
    threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    numba = {"NUMBA_CPU_NAME": "generic", "NUMBA_CACHE_DIR": str(CACHE)}
    mkl = {"MKL_CBWR": "COMPATIBLE"}  # torch's products, the same on all CPUs
    no_dispatch = {"NPY_DISABLE_CPU_FEATURES": " ".join(dispatched)} if dispatched else {}
    found = {"BLAS of Nehalem": {"OPENBLAS_CORETYPE": "Nehalem"}}
    if has.get("AVX2"):
        found |= {f"BLAS of {core}": {"OPENBLAS_CORETYPE": core} for core in ("Haswell", "Zen")}
    if has.get("AVX512_SKX"):
        found["BLAS of SkylakeX"] = {"OPENBLAS_CORETYPE": "SkylakeX"}
    found["torch without vectors"] = {"ATEN_CPU_CAPABILITY": "default"}
    if has.get("AVX2"):
        found["torch with AVX2"] = {"ATEN_CPU_CAPABILITY": "avx2"}
    found["MKL for any CPU"] = mkl
    found["numba for any CPU"] = numba
    if dispatched:
        found["NumPy without dispatch"] = no_dispatch
    found["one thread"] = dict.fromkeys(threads, "1")
    found["two threads"] = dict.fromkeys(threads, "2")
    found[QUICK] = found["BLAS of Nehalem"] | found["torch without vectors"] | mkl | no_dispatch
    return found


def tests_of(variables):
    """Tests of sameness, golden numbers and seeds that these kernels have a say in."""
    return WITH_TORCH if {"ATEN_CPU_CAPABILITY", "MKL_CBWR"}.issuperset(variables) else WITHOUT_TORCH


def process(arguments, variables):
    """Exit status and output of Python with these arguments and environment variables."""
    path = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH")]))
    environment = os.environ | {"PYTHONPATH": path} | variables
    done = subprocess.run([sys.executable, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def numbers(variables, folder, options):
    """Numbers of one seed by name, or None and what went wrong."""
    path = Path(folder) / "numbers.npz"
    status, output = process([str(ONE_SEED), str(path), *options], variables)
    if status:
        return None, output
    with np.load(path) as stored:
        return dict(stored), output


def differences(found, plain):
    """Largest difference of each case, relative to the largest of its numbers of a kind; infinite if shapes differ."""
    largest = {}
    for name, wanted in plain.items():
        case, ours = name.partition("/")[0], found[name]
        apart = np.inf
        if ours.shape == wanted.shape and np.array_equal(np.isnan(ours), np.isnan(wanted)):
            size = np.nanmax(np.abs(wanted), initial=0.0)
            apart = (
                float(np.nanmax(np.abs(ours - wanted), initial=0.0)) / size if size > 0 else float(np.abs(ours).max())
            )
        largest[case] = max(largest.get(case, 0.0), apart)
    return largest


def has_networks(case):
    return case.startswith("vaeac")


def run(name, variables, tests, plain, folder, options):
    """Print one line; return whether all is well."""
    start = time.perf_counter()
    status, output = process(["-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", *tests], variables)
    summary = output.strip().splitlines()[-1].strip("= ") if output.strip() else "no output"
    found, trouble = numbers(variables, folder, options)
    if status:
        print(output[-6000:], file=sys.stderr)
    if found is None:
        print(trouble[-6000:], file=sys.stderr)
        return False
    apart = differences(found, plain)
    cells = "".join(f" {value:8.1e} |" if value else "        0 |" for value in apart.values())
    print(
        f"| {name:22} | {summary.partition(' in ')[0]:30} | {time.perf_counter() - start:4.0f} s |{cells}", flush=True
    )
    return not status and all(value <= ALLOWED for case, value in apart.items() if not has_networks(case))


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--quick", action="store_true", help="one configuration with all old kernels at once, few tests"
    )
    parser.add_argument("--only", nargs="+", choices=configurations(), help="these configurations")
    asked = parser.parse_args()
    chosen = configurations()
    if asked.quick or asked.only:
        chosen = {name: chosen[name] for name in asked.only or [QUICK]}
    options = ["--without-networks"] if asked.quick else []
    with TemporaryDirectory() as folder:
        plain, trouble = numbers({}, folder, options)
        if plain is None:
            sys.exit(
                f"the plain run must succeed before others are compared with it, but it failed:\n{trouble[-6000:]}"
            )
        cases = list(dict.fromkeys(name.partition("/")[0] for name in plain))
        print("Largest difference from the plain run, relative to the largest number of its kind:")
        print(f"| {'kernels':22} | {'tests':30} |   time |" + "".join(f" {case} |" for case in cases))
        print("|---" * (3 + len(cases)) + "|")
        well = [
            run(name, variables, QUICK_TESTS if asked.quick else tests_of(variables), plain, folder, options)
            for name, variables in chosen.items()
        ]
    sys.exit(0 if all(well) else 1)


if __name__ == "__main__":
    main()
