"""The Planner's page: what its panels say is what the core says, and a dropped config.json becomes its model."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from servelab.plan import devices, models
from servelab.plan.memory import Layout
from servelab.plan.plan import Plan, solve
from servelab.view.bars import Bars
from servelab.view.frame import Frame
from servelab.view.heat import Heat
from servelab.view.matrix import Matrix
from servelab.view.metric import Metric
from servelab.view.plot import Plot
from servelab.view.words import Table, Text
from studios.planner import numbers, whole, yours
from studios.planner.view import PRESETS, State, plan, rest, view


def panels(frame: Frame) -> dict[str, object]:
    return {panel.id: panel for panel in frame.panels}


def tile(frame: Frame, name: str) -> float | None:
    found = panels(frame)[name]
    assert isinstance(found, Metric)
    return found.value


@pytest.fixture(autouse=True)
def nothing_dropped() -> None:
    yours._given.clear()


def test_tiles_are_the_solver_s() -> None:
    frame = view(State(model="Qwen2.5-7B", quant="bf16", clients=16), {})
    answer = solve(Plan(models.model("Qwen2.5-7B"), devices.device("H200"), Layout(), "bf16", clients=16))
    assert tile(frame, "room") == answer.memory.capacity
    assert tile(frame, "ttft") == pytest.approx(answer.ttft)
    assert tile(frame, "tpot") == pytest.approx(1e3 * answer.tpot)
    assert tile(frame, "throughput") == pytest.approx(answer.throughput)


@pytest.mark.parametrize("name", PRESETS)
def test_time_by_cause_adds_up_to_the_time_per_token(name: str) -> None:
    frame = view(PRESETS[name].state, {})
    bars = panels(frame)["time"]
    assert isinstance(bars, Bars)
    assert sum(bars.rows[bars.mark].values) == pytest.approx(tile(frame, "tpot") or 0)


def test_memory_bars_are_under_their_limit_exactly_where_a_plan_fits() -> None:
    for preset in PRESETS.values():
        bars = panels(view(preset.state, {}))["memory"]
        assert isinstance(bars, Bars)
        for row in bars.rows:
            assert (sum(row.values) <= bars.limit) == row.end.endswith("fit"), (preset.label, row)


def test_what_does_not_fit_says_why_and_shows_dashes() -> None:
    frame = view(PRESETS["none"].state, {})
    assert "does not fit: weights take 131.4 GiB of 21.6" in frame.headline
    assert [tile(frame, name) for name in ("room", "ttft", "tpot", "throughput", "price")] == [None] * 5
    bars = panels(frame)["memory"]
    assert isinstance(bars, Bars) and bars.caption.startswith("Does not fit: weights take")
    shown = [panel for panel in frame.panels if isinstance(panel, Metric)]
    assert all("weights take 131.4 GiB" in m.how[0][1] for m in shown if m.value is None)
    assert "roofline" not in panels(frame) and "batching" not in panels(frame)


def test_heads_that_do_not_divide_are_told_and_the_others_stay() -> None:
    frame = view(State(model="Qwen2.5-7B", quant="bf16", tp=8), {})
    assert "28 heads do not split by tp=8; use one of 1, 2, 4, 7, 14, 28" in frame.headline
    bars = panels(frame)["memory"]
    assert isinstance(bars, Bars) and [row.name for row in bars.rows] == ["1 GPU", "2 GPUs", "4 GPUs", "8 GPUs"]


def test_a_row_of_the_matrix_is_the_plan_that_its_state_gives() -> None:
    state = State(clients=16)
    found = panels(view(state, {}))["matrix"]
    assert isinstance(found, Matrix)
    at = next(i for i, row in enumerate(found.rows) if row[0] == "4 × H100 SXM")
    chosen = {key: int(value) if value.isdigit() else value for key, value in found.states[at].items()}
    frame = view(replace(state, **chosen), {})
    assert found.rows[at][3:6] == pytest.approx(
        (1e3 * (tile(frame, "ttft") or 0), tile(frame, "tpot"), tile(frame, "throughput"))
    )
    assert found.rows[found.mark][0] == "1 × H200 SXM"


def test_the_total_never_falls_with_more_streams() -> None:
    plot = panels(view(State(), {}))["batching"]
    assert isinstance(plot, Plot)
    decoding, each = plot.traces[0]["y"].data, plot.traces[2]["y"].data
    assert all(later >= before for before, later in zip(decoding, decoding[1:], strict=False))
    assert all(later <= before for before, later in zip(each, each[1:], strict=False))


def test_explanations_hold_the_tile_s_value() -> None:
    answer = solve(plan(State()))
    for metric in numbers.tiles(answer, "on demand", 0.6):
        assert metric.how, metric.id
    tpot = next(m for m in numbers.tiles(answer, "on demand", 0.6) if m.id == "tpot")
    assert tpot.how[0][1] == f"{1e3 * answer.tpot:,.3g} ms"


def test_rest_has_the_queue_the_cheapest_the_front_and_all_models_on_all_devices() -> None:
    found = {panel.id: panel for panel in rest(State(), {})}
    heat, queue, cheapest = found["heat"], found["queue"], found["cheapest"]
    assert isinstance(heat, Heat) and isinstance(queue, Table) and isinstance(cheapest, Matrix)
    assert len(heat.level.data) == len(models.table()) * len(devices.table())
    assert heat.rows[heat.mark // len(heat.columns)] == "Llama-3.1-70B"
    assert heat.columns[heat.mark % len(heat.columns)] == "H200 SXM"
    dollars = [float(row[-1] or 0) for row in cheapest.rows]
    assert dollars == sorted(dollars)
    assert all(float(row[3] or 0) <= 2000 and float(row[4] or 0) <= 50 for row in cheapest.rows)


@pytest.mark.parametrize("shade", whole.LEVELS)
def test_levels_are_those_of_the_facts(shade: str) -> None:
    heat = whole.heat(plan(State()), "published", "on demand", shade)
    gpus, speed, _, dollars = (fact.values.data for fact in heat.facts)
    for at, level in enumerate(heat.level.data):
        if math.isnan(gpus[at]):
            assert level == -1
        elif shade == "gpus":
            assert heat.levels[level].split()[0] == f"{gpus[at]:.0f}"
        elif shade == "speed":
            assert level == sum(speed[at] >= bound for bound in whole.SPEEDS)
        elif shade == "price":
            assert (level == -1) == math.isnan(dollars[at])
        else:
            assert 0 <= level < 4


def test_no_plan_within_the_service_level_is_said() -> None:
    found = {panel.id: panel for panel in rest(State(model="DeepSeek-V3", quant="bf16", ttft=0.1, tpot=2.0), {})}
    assert isinstance(found["cheapest"], Text) and "No rented GPU keeps" in found["cheapest"].body[0]


CONFIG = {
    "model_type": "llama", "hidden_size": 1024, "num_hidden_layers": 8, "num_attention_heads": 16,
    "num_key_value_heads": 4, "intermediate_size": 4096, "vocab_size": 32000, "max_position_embeddings": 8192,
}  # fmt: skip


def test_a_dropped_config_is_the_model_from_then_on() -> None:
    with pytest.raises(ValueError, match="this tab has no config.json of yours"):
        view(State(model=yours.NAME), {})
    frame = yours.drop("tiny.json", json.dumps(CONFIG).encode(), {})
    layer = 1024 * (1024 + 2 * 256 + 1024) + 3 * 1024 * 4096 + 2 * 1024
    total = 2 * 32000 * 1024 + 8 * layer + 1024
    assert tile(frame, "params") == pytest.approx(total / 1e9)
    assert tile(frame, "each") == 2 * 8 * 4 * 64 * 2 / 1024
    assert "tiny.json" in view(State(model=yours.NAME, quant="published"), {}).headline


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"{", "no JSON"), (b"[1]", "has to be a JSON object"), (b'{"model_type": "zeta"}', "model_type='zeta'"),
        (json.dumps({**CONFIG, "hidden_size": None}).encode(), "has no hidden_size"),
        (json.dumps({**CONFIG, "num_key_value_heads": 5}).encode(), "num_key_value_heads=5"),
    ],
)  # fmt: skip
def test_a_bad_config_names_its_field_and_nothing_is_lost(data: bytes, told: str) -> None:
    yours.drop("good.json", json.dumps(CONFIG).encode(), {})
    with pytest.raises(ValueError, match=told):
        yours.drop("bad.json", data, {})
    assert yours.shape(yours.NAME).name == "good.json"
