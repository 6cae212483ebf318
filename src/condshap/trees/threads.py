"""Model -> the number of threads that it would predict with, so that evaluating it here takes no more and no fewer."""

from __future__ import annotations

from condshap.types import Model


def count_threads(model: Model) -> int:
    """Threads of a model of scikit-learn, XGBoost or LightGBM when it predicts."""
    module = type(model).__module__
    if module.startswith("sklearn.ensemble._forest"):
        from joblib import effective_n_jobs

        return int(effective_n_jobs(model.n_jobs))
    if module.startswith(("xgboost.", "lightgbm.")):
        return int(model.n_jobs) if (model.n_jobs or 0) > 0 else _openmp_threads()
    return _openmp_threads() if module.startswith("sklearn.ensemble._hist") else 1


def _openmp_threads() -> int:
    """All cores, less what OMP_NUM_THREADS, threadpoolctl or a container take away."""
    from sklearn.utils._openmp_helpers import _openmp_effective_n_threads

    return int(_openmp_effective_n_threads())
