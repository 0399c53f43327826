"""The simulator against its step-by-step reference: equal logs, not nearly equal ones."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import given, settings
from hypothesis import strategies as st

from servelab.sched.cost import Cost, Line, reach, total
from servelab.sched.engine import Engine
from servelab.sched.policies import POLICIES
from servelab.sched.reference import Event, Reference
from servelab.sched.request import Workload, column
from servelab.sched.simulate import Log, simulate

SMALL = st.integers(0, 40)
COSTS = st.builds(
    Cost, host=SMALL, seq=st.integers(0, 5), new=SMALL, fixed=SMALL, weights=st.integers(0, 200),
    token=st.integers(0, 9), tile=st.integers(1, 8), context=st.integers(0, 3), work=st.integers(0, 2),
    logit=st.integers(0, 5), graph=st.integers(1, 150), mixed=st.integers(1, 300), eager=st.integers(1, 500),
    graph_tokens=SMALL, pieces=SMALL, overlap=st.booleans(), swap=SMALL,
)  # fmt: skip


def rows(values: object, width: int) -> Iterator[tuple[int, ...]]:
    """A packed column of rows."""
    flat = list(values)  # type: ignore[call-overload]
    return zip(*(flat[i::width] for i in range(width)), strict=True)


def events(log: Log) -> list[Event]:
    """What the reference would have written, without single tokens."""
    out: list[Event] = []
    for start, count, n, width, ctx, tokens, took in rows(log.steps[0], 7):
        if tokens:
            mixed = POLICIES[log.engine.policy].step == "mixed"
            out.append((start, "step", took, n if mixed else 0))
            continue
        if count == 1:  # with what it may have cost to swap
            out.append((start, "step", took, n))
            continue
        line = log.engine.cost.line(width)
        ends = [start + total(line, ctx, n, k) for k in range(count + 1)]
        assert ends[-1] == start + took
        out += [(a, "step", b - a, n) for a, b in zip(ends, ends[1:], strict=False)]
    out += [(start, "chunk", i, n) for start, _, i, n in rows(log.chunks[0], 4) if n]
    out += [(t, "preempt", i, said) for t, i, said in rows(log.preempted[0], 3)]
    out += [(t, "token", i, 1) for i, t in enumerate(log.first) if t >= 0]
    out += [(t, "finish", i, log.work.output[i]) for i, t in enumerate(log.finish) if t >= 0]
    return sorted(out)


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    n = draw(st.integers(0, 12))
    arrival = sorted(draw(st.lists(st.integers(0, draw(st.sampled_from([0, 300, 5000]))), min_size=n, max_size=n)))
    prompt = draw(st.lists(st.integers(1, 40), min_size=n, max_size=n))
    output = draw(st.lists(st.integers(0, 30), min_size=n, max_size=n))
    due = draw(st.lists(st.integers(0, 3000), min_size=n, max_size=n))
    return Workload(column(arrival), column(prompt), column(output), due=column(due))


@st.composite
def engines(draw: st.DrawFn) -> Engine:
    budget = draw(st.integers(1, 64))
    return Engine(
        draw(COSTS), draw(st.sampled_from(list(POLICIES))), budget, draw(st.integers(1, min(budget, 8))),
        draw(st.one_of(st.integers(1, 30), st.just(10_000))), draw(st.sampled_from([1, 2, 4, 16])),
        swap=draw(st.booleans()),
    )  # fmt: skip


@settings(max_examples=1500, deadline=None)
@given(workloads(), engines())
def test_runs_of_steps_equal_single_steps(work: Workload, engine: Engine) -> None:
    expected = sorted(e for e in Reference(work, engine).run() if e[1] != "admit" and (e[1] != "token" or e[3] == 1))
    assert events(simulate(work, engine, detail=True)) == expected


@given(st.integers(1, 60), st.integers(0, 60), st.integers(0, 4), SMALL, st.integers(1, 6), st.integers(1, 3000))
def test_a_run_of_steps_is_summed_and_cut_exactly(
    floor: int, base: int, slope: int, ctx: int, n: int, span: int
) -> None:
    """Against the sum, step by step."""
    line = Line(floor, base, slope)
    steps, passed = 0, 0
    while passed < span:
        steps += 1
        passed += max(floor, base + slope * (ctx + n * steps))
        assert total(line, ctx, n, steps) == passed
    assert reach(line, ctx, n, span) == steps
