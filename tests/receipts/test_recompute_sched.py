"""The sched kinds: a receipt from its generator's plan says the same when recomputed, and a changed number shows."""

from __future__ import annotations

import importlib
import json
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from test_recompute import receipt as made

from servelab.receipt import sched
from servelab.receipt.recompute import recompute
from servelab.receipt.result import Result
from servelab.receipt.schema import Metric, Receipt

GENERATE = Path(__file__).parent.parent.parent / "generate"
LISTS = {"by_rate_per_s": {"1.5": [[0.1, 300, 20], [0.2, 500, 3], [2.0, 64, 10]]}}


def plan(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(GENERATE))
    return importlib.import_module(name)


@pytest.fixture(params=["sched_admission", "sched_routing", "sched_chunk", "sched_cplan"])
def whole(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Receipt:
    kind = request.param
    if kind == "sched_cplan":
        return made(kind, {}, sched.cplan_result(LISTS["by_rate_per_s"]), {"lists.json": json.dumps(LISTS).encode()})
    workload = dict(plan(kind, monkeypatch).PLAN.workload)
    if kind == "sched_admission":
        workload |= {"seeds": 20, "gcra_events": 100_000}
        done = sched.admission_result(workload)
        result = Result({**done.metrics, "gcra_differences": sched.gcra_differences(workload)})
    else:
        result = getattr(sched, f"{kind.removeprefix('sched_')}_result")(workload)
    return made(kind, workload, result, {})


def test_it_says_the_same_again(whole: Receipt) -> None:
    again = recompute(whole)
    assert again.rows and all(row.same for row in again.rows)
    assert set(again.missing) == ({"gcra_differences"} if whole.kind == "sched_admission" else set())


def test_a_changed_number_shows(whole: Receipt) -> None:
    name = next(iter(recompute(whole).rows)).metric
    metric = whole.metrics[name]
    changed = replace(whole, metrics={**whole.metrics, name: replace(metric, value=metric.value + 1)})
    assert [row.metric for row in recompute(changed).rows if not row.same] == [name]


def test_gcra_and_bucket_agree(whole: Receipt) -> None:
    if "gcra_differences" in whole.metrics:
        assert whole.metrics["gcra_differences"] == Metric(0, "decisions", 100_000)


def test_the_lists_are_recomputed_from_the_file() -> None:
    result = sched.cplan_result(LISTS["by_rate_per_s"])
    data = json.dumps(LISTS).encode()
    one = made("sched_cplan", {}, result, {"lists.json": data})
    assert all(row.same for row in recompute(one, [data]).rows)
