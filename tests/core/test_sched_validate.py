"""Calibration and validation on a run whose truth is known, and what a broken run file says."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from typing import Any

import pytest
from engine_run import OVERLAPPING, TRUTH, clocked_file, run_file

from servelab.sched import hardware
from servelab.sched.calibrate import errors, fit, fit_gpu
from servelab.sched.closed import closed
from servelab.sched.engine import Engine
from servelab.sched.metrics import MS, summary
from servelab.sched.request import PS, Workload, column
from servelab.sched.runs import Run, Step, read_run, rebuild, spans
from servelab.sched.validate import Row, calibrate, composition, validate


@pytest.fixture(scope="module")
def run() -> Run:
    return read_run(run_file(), "made-up")


def test_a_fit_finds_the_cost_that_made_the_steps(run: Run) -> None:
    """Not the coefficients, which stand in for each other, but what they say of steps never seen."""
    (found,) = calibrate([run])
    assert found.mape < 0.5 and abs(found.bias) < 0.2
    for verdict in validate(run, found.cost, [run]):
        assert verdict.mape < 2, verdict.name
        assert all(abs(row.error) < bound(row, 3) for row in verdict.rows), verdict.name


def bound(row: Row, percent: float) -> float:
    """A percentile of TTFT is one request's; one that misses a step by microseconds waits for a whole one more."""
    return percent * (4 if row.metric.startswith("ttft_p") else 1)


def test_with_the_true_cost_nothing_is_left(run: Run) -> None:
    for verdict in validate(run, TRUTH, [run]):
        assert (verdict.same, verdict.seen) == (verdict.steps, verdict.name == "fit-a")
        assert verdict.mape < 0.05  # seconds as text
        assert all(row.error == pytest.approx(0, abs=1e-3) for row in verdict.rows), verdict.name


def test_a_percentile_is_stated_from_enough_requests(run: Run) -> None:
    rows = [row for verdict in validate(run, TRUTH, [run]) for row in verdict.rows if row.metric.endswith("p99")]
    assert all(row.n >= 1000 for row in rows)


def test_an_engine_with_another_budget_composes_other_steps(run: Run) -> None:
    held = run.online[2]
    assert composition(run, held) == len(held.steps)
    assert composition(run, replace(held, budget=8192)) < 0.9 * len(held.steps)


@pytest.fixture(scope="module")
def clocked() -> Run:
    return read_run(clocked_file(), "clocked")


def test_parts_of_steps_are_read_as_they_were(clocked: Run) -> None:
    """CPU, launch and, where it did not wait for the CPU, the GPU: what the cost that made them says."""
    steps = [step for one in clocked.online for step in one.steps[2:] if step.cpu]
    for step in steps:
        cpu, launch = OVERLAPPING.on_host(step.decodes, step.tokens, step.chunks, step.admitted)
        assert (step.cpu, step.launch) == pytest.approx((cpu / PS, launch / PS), abs=1e-6)
    alone = [step for one in (*clocked.online, *clocked.held) for step in one.steps if step.gpu and step.tokens]
    assert len(alone) > 200
    for step in alone:
        parts = step.decodes, step.ctx, step.tokens, step.work, step.chunks, step.admitted, step.sampled
        assert step.gpu == pytest.approx(OVERLAPPING.step(*parts, PS)[0] / PS, abs=1e-6)
    assert not any(step.seconds for one in clocked.held for step in one.steps)


def test_parts_are_fitted_each_on_its_own(clocked: Run) -> None:
    (found,) = calibrate([clocked])
    assert found.mape < 1 and abs(found.bias) < 0.5
    for name in ("host", "seq", "token", "context", "mixed", "graph"):
        assert getattr(found.cost, name) == pytest.approx(getattr(OVERLAPPING, name), rel=0.05), name
    for verdict in validate(clocked, found.cost, [clocked]):
        assert verdict.same == verdict.steps, verdict.name
        assert all(abs(row.error) < bound(row, 3) for row in verdict.rows), verdict.name


def test_a_gpu_that_never_rests_is_believed() -> None:
    """Under load prompts take 10 % longer; sizes that only held steps know are priced as if they did, too."""
    made = [Step(0, 0, n, n * n // 2, 1, 1, 1, False, 0) for n in (300, 400, 500, 700, 900, 3000, 4000)] * 8
    alone = [replace(one, gpu=OVERLAPPING.step(0, 0, one.tokens, one.work, 1, 1, 1, PS)[0] / PS) for one in made]
    loaded = [replace(one, gpu=1.1 * one.gpu) for one in alone if one.tokens < 1000]
    found = fit_gpu(loaded, alone)
    for one in alone:
        said = found.step(0, 0, one.tokens, one.work, 1, 1, 1)[0] / PS
        assert said == pytest.approx(1.1 * one.gpu, rel=0.01), one.tokens
    with pytest.raises(ValueError, match="needs 20"):
        fit_gpu([], alone[:3])


def test_a_small_pool_preempts_as_the_engine_did(clocked: Run) -> None:
    """vLLM keeps a block for itself: with one more, or one less, other steps are composed."""
    tight = clocked.online[3]
    assert sum(step.admitted for step in tight.steps) > len(tight.work or ())  # some were admitted again
    assert composition(clocked, tight) == len(tight.steps)
    other = replace(tight, about={"kv_blocks": 402})
    assert composition(clocked, other) < len(tight.steps)


def test_a_file_has_its_own_cpu_and_the_gpu_of_all(clocked: Run) -> None:
    """A second file without held steps, from a machine whose CPU takes half as long again."""
    slow = read_run(clocked_file(OVERLAPPING.slowed(1.5), held=False), "slow")
    other = replace(clocked, name="other", overlap=False)
    first, second, _ = calibrate([clocked, slow, other])
    assert calibrate([clocked]) == [first]
    for name in ("host", "seq", "mixed"):
        assert getattr(second.cost, name) == pytest.approx(1.5 * getattr(first.cost, name), rel=0.05), name
    assert (second.cost.token, second.cost.context) == (first.cost.token, first.cost.context)


def test_outliers_do_not_pull_a_fit(run: Run) -> None:
    """Every 50th step takes ten times as long: the fit says of the others what it said before, within 2 %."""
    clean = [span for one in run.online[:1] for span in spans(one, False)]
    noisy = [(steps, seconds * (10 if k % 50 == 25 else 1)) for k, (steps, seconds) in enumerate(clean)]
    off = errors(fit(noisy).cost, clean)
    assert abs(sorted(off)[len(off) // 2]) < 0.02


def test_steps_of_an_overlapping_engine_stand_with_their_neighbours() -> None:
    plain = Step(4, 40, 0, 0, 0, 0, 4, False, 1.0)
    mixed = replace(plain, tokens=10, chunks=1)
    one = replace(read_run(run_file()).online[0], steps=(plain, plain, mixed, mixed, plain, plain))
    assert [(len(steps), seconds) for steps, seconds in spans(one, True)] == [(1, 1.0), (4, 4.0), (1, 1.0)]
    assert [len(steps) for steps, _ in spans(one, False)] == [1] * 6


def test_what_a_step_did_follows_from_the_order_of_prompts() -> None:
    """Two prompts of 6 and 5 tokens through a budget of 8: 6 + 2, then 3."""
    rows = [[0.1, 2, 8, 0, 8], [0.2, 1, 3, 1, 5 + 7]]
    first, second = rebuild(rows, [6, 5], [0.0, 0.0], [0.15, 0.25])
    assert (first.work, first.admitted, first.sampled, first.woken) == (21 + 3, 2, 1, True)
    assert (second.decodes, second.ctx, second.work, second.sampled) == (1, 7, 3 * 2 + 6, 2)
    with pytest.raises(ValueError, match="step 0: 9 prompt tokens in 1 chunks"):
        list(rebuild([[0.1, 1, 9, 0, 9]], [6], [0.0], [0.2]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda run: run.pop("kv_blocks"), "'kv_blocks' is missing"),
        (lambda run: run["online"][0]["requests"][0].pop("n_in"), "'n_in' is missing"),
        (lambda run: run.update(budget="many"), "many"),
    ],
)
def test_a_broken_run_file_is_named(change: Any, message: str) -> None:
    broken = json.loads(gzip.decompress(run_file()))
    change(broken)
    with pytest.raises(ValueError, match=message) as error:
        read_run(json.dumps(broken).encode(), "x.json")
    assert "x.json is no run file" in str(error.value) and "engine_steps.py" in str(error.value)


def test_a_run_of_too_few_steps_is_not_fitted() -> None:
    with pytest.raises(ValueError, match="needs 20"):
        fit([((Step(1, 1, 0, 0, 0, 0, 1, False, 0.1),), 0.1)])


def test_prompts_share_the_step_with_decodes() -> None:
    """H200, Qwen3-8B, prompts of 9,000 and answers of 30 tokens: 236.8 ms a token were measured with 32 at once and
    308.8 with 64, where a planner that left prompts out of the step said 249 (aiconfigurator #1148). A step without
    prompts takes a tenth of that. Step costs here are a roofline."""
    cost, source = hardware.cost("H200", "Qwen3-8B")
    assert source == "roofline"
    engine = Engine(cost, budget=8192, blocks=hardware.pool("H200", "Qwen3-8B"))
    for clients, measured in ((32, 236.8), (64, 308.8)):
        n = 10 * clients
        work = Workload(column([0] * n), column([9000] * n), column([30] * n))
        found = summary(closed(work, engine, clients))["tpot"]["mean_ms"]
        assert found == pytest.approx(measured, rel=0.15)
        line = cost.line(clients)
        assert 10 * max(line.floor, line.base + line.slope * clients * 9015) < found * MS
