"""Requests through KV memory, one tick per decode step: who is admitted, grows, waits, is preempted, finishes.

At each tick, in this order: finished sequences leave; every running sequence, oldest first, gets room for its next
token, and if no block is left the last admitted one is preempted (its memory freed, to be recomputed: prompt and all
it generated); then waiting sequences are admitted first come, first served, the preempted ones ahead, while their
uncached blocks and the first token's fit (asked again whenever memory was given back or someone arrived). A prompt is
written in the tick of its admission; output tokens arrive one per tick from the next one on; the tick after the last
shows the sequence gone. This is vLLM v1's scheduler reduced to memory: no token budget, no chunks.

Nothing happens inside a block: a heap holds the next tick at which each sequence needs one, so cost follows blocks,
not tokens.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Protocol

from servelab.kv.log import Event, Log, SeqInfo
from servelab.kv.prefix import Content, PrefixCache
from servelab.kv.request import Request, block_contents, output_content
from servelab.kv.slots import Slots
from servelab.kv.tables import Plan, Tables


class Memory(Protocol):
    """What a scheme offers over a pool of blocks; `Tables` and `Slots` are the two that there are.

    `now`: the tick that the next events belong to. `events`: the log so far. `forks`: samples of one request start as
    forks (else each is a sequence of its own). ValueError for a sequence that has, or has not, a table already.
    """

    now: int
    events: list[Event]
    forks: bool

    def plan(self, tokens: int, contents: Sequence[Content] = ..., salt: Hashable = ..., spare: int = ...) -> Plan:
        """What admitting `tokens` and leaving room for `spare` more would take, in blocks; changes nothing."""

    def admit(
        self, seq: int, tokens: int, contents: Sequence[Content] = ..., salt: Hashable = ..., plan: Plan | None = ...
    ) -> int:
        """Give `seq` memory with `tokens` written; returns how many of them a cache had. ValueError for no room."""

    def reserve(self, seq: int, tokens: int) -> int:
        """Room for up to `tokens` more: how many of them fit, 0 when memory is full."""

    def commit(self, seq: int, tokens: int) -> None:
        """`tokens` of the room reserved have arrived."""

    def fork(self, parent: int, child: int, contents: Sequence[Content] = ...) -> None:
        """`child` starts with what `parent` holds."""

    def release(self, seq: int) -> None:
        """Give back all that `seq` holds."""

    def check(self) -> None:
        """AssertionError when reference counts, tables and pool disagree; for tests."""


def preallocated(blocks: int, block_size: int, max_len: int) -> Memory:
    """One contiguous slot of `max_len` tokens per sequence."""
    return Slots(blocks, block_size, max_len)


def paged(blocks: int, block_size: int, max_len: int) -> Memory:
    """Block tables; nothing shared."""
    return Tables(blocks, block_size)


def shared(blocks: int, block_size: int, max_len: int) -> Memory:
    """Block tables with a prefix cache and copy-on-write forks."""
    return Tables(blocks, block_size, PrefixCache())


SCHEMES: dict[str, Callable[[int, int, int], Memory]] = {"preallocated": preallocated, "paged": paged, "shared": shared}
"""Memory schemes by name: (blocks, block_size, max_len) → Memory."""


@dataclass(slots=True, eq=False)
class _Run:
    info: SeqInfo
    request: Request
    contents: Sequence[Content]
    length: int
    total: int
    order: int = -1
    wrote: int = 0
    granted: int = 0
    due: int = -1


FINISH, GROW = 0, 1


def simulate(
    requests: Sequence[Request], *, blocks: int, block_size: int, scheme: str, max_len: int | None = None
) -> Log:
    """Run all requests to completion and return the log.

    `blocks`: pool size; `block_size`: tokens a block; `scheme`: a key of SCHEMES; `max_len`: tokens a preallocated slot
    holds (default: the longest request). ValueError for values outside their range, and when a request alone needs more
    blocks than the pool has.
    """
    longest = max((r.tokens + r.output for r in requests), default=1)
    max_len = longest if max_len is None else max_len
    _validate(requests, blocks, block_size, scheme, max_len)
    memory = SCHEMES[scheme](blocks, block_size, max_len)
    runs = _sequences(requests, block_size, memory.forks)
    _Scheduler(requests, runs, memory).run()
    return Log(scheme, blocks, block_size, memory.now, tuple(run.info for run in runs), tuple(memory.events))


def _validate(requests: Sequence[Request], blocks: int, block_size: int, scheme: str, max_len: int) -> None:
    if scheme not in SCHEMES:
        raise ValueError(f"scheme {scheme!r} is unknown; use one of {', '.join(SCHEMES)}")
    if blocks < 1 or block_size < 1 or max_len < 1:
        raise ValueError(f"blocks {blocks}, block size {block_size}, max_len {max_len}: each must be at least 1")
    seen: set[int] = set()
    for r in requests:
        if r.id in seen:
            raise ValueError(f"request id {r.id} occurs twice; give every request its own id")
        if r.after != -1 and r.after not in seen:
            raise ValueError(f"request {r.id} comes after request {r.after}, not listed before it; reorder them")
        seen.add(r.id)
        length = r.tokens + r.output
        if length > max_len and scheme == "preallocated":
            raise ValueError(f"request {r.id} has {length} tokens, a slot {max_len}; use max_len of at least {length}")
        need = -(-(max_len if scheme == "preallocated" else length) // block_size)
        if need > blocks:
            raise ValueError(
                f"request {r.id} needs {need} blocks of {block_size} tokens and the pool has {blocks}; "
                f"use a pool of at least {need} blocks or a shorter request ({length} tokens)"
            )


def _sequences(requests: Sequence[Request], block_size: int, contents: bool) -> list[_Run]:
    runs: list[_Run] = []
    for r in requests:
        chat = r.id if r.chat < 0 else r.chat
        for sample in range(r.samples):
            label = (r.label or f"request {r.id}") + (f", sample {sample + 1}" if r.samples > 1 else "")
            info = SeqInfo(len(runs), r.id, chat, sample, r.arrival, r.tokens, r.output, label)
            segments = (*r.prompt, (output_content(r.id, sample), r.output))
            text = block_contents(segments, block_size) if contents else []
            runs.append(_Run(info, r, text, r.tokens, r.tokens + r.output))
    return runs


class _Scheduler:
    """One simulation: arrivals, the waiting queue, running sequences in order of admission, and their next ticks."""

    def __init__(self, requests: Sequence[Request], runs: list[_Run], memory: Memory) -> None:
        self.memory = memory
        self.runs = runs
        self.waiting: deque[_Run] = deque()
        self.running: dict[int, _Run] = {}
        self.heap: list[tuple[int, int, int, int]] = []
        self.admitted = 0
        self.stuck: _Run | None = None
        self.changed = False
        self.samples: dict[int, list[_Run]] = {r.id: [] for r in requests}
        for run in runs:
            self.samples[run.request.id].append(run)
        self.open = {r.id: r.samples for r in requests}
        self.followers: dict[int, list[Request]] = {}
        self.arrivals: list[tuple[int, int]] = []
        for r in requests:
            if r.after < 0:
                heappush(self.arrivals, (r.arrival, r.id))
            else:
                self.followers.setdefault(r.after, []).append(r)

    def run(self) -> None:
        heap, arrivals = self.heap, self.arrivals
        while heap or arrivals:
            now = self.memory.now = min(queue[0][0] for queue in (heap, arrivals) if queue)
            while heap and heap[0][0] == now:
                _, step, order, seq = heappop(heap)
                run = self.runs[seq]
                if run.due == now and run.order == order:
                    self.settle(run)
                    if step == FINISH:
                        self.finish(run)
                    else:
                        self.grow(run)
            while arrivals and arrivals[0][0] == now:
                self.arrive(heappop(arrivals)[1])
            if self.changed:
                self.admit()

    def arrive(self, request: int) -> None:
        self.changed = True
        samples = self.samples[request]
        self.waiting.extend(samples[:1] if self.memory.forks else samples)

    def admit(self) -> None:
        memory, waiting = self.memory, self.waiting
        self.changed = False
        while waiting:
            run = waiting[0]
            salt, spare = run.request.salt, int(run.length < run.total)
            plan = memory.plan(run.length, run.contents, salt, spare)
            if plan.need > plan.available:
                if run is not self.stuck:
                    self.stuck = run
                    memory.events.append(
                        Event(memory.now, "wait", run.info.seq, tokens=plan.need, other=plan.available)
                    )
                return
            waiting.popleft()
            memory.admit(run.info.seq, run.length, run.contents, salt, plan)
            self.start(run)
            if memory.forks:
                for child in self.samples[run.request.id]:
                    if child.order < 0:
                        memory.fork(run.info.seq, child.info.seq, child.contents)
                        self.start(child)

    def start(self, run: _Run) -> None:
        self.running[run.info.seq] = run
        self.stuck = None
        run.order = self.admitted
        self.admitted += 1
        self.next(run, 0, self.memory.now + 1)

    def next(self, run: _Run, granted: int, due: int) -> None:
        run.wrote, run.granted, run.due = self.memory.now, granted, due
        step = FINISH if run.length + granted == run.total else GROW
        heappush(self.heap, (due, step, run.order, run.info.seq))

    def settle(self, run: _Run) -> None:
        arrived = min(run.granted, self.memory.now - run.wrote)
        if arrived:
            self.memory.commit(run.info.seq, arrived)
            run.length += arrived
        run.granted = 0

    def grow(self, run: _Run) -> None:
        seq, want = run.info.seq, run.total - run.length
        room = self.memory.reserve(seq, want)
        while not room:
            victim = next(reversed(self.running.values()))
            self.preempt(victim)
            if victim is run:
                return
            room = self.memory.reserve(seq, want)
        self.next(run, room, self.memory.now + room)

    def preempt(self, run: _Run) -> None:
        self.settle(run)
        self.memory.events.append(Event(self.memory.now, "preempt", run.info.seq))
        self.drop(run)
        self.waiting.appendleft(run)
        self.stuck = None

    def finish(self, run: _Run) -> None:
        self.memory.events.append(Event(self.memory.now, "finish", run.info.seq))
        self.drop(run)
        self.open[run.request.id] -= 1
        if not self.open[run.request.id]:
            for follower in self.followers.get(run.request.id, ()):
                heappush(self.arrivals, (self.memory.now + follower.arrival, follower.id))

    def drop(self, run: _Run) -> None:
        del self.running[run.info.seq]
        self.changed = True
        run.due = -1
        self.memory.release(run.info.seq)
