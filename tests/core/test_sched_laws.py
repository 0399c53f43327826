"""What holds of every queue: nobody is lost, the engine never rests while somebody could run, and M/D/1 waits."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_sched_simulate import engines, workloads

from servelab.sched import hardware
from servelab.sched.arrivals import Lengths, Traffic, generate
from servelab.sched.cost import Cost
from servelab.sched.engine import Engine
from servelab.sched.metrics import summary
from servelab.sched.request import PS, Workload
from servelab.sched.routing import ROUTERS
from servelab.sched.simulate import simulate

H200 = hardware.cost("H200", "Qwen2.5-7B")[0]


@settings(max_examples=300, deadline=None)
@given(workloads(), engines(), st.integers(1, 3), st.sampled_from(list(ROUTERS)))
def test_every_request_ends_once_or_is_refused(work: Workload, engine: Engine, replicas: int, router: str) -> None:
    log = simulate(work, engine, replicas, ROUTERS[router])
    room = engine.blocks * engine.block_size
    for i, replica in enumerate(log.replica):
        if work.prompt[i] + max(work.output[i] - 1, 0) > room:
            assert (replica, log.admitted[i], log.first[i], log.finish[i]) == (-1, -1, -1, -1)
            continue
        assert 0 <= replica < replicas and work.arrival[i] <= log.admitted[i] < log.finish[i]
        assert (log.first[i] < 0) == (work.output[i] == 0) and log.first[i] <= log.finish[i]
        assert work.output[i] > 1 or log.first[i] in (-1, log.finish[i])


@settings(max_examples=300, deadline=None)
@given(workloads(), engines())
def test_an_engine_rests_only_when_all_who_came_are_done(work: Workload, engine: Engine) -> None:
    log = simulate(work, engine)
    steps = log.steps[0]
    rows = list(zip(steps[::7], steps[6::7], strict=True))
    for (start, took), (then, _) in zip(rows, rows[1:], strict=False):
        assert start + took <= then
        if start + took < then:
            done = [f <= start + took for f, r, t in zip(log.finish, log.replica, work.arrival, strict=True)
                    if r >= 0 and t <= start + took]  # fmt: skip
            assert all(done)


@pytest.mark.parametrize("load", [0.3, 0.6, 0.8])
def test_one_server_of_constant_time_waits_as_pollaczek_and_khinchine_say(load: float) -> None:
    """M/D/1: the mean wait is ρ·S/(2·(1 − ρ)). One sequence, a prompt in one step, one token."""
    service = PS // 10
    engine = Engine(Cost(graph=service, mixed=service, eager=service), seqs=1)
    traffic = Traffic(load * 10, 60_000, Lengths("fixed", 10), Lengths("fixed", 1))
    log = simulate(generate(traffic, 5), engine)
    waits = [first - arrival - service for first, arrival in zip(log.first, log.work.arrival, strict=True)]
    assert sum(waits) / len(waits) == pytest.approx(load * service / (2 * (1 - load)), rel=0.06)


def served(rate: float, arrivals: str = "poisson", cv: float = 1.0) -> dict[str, float]:
    prompts, outputs = Lengths("lognormal", 256, 0.8, 8, 2048), Lengths("lognormal", 64, 0.6, 4, 256)
    traffic = Traffic(rate, 1500, prompts, outputs, arrivals, cv)
    found = summary(simulate(generate(traffic, 2), Engine(H200, seqs=64)))
    return {"ttft": found["ttft"]["mean_ms"], "rate": found["requests_per_s"]}


def test_bursts_raise_the_wait_several_times_at_equal_throughput() -> None:
    """inference-sim PR 818: arrivals with a coefficient of variation of 3."""
    calm, bursty = served(80), served(80, "gamma", 3.0)
    assert bursty["ttft"] > 3 * calm["ttft"] and bursty["rate"] == pytest.approx(calm["rate"], rel=0.1)


def test_an_overload_queues_and_a_higher_one_serves_no_more() -> None:
    """LLMServingSim 40: beyond capacity waits grow with the number of requests, and throughput stays."""
    low, high, higher = served(20), served(150), served(300)
    assert high["ttft"] > 20 * low["ttft"] and higher["ttft"] > high["ttft"]
    assert higher["rate"] == pytest.approx(high["rate"], rel=0.1)


def test_all_at_the_same_time_and_rates_from_tiny_to_huge_end() -> None:
    for rate, arrivals in ((1e-4, "constant"), (1e9, "poisson"), (1, "burst")):
        traffic = Traffic(rate, 40, Lengths("fixed", 50), Lengths("fixed", 5), arrivals)
        assert min(simulate(generate(traffic, 0), Engine(H200)).finish) > 0
    with pytest.raises(ValueError, match="463 days, and a run may last 53; use a higher rate"):
        generate(Traffic(1e-6, 40, Lengths(), Lengths(), "constant"), 0)
    with pytest.raises(ValueError, match="outside 1e-6…1e9"):
        Traffic(0, 1, Lengths(), Lengths())
