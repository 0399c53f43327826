"""The same simulation one step at a time, as plain as it can be said: what the fast one must equal, event for event.

Every sequence is an object with its own counters, every block is claimed by somebody, and every step asks every
question again. It follows vLLM v1's schedule(): running sequences in order of admission, each with one token or its
next chunk, preempting from the end of the list when no block is left; then, unless somebody was preempted, waiting
requests while tokens, sequences and blocks for their whole length last. No prefix cache, one replica. With guesses of a
draft the lengths of steps differ from sequence to sequence, and this is the only way (`speculate`).
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from servelab.kv.blocks import BlockPool
from servelab.sched.engine import Engine
from servelab.sched.policies import POLICIES
from servelab.sched.request import Workload


@dataclass(slots=True, eq=False)
class Sequence:
    """`done` tokens are computed and `said` generated; `goal` are to be computed before it decodes; `parked` tokens
    wait in host memory."""

    i: int
    key: int
    goal: int
    done: int = 0
    said: int = 0
    parked: int = 0
    blocks: tuple[int, ...] = ()

    @property
    def prompting(self) -> bool:
        return self.done < self.goal


Event = tuple[int, str, int, int]
"""(ps, "admit" | "chunk" | "token" | "finish" | "preempt" | "step", request or duration, number)."""


class Reference:
    """One engine over one workload; `events` is everything that happened, in order."""

    def __init__(self, work: Workload, engine: Engine) -> None:
        self.work, self.engine, self.policy = work, engine, POLICIES[engine.policy]
        self.pool = BlockPool(engine.blocks)
        self.waiting: list[Sequence] = []
        self.running: list[Sequence] = []
        self.events: list[Event] = []
        self.now = self.seen = self.next = self.width = 0
        self.woken = False
        self.moved = self.ahead = 0
        self.prompts = False
        self.rngs: dict[int, Random] = {}
        self.late: list[Sequence] = []  # ended in the last step
        self.gone: list[Sequence] = []  # ended before the step that is running

    def run(self) -> list[Event]:
        work = self.work
        while self.next < len(work) or self.running or self.waiting:
            if not self.running and not self.waiting:
                self.now = self.seen = max(self.now, work.arrival[self.next])
                self.woken = True
            self.arrive(self.seen if self.engine.cost.overlap else self.now)
            if self.running or self.waiting:
                self.iterate()
        return self.events

    def arrive(self, until: int) -> None:
        work, key = self.work, self.policy.key
        while self.next < len(work) and work.arrival[self.next] <= until:
            i = self.next
            self.next += 1
            if work.prompt[i] + max(work.output[i] - 1, 0) <= self.pool.total * self.engine.block_size:
                self.waiting.append(Sequence(i, key(work, i) if key else 0, work.prompt[i]))

    def grow(self, one: Sequence, tokens: int) -> bool:
        """Blocks for `tokens` more of a sequence, if the pool has them."""
        need = -(-(one.done + tokens) // self.engine.block_size) - len(one.blocks)
        if need > self.pool.free:
            return False
        one.blocks += tuple(self.pool.alloc(need))
        return True

    def preempt(self) -> Sequence:
        one = self.running.pop()
        self.pool.release(one.blocks)
        self.events.append((self.now, "preempt", one.i, one.said))
        back = Sequence(one.i, one.key, self.work.prompt[one.i] + one.said, said=one.said)
        if self.engine.swap:
            back.parked = one.done
            if not one.prompting:
                back.goal = one.done
            self.moved += len(one.blocks)
        self.waiting.append(back)
        return one

    def iterate(self) -> None:
        mixed, budget = self.policy.step == "mixed", self.engine.budget
        self.settle()
        step: list[tuple[Sequence, int]] = []
        preempted = False
        at = 0
        while at < len(self.running):
            one = self.running[at]
            tokens = min(one.goal - one.done, budget) if one.prompting else 1 + self.guesses(one)
            fits = self.grow(one, tokens)
            while not fits:
                preempted = True
                if self.preempt() is one:
                    break
                fits = self.grow(one, tokens)
            if not fits:
                break
            if tokens:
                step.append((one, tokens))
            budget -= tokens if mixed else 0
            at += 1
        decodes = [pair for pair in step if not pair[0].prompting]
        chunks = [pair for pair in step if pair[0].prompting]
        admitted = 0
        if not preempted and not (self.policy.step == "batch" and self.running):
            admitted = self.admit(chunks, decodes, budget)
        if decodes or chunks:
            self.execute(decodes, chunks, admitted)

    def admit(self, chunks: list[tuple[Sequence, int]], decodes: list[tuple[Sequence, int]], budget: int) -> int:
        kind, count = self.policy.step, 0
        while self.waiting and budget > 0 and len(self.running) + len(self.gone) < self.engine.seqs:
            one = min(self.waiting, key=lambda s: (s.key, s.i))
            resumes = 0 < one.parked == one.goal
            if kind == "prompts" and not resumes and one.goal > budget and chunks:
                break
            if -(-(one.goal + (resumes and 1 + self.guesses(one))) // self.engine.block_size) > self.pool.free:
                break
            if one.parked:
                self.grow(one, one.parked)
                self.moved += len(one.blocks)
                one.done, one.parked = one.parked, 0
            self.waiting.remove(one)
            self.running.append(one)
            if resumes:
                tokens = 1 + self.guesses(one)
                self.grow(one, tokens)
                decodes.append((one, tokens))
                self.width = len(self.running)
                budget -= tokens if kind == "mixed" else 0
                continue
            tokens = min(one.goal - one.done, budget) if kind == "mixed" else one.goal - one.done
            self.grow(one, tokens)
            chunks.append((one, tokens))
            count += 1
            budget -= tokens if kind != "batch" else 0
            self.events.append((self.now, "admit", one.i, 0))
        return count

    def execute(self, decodes: list[tuple[Sequence, int]], chunks: list[tuple[Sequence, int]], admitted: int) -> None:
        cost, start = self.engine.cost, self.now
        if chunks and self.policy.step != "mixed":
            for one, _ in decodes:  # they stand still: what was claimed for them waits for their turn
                self.shrink(one)
            decodes = []
        guesses, passes = sum(n - 1 for _, n in decodes), max((n - 1 for _, n in decodes), default=0)
        if chunks:
            tokens = sum(n for _, n in chunks)
            pairs = sum(n * one.done + n * (n + 1) // 2 for one, n in chunks)
            whole = sum(one.done + n == one.goal for one, n in chunks)
            ctx = sum(one.done + 1 for one, _ in decodes)
            sampled = len(decodes) + whole
            ahead = 0 if self.woken else self.ahead
            took, self.ahead = cost.step(
                len(decodes), ctx, tokens, pairs, len(chunks), admitted, sampled, ahead, guesses, passes
            )
            self.woken, self.prompts = False, True
        else:
            width = self.width if self.policy.step == "batch" else len(decodes)
            line = cost.line(width, guesses, passes)
            gpu = line.base + line.slope * sum(one.done + 1 for one, _ in decodes)
            took = max(line.floor, gpu) + (cost.first(line, gpu, self.ahead) if self.prompts else 0)
            self.ahead, self.prompts = cost.lead(line, gpu), False
        took += cost.swap * self.moved
        self.moved = 0
        self.seen, self.now = start, start + took
        self.events.append((start, "step", took, len(decodes)))
        for one, n in chunks:
            self.events.append((start, "chunk", one.i, n))
        for one, n in decodes:
            for _ in range(self.accepted(one, n - 1) + 1):
                one.done += 1
                self.speak(one)
        for one, n in chunks:
            one.done += n
            if one.done >= one.goal:
                self.speak(one)
        if chunks:
            self.width = len(self.running)

    def guesses(self, one: Sequence) -> int:
        """How many tokens a draft guesses for a decode: as many as the engine says, none beyond the answer's end."""
        return min(len(self.engine.accept), self.work.output[one.i] - one.said - 1)

    def accepted(self, one: Sequence, guesses: int) -> int:
        """How many of them hold; drawn from a request's own stream, so that no schedule changes them."""
        if not guesses:
            return 0
        rng = self.rngs.setdefault(one.i, Random(f"{one.i}/accept"))
        rolls = [rng.random() < p for p in self.engine.accept]
        return min(guesses, (*rolls, False).index(False))

    def shrink(self, one: Sequence) -> None:
        keep = -(-one.done // self.engine.block_size)
        self.pool.release(one.blocks[keep:])
        one.blocks = one.blocks[:keep]

    def speak(self, one: Sequence) -> None:
        output = self.work.output[one.i]
        if one.said < output:
            one.said += 1
            self.events.append((self.now, "token", one.i, one.said))
        if one.said >= output:
            self.events.append((self.now, "finish", one.i, one.said))
            self.running.remove(one)
            self.late.append(one)

    def settle(self) -> None:
        """Whoever ended gives seat and blocks back; an engine that overlaps hears of it one step late."""
        gone, self.gone, self.late = self.gone, self.late, []
        if not self.engine.cost.overlap or self.woken or not self.running:
            gone, self.gone = gone + self.gone, []
        for one in gone:
            self.pool.release(one.blocks)
