"""The host's speed read off schedule() calls: a run made on a host whose slowness is known."""

from __future__ import annotations

from dataclasses import replace

import pytest

from servelab.sched.arrivals import Lengths, Traffic, generate
from servelab.sched.cost import Cost
from servelab.sched.engine import Engine
from servelab.sched.host import Hosted, Pace, pace, slowness, slowness_of_parts, told
from servelab.sched.reference import Reference
from servelab.sched.request import PS
from servelab.sched.runs import Recording, Run, Step

TRUE = Pace(50e-6, 8e-6, 40e-6, 0.1e-6, 20e-6)
STEPS = [Step(k % 40, 0, 100 * (k % 7), 0, k % 3, k % 2, 0, False, 0.01) for k in range(600)]


def recording(name: str, slow: list[float]) -> Recording:
    scheduling = tuple(TRUE.of(step) * h for step, h in zip(STEPS, slow, strict=True))
    return Recording(name, 512, tuple(STEPS), None, tuple(0.01 * k for k in range(600)), scheduling)


def test_the_pace_and_the_slowness_are_found_again() -> None:
    """Half of the run on a host that is half as fast again; one call in fifty is interrupted for a millisecond."""
    slow = [1.0 if k < 300 else 1.5 for k in range(600)]
    seen = recording("fit-a", [1.0] * 600)
    found = pace([replace(seen, scheduling=tuple(t + 1e-3 * (k % 50 == 7) for k, t in enumerate(seen.scheduling)))])
    assert found == pytest.approx(TRUE, rel=0.02)
    hosts = slowness(recording("b", slow), found)
    assert hosts[:280] == pytest.approx([1.0] * 280, abs=0.04) and hosts[320:] == pytest.approx([1.5] * 280, abs=0.04)
    run = Run("r", "m", "g", "e", 512, 64, 100, False, 512, (), (), (seen, recording("b", slow)))
    assert [step.host for step in told(run, [seen]).online[1].steps] == pytest.approx(slow, abs=0.5)
    assert told(replace(run, online=(replace(seen, scheduling=()),)), [seen]).online[0].steps == tuple(STEPS)


@pytest.mark.parametrize("overlap", [True, False])
def test_where_the_cpus_own_time_is_known_it_tells(overlap: bool) -> None:
    """Issuing is as slow, or held up by the GPU where the engine waits for that: then it does not count."""
    cost = Cost(host=PS // 2000, seq=PS // 10**5, graph=PS // 2500, mixed=PS // 300, overlap=overlap)
    slow = [1.0 if k < 300 else 1.5 for k in range(600)]
    steps = []
    for step, h in zip(STEPS, slow, strict=True):
        cpu, launch = (h * part / PS for part in cost.on_host(step.decodes, step.tokens, step.chunks, step.admitted))
        steps.append(replace(step, cpu=cpu, launch=launch if overlap else 0.02))
    one = replace(recording("a", slow), steps=tuple(steps))
    hosts = slowness_of_parts(one, cost)
    assert hosts[:290] == pytest.approx([1.0] * 290, abs=0.02) and hosts[310:] == pytest.approx([1.5] * 290, abs=0.02)
    run = Run("r", "m", "g", "e", 512, 64, 100, overlap, 512, (), (), (one,))
    assert [step.host for step in told(run, [], cost).online[0].steps] == hosts
    assert told(run, [one]) is run


def test_too_few_calls_have_no_pace() -> None:
    with pytest.raises(ValueError, match="needs 20"):
        pace([Recording("short", 512, ())])


def test_a_slow_host_makes_what_is_the_cpus_slower_and_nothing_else() -> None:
    cost = Cost(host=10, seq=2, new=5, weights=1000, token=3, context=4, work=5, graph=100, mixed=200, eager=300)
    slow = cost.slowed(2.0)
    assert (slow.host, slow.seq, slow.new, slow.graph, slow.mixed, slow.eager) == (20, 4, 10, 200, 400, 600)
    assert replace(slow, host=10, seq=2, new=5, graph=100, mixed=200, eager=300) == cost
    assert cost.slowed(1.0) is cost and Cost().slowed(0.5).graph == 1


@pytest.mark.parametrize("slow", [1.0, 1.25])
def test_on_a_steady_host_it_is_the_reference_with_that_cost(slow: float) -> None:
    work = generate(Traffic(200, 50, Lengths("uniform", low=10, high=90), Lengths("uniform", low=1, high=20)), 3)
    engine = Engine(Cost(host=PS // 1000, graph=PS // 500, mixed=PS // 400, eager=PS // 300), budget=64, seqs=8)
    steady = replace(recording("x", [1.0] * 600), steps=tuple(replace(step, host=slow) for step in STEPS))
    expected = Reference(work, replace(engine, cost=engine.cost.slowed(slow))).run()
    assert Hosted(work, engine, steady).run() == expected
