"""Prefill and decode on replicas of their own, and the KV cache on the way between them (DistServe, arXiv:2401.09670).

A prefill replica computes a prompt and its first token. The prompt's blocks move over that replica's link, one prompt
after the other, to a decode replica, which must have room for all of them before the first byte comes: whoever waits
there holds a whole prompt, so hand-offs under way are at most ⌊pool / prompt⌋ − running, and until there is room the
prefill replica keeps the blocks, which keeps prompts out there (the staging cap). A prompt that has landed decodes
from the next step on, as soon as a seat is free. Who is preempted on a decode replica computes its prompt again there.

The replicas go on one decision at a time, always the one that is behind, so that nobody acts on what has not happened.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from heapq import heappop, heappush

from servelab.kv.limits import within
from servelab.sched.engine import Engine
from servelab.sched.replica import FOREVER, Replica
from servelab.sched.request import Workload, column
from servelab.sched.simulate import Log, blank


@dataclass(frozen=True, slots=True)
class Pools:
    """`prefills` replicas of the engine `prefill`, `decodes` of `decode`; `transfer`: ps per prompt token on a link."""

    prefill: Engine
    decode: Engine
    prefills: int = 1
    decodes: int = 1
    transfer: int = 0

    def __post_init__(self) -> None:
        for name in ("prefills", "decodes"):
            within(name, getattr(self, name), 1, 2048, "use at least one replica of each kind")
        within("transfer", self.transfer, 0, 10**12, "give ps per prompt token: KV bytes per token / bandwidth")
        if self.prefill.accept or self.decode.accept or self.prefill.block_size != self.decode.block_size:
            raise ValueError("pools: use engines without guesses and with the same block size on both sides")


class Prefiller(Replica):
    """Computes prompts; their blocks stay until they have moved."""

    def __init__(self, log: Log, number: int, detail: bool, engine: Engine, work: Workload) -> None:
        super().__init__(replace(log, engine=engine, work=work), number, detail)
        self.output = log.work.output
        self.done: list[int] = []  # prompts complete, not yet offered
        self.moving: list[tuple[int, int]] = []  # heap of (when moved, request)
        self.stuck = False
        self.link = 0  # when the last transfer that was promised ends

    @property
    def due(self) -> int:
        """When it decides next; FOREVER while nothing can change that by itself."""
        if self.stuck:
            return self.moving[0][0] if self.moving else FOREVER
        return self.clock if self.running or self.waiting else FOREVER

    def push(self, i: int) -> None:
        super().push(i)
        self.wake(self.work.arrival[i])

    def moves(self, i: int, end: int) -> None:
        """Request i's blocks will be gone by then."""
        heappush(self.moving, (end, i))

    def wake(self, time: int) -> None:
        if self.stuck:
            self.now = self.seen = max(self.now, time)
            self.woken, self.stuck = True, False

    def settle(self) -> None:
        super().settle()
        while self.moving and self.moving[0][0] <= self.clock:
            _, i = heappop(self.moving)
            self.memory.release(i, -(-self.work.prompt[i] // self.size))

    def turn(self, until: int) -> None:
        self.wake(self.due)
        steps = len(self.steps)
        super().turn(until)
        self.stuck = len(self.steps) == steps and not self.late and not self.gone

    def finish(self, i: int, context: int) -> None:
        if self.output[i] <= 1:
            super().finish(i, context)
        else:
            self.done.append(i)


class Decoder(Replica):
    """Takes prompts in when it has room for them, and generates."""

    def __init__(self, log: Log, number: int, detail: bool, transfer: int) -> None:
        super().__init__(log, number, detail)
        self.transfer = transfer
        self.offers: deque[tuple[int, int, Prefiller]] = deque()  # (since when, request, from whom)
        self.landing: list[tuple[int, int]] = []  # heap of (when, request)
        self.landed: deque[int] = deque()
        self.stuck = False  # nothing runs, and what waits has no room

    @property
    def due(self) -> int:
        """When it decides next; FOREVER while there is nothing to do."""
        if not self.stuck and (self.running or self.waiting or self.landed or self.late or self.gone):
            return self.clock
        lands = self.landing[0][0] if self.landing else FOREVER
        comes = self.offers[0][0] if self.offers and not self.waiting and self.fits(self.offers[0][1]) else FOREVER
        return max(self.now, min(lands, comes))

    def fits(self, i: int) -> bool:
        """Whether request i's prompt has room beside what the next step takes."""
        return -(-self.work.prompt[i] // self.size) <= self.memory.free - self.growth.at(self.step + 1)

    def offer(self, i: int, source: Prefiller) -> None:
        """Request i's prompt is complete at `source`."""
        self.offers.append((source.now, i, source))
        self.load += self.work.output[i] - 1

    def turn(self, until: int) -> None:
        if not self.running:
            self.now = self.seen = max(self.now, self.due)
            self.woken = True
        before = len(self.steps), len(self.preempted)
        super().turn(until)
        self.stuck = not self.running and before == (len(self.steps), len(self.preempted))

    def decode(self, until: int) -> None:
        """As far as the next landing or offer, whose times are known."""
        known = [self.landing[0][0]] if self.landing else []
        known += [since for since, _, _ in self.offers if since > self.clock][:1]
        super().decode(min(until, *known, FOREVER))

    def settle(self) -> None:
        """Before each decision: who has landed joins, and whoever fits is sent for."""
        super().settle()
        while self.landing and self.landing[0][0] <= self.clock:
            self.landed.append(heappop(self.landing)[1])
        while self.landed and len(self.running) + len(self.gone) < self.engine.seqs:
            i = self.landed.popleft()
            self.still.add(1, self.log.first[i])
            self.join(i, self.work.prompt[i], self.work.output[i] - 1)
            self.chunks.extend((self.now, self.now, i, 0) if self.detail else ())
            self.width = len(self.running)
        while self.offers and self.offers[0][0] <= self.clock and not self.waiting:
            since, i, source = self.offers[0]
            if not self.fits(i):
                break
            self.offers.popleft()
            self.memory.claim(-(-self.work.prompt[i] // self.size))
            source.link = max(self.clock, since, source.link) + self.transfer * self.work.prompt[i]
            heappush(self.landing, (source.link, i))
            source.moves(i, source.link)


def disaggregate(work: Workload, pools: Pools, detail: bool = False) -> Log:
    """The workload through both kinds of replicas: prefill ones are numbered first. Each request goes to the replica
    with the least to compute. A request that one of its pools could not hold is refused.
    """
    log = blank(work, pools.decode, pools.prefills + pools.decodes)
    firsts = replace(work, output=column(min(n, 1) for n in work.output))
    ahead = [Prefiller(log, r, detail, pools.prefill, firsts) for r in range(pools.prefills)]
    behind = [Decoder(log, pools.prefills + r, detail, pools.transfer) for r in range(pools.decodes)]
    size = pools.decode.block_size
    for i, arrival in enumerate(work.arrival):
        if work.prompt[i] > pools.prefill.blocks * size:
            continue
        if work.prompt[i] + max(work.output[i] - 1, 0) > pools.decode.blocks * size:
            continue
        _advance(ahead, behind, log, arrival)
        number = min(range(len(ahead)), key=lambda r: (ahead[r].load, r))
        log.replica[i] = number
        ahead[number].push(i)
    _advance(ahead, behind, log, FOREVER)
    return log


def _advance(ahead: list[Prefiller], behind: list[Decoder], log: Log, until: int) -> None:
    """Every decision that is due before `until`, in order of time."""
    everyone: list[Prefiller | Decoder] = [*ahead, *behind]
    while True:
        one = min(everyone, key=lambda replica: replica.due)
        if one.due >= until:
            return
        if isinstance(one, Decoder):
            one.turn(min(until, *(p.now for p in ahead if p.due < FOREVER), FOREVER))
            continue
        one.turn(until)
        for i in one.done:
            number = min(range(len(behind)), key=lambda r: (behind[r].load, r))
            log.replica[i] = len(ahead) + number
            behind[number].offer(i, one)
        one.done.clear()
