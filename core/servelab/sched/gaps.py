"""Every gap between two tokens of a run, as arithmetic progressions, and exact order statistics over them.

No token was simulated alone: a run of decode steps is a progression of gaps, each as often as there are sequences. The
k-th smallest of all gaps is found by counting how many are at most v, and halving.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import NamedTuple

from servelab.sched.cost import Line
from servelab.sched.policies import POLICIES
from servelab.sched.simulate import Log


class Piece(NamedTuple):
    """Gaps low, low + rise, … : `times` of them, each `weight` times; ps."""

    low: int
    rise: int
    times: int
    weight: int

    @property
    def high(self) -> int:
        return self.low + self.rise * (self.times - 1)


def progressions(log: Log) -> Iterator[Piece]:
    """Every gap between two tokens of one request."""
    alone = POLICIES[log.engine.policy].step != "mixed"
    cost = log.engine.cost
    for steps, stalls in zip(log.steps, log.stalls, strict=True):
        late: dict[int, list[tuple[int, int]]] = {}
        for row, count, extra in zip(stalls[::3], stalls[1::3], stalls[2::3], strict=True):
            if row < 0:
                yield Piece(extra, 0, 1, count)
            else:
                late.setdefault(row, []).append((count, extra))
        lines: dict[int, Line] = {}
        columns = (steps[k::7] for k in range(1, 7))
        for row, (count, n, width, ctx, tokens, took) in enumerate(zip(*columns, strict=True)):
            if tokens:
                if n and not alone:
                    yield from _split(late.get(row, []), took, n)
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
                yield Piece(line.floor, 0, flat, n)
            if count > flat:
                yield Piece(first + rise * flat, rise, count - flat, n)


def _split(late: list[tuple[int, int]], gap: int, n: int) -> Iterator[Piece]:
    """The first gap after a standstill: longer for those that stood still."""
    for count, extra in late:
        yield Piece(gap + extra, 0, 1, count)
    if rest := n - sum(count for count, _ in late):
        yield Piece(gap, 0, 1, rest)


class Gaps:
    """Order statistics over pieces: `at(k)` is the k-th smallest gap (from 1), ps; `n` gaps, `total` ps."""

    def __init__(self, pieces: Iterable[Piece]) -> None:
        rows = [(low, low + rise * (times - 1), rise, times, weight) for low, rise, times, weight in pieces]
        rows.sort()
        ends = sorted([(high, times * weight) for _, high, _, times, weight in rows])
        self.rows, self.lows, self.highs = rows, [row[0] for row in rows], [high for high, _ in ends]
        self.begun = list(accumulate([times * weight for _, _, _, times, weight in rows]))
        self.ended = list(accumulate([count for _, count in ends]))
        self.n = self.begun[-1] if rows else 0
        self.total = sum([w * (t * low + rise * (t * (t - 1) // 2)) for low, _, rise, t, w in rows])

    def at(self, k: int) -> int:
        low = self.lows[bisect_left(self.begun, k)]  # fewer than k gaps are smaller than this
        high = self.highs[bisect_left(self.ended, k)]  # at least k are at most this
        done = bisect_left(self.highs, low)
        below = self.ended[done - 1] if done else 0
        near = [row for row in self.rows[: bisect_right(self.lows, high)] if row[1] >= low]
        while low < high:
            middle = (low + high) // 2
            count = below
            for first, last, rise, times, weight in near:
                if last <= middle:
                    count += weight * times
                elif first <= middle:
                    count += weight * ((middle - first) // rise + 1)
            if count >= k:
                high = middle
            else:
                low = middle + 1
        return low
