"""A plan with more clients than room: the simulator's queue beside Little's law, and beside the formula where none
waits."""

from __future__ import annotations

from dataclasses import replace

import pytest

from servelab.plan import devices, models
from servelab.plan.plan import Answer, Plan, solve
from servelab.plan.queue import cost, queue


def plan(model: str = "Llama-3.1-70B", device: str = "H200", **more: object) -> Answer:
    made = Plan(models.model(model), devices.device(device), quant="fp8", prompt=8192, output=1024)
    return solve(replace(made, **more))  # type: ignore[arg-type]


def test_who_has_no_room_waits_and_nobody_is_refused() -> None:
    answer = plan(clients=64)
    seen = queue(answer)
    assert answer.memory.capacity < 64
    assert seen.waiting == pytest.approx(64 - answer.memory.capacity, rel=0.05)
    assert seen.ttft == pytest.approx(answer.ttft, rel=0.15)
    assert seen.throughput == pytest.approx(answer.throughput, rel=0.15)
    assert seen.preempted > 0 and seen.n == 128


@pytest.mark.parametrize(("model", "device", "clients"), [
    ("Llama-3.1-8B", "H100", 1), ("Llama-3.1-8B", "H100", 16), ("Qwen2.5-7B", "L40S", 8), ("Qwen3-30B-A3B", "H200", 4),
])  # fmt: skip
def test_where_nobody_waits_it_is_the_formula(model: str, device: str, clients: int) -> None:
    answer = plan(model, device, clients=clients, prompt=1024, output=512)
    seen = queue(answer)
    assert seen.waiting < 0.05 * clients and seen.preempted == 0
    assert seen.tpot == pytest.approx(answer.tpot, rel=0.1)
    assert seen.throughput == pytest.approx(answer.throughput, rel=0.1)


def test_twice_the_clients_wait_twice_as_long_once_the_pool_is_full() -> None:
    """Little: a full pool serves at its rate, so each client more adds one service time's share."""
    one, two = queue(plan(clients=60)), queue(plan(clients=120))
    assert two.throughput == pytest.approx(one.throughput, rel=0.05)
    assert two.waiting - one.waiting == pytest.approx(60, rel=0.05)


def test_thousands_of_clients_are_simulated_to_scale() -> None:
    few, many = queue(plan(clients=500)), queue(plan(clients=5000))
    assert many.n == few.n == 1000
    assert many.waiting == pytest.approx(5000 - 21, rel=0.02)


def test_what_does_not_fit_has_no_queue() -> None:
    with pytest.raises(ValueError, match="does not fit: weights take"):
        cost(plan(device="T4"))
