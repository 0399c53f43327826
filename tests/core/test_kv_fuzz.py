"""Stateful property tests of the memory room: pool, prefix cache, fork, append, release, preempt and re-admit.

SERVELAB_FUZZ_OPS sets the number of operations (default 100,000; 1,000,000 takes about ten times as long).
"""

import os
import random

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from kv_world import SALTS, TEXTS, World, random_step

from servelab.kv.log import KINDS

OPS = int(os.environ.get("SERVELAB_FUZZ_OPS", "100000"))
HASHERS = (hash, lambda content: hash(content) % 3, lambda content: 7)


def test_no_leak_no_double_free_and_refs_are_the_sum_of_tables():
    """sglang#35270, vllm#42571: free + evictable + in use = total after every operation, and events tell it all."""
    done, seen, seed = 0, set(), 0
    while done < OPS:
        rng = random.Random(seed)
        world = World(rng.randint(1, 24), rng.randint(1, 5), HASHERS[seed % 3 if seed % 2 else 0], seed % 7 != 6)
        ops = min(1000, OPS - done)
        for step in range(ops):
            random_step(world, rng)
            if not step % 50:
                world.tables.check()
                for seq in world.tokens:
                    world.reads_back(seq)
        for seq in list(world.tokens):
            world.release(seq)
        world.tables.check()
        assert world.tables.pool.in_use == 0
        assert world.tables.pool.available == world.total
        seen |= set(world.seen)
        done, seed = done + ops, seed + 1
    assert seen == set(KINDS) - {"wait", "preempt", "finish"}, "an operation that never happened"


class Memory(RuleBasedStateMachine):
    """The same operations chosen by hypothesis, so that a failure shrinks to a few steps."""

    @initialize(blocks=st.integers(1, 12), size=st.integers(1, 4), hasher=st.sampled_from(HASHERS))
    def open(self, blocks, size, hasher):
        self.world = World(blocks, size, hasher)

    @rule(text=st.sampled_from(TEXTS), length=st.integers(1, 30), salt=st.sampled_from(SALTS))
    def admit(self, text, length, salt):
        self.world.admit(list(text[: min(length, self.world.size * self.world.total)]), salt)

    @precondition(lambda self: self.world.waiting)
    @rule()
    def readmit(self):
        self.world.admit(*self.world.waiting.pop())

    @precondition(lambda self: self.world.tokens)
    @rule(data=st.data(), token=st.integers(0, 2), times=st.integers(1, 6))
    def append(self, data, token, times):
        seq = data.draw(st.sampled_from(sorted(self.world.tokens)))
        while times and self.world.append(seq, token):
            times -= 1
        if times:
            self.world.preempt(max(self.world.tokens))

    @precondition(lambda self: self.world.tokens)
    @rule(data=st.data())
    def fork(self, data):
        self.world.fork(data.draw(st.sampled_from(sorted(self.world.tokens))))

    @precondition(lambda self: self.world.tokens)
    @rule(data=st.data(), again=st.booleans())
    def leave(self, data, again):
        seq = data.draw(st.sampled_from(sorted(self.world.tokens)))
        if again:
            self.world.preempt(seq)
        else:
            self.world.release(seq)

    @invariant()
    def holds(self):
        if hasattr(self, "world"):
            self.world.tables.check()
            for seq in self.world.tokens:
                self.world.reads_back(seq)


Memory.TestCase.settings = settings(
    max_examples=100, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)
TestMemory = Memory.TestCase
