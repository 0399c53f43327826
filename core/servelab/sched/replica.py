"""One engine at work: steps, advanced from boundary to boundary."""

from __future__ import annotations

from heapq import heappop

from servelab.sched.cost import reach, total
from servelab.sched.scheduler import Chunk, Scheduler

FOREVER = 2**63


class Replica(Scheduler):
    """Replica `number` of a run; writes into `log`."""

    def push(self, i: int) -> None:
        """Request i arrives; the replica has been advanced to that moment."""
        self.load += self.work.prompt[i] + self.work.output[i]
        if not self.running and not self.waiting:
            self.now = self.seen = max(self.now, self.work.arrival[i])
            self.woken = True
        self.queue(i)

    @property
    def clock(self) -> int:
        """When the next step is decided: whoever has come by then may be in it."""
        return self.seen if self.overlap else self.now

    def advance(self, until: int) -> None:
        """Run every step that is decided before `until`; an arrival at that moment is seen by the next one."""
        while (self.running or self.waiting) and (self.seen if self.overlap else self.now) < until:
            self.turn(until)

    def turn(self, until: int) -> None:
        """Decide once: a step with prompts, or a run of decode steps that ends when `until` is seen."""
        chunks, admitted = self.compose()
        if chunks:
            self.prefill(chunks, admitted)
        elif self.n:
            self.decode(until)  # else all were preempted, for blocks that come free when the last step is heard of

    def prefill(self, chunks: list[Chunk], admitted: int) -> None:
        """One step with prompts in it; the decodes beside them advance if the policy mixes."""
        mixed, cost = self.mixed, self.cost
        n, ctx = (self.n, self.ctx + self.n) if mixed else (0, 0)
        tokens = pairs = whole = 0
        for _, done, k, complete in chunks:
            tokens += k
            pairs += k * done + k * (k + 1) // 2
            whole += complete
        start, self.part = self.now, None
        ahead = 0 if self.woken else self.ahead
        took, self.ahead = cost.step(n, ctx, tokens, pairs, len(chunks), admitted, n + whole, ahead)
        took += cost.swap * self.moved
        self.woken, self.prompts, self.moved = False, True, 0
        if not mixed:
            self.still.all(self.n, start)
        elif n:
            self.memory.claim(self.growth.at(self.step + 1))
            if self.still.rows:
                self.go_on(start)
        self.record(start, 1, n, n, self.ctx, tokens, took)
        self.seen, self.now = start, start + took
        self.load -= tokens + n + whole
        if mixed:
            self.step += 1
            self.ctx += n
            self.spoken = self.now
            if self.heap and self.heap[0][0] <= self.step:
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
        n, ctx, start, heap, end, cost = self.n, self.ctx, self.now, self.heap, self.end, self.cost
        while end.get(heap[0][1]) != heap[0][0]:
            heappop(heap)
        width = self.width if self.policy.step == "batch" else n
        line = self.lines.get(width) or self.lines.setdefault(width, cost.line(width))
        kept_out = self.short or self.moved or (self.gone and self.waiting)  # somebody may come in next
        lag = self.prompts and cost.first(line, line.base + line.slope * (ctx + n), self.ahead)
        most = 1 if kept_out or lag else heap[0][0] - self.step
        k = self.growth.affordable(n, self.step, most, self.memory.free)
        took = total(line, ctx, n, k)
        if start + took > until:
            span = until - start
            k = min(k, reach(line, ctx, n, span) + self.overlap if span > 0 else 1)
            took = total(line, ctx, n, k)
        self.memory.claim(self.growth.need(n, self.step, k))
        extra, self.moved = cost.swap * self.moved + lag, 0
        if extra or self.still.rows:
            self.go_on(start, extra)
            took += extra
        self.record(start, k, n, width, ctx, 0, took)
        self.now = self.spoken = start + took
        self.ctx = ctx + n * k
        if self.overlap:
            gpu = line.base + line.slope * self.ctx
            self.seen = self.now - extra - max(line.floor, gpu)
            self.ahead, self.prompts = cost.lead(line, gpu), False
        else:
            self.seen = start
        self.step += k
        self.load -= n * k
        if heap[0][0] <= self.step:
            self.leave()

    def record(self, *row: int) -> None:
        self.steps.extend(row)
        if self.detail:
            self.held.append(self.engine.blocks - self.memory.free)

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
            self.finish(i, context)
            return
        self.said.pop(i, None)
        self.join(i, context, left)

    def leave(self) -> None:
        """Sequences whose last token this step was go, with their memory."""
        heap, step, work = self.heap, self.step, self.work
        while heap and heap[0][0] <= step:
            end, i = heappop(heap)
            if self.end.get(i) == end:
                context = work.prompt[i] + work.output[i] - 1
                self.stop(i, context)
                self.finish(i, context)

    def finish(self, i: int, context: int) -> None:
        """Request i is done; it has `context` tokens in memory."""
        self.log.finish[i] = self.now
        self.said.pop(i, None)
        blocks = -(-context // self.size)
        if self.overlap:
            self.late.append((i, blocks))
        else:
            self.memory.release(i, blocks)
