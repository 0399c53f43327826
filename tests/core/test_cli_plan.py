"""`servelab plan` as its users call it: the core's numbers, JSON for machines, one line for a mistake."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_call import Room

from servelab.plan.devices import device
from servelab.plan.memory import Layout
from servelab.plan.models import model, table
from servelab.plan.plan import Plan, solve

room = Room("plan")
call, out = room.call, room.out


def test_fit_is_the_cores_answer() -> None:
    found = out("fit", "--model", "llama-3.1-70b", "--quant", "fp8", "--tp", "2", "--clients", "8")
    plan = Plan(model("Llama-3.1-70B"), device("H200"), Layout(2), "fp8", clients=8)
    assert found["tpot_s"] == solve(plan).tpot and found["capacity"] == solve(plan).memory.capacity
    low, high = found["tpot_interval_s"]
    assert low < found["tpot_s"] < high
    text, _, _ = call("fit", "--model", "llama-3.1-70b", "--quant", "fp8", "--tp", "2", "--clients", "8")
    assert "weights" in text and "limited by bandwidth" in text


def test_a_plan_that_does_not_fit_says_why() -> None:
    assert "28 heads do not split by tp=8" in call("fit", "--model", "Qwen2.5-7B", "--tp", "8")[0]
    assert "weights take" in out("fit", "--model", "Llama-3.1-405B")["reason"]


def test_compare_prints_the_matrix_of_the_issue_and_its_rows_are_plans() -> None:
    text, _, code = call("compare", "--model", "qwen2.5-7b", "--quant", "fp16")
    assert code == 0 and "2 × H200 SXM" in text and "no room" in text
    rows = out("compare", "--device", "H200", "--device", "T4")["rows"]
    [row] = [r for r in rows if r["device"] != "T4" and r["gpus"] == 4]
    assert row["tpot_s"] == solve(Plan(model("Qwen2.5-7B"), device("H200"), Layout(4))).tpot


def test_matrix_search_tco_spec_and_tables() -> None:
    assert len(out("matrix")["rows"]) == len(table())
    rows = out("search", "--model", "Llama-3.1-8B", "--ttft", "1", "--tpot", "0.02")["rows"]
    assert rows and all(r["ttft_s"] <= 1 and r["tpot_s"] <= 0.02 for r in rows)
    assert rows[0]["usd_per_million"] <= rows[-1]["usd_per_million"]
    ways = out("tco")["ways"]
    assert {"rent, on demand", "rent, spot", "own"} <= set(ways)
    assert 0 < out("spec")["break_even"] < 1
    assert len(out("models")) >= 60 and len(out("devices")) >= 70
    for name in ("matrix", "tco", "spec", "models", "devices", "search"):
        assert call(name)[2] == 0


def test_a_config_file_is_planned(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps(table()["Qwen3-8B"].config))
    assert out("fit", "--config", str(path))["params"]["total"] == 8_190_735_360
    path.write_text('{"model_type": "llama"}')
    assert "no vocab_size" in call("fit", "--config", str(path))[1] or "has no" in call("fit", "--config", str(path))[1]
    path.write_text("{")
    assert "is no JSON" in call("fit", "--config", str(path))[1]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("fit", "--model", "nothing"), "model='nothing' is unknown"),
        (("fit", "--prompt", "0"), "prompt=0"),
        (("fit", "--device", "abacus"), "device='abacus'"),
        (("fit", "--engine", "steam"), "engine='steam'"),
        (("fit", "--kv", "int1"), "int1"),
        (("tco", "--capital", "-1"), "capital=-1"),
        (("tco", "--model", "Llama-3.1-405B", "--tp", "1"), "the plan does not fit"),
        (("search", "--tpot", "0.0001"), "allow more seconds"),
        (("spec", "--accept", "2"), "accept=2"),
        (("validate", "/nonexistent.csv"), "cannot be read"),
        (("fit", "--config", "/nonexistent.json"), "cannot be read"),
    ],
)
def test_a_mistake_is_one_line_on_stderr(arguments: tuple[str, ...], told: str) -> None:
    _, error, code = call(*arguments)
    assert code == 2 and told in error and error.count("\n") == 1
