"""One engine: what it may do in a step, and what a step costs it."""

from __future__ import annotations

from dataclasses import dataclass, field

from servelab.kv.limits import entry, within
from servelab.sched.cost import Cost
from servelab.sched.policies import POLICIES

UNLIMITED = 2**40
"""Blocks of a pool that never runs out."""


@dataclass(frozen=True, slots=True)
class Engine:
    """A scheduling `policy` (a key of POLICIES) over a KV pool.

    `budget`: most tokens in a step; `seqs`: most sequences at once, no more than the budget, since each may want a
    token in every step; `blocks` × `block_size` tokens of KV memory. `prefix`: prompts reuse cached blocks. `swap`: a
    preempted sequence's blocks go to host memory and come back; else they are dropped and computed again. `accept`: in
    each step a draft guesses so many tokens for every decode, and guess k, if those before it were, is accepted with
    probability accept[k].
    """

    cost: Cost = field(default_factory=Cost)
    policy: str = "chunked"
    budget: int = 8192
    seqs: int = 256
    blocks: int = UNLIMITED
    block_size: int = 16
    prefix: bool = False
    swap: bool = False
    accept: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        entry("policy", self.policy, POLICIES)
        within("budget", self.budget, 1, 2**24, "use 512 to 16,384 tokens a step")
        within("seqs", self.seqs, 1, self.budget, "every sequence may want a token in each step: keep seqs ≤ budget")
        within("blocks", self.blocks, 1, UNLIMITED, "give the engine's KV blocks")
        within("block_size", self.block_size, 1, 65_536, "engines use 16")
        if self.prefix and self.swap:
            raise ValueError("prefix and swap: cached blocks stay where they are; use one of the two")
        if self.prefix and self.accept:
            raise ValueError("prefix and accept: speculation is simulated without a prefix cache; use one of the two")
        if len(self.accept) > 16 or not all(0 <= p <= 1 for p in self.accept):
            raise ValueError(f"accept={self.accept}: give up to 16 probabilities, each 0 to 1")
        within("seqs", self.seqs, 1, self.budget // (1 + len(self.accept)), "each decode takes its guesses' tokens too")
