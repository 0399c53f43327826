"""A replica that speculates: a draft guesses tokens, one step of the model verifies them all.

How many guesses hold differs from sequence to sequence, so that no run of steps is equal and every step is simulated,
by the reference, which writes its log here. With K guesses that each hold with probability α, a step yields
(1 − α^(K+1)) / (1 − α) tokens per sequence (`yielded`; Leviathan et al., arXiv:2211.17192). A gap in the log (ITL) is
the time between two steps' outputs, however many tokens they brought.
"""

from __future__ import annotations

from collections.abc import Sequence as Several
from itertools import accumulate
from math import fsum
from operator import mul
from typing import TYPE_CHECKING

from servelab.sched.reference import Reference, Sequence

if TYPE_CHECKING:
    from servelab.sched.simulate import Log


class Speculating(Reference):
    """Replica `number` of a run; writes into `log`."""

    def __init__(self, log: Log, number: int, detail: bool) -> None:
        super().__init__(log.work, log.engine)
        self.log, self.detail = log, detail
        self.steps, self.stalls, self.held = log.steps[number], log.stalls[number], log.held[number]
        self.preempted, self.chunks = log.preempted[number], log.chunks[number]
        self.heard: dict[int, int] = {}  # when a request's last token came

    @property
    def clock(self) -> int:
        """When the next step is decided."""
        return self.seen if self.engine.cost.overlap else self.now

    @property
    def load(self) -> int:
        """Tokens still to compute, for routers."""
        work, all_here = self.work, (*self.running, *self.waiting)
        return sum(work.prompt[one.i] + work.output[one.i] - one.done for one in all_here)

    def push(self, i: int) -> None:
        """Request i arrives; the replica has been advanced to that moment."""
        if not self.running and not self.waiting:
            self.now = self.seen = max(self.now, self.work.arrival[i])
            self.woken = True
        self.waiting.append(Sequence(i, self.policy.key(self.work, i) if self.policy.key else 0, self.work.prompt[i]))

    def advance(self, until: int) -> None:
        """Run every step that is decided before `until`."""
        while (self.running or self.waiting) and self.clock < until:
            self.turn(until)

    def turn(self, until: int) -> None:
        """One step."""
        self.iterate()

    def execute(self, decodes: list[tuple[Sequence, int]], chunks: list[tuple[Sequence, int]], admitted: int) -> None:
        start, log = self.now, self.log
        goes_on = not chunks or self.policy.step == "mixed"
        n, ctx = len(decodes), sum(one.done for one, _ in decodes)
        width = self.width if self.policy.step == "batch" and not chunks else n
        row, tokens = len(self.steps) // 7, sum(k for _, k in chunks)
        for one, _ in decodes if goes_on else ():
            if late := start - self.heard[one.i]:
                self.stalls.extend((row, 1, late))
        for one, _ in chunks:
            if log.admitted[one.i] < 0:
                log.admitted[one.i] = start
        again = [self.heard[one.i] for one, k in chunks if one.said and one.done + k == one.goal]
        super().execute(decodes, chunks, admitted)
        for before in again:
            self.stalls.extend((-1, 1, self.now - before))
        self.steps.extend((start, 1, n if goes_on else 0, width if goes_on else 0, ctx, tokens, self.now - start))
        if self.detail:
            for one, k in chunks:
                self.chunks.extend((start, self.now, one.i, k))
            self.held.append(self.pool.total - self.pool.free)

    def admit(self, chunks: list[tuple[Sequence, int]], decodes: list[tuple[Sequence, int]], budget: int) -> int:
        before = len(decodes)
        count = super().admit(chunks, decodes, budget)
        for one, _ in decodes[before:] if self.detail else ():
            self.chunks.extend((self.now, self.now, one.i, 0))  # back from host memory
        return count

    def preempt(self) -> Sequence:
        one = super().preempt()
        self.preempted.extend((self.now, one.i, one.said))
        return one

    def speak(self, one: Sequence) -> None:
        if not one.said and self.work.output[one.i]:
            self.log.first[one.i] = self.now
        self.heard[one.i] = self.now
        super().speak(one)
        if one.said >= self.work.output[one.i]:
            self.log.finish[one.i] = self.now
            del self.heard[one.i]


def yielded(accept: Several[float]) -> float:
    """Expected tokens of a sequence's step, when guess k holds with probability accept[k] if those before it did."""
    return 1 + fsum(accumulate(accept, mul))
