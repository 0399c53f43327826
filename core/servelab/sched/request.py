"""Requests as a scheduler sees them: when they come, how long they are, which prompt blocks they share.

A workload is columns, not objects: a million requests cost three packed arrays. Time is an integer number of
picoseconds since the first moment, so that no rounding decides an order.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field

from servelab.kv.trace import HASH_BLOCK, Trace

PS = 10**12
"""Picoseconds in a second."""

MAX_ARRIVAL = 2**62
"""Latest arrival, ps: 53 days."""

MAX_LENGTH = 2**31
"""Most tokens of a prompt or an output."""


def column(values: Iterable[int]) -> array[int]:
    """64-bit integers, packed."""
    return array("q", values)


@dataclass(frozen=True, slots=True)
class Workload:
    """Requests in order of arrival, one column per attribute; request i is index i.

    `arrival` ps, `prompt` tokens ≥ 1, `output` tokens ≥ 0. `hashes[i]` names the prompt's blocks of `hash_block`
    tokens; equal ids mean equal prefixes; None where nothing is known to repeat. `tenant[i]` keeps prefix caches
    apart, `due[i]` ps after arrival the first token is wanted; both may be empty.
    """

    arrival: array[int]
    prompt: array[int]
    output: array[int]
    hashes: tuple[tuple[int, ...], ...] | None = None
    hash_block: int = HASH_BLOCK
    tenant: array[int] = field(default_factory=lambda: column(()))
    due: array[int] = field(default_factory=lambda: column(()))

    def __post_init__(self) -> None:
        columns = {"arrival": self.arrival, "prompt": self.prompt, "output": self.output}
        sizes = {name: len(values) for name, values in columns.items()}
        if self.hashes is not None:
            sizes["hashes"] = len(self.hashes)
        sizes |= {name: len(values) for name in ("tenant", "due") if (values := getattr(self, name))}
        if len(set(sizes.values())) != 1:
            raise ValueError(f"columns of {sizes} entries; give one entry per request in each")
        limits = {"arrival": (0, MAX_ARRIVAL), "prompt": (1, MAX_LENGTH), "output": (0, MAX_LENGTH)}
        for name, (low, high) in limits.items():
            _inside(name, columns[name], low, high)
        if any(later < before for before, later in zip(self.arrival, self.arrival[1:], strict=False)):
            raise ValueError("arrivals are not in order; sort the requests by arrival")

    def __len__(self) -> int:
        return len(self.arrival)


def _inside(name: str, values: array[int], low: int, high: int) -> None:
    if values and not low <= min(values) <= max(values) <= high:
        bad = min(values) if min(values) < low else max(values)
        at = values.index(bad)
        raise ValueError(f"request {at}: {name} {bad} is outside {low}…{high}; correct or drop the request")


def from_trace(trace: Trace, rate_scale: float = 1.0) -> Workload:
    """A trace with a clock as a workload, its arrivals `rate_scale` times as dense. ValueError without a clock."""
    if trace.arrival_ns is None:
        raise ValueError(f"{trace.name} has no arrival times; give a trace with a clock, or generate arrivals")
    if not 1e-6 <= rate_scale <= 1e6:
        raise ValueError(f"rate_scale {rate_scale} is outside 1e-6…1e6; use 1 to replay as recorded")
    if rate_scale == 1:
        arrival = column(1000 * t for t in trace.arrival_ns)
    else:
        arrival = column(round(1000 * t / rate_scale) for t in trace.arrival_ns)
    return Workload(arrival, column(trace.prompt_tokens), column(trace.output_tokens), trace.hash_ids)
