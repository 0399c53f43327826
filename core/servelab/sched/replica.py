"""One engine at work: its queue, its running sequences and its memory, advanced from boundary to boundary.

Decoding sequences are a count `n` and a sum `ctx` of their context tokens, since every one of them gains a token in
every decode step; a heap holds the step at which each of them ends. Blocks are counted, not named: a sequence needs
its next block when its context is a multiple of the block size, so `wants[s mod block_size]` sequences want one in step
s, and the blocks of k steps are a sum of at most block_size entries.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

from servelab.sched.cost import Line, reach, total
from servelab.sched.memory import Counted, Growth, Memory, Prefixes
from servelab.sched.policies import POLICIES
from servelab.sched.standstill import Standstill

if TYPE_CHECKING:
    from servelab.sched.simulate import Log

FOREVER = 2**63
Chunk = tuple[int, int, int, bool]  # a prompt's part in a step: request, tokens before, tokens, whether it ends then


class Replica:
    """Replica `number` of a run; writes into `log`. `load`: tokens still to compute, for routers."""

    def __init__(self, log: Log, number: int, detail: bool) -> None:
        work, engine = log.work, log.engine
        self.log, self.work, self.engine, self.detail = log, work, engine, detail
        self.policy, self.overlap, self.size = POLICIES[engine.policy], engine.cost.overlap, engine.block_size
        self.memory: Memory = Prefixes(work, engine) if engine.prefix else Counted(engine)
        self.waiting: list[tuple[int, int]] = []  # heap of (key, request)
        self.running: dict[int, None] = {}  # in order of admission
        self.part: tuple[int, int] | None = None  # a prompt that was cut: (request, tokens done)
        self.heap: list[tuple[int, int]] = []  # (last decode step, request), stale where `end` differs
        self.end: dict[int, int] = {}
        self.said: dict[int, int] = {}  # tokens generated before a preemption
        self.heard: dict[int, int] = {}  # when a preempted request's last token came
        self.parked: dict[int, int] = {}  # request → its tokens in host memory
        self.moved = 0  # blocks to and from there before the next step
        self.still, self.growth = Standstill(), Growth(engine.block_size)
        self.lines: dict[int, Line] = {}
        self.now = self.seen = self.spoken = self.step = self.n = self.ctx = self.load = self.width = 0
        self.woken = self.short = False  # the next step: first after a pause; somebody was preempted, nobody may enter
        self.steps, self.stalls, self.held = log.steps[number], log.stalls[number], log.held[number]
        self.preempted, self.chunks = log.preempted[number], log.chunks[number]

    def push(self, i: int) -> None:
        """Request i arrives; the replica has been advanced to that moment."""
        self.load += self.work.prompt[i] + self.work.output[i]
        if not self.running and not self.waiting:
            self.now = self.seen = max(self.now, self.work.arrival[i])
            self.woken = True
        self.queue(i)

    def queue(self, i: int) -> None:
        heappush(self.waiting, (self.policy.key(self.work, i) if self.policy.key else 0, i))

    def advance(self, until: int) -> None:
        """Run every step that is decided before `until`; an arrival at that moment is seen by the next one."""
        while (self.running or self.waiting) and (self.seen if self.overlap else self.now) < until:
            chunks, admitted = self.compose()
            if chunks:
                self.prefill(chunks, admitted)
            else:
                self.decode(until)

    def compose(self) -> tuple[list[Chunk], int]:
        """The prompts of the next step, and how many of them are new."""
        memory, size = self.memory, self.size
        wanted = self.growth.at(self.step + 1)
        short = wanted > memory.free
        if short:
            wanted = self.make_room()
        budget = self.engine.budget - (self.n if self.policy.step == "mixed" else 0)
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
        kind, memory, size, waiting, running = self.policy.step, self.memory, self.size, self.waiting, self.running
        seqs, count = self.engine.seqs, 0
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

    def prefill(self, chunks: list[Chunk], admitted: int) -> None:
        """One step with prompts in it; the decodes beside them advance if the policy mixes."""
        mixed = self.policy.step == "mixed"
        n, ctx = (self.n, self.ctx + self.n) if mixed else (0, 0)
        tokens = pairs = whole = 0
        for _, done, k, complete in chunks:
            tokens += k
            pairs += k * done + k * (k + 1) // 2
            whole += complete
        start, self.part = self.now, None
        took = self.engine.cost.step(n, ctx, tokens, pairs, len(chunks), admitted, n + whole, self.woken)
        took += self.engine.cost.swap * self.moved
        self.woken, self.moved = False, 0
        if not mixed:
            self.still.all(self.n, start)
        elif n:
            self.memory.claim(self.growth.at(self.step + 1))
            self.go_on(start)
        self.record(start, 1, n, n, self.ctx, tokens, took)
        self.seen, self.now = start, start + took
        self.load -= tokens + n + whole
        if mixed:
            self.step += 1
            self.ctx += n
            self.spoken = self.now
            self.leave()
        before = self.n
        for i, done, k, complete in chunks:
            self.chunks.extend((start, self.now, i, k) if self.detail else ())
            if complete:
                self.speak(i, done + k)
            else:
                self.part = i, done + k
        if not mixed and self.n > before:
            self.still.add(self.n - before, self.now)
        self.width = len(self.running)

    def decode(self, until: int) -> None:
        """A run of decode steps, to the first boundary at which anything may change."""
        n, ctx, start, heap, end = self.n, self.ctx, self.now, self.heap, self.end
        while end.get(heap[0][1]) != heap[0][0]:
            heappop(heap)
        width = self.width if self.policy.step == "batch" else n
        line = self.lines.get(width) or self.lines.setdefault(width, self.engine.cost.line(width))
        most = 1 if self.short or self.moved else heap[0][0] - self.step  # whoever was kept out may come in next
        k = self.growth.affordable(n, self.step, most, self.memory.free)
        took = total(line, ctx, n, k)
        if start + took > until:
            span = until - start
            k = min(k, reach(line, ctx, n, span) + self.overlap if span > 0 else 1)
            took = total(line, ctx, n, k)
        self.memory.claim(self.growth.need(n, self.step, k))
        extra, self.moved = self.engine.cost.swap * self.moved, 0
        self.go_on(start, extra)
        took += extra
        self.record(start, k, n, width, ctx, 0, took)
        self.seen = start + total(line, ctx, n, k - 1) if self.overlap else start
        self.now = self.spoken = start + took
        self.ctx = ctx + n * k
        self.step += k
        self.load -= n * k
        self.leave()

    def record(self, *row: int) -> None:
        self.steps.extend(row)
        self.held.extend([self.engine.blocks - self.memory.free] if self.detail else ())

    def go_on(self, start: int, extra: int = 0) -> None:
        """Every decode gets its next token from the step that begins at `start`."""
        for count, late in self.still.end(self.n, start, extra):
            self.stalls.extend((len(self.steps) // 7, count, late))

    def speak(self, i: int, context: int) -> None:
        """Request i's prompt is complete: it has its next token, and decodes from the next step on."""
        log, work, now = self.log, self.work, self.now
        if log.first[i] < 0 and work.output[i]:
            log.first[i] = now
        elif i in self.heard:
            self.stalls.extend((-1, 1, now - self.heard.pop(i)))
        left = work.output[i] - self.said.get(i, 0) - 1
        if left <= 0:
            del self.running[i]
            log.finish[i] = now
            self.said.pop(i, None)
            self.memory.release(i, -(-context // self.size))
            return
        self.said.pop(i, None)
        self.join(i, context, left)

    def join(self, i: int, context: int, left: int) -> None:
        """Request i, with `context` tokens in memory, decodes from the next step on, `left` tokens."""
        self.running[i] = None
        self.end[i] = self.step + left
        heappush(self.heap, (self.step + left, i))
        self.n += 1
        self.ctx += context
        self.growth.join(self.step, context)

    def leave(self) -> None:
        """Sequences whose last token this step was go, with their memory."""
        heap, step, work = self.heap, self.step, self.work
        while heap and heap[0][0] <= step:
            end, i = heappop(heap)
            if self.end.get(i) == end:
                self.stop(i, work.prompt[i] + work.output[i] - 1)
                self.log.finish[i] = self.now
                self.said.pop(i, None)

    def stop(self, i: int, context: int) -> None:
        """Request i decodes no more; it has `context` tokens in memory."""
        del self.running[i], self.end[i]
        self.n -= 1
        self.ctx -= context
        self.growth.leave(self.step, context)
        self.memory.release(i, -(-context // self.size))

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
            self.load += done + 1
            self.said[i] = said
        if self.engine.swap:
            self.parked[i] = done
            self.moved += -(-done // self.size)
        self.preempted.extend((self.now, i, said))
        self.queue(i)
