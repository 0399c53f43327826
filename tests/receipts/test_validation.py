"""sched_validation: figures of a made-up engine against the verdicts that they come from, and a statistic by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from engine_run import TRUTH, run_file
from test_recompute import receipt as made

from servelab.receipt.recompute import recompute
from servelab.receipt.schema import Receipt
from servelab.receipt.validation import validation_metrics, validation_result
from servelab.sched.runs import read_run

FILES = {"one.json": run_file()}


def row(seen: bool, tpot: list[float], same: int = 100) -> dict[str, object]:
    return {
        "model": "m-0.5b", "overlap": True, "seen": seen, "steps": 100, "same": same, "step_error": 2.0,
        "told_step_error": 1.0, "figures": {"tpot_mean": tpot},
    }  # fmt: skip


def test_engines_are_kept_apart() -> None:
    """One model 10 % off asynchronously and 1 % synchronously; what a fit has seen counts for neither."""
    held = [row(False, [10, 11, 10]), row(False, [100, 101, 104]) | {"overlap": False}, row(True, [1, 2, 3])]
    value = {name: metric.value for name, metric in validation_metrics({"recordings": dict(enumerate(held))}).items()}
    assert (value["m_0_5b_async_held_out_runs"], value["m_0_5b_sync_held_out_runs"]) == (1, 1)
    assert value["m_0_5b_async_tpot_mean_error_percent"] == pytest.approx(10)
    assert value["m_0_5b_sync_tpot_mean_error_percent"] == pytest.approx(1)
    assert value["m_0_5b_sync_told_tpot_mean_error_percent"] == pytest.approx(4)


def test_errors_by_hand() -> None:
    """Held out −10 %, +2 % and +4 % blind, 0 told; in-sample 50 %, which no held-out figure may see."""
    rows = [row(True, [10, 15, 15]), row(False, [10, 9, 10]), row(False, [50, 51, 50], 98), row(False, [25, 26, 25])]
    found = validation_metrics({"recordings": dict(enumerate(rows))})
    value = {name: metric.value for name, metric in found.items()}
    assert (value["held_out_runs"], value["in_sample_runs"]) == (3, 1)
    assert value["tpot_mean_error_percent_median"] == pytest.approx(4)
    assert value["tpot_mean_error_percent_most"] == pytest.approx(10)
    assert value["told_tpot_mean_error_percent_most"] == 0
    assert value["in_sample_tpot_mean_error_percent_most"] == pytest.approx(50)
    assert (value["m_0_5b_async_held_out_runs"], value["m_0_5b_async_step_error_percent"]) == (3, 2)
    assert value["m_0_5b_async_tpot_mean_error_percent"] == pytest.approx(4)
    assert value["m_0_5b_async_told_tpot_mean_error_percent"] == 0
    assert (value["composed_alike_percent"], value["composed_alike_percent_least"]) == (99.5, 98)
    assert value["step_error_percent_median"] == 2 and "e2e_mean_error_percent_median" not in found


@pytest.fixture(scope="module")
def whole() -> Receipt:
    result = validation_result([read_run(data, name) for name, data in FILES.items()])
    return made("sched_validation", {}, result, FILES)


def test_it_says_the_same_from_the_statistic_and_from_the_files(whole: Receipt) -> None:
    for files in ((), tuple(FILES.values())):
        again = recompute(whole, files)
        assert again.rows and all(row.same for row in again.rows)
    name = "tpot_mean_error_percent_most"
    changed = replace(whole, metrics={**whole.metrics, name: replace(whole.metrics[name], value=7.0)})
    assert [row.metric for row in recompute(changed).rows if not row.same] == [name]


def test_what_is_stated_of_a_known_engine(whole: Receipt) -> None:
    """The engine is the simulator with a known cost: all steps alike, and errors as small as the fit's."""
    value = {name: metric.value for name, metric in whole.metrics.items()}
    assert value["held_out_runs"] == 2 and value["composed_alike_percent_least"] == 100
    assert value["e2e_mean_error_percent_most"] < 2 and value["step_error_percent_most"] < 2
    (fitted,) = (whole.statistic or {})["fits"].values()
    for name in ("token", "context"):
        assert math.isclose(fitted["cost"][name], getattr(TRUTH, name), rel_tol=0.1)
        assert fitted["cost"][name] == round(float(f"{fitted['cost'][name]:.4g}"))

