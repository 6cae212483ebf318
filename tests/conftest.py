"""One thread per library: tests run in parallel already, and threads that wait for each other burn the time of all."""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
