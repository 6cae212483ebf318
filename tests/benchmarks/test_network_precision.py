"""The benchmark of other arithmetic for the networks: what is switched, what is put back, what is printed."""

import json
import logging

import numpy as np
import pytest
import torch

from benchmarks.investigations import network_precision
from benchmarks.investigations.network_precision import NAME, QUICK, attempt, complaints, main
from benchmarks.investigations.networks.arithmetic import SAMPLING, TRAINING, HalfWorkspace, tf32
from benchmarks.investigations.networks.sampling import Response
from benchmarks.investigations.networks.tables import paired, training_table
from benchmarks.lib.report import rows_of
from condshap.studies.designs import burr_design
from condshap.vaeac import Networks, VAEACConfig
from condshap.vaeac.network import objective
from condshap.vaeac.sampling import decoder
from condshap.vaeac.training import steps

DESIGN = burr_design(5, seed=1)
ROWS = DESIGN.draw(120, seed=1).to_numpy()


def fitted(name):
    with TRAINING[name].use("cpu", True):
        return Networks(VAEACConfig(epochs=3)).fit(ROWS, [0] * 5)


@pytest.fixture(scope="module")
def networks():
    return fitted("eager")


def test_everything_runs_in_a_tiny_size_and_is_kept_line_by_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(TRAINING, "compiled", TRAINING["eager"])  # compiling takes seconds and is tested below
    page = tmp_path / f"{NAME}.md"
    main(["--quick", "--results", str(tmp_path), "--write"])
    found = json.loads((tmp_path / f"{NAME}.json").read_text())["results"]["found"]
    lines = [name for case in QUICK.cases for name in found[case.title]]
    assert sorted(lines) == sorted([*TRAINING] * 2)
    assert found["sampling"]["tf32"]["note"] == "not on this device"
    assert 0 < found["sampling"]["bf16"]["rms"] < found["sampling"]["other"]["rms"]
    notes = [row["note"] for row in rows_of(page.read_text())]
    assert set(notes) == {"", "not on this device"}
    assert page.read_text().split("<!-- end -->")[0].strip().endswith(capsys.readouterr().out.strip().splitlines()[-1])


def test_no_line_is_begun_late(tmp_path, capsys):
    main(["--quick", "--seconds", "-1", "--results", str(tmp_path)])
    found = json.loads((tmp_path / f"{NAME}.json").read_text())["results"]["found"]
    assert {line["note"] for lines in found.values() for line in lines.values()} == {
        "not on this device", "not begun within -1 s"
    }  # fmt: skip


def test_the_response_is_the_one_of_the_design():
    found = Response(DESIGN)(torch.tensor(ROWS)).numpy()[:, 0]
    np.testing.assert_allclose(found, DESIGN.expected_response(ROWS), rtol=1e-12)


def test_bf16_changes_training_a_little_and_leaves_no_trace():
    usual, half, again = (fitted(name) for name in ("eager", "bf16", "eager"))
    apart = np.abs(half.history.vlb - usual.history.vlb).max()
    assert 0 < apart < 0.05
    np.testing.assert_array_equal(again.history.vlb, usual.history.vlb)


def test_bf16_leaves_validation_alone(networks):
    mask = np.array([[True, False, True, False, False]])
    usual = networks.log_likelihood(ROWS[:5], mask)
    with TRAINING["bf16"].use("cpu", True):
        half = networks.log_likelihood(ROWS[:5], mask)
    np.testing.assert_array_equal(half, usual)


@pytest.mark.slow
def test_compiled_steps_train_the_same_networks(networks):
    compiled = fitted("compiled")
    np.testing.assert_allclose(compiled.history.iwae, networks.history.iwae, rtol=1e-4)


def test_bf16_samples_differ_by_little(networks):
    mask = np.array([[True, False, True, False, False]])
    usual = networks.sample(ROWS[:5], mask, 16)
    with SAMPLING["bf16"].use("cpu", True):
        assert decoder.Workspace is HalfWorkspace
        half = networks.sample(ROWS[:5], mask, 16)
    assert decoder.Workspace is not HalfWorkspace
    apart = np.abs(half - usual)
    assert 0 < np.median(apart[..., [1, 3, 4]]) < 0.02 * usual.std()


def test_settings_are_put_back():
    before, encode = torch.get_float32_matmul_precision(), objective.encode
    with tf32():
        assert torch.get_float32_matmul_precision() == "high"
    for arithmetic in TRAINING.values():
        with pytest.raises(KeyError), arithmetic.use("cpu", True):
            raise KeyError
    assert torch.get_float32_matmul_precision() == before
    assert steps._GRAPHS
    assert objective.encode is encode


def test_a_step_that_was_not_recorded_stands_in_the_note(monkeypatch):
    case = QUICK.cases[1]
    whole = Networks.fit

    def fit(self, *given, **options):
        logging.getLogger("condshap.vaeac.training.recorded_step").warning("not recorded\nlong story")
        return whole(self, *given, **options)

    monkeypatch.setattr(Networks, "fit", fit)
    line = network_precision.train(case, "eager", QUICK, "cpu", is_late=lambda: True)
    assert line["note"] == "not recorded"
    with complaints() as found:
        pass
    assert found == []


def test_a_failure_is_one_line():
    def fail():
        raise RuntimeError("first\nsecond")

    assert attempt(fail, "") == {"note": "RuntimeError: first"}
    assert attempt(fail, "not here") == {"note": "not here"}
    assert rows_of(training_table({"tf32": {"note": "a | b"}}, "graphs"))[2]["note"] == "a / b"


def test_differences_are_paired_by_seed():
    def fits(*figures):
        return [{"seed": seed, "ec1": figure, "seconds": 2.0, "epochs": 4} for seed, figure in enumerate(figures)]

    assert paired(fits(1.5, 2.7), fits(1.0, 2.0, 9.0), "ec1", ".2f") == "+0.60 ± 0.10"
    assert paired(fits(1.5), fits(1.0, 2.0), "ec1", ".2f") == "+0.50"
    assert paired(fits(1.5), [], "ec1", ".2f") == "-"
    fast = [{**fit, "seconds": 1.0, "iwae": 0.0, "density": 0.0} for fit in fits(1.0)]
    slow = [{**fit, "seconds": 4.0, "iwae": 0.0, "density": 0.0} for fit in fits(1.0)]
    lines = {"graphs": {"first": 1.0, "fits": fast}, "eager": {"first": 1.0, "fits": slow}}
    eager, graphs, *rest = rows_of(training_table(lines, "graphs"))
    assert (eager["speed"], eager["ms an epoch"], graphs["speed"]) == ("0.25", "1000.00", "1.00")
    assert {row["note"] for row in rest} == {"not begun"}
