"""Search: many plans at once. Policies of what is best are plain functions of an Answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from servelab.plan.devices import Device
from servelab.plan.memory import UTILISATION, Layout, problem, rank_bytes
from servelab.plan.money import per_million, price, rent
from servelab.plan.plan import Answer, Plan, solve
from servelab.plan.shapes import Shape

SPREADS = (1, 2, 4, 8)
"""Devices of a replica that are tried."""

BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


@dataclass(frozen=True, slots=True)
class Slo:
    """Most seconds to the first token and per output token after it."""

    ttft: float = 2.0
    tpot: float = 0.1

    def __post_init__(self) -> None:
        price("ttft", self.ttft, above=True)
        price("tpot", self.tpot, above=True)

    def met(self, answer: Answer) -> bool:
        return answer.fits and answer.ttft <= self.ttft and answer.tpot <= self.tpot


@lru_cache(maxsize=256)
def layouts(shape: Shape, most: int = 8) -> tuple[Layout, ...]:
    """Tensor-parallel layouts that the model allows, in SPREADS and of no more than `most` devices."""
    return tuple(Layout(n) for n in SPREADS if n <= most and not problem(shape, Layout(n)))


def compare(plan: Plan, devices: Iterable[Device]) -> list[Answer]:
    """The plan on every device and every layout: the multi-GPU matrix. Those that do not fit say why."""
    return [
        solve(replace(plan, device=device, layout=layout)) for device in devices for layout in layouts(plan.shape)
    ]


def smallest(plan: Plan) -> Answer:
    """The plan on the fewest devices that hold it; where none do, the largest layout and its reason."""
    room, kind, tried = plan.device.memory * UTILISATION, plan.format, layouts(plan.shape)
    for layout in tried:
        if layout is not tried[-1] and rank_bytes(plan.shape, layout, kind) > room:
            continue  # the weights alone are too many: nothing else has to be computed
        answer = solve(replace(plan, layout=layout))
        if answer.fits:
            break
    return answer


def matrix(plan: Plan, shapes: Sequence[Shape], devices: Sequence[Device]) -> list[list[Answer]]:
    """A row per model: on every device, the fewest that hold it."""
    return [[smallest(replace(plan, shape=shape, device=device)) for device in devices] for shape in shapes]


def curve(plan: Plan, batches: Iterable[int] = BATCHES) -> list[Answer]:
    """The plan at more and more clients."""
    return [solve(replace(plan, clients=n)) for n in batches]


def cost(answer: Answer, terms: str = "on demand", utilisation: float = 1.0) -> float | None:
    """Dollars per million output tokens, rented; None where it does not fit or no price is listed."""
    hourly = rent(answer.plan.device.name, terms)
    if not answer.fits or hourly is None:
        return None
    return per_million(hourly * answer.plan.layout.ranks, answer.throughput, utilisation)


def search(
    plan: Plan, devices: Iterable[Device], quants: Iterable[str], slo: Slo, terms: str = "on demand",
    batches: Iterable[int] = BATCHES,
) -> list[tuple[float, Answer]]:  # fmt: skip
    """(dollars per million output tokens, plan) of all that meet the service level and have a price, cheapest first."""
    batches = tuple(batches)
    found = []
    for device in devices:
        if rent(device.name, terms) is None:
            continue
        for quant in quants:
            for layout in layouts(plan.shape):
                tried = replace(plan, device=device, layout=layout, quant=quant)
                answers = [a for n in batches if slo.met(a := solve(replace(tried, clients=n)))]
                priced = [(dollars, a) for a in answers if (dollars := cost(a, terms)) is not None]
                if priced:
                    found.append(min(priced, key=lambda pair: pair[0]))
    return sorted(found, key=lambda pair: pair[0])


def pareto(answers: Iterable[Answer]) -> list[Answer]:
    """Those that no other beats in both tokens/s per user and tokens/s per device, by rising speed per user."""
    best: list[Answer] = []
    for answer in sorted((a for a in answers if a.fits), key=lambda a: (-a.per_user, -a.per_device)):
        if not best or answer.per_device > best[-1].per_device:
            best.append(answer)
    return best[::-1]
