"""Every gap between two tokens of a run, as arithmetic progressions, and exact order statistics over them.

No token was simulated alone: a run of decode steps is a progression of gaps, each as often as there are sequences. The
k-th smallest of all gaps is found by counting how many are at most v, and halving; once few are left, they are listed.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate

from servelab.sched.cost import Line
from servelab.sched.policies import POLICIES
from servelab.sched.simulate import Log

COUNT_BITS = 40
"""A count of gaps is below 2^40."""

FEW = 20_000
"""So many gaps are rather listed than halved on."""


Piece = tuple[int, int, int, int]
"""Gaps low, low + rise, … : `times` of them, each `weight` times; ps. (low, rise, times, weight)."""


def progressions(log: Log) -> Iterator[Piece]:
    """Every gap between two tokens of one request."""
    guesses = bool(log.engine.accept)  # no two steps are alike
    alone = POLICIES[log.engine.policy].step != "mixed"
    cost = log.engine.cost
    for steps, stalls in zip(log.steps, log.stalls, strict=True):
        late: dict[int, list[tuple[int, int]]] = {}
        for row, count, extra in zip(stalls[::3], stalls[1::3], stalls[2::3], strict=True):
            if row < 0:
                yield extra, 0, 1, count
            else:
                late.setdefault(row, []).append((count, extra))
        lines: dict[int, Line] = {}
        columns = (steps[k::7] for k in range(1, 7))
        for row, (count, n, width, ctx, tokens, took) in enumerate(zip(*columns, strict=True)):
            if tokens or guesses:
                if not n or (tokens and alone):
                    continue
                if row in late:
                    yield from _split(late[row], took, n)
                else:
                    yield took, 0, 1, n
                continue
            line = lines.get(width) or lines.setdefault(width, cost.line(width))
            first, rise = line.base + line.slope * (ctx + n), line.slope * n
            if row in late:
                yield from _split(late[row], max(line.floor, first), n)
                first, count = first + rise, count - 1
                if not count:
                    continue
            flat = count if first + rise * (count - 1) <= line.floor else 0
            if not flat and first < line.floor:
                flat = min(count, (line.floor - first) // rise + 1)
            if flat:
                yield line.floor, 0, flat, n
            if count > flat:
                yield first + rise * flat, rise, count - flat, n


def _split(late: list[tuple[int, int]], gap: int, n: int) -> Iterator[Piece]:
    """The first gap after a standstill: longer for those that stood still."""
    for count, extra in late:
        yield gap + extra, 0, 1, count
    if rest := n - sum(count for count, _ in late):
        yield gap, 0, 1, rest


class Gaps:
    """Order statistics over pieces: `at(k)` is the k-th smallest gap (from 1), ps; `n` gaps, `total` ps.

    Pieces of equal gaps are one sorted table of values and counts; rising ones are kept by their lowest and by their
    highest gap, so that only those around the answer are looked into. All in packed columns: there are millions.
    """

    def __init__(self, pieces: Iterable[Piece]) -> None:
        flat: list[int] = []  # gap and count in one integer
        self.rising = lows, rises, lengths, weights = [array("q") for _ in range(4)]
        self.total = 0
        for low, rise, times, weight in pieces:
            if rise and times > 1:
                lows.append(low)
                rises.append(rise)
                lengths.append(times)
                weights.append(weight)
                self.total += weight * (times * low + rise * (times * (times - 1) // 2))
            else:
                flat.append(low << COUNT_BITS | times * weight)
                self.total += low * times * weight
        flat.sort()
        self.values = array("q", [one >> COUNT_BITS for one in flat])
        self.counted = array("q", accumulate([one & (1 << COUNT_BITS) - 1 for one in flat]))
        self._index()
        self.n = (self.counted[-1] if flat else 0) + (self.begun[-1] if self.begun else 0)

    def _index(self) -> None:
        """Sort the rising pieces by their lowest gap; and their highest gaps with counts."""
        lows, rises, times, weights = self.rising
        order = sorted(range(len(lows)), key=lows.__getitem__)
        self.rising = [array("q", [column[i] for i in order]) for column in self.rising]
        self.begun = array("q", accumulate([times[i] * weights[i] for i in order]))
        highs = array("q", [lows[i] + rises[i] * (times[i] - 1) for i in range(len(lows))])
        order.sort(key=highs.__getitem__)
        self.highs = array("q", [highs[i] for i in order])
        self.ended = array("q", accumulate([times[i] * weights[i] for i in order]))

    def at(self, *ranks: int) -> list[int]:
        """The gaps of these ranks, which ascend and are quickly found together where they are close."""
        top = max(self.values[-1] if self.values else 0, self.highs[-1] if self.highs else 0)
        low = _least(0, top, lambda v: self._equal(v) + _until(self.rising[0], self.begun, v) >= ranks[0])
        high = _least(low, top, lambda v: self._equal(v) + _until(self.highs, self.ended, v) >= ranks[-1])
        first = bisect_right(self.rising[0], high)
        columns = zip(*(column[:first] for column in self.rising), strict=True)
        near = [row for row in columns if row[0] + row[1] * (row[2] - 1) >= low]
        below = _until(self.highs, self.ended, low - 1)
        many = bisect_right(self.values, high) - bisect_left(self.values, low)
        if many + sum([min(times, (high - low) // rise + 1) for _, rise, times, _ in near]) <= FEW:
            return self._listed(ranks, low, high, near, below)

        def count(v: int) -> int:
            inside: list[int] = [w * min(t, (v - bottom) // rise + 1) for bottom, rise, t, w in near if bottom <= v]
            return below + self._equal(v) + sum(inside)

        return [_least(low, high, lambda v, k=k: count(v) >= k) for k in ranks]  # type: ignore[misc]

    def _listed(self, ranks: tuple[int, ...], low: int, high: int, near: list[Piece], below: int) -> list[int]:
        """`at` where few gaps lie in low…high: those of `near`, beside the equal ones; `below` low lie the others'."""
        first, last = bisect_left(self.values, low), bisect_right(self.values, high)
        found = list(zip(self.values[first:last], _weights(self.counted, first, last), strict=True))
        below += self._equal(low - 1)
        for bottom, rise, times, weight in near:
            begin = max(0, -((bottom - low) // rise))
            below += begin * weight
            found += [(bottom + rise * j, weight) for j in range(begin, min(times, (high - bottom) // rise + 1))]
        found.sort()
        until = list(accumulate([weight for _, weight in found], initial=below))
        return [found[bisect_left(until, k) - 1][0] for k in ranks]

    def _equal(self, v: int) -> int:
        return _until(self.values, self.counted, v)


def _until(values: array[int], counts: array[int], v: int) -> int:
    """How many are at most v, given sorted values and cumulative counts."""
    found = bisect_right(values, v)
    return int(counts[found - 1]) if found else 0


def _least(low: int, high: int, true: Callable[[int], bool]) -> int:
    """The least v in low…high at which a condition holds that stays true from there on; `high` if at none below."""
    while low < high:
        middle = (low + high) // 2
        if true(middle):
            high = middle
        else:
            low = middle + 1
    return low


def _weights(counts: array[int], first: int, last: int) -> list[int]:
    """Single counts from cumulative ones."""
    before = [counts[first - 1] if first else 0, *counts[first:last]]
    return [after - before for before, after in zip(before, before[1:], strict=False)]
