"""What an engine does next: its queue, its running sequences and its memory, between two steps.

Decoding sequences are a count `n` and a sum `ctx` of their context tokens, since every one of them gains a token in
every decode step; a heap holds the step at which each of them ends. Blocks are counted, not named: a sequence needs
its next block when its context is a multiple of the block size, so `wants[s mod block_size]` sequences want one in step
s, and the blocks of k steps are a sum of at most block_size entries.

An engine that overlaps its work with the GPU's composes a step before it has heard how the one before ended: who ended
there keeps seat and blocks for one more step.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

from servelab.sched.memory import Counted, Growth, Memory, Prefixes
from servelab.sched.policies import MATCHED, POLICIES
from servelab.sched.standstill import Standstill

if TYPE_CHECKING:
    from servelab.sched.cost import Line
    from servelab.sched.simulate import Log

Chunk = tuple[int, int, int, bool]  # a prompt's part in a step: request, tokens before, tokens, whether it ends then


class Scheduler:
    """The scheduler of replica `number`. `load`: tokens still to compute, for routers."""

    def __init__(self, log: Log, number: int, detail: bool) -> None:
        work, engine = log.work, log.engine
        self.log, self.work, self.engine, self.detail = log, work, engine, detail
        self.policy, self.cost, self.size = POLICIES[engine.policy], engine.cost, engine.block_size
        self.mixed, self.overlap = self.policy.step == "mixed", engine.cost.overlap
        self.memory: Memory = Prefixes(work, engine) if engine.prefix else Counted(engine)
        self.waiting: list[tuple[int, int]] = []  # heap of (key, request)
        self.running: dict[int, None] = {}  # in order of admission
        self.part: tuple[int, int] | None = None  # a prompt that was cut: (request, tokens done)
        self.heap: list[tuple[int, int]] = []  # (last decode step, request), stale where `end` differs
        self.end: dict[int, int] = {}
        self.said: dict[int, int] = {}  # tokens generated before a preemption
        self.heard: dict[int, int] = {}  # when a preempted request's last token came
        self.parked: dict[int, int] = {}  # request → its tokens in host memory
        self.moved = self.ahead = 0  # blocks to and from there before the next step
        self.still, self.growth = Standstill(), Growth(engine.block_size)
        self.lines: dict[int, Line] = {}
        self.now = self.seen = self.spoken = self.step = self.n = self.ctx = self.load = self.width = 0
        self.late: list[tuple[int, int]] = []  # (request, blocks): ended in the last step
        self.gone: list[tuple[int, int]] = []  # ended before the step that is running, heard of with its end
        self.prompts = False  # the last step had some
        self.woken = self.short = False  # the next step: first after a pause; somebody was preempted, nobody may enter
        self.steps, self.stalls, self.held = log.steps[number], log.stalls[number], log.held[number]
        self.preempted, self.chunks = log.preempted[number], log.chunks[number]

    def queue(self, i: int) -> None:
        heappush(self.waiting, (self.policy.key(self.work, i) if self.policy.key else 0, i))

    def compose(self) -> tuple[list[Chunk], int]:
        """The prompts of the next step, and how many of them are new."""
        self.settle()
        memory, size = self.memory, self.size
        wanted = self.growth.at(self.step + 1)
        short = wanted > memory.free
        if not (short or self.waiting or self.part):
            self.short = False
            return [], 0
        if short:
            wanted = self.make_room()
        budget = self.engine.budget - (self.n if self.mixed else 0)
        chunks: list[Chunk] = []
        if self.part:
            i, done = self.part
            left = self.goal(i) - done
            tokens = min(left, budget)
            blocks = -(-(done + tokens) // size) - -(-done // size)
            if blocks > memory.free - wanted:
                self.preempt()
                short = True
            elif tokens:
                memory.claim(blocks)
                memory.written(i, done + tokens)
                chunks.append((i, done, tokens, tokens == left))
                budget -= tokens
        self.short = short
        if short or not self.waiting or (self.policy.step == "batch" and self.running):
            return chunks, 0
        return chunks, self.admit(chunks, budget, wanted)

    def admit(self, chunks: list[Chunk], budget: int, reserve: int) -> int:
        """Take waiting requests into the step while tokens, sequences and memory last; how many."""
        if self.policy.match and len(self.waiting) <= MATCHED:
            self.waiting = sorted((-len(self.memory.found(i)), i) for _, i in self.waiting)
        kind, memory, size, waiting, running = self.policy.step, self.memory, self.size, self.waiting, self.running
        seqs, count = self.engine.seqs - len(self.gone), 0
        while waiting and budget > 0 and len(running) < seqs:
            i = waiting[0][1]
            if i in self.heard and i in self.parked:
                context = self.resume(i, reserve)
                if not context:
                    break
                reserve += not context % size
                budget -= kind == "mixed"
                continue
            goal = self.goal(i)
            if kind == "prompts" and goal > budget and chunks:
                break
            cached = memory.admit(i, goal, reserve)
            if cached < 0:
                break
            heappop(waiting)
            running[i] = None
            if i in self.parked:
                cached = self.parked.pop(i)
                self.fetch(cached)
            self.load -= cached
            tokens = min(goal - cached, budget) if kind == "mixed" else goal - cached
            memory.claim(-(-(cached + tokens) // size) - -(-cached // size))
            memory.written(i, cached + tokens)
            chunks.append((i, cached, tokens, cached + tokens == goal))
            count += 1
            if kind != "batch":
                budget -= tokens
            if self.log.admitted[i] < 0:
                self.log.admitted[i], self.log.cached[i] = self.now, cached
        return count

    def fetch(self, tokens: int) -> None:
        """Bring the blocks of so many tokens back from host memory."""
        blocks = -(-tokens // self.size)
        self.memory.claim(blocks)
        self.moved += blocks

    def resume(self, i: int, reserve: int) -> int:
        """Request i comes back from host memory and decodes in the next step: its tokens, or 0 without room."""
        context = self.parked[i]
        if -(-(context + 1) // self.size) > self.memory.free - reserve:
            return 0
        heappop(self.waiting)
        self.fetch(self.parked.pop(i))
        self.chunks.extend((self.now, self.now, i, 0) if self.detail else ())
        self.still.add(1, self.heard.pop(i))
        self.load -= context + 1
        self.join(i, context, self.work.output[i] - self.said.pop(i))
        self.width = len(self.running)
        return context

    def goal(self, i: int) -> int:
        """Tokens to compute before request i decodes (again): its prompt, and what it generated before."""
        return self.work.prompt[i] + self.said.get(i, 0)

    def join(self, i: int, context: int, left: int) -> None:
        """Request i, with `context` tokens in memory, decodes from the next step on, `left` tokens."""
        self.running[i] = None
        self.end[i] = self.step + left
        heappush(self.heap, (self.step + left, i))
        self.n += 1
        self.ctx += context
        self.growth.join(self.step, context)

    def make_room(self) -> int:
        """Preempt from the last admitted on until the others' next blocks are free; how many blocks those are."""
        while (wanted := self.growth.at(self.step + 1)) > self.memory.free:
            self.preempt()
        return wanted

    def preempt(self) -> None:
        """The last admitted sequence gives its memory up and queues again."""
        i = next(reversed(self.running))
        if self.part and self.part[0] == i:
            done = self.part[1]
            self.memory.release(i, -(-done // self.size))
            self.part = None
            del self.running[i]
            said = self.said.get(i, 0)
            self.load += done
        else:
            said = self.work.output[i] - (self.end[i] - self.step)
            self.heard[i] = self.still.last() or (self.log.first[i] if said == 1 else self.spoken)
            done = self.work.prompt[i] + said - 1
            self.stop(i, done)
            self.memory.release(i, -(-done // self.size))
            self.load += done + 1
            self.said[i] = said
        if self.engine.swap:
            self.parked[i] = done
            self.moved += -(-done // self.size)
        self.preempted.extend((self.now, i, said))
        self.queue(i)

    def stop(self, i: int, context: int) -> None:
        """Request i, with `context` tokens in memory, decodes no more."""
        del self.running[i], self.end[i]
        self.n -= 1
        self.ctx -= context
        self.growth.leave(self.step, context)

    def settle(self) -> None:
        """Hear who ended: at once when nothing runs, else one step late."""
        if not self.gone and not self.late:
            return
        gone, self.gone, self.late = self.gone, self.late, []
        if self.woken or not self.running:
            gone, self.gone = gone + self.gone, []
        for i, blocks in gone:
            self.memory.release(i, blocks)
