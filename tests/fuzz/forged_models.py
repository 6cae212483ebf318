"""Forge skops files of models and use what loads: nothing may end the process.

``python tests/fuzz/forged_models.py 10000`` forges so many files in child processes, one after the other, and tells how many
were refused, how many loaded, and which ones ended a child. A second number is the first seed.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tempfile
import warnings
import zipfile
from collections import Counter
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd

RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, 4))
Y = X[:, 0] * X[:, 1] + 0.1 * X[:, 2]
LABELS = (Y > 0).astype(int) + (Y > 0.5)
LEVELS = pd.DataFrame(X, columns=list("abcd")).assign(c=pd.Categorical(RNG.choice(list("uvw"), 80)))
EXTREMES = [-1, -2, 0, 1, 2, 3, 7, 255, 256, 4095, 10**6, 2**31 - 1, -(2**31), 2**32 - 1, 2**40, -(2**63), 2**63 - 1]
PER_CHILD = 500


def models():
    """Fitted models by name, and rows for them."""
    from sklearn import ensemble, neighbors, svm, tree

    small = {"n_estimators": 2, "max_depth": 3, "random_state": 0}
    hist = {"max_iter": 2, "min_samples_leaf": 4, "random_state": 0}
    plain = {
        "tree": tree.DecisionTreeRegressor(max_depth=4).fit(X, Y),
        "forest": ensemble.RandomForestRegressor(**small).fit(X, Y),
        "forest of classes": ensemble.RandomForestClassifier(**small).fit(X, LABELS),
        "extra trees": ensemble.ExtraTreesRegressor(**small).fit(X, Y),
        "boosted": ensemble.GradientBoostingRegressor(**small).fit(X, Y),
        "boosted classes": ensemble.GradientBoostingClassifier(**small).fit(X, LABELS),
        "bagged": ensemble.BaggingRegressor(tree.DecisionTreeRegressor(max_depth=2), 2, max_features=0.5).fit(X, Y),
        "histogram": ensemble.HistGradientBoostingRegressor(**hist).fit(X, Y),
        "histogram of classes": ensemble.HistGradientBoostingClassifier(**hist).fit(X, LABELS),
        "nearest": neighbors.KNeighborsRegressor(algorithm="kd_tree", leaf_size=10).fit(X, Y),
        "nearest ball": neighbors.KNeighborsClassifier(algorithm="ball_tree", leaf_size=10).fit(X, LABELS),
        "support vectors": svm.SVR().fit(X, Y),
        "support vectors of classes": svm.SVC().fit(X, LABELS),
    }
    levels = ensemble.HistGradientBoostingRegressor(**hist, categorical_features="from_dtype").fit(LEVELS, Y)
    return {**{name: (model, X) for name, model in plain.items()}, "histogram of levels": (levels, LEVELS)}


def packed(model):
    """Members of the skops file of a model: bytes by name."""
    import skops.io

    with zipfile.ZipFile(io.BytesIO(skops.io.dumps(model))) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def forged(members, rng):
    """Members of which some are changed."""
    members = dict(members)
    for _ in range(int(rng.integers(1, 4))):
        arrays = [name for name in members if name.endswith(".npy")]
        if arrays and rng.random() < 0.65:
            name = arrays[int(rng.integers(len(arrays)))]
            members[name] = forged_array(members[name], rng)
        else:
            members["schema.json"] = forged_schema(members["schema.json"], rng)
    return members


def forged_array(content, rng):
    try:
        array = np.load(io.BytesIO(content), allow_pickle=False).copy()
    except Exception:  # forged before: headers of arrays fail in many ways
        return content
    way = rng.random()
    if array.size and way < 0.7:
        part = array[str(rng.choice(array.dtype.names))] if array.dtype.names else array
        if part.dtype.kind in "biuf":
            places = rng.integers(0, part.size, int(rng.integers(1, 4)))
            for place in places:
                value = (
                    EXTREMES[int(rng.integers(len(EXTREMES)))]
                    if rng.random() < 0.6
                    else rng.integers(-5, 2 * part.size)
                )
                with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
                    part.reshape(-1)[place] = np.array(float(value)).astype(part.dtype)
                    if part.ndim > 1 or part.base is not None:
                        part[np.unravel_index(place, part.shape)] = np.array(float(value)).astype(part.dtype)
    elif way < 0.85:
        array = array[: int(rng.integers(0, len(array) + 1))] if array.ndim else array
    elif way < 0.95:
        array = np.concatenate([array, array]) if array.ndim else array
    else:
        raw = bytearray(content)
        raw[int(rng.integers(len(raw)))] ^= 1 << int(rng.integers(8))
        return bytes(raw)
    sink = io.BytesIO()
    np.save(sink, array, allow_pickle=False)
    return sink.getvalue()


def nodes_of(schema):
    """Every place (parent, key) of the schema that holds a value of the model."""
    found, waiting = [], [schema]
    while waiting:
        part = waiting.pop()
        pairs = part.items() if isinstance(part, dict) else enumerate(part)
        for key, value in pairs:
            if isinstance(value, dict) and "__loader__" in value:
                found.append((part, key))
            if isinstance(value, (dict, list)):
                waiting.append(value)
    return found


def forged_schema(content, rng):
    schema = json.loads(content)
    places = nodes_of(schema)
    if not places:  # an earlier change took the rest away
        return content
    parent, key = places[int(rng.integers(len(places)))]
    numbers = [place for place in places if _is_number(place[0][place[1]].get("content"))]
    way = rng.random()
    if way < 0.45 and numbers:
        parent, key = numbers[int(rng.integers(len(numbers)))]
        value = EXTREMES[int(rng.integers(len(EXTREMES)))]
        parent[key] = {**parent[key], "content": str(value), "__id__": int(rng.integers(1, 2**40))}
    elif way < 0.8:
        other, there = places[int(rng.integers(len(places)))]
        parent[key] = json.loads(json.dumps(other[there]))
    elif isinstance(parent, dict):
        del parent[key]
    else:
        parent.append(parent[key])
    return json.dumps(schema).encode()


def _is_number(content):
    return isinstance(content, str) and content.lstrip("-").isdigit()


def use(path, rows):
    """Load a file as the command line does, and do with it what an explainer does."""
    from condshap.cli.files import load_model
    from condshap.trees import read_trees

    model = load_model(path, trust=False)
    for method in ("predict", "predict_proba"):
        with suppress(Exception):  # a wrong number or an error is no crash
            getattr(model, method, len)(rows)
    with suppress(Exception):
        read_trees(model)


def run(first, n, trace):
    """Forge and use n files in this process; `trace` is a file that tells which seed is at work."""
    from condshap.exceptions import CondShapError

    warnings.simplefilter("ignore")
    bases = {name: (packed(model), rows) for name, (model, rows) in models().items()}
    counts = Counter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.skops"
        for seed in range(first, first + n):
            rng = np.random.default_rng(seed)
            name = list(bases)[seed % len(bases)]
            trace.write_text(f"{seed} {name}")
            with zipfile.ZipFile(path, "w") as archive:
                for member, content in forged(bases[name][0], rng).items():
                    archive.writestr(member, content)
            try:
                use(path, bases[name][1])
                counts["loaded"] += 1
            except CondShapError:
                counts["refused"] += 1
    return counts


def child(first, n, folder):
    """Run in a child process, with a limit on memory and time; returns its exit code and what it counted."""
    trace, script = Path(folder) / "trace", "import sys; sys.path.insert(0, sys.argv[1])\n" + CHILD
    done = subprocess.run(
        [sys.executable, "-c", script, str(Path(__file__).parent), str(first), str(n), str(trace)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    counts = json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else {}
    return done.returncode, counts, trace.read_text(), done.stderr[-2000:]


CHILD = """
import json, resource, signal
from pathlib import Path
import forged_models

resource.setrlimit(resource.RLIMIT_AS, (8 * 2**30, 8 * 2**30))
signal.alarm(60 + int(sys.argv[3]))
print("\\n" + json.dumps(forged_models.run(int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))))
"""


def main(n, first=0):
    """Forge n files; the exit code is 1 if one of them ended its child."""
    counts, crashes, seed = Counter(), [], first
    with tempfile.TemporaryDirectory() as folder:
        while seed < first + n:
            some = min(PER_CHILD, first + n - seed)
            code, found, last, said = child(seed, some, folder)
            counts.update(found)
            if code == 0:
                seed += some
                continue
            crashes.append(f"exit code {code} with seed {last}: {said.strip().splitlines()[-1:]}")
            print(crashes[-1], flush=True)
            seed = int(last.split()[0]) + 1
    print(f"{n} forged files: {dict(counts)}, {len(crashes)} crashes")
    return 1 if crashes else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
