"""Admission: what stands in front of an engine and refuses before the queue grows.

A gate is asked at each arrival, in order: gate(t, inside) → 0 when the request may enter, else the ps after which the
same request would (the least such time; a clock that steps back counts as standing still). `inside` is how many
requests are in the engine.

    token bucket     b tokens at first, r more per second, never more than b; a request takes one
    GCRA             the same decisions from one number, the theoretical arrival time (ITU-T I.371): τ = (b − 1)/r
    fixed window     at most n per window of w, windows from 0 on: up to 2n around a boundary
    sliding window   at most n in any window of w, from a log of the last n
    concurrency      at most n inside; when one leaves is not known here, so it says 1 ps

Rates are fractions and all arithmetic is in integers, so bucket and GCRA agree decision for decision.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from servelab.kv.limits import within
from servelab.sched.request import PS

Gate = Callable[[int, int], int]


@dataclass(frozen=True, slots=True)
class Limit:
    """`rate` requests/s after a `burst`; or `count` requests per `window` seconds; or `count` at once."""

    rate: Fraction = Fraction(1)
    burst: int = 1
    count: int = 1
    window: Fraction = Fraction(1)

    def __post_init__(self) -> None:
        for name in ("rate", "window"):
            value = getattr(self, name)
            if not Fraction(1, 10**6) <= value <= 10**6:
                raise ValueError(f"{name} {value} is outside 10^-6…10^6; give requests/s and seconds in it")
        within("burst", self.burst, 1, 10**9, "a bucket holds at least one request")
        within("count", self.count, 1, 10**9, "admit at least one")


def token_bucket(limit: Limit) -> Gate:
    """A level that rises by rate.numerator per ps; one request is PS·rate.denominator of it."""
    gain, one = limit.rate.numerator, PS * limit.rate.denominator
    level, last = limit.burst * one, 0

    def gate(t: int, inside: int = 0) -> int:
        nonlocal level, last
        if t > last:
            level, last = min(limit.burst * one, level + gain * (t - last)), t
        if level >= one:
            level -= one
            return 0
        return max(0, last - t) + -(-(one - level) // gain)

    return gate


def gcra(limit: Limit) -> Gate:
    """Times are multiplied by rate.numerator, so that the emission interval PS·denominator/numerator is whole."""
    scale, interval = limit.rate.numerator, PS * limit.rate.denominator
    slack = (limit.burst - 1) * interval
    due = last = 0

    def gate(t: int, inside: int = 0) -> int:
        nonlocal due, last
        last = max(t, last)
        now = last * scale
        if due - slack > now:
            return last - t + -(-(due - slack - now) // scale)
        due = max(due, now) + interval
        return 0

    return gate


def fixed_window(limit: Limit) -> Gate:
    """A count that starts again at every multiple of the window."""
    width = round(limit.window * PS)
    last = used = 0

    def gate(t: int, inside: int = 0) -> int:
        nonlocal last, used
        if t // width > last // width:
            used = 0
        last = max(t, last)
        if used < limit.count:
            used += 1
            return 0
        return (last // width + 1) * width - t

    return gate


def sliding_window(limit: Limit) -> Gate:
    """The times of the last `count` admitted requests; the oldest must have left the window (t − w, t]."""
    width = round(limit.window * PS)
    times: deque[int] = deque(maxlen=limit.count)
    last = 0

    def gate(t: int, inside: int = 0) -> int:
        nonlocal last
        last = max(t, last)
        if len(times) < limit.count or last - times[0] >= width:
            times.append(last)
            return 0
        return times[0] + width - t

    return gate


def concurrency(limit: Limit) -> Gate:
    """At most `count` inside."""

    def gate(t: int, inside: int = 0) -> int:
        return int(inside >= limit.count)

    return gate


ADMISSIONS: dict[str, Callable[[Limit], Gate]] = {
    "token_bucket": token_bucket,
    "gcra": gcra,
    "fixed_window": fixed_window,
    "sliding_window": sliding_window,
    "concurrency": concurrency,
}
"""Gates by name; each call makes a fresh one."""
