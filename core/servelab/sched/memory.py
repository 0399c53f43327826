"""KV memory in the hot loop: exact block counts, and identities only for prompt blocks that a prefix cache may find.

The rules are `servelab.kv`'s. `Counted` has no cache: a pool is a number. `Prefixes` finds prompts by the trace's block
hashes: a hit needs every earlier block too, at least one token is always computed, a block nobody holds stays findable
until it is the least recently released and its room is wanted, and a sequence gives its blocks back tail first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import Protocol

from servelab.sched.engine import Engine
from servelab.sched.request import Workload


class Memory(Protocol):
    """`free`: blocks that can be claimed, cached ones that nobody holds included."""

    free: int

    def found(self, i: int) -> Sequence[Hashable]:
        """The cached blocks with which request i could begin."""

    def admit(self, i: int, goal: int, reserve: int) -> int:
        """Hold what is cached of request i, which wants `goal` tokens in all and must leave `reserve` blocks free.

        The tokens found, or −1 if it cannot fit.
        """

    def claim(self, count: int) -> None:
        """Take blocks, at most `free`."""

    def written(self, i: int, tokens: int) -> None:
        """The first `tokens` of request i are in memory: its full prompt blocks can be found."""

    def release(self, i: int, blocks: int) -> None:
        """Request i gives all its `blocks` back."""


class Counted:
    """A pool without a cache."""

    def __init__(self, engine: Engine) -> None:
        self.free, self.size = engine.blocks, engine.block_size

    def found(self, i: int) -> Sequence[Hashable]:
        return ()

    def admit(self, i: int, goal: int, reserve: int) -> int:
        return 0 if -(-goal // self.size) <= self.free - reserve else -1

    def claim(self, count: int) -> None:
        self.free -= count

    def written(self, i: int, tokens: int) -> None:
        pass

    def release(self, i: int, blocks: int) -> None:
        self.free += blocks


class Prefixes:
    """A pool with a prefix cache over the workload's hashes; a hashed block is `unit` blocks of the pool."""

    def __init__(self, work: Workload, engine: Engine) -> None:
        if work.hash_block % engine.block_size:
            raise ValueError(
                f"block_size {engine.block_size} does not divide the trace's hash blocks of {work.hash_block} tokens; "
                "use a divisor of it"
            )
        self.work, self.size = work, engine.block_size
        self.unit = work.hash_block // engine.block_size
        self.free = self.empty = engine.blocks
        self.refs: dict[Hashable, int] = {}
        self.idle: OrderedDict[Hashable, None] = OrderedDict()  # in order of release
        self.held: dict[int, list[Hashable]] = {}  # blocks that a request holds and others can find
        self.full: dict[int, int] = {}  # hashed blocks of its prompt that are in memory, those that stay private too

    def keys(self, i: int) -> Sequence[Hashable]:
        names = self.work.hashes[i] if self.work.hashes else ()
        return [(self.work.tenant[i], name) for name in names] if self.work.tenant else names

    def found(self, i: int) -> list[Hashable]:
        refs, idle = self.refs, self.idle
        keys = self.keys(i)[: (self.work.prompt[i] - 1) // self.work.hash_block]
        for count, key in enumerate(keys):
            if key not in refs and key not in idle:
                return list(keys[:count])
        return list(keys)

    def admit(self, i: int, goal: int, reserve: int) -> int:
        refs, idle = self.refs, self.idle
        hits = self.found(i)
        parked = sum([key in idle for key in hits])
        if -(-goal // self.size) - (len(hits) - parked) * self.unit > self.free - reserve:
            return -1
        for key in hits:
            if key in idle:
                del idle[key]
                self.free -= self.unit
                refs[key] = 1
            else:
                refs[key] += 1
        self.held[i], self.full[i] = hits, len(hits)
        return len(hits) * self.work.hash_block

    def claim(self, count: int) -> None:
        self.free -= count
        self.empty = left = self.empty - count
        if left < 0:
            unit, evict = self.unit, self.idle.popitem
            while left < 0:
                evict(False)  # the one that was released first
                left += unit
            self.empty = left

    def written(self, i: int, tokens: int) -> None:
        full, done = min(tokens, self.work.prompt[i]) // self.work.hash_block, self.full[i]
        if done >= full:
            return
        refs, idle, held = self.refs, self.idle, self.held[i]
        for key in self.keys(i)[done:full]:
            if key not in refs and key not in idle:  # else somebody computed the same meanwhile; ours stays private
                refs[key] = 1
                held.append(key)
        self.full[i] = full

    def release(self, i: int, blocks: int) -> None:
        held, refs, idle = self.held.pop(i), self.refs, self.idle
        del self.full[i]
        own = blocks - len(held) * self.unit
        self.free += own
        self.empty += own
        for key in reversed(held):
            left = refs[key] - 1
            if left:
                refs[key] = left
            else:
                del refs[key]
                idle[key] = None
                self.free += self.unit

    def check(self, in_use: int) -> None:
        """The invariants, given the blocks that sequences hold beside shared ones."""
        assert not self.refs.keys() & self.idle.keys(), "a block is held and idle"
        assert self.empty >= 0 and self.free == self.empty + len(self.idle) * self.unit, "free ≠ empty + idle"


class Growth:
    """When decoding sequences want their next block, counted.

    A sequence wants one when its context is a multiple of the block size, and the context grows by one in every step:
    `wants[s mod size]` sequences want one in step s, and the blocks of k steps are a sum of at most `size` entries.
    """

    def __init__(self, size: int) -> None:
        self.size, self.wants = size, [0] * size

    def join(self, step: int, context: int) -> None:
        """A sequence with `context` tokens decodes from the step after `step` on."""
        self.wants[(step + 1 - context) % self.size] += 1

    def leave(self, step: int, context: int) -> None:
        """A sequence that has `context` tokens after `step` decodes no more."""
        self.wants[(step + 1 - context) % self.size] -= 1

    def at(self, step: int) -> int:
        """Blocks wanted in a step."""
        return self.wants[step % self.size]

    def need(self, n: int, step: int, steps: int) -> int:
        """Blocks that n sequences take in the `steps` steps after `step`."""
        size, wants = self.size, self.wants
        cycles, rest = divmod(steps, size)
        begin = (step + 1) % size
        end = begin + rest
        if end <= size:
            return n * cycles + sum(wants[begin:end])
        return n * cycles + sum(wants[begin:]) + sum(wants[: end - size])

    def affordable(self, n: int, step: int, steps: int, free: int) -> int:
        """How many of the `steps` steps after `step`, for which there are `free` blocks; enough for one is there."""
        size, wants, after = self.size, self.wants, step + 1
        if n * (steps // size + 1) <= free or self.need(n, step, steps) <= free:
            return steps
        cycles = free // n
        steps, free = cycles * size, free - n * cycles
        while (next_one := wants[(after + steps) % size]) <= free:
            free -= next_one
            steps += 1
        return steps
