"""A pool of equal blocks with reference counts: the physical side of paged KV memory.

Every block is in exactly one of four places, and every move between them is O(1):

    never used ──alloc──▶ in use (refs ≥ 1) ──release, not hashed──▶ loose (content gone)
                             ▲   │ release, hashed
                       share │   ▼
                          cached (refs 0, content kept, evictable) ──alloc evicts──▶ in use

`alloc` takes loose blocks first, then never-used ones, then the least recently released cached block; a sequence's
blocks are released tail first, so its tail is evicted before its head. This is the free order of vLLM v1 (Kwon et al.
2023, arXiv:2309.06180, for the paging itself). Never-used blocks are a counter, so a pool of 10^6 blocks costs
nothing to open.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

DEBUG = os.environ.get("SERVELAB_DEBUG") == "1"
"""With SERVELAB_DEBUG=1, `check()` runs after every operation (linear in the pool: for tests, not for replays)."""


class BlockPool:
    """`total` blocks, numbered in order of first use. `on_evict(block, node)` hears of every cached block evicted.

    `refs[b]` and `nodes[b]` cover the blocks used so far; `nodes[b]` is the prefix node whose content b holds, or −1.
    `evictable` counts the cached blocks, linked through `_after` and `_before`. Both ends of that list are the index
    −1, the last element of either, which moves along when a block is used for the first time.
    """

    __slots__ = ("total", "refs", "nodes", "evictable", "_loose", "_after", "_before", "_on_evict")

    def __init__(self, total: int, on_evict: Callable[[int, int], None] | None = None) -> None:
        if total < 1:
            raise ValueError(f"a pool of {total} blocks holds nothing; use at least 1")
        self.total = total
        self.refs: list[int] = []
        self.nodes: list[int] = []
        self._loose: list[int] = []
        self.evictable = 0
        self._after, self._before = [-1], [-1]
        self._on_evict = on_evict

    @property
    def free(self) -> int:
        """Blocks without content: loose and never used."""
        return len(self._loose) + self.total - len(self.refs)

    @property
    def available(self) -> int:
        """What `alloc` can hand out: free + evictable."""
        return len(self._loose) + self.total - len(self.refs) + self.evictable

    @property
    def in_use(self) -> int:
        """Blocks that at least one sequence holds."""
        return len(self.refs) - len(self._loose) - self.evictable

    def alloc(self, count: int = 1) -> list[int]:
        """`count` blocks with one reference each; ValueError, and no change, when fewer are available."""
        if not 0 <= count <= self.available:
            raise ValueError(
                f"{count} blocks asked for, 0 to {self.available} of {self.total} can be given; "
                "release or preempt a sequence, or use a larger pool"
            )
        take = self._take
        taken = [take() for _ in range(count)]
        if DEBUG:
            self.check()
        return taken

    def share(self, blocks: Sequence[int]) -> None:
        """One more reference to each block; a cached block comes back into use. ValueError for one without content."""
        refs, nodes = self.refs, self.nodes
        self._refuse_foreign(blocks)
        for block in blocks:
            if not refs[block] and nodes[block] < 0:
                raise ValueError(f"block {block} has neither owner nor content; allocate a block instead of sharing it")
        for block in blocks:
            if not refs[block]:
                self._unpark(block)
            refs[block] += 1
        if DEBUG:
            self.check()

    def release(self, blocks: Sequence[int]) -> None:
        """One reference less to each block of a table (head to tail; the tail goes first).

        ValueError, and no change, when a block is listed twice, is no block of this pool, or has no reference left.
        """
        refs, nodes, loose, park = self.refs, self.nodes, self._loose, self._park
        self._refuse_foreign(blocks)
        for block in blocks:
            if not refs[block]:
                raise ValueError(f"block {block} is free already (refs 0); release a block once per reference")
        for block in reversed(blocks):
            left = refs[block] = refs[block] - 1
            if not left:
                if nodes[block] < 0:
                    loose.append(block)
                else:
                    park(block)
        if DEBUG:
            self.check()

    def label(self, block: int, node: int) -> None:
        """Say that a held block now has the full content of prefix `node`: once released it stays, evictable."""
        if node < 0 or not 0 <= block < len(self.refs) or not self.refs[block] or self.nodes[block] >= 0:
            raise ValueError(f"block {block} cannot take node {node}; label a held block without node, with a node ≥ 0")
        self.nodes[block] = node

    def unlabel(self, block: int) -> bool:
        """Forget a block's content: a cached block becomes loose (True), a held one only loses its node (False)."""
        self._refuse_foreign((block,))
        cached = not self.refs[block] and self.nodes[block] >= 0
        self.nodes[block] = -1
        if not cached:
            return False
        self._unpark(block)
        self._loose.append(block)
        return True

    def cached(self) -> list[int]:
        """The evictable blocks, next victim first."""
        out: list[int] = []
        block = self._after[-1]
        while block >= 0 and len(out) <= self.evictable:
            out.append(block)
            block = self._after[block]
        return out

    def check(self) -> None:
        """The invariants: the four places are disjoint and complete, and counts, refs and nodes agree."""
        used, loose, cached = len(self.refs), set(self._loose), set(self.cached())
        assert used == len(self.nodes) <= self.total, "never-used counter left its range"
        assert len(loose) == len(self._loose), "a block is twice in the loose list"
        assert len(cached) == self.evictable, "the count of cached blocks is off"
        assert not loose & cached, f"blocks {loose & cached} are loose and cached"
        held = {block for block in range(used) if self.refs[block] > 0}
        assert not held & (loose | cached), f"blocks {held & (loose | cached)} are held and free"
        assert len(held) + len(loose) + len(cached) == used, "a used block is in no list"
        assert min(self.refs, default=0) >= 0, "a negative reference count"
        assert all(self.nodes[block] < 0 for block in loose), "a loose block has a node"
        assert all(self.nodes[block] >= 0 for block in cached), "a cached block has no node"
        assert self.free + self.evictable + self.in_use == self.total, "free + evictable + in use ≠ total"

    def _park(self, block: int) -> None:
        after, before = self._after, self._before
        last = before[-1]
        after[last] = before[-1] = block
        before[block], after[block] = last, -1
        self.evictable += 1

    def _unpark(self, block: int) -> None:
        before, after = self._before[block], self._after[block]
        self._after[before], self._before[after] = after, before
        self.evictable -= 1

    def _take(self) -> int:
        if self._loose:
            block = self._loose.pop()
            self.refs[block] = 1
        elif len(self.refs) < self.total:
            block = len(self.refs)
            self.refs.append(1)
            self.nodes.append(-1)
            self._after.append(self._after[-1])
            self._before.append(self._before[-1])
        else:
            block = self._after[-1]
            self._unpark(block)
            node, self.nodes[block], self.refs[block] = self.nodes[block], -1, 1
            if self._on_evict:
                self._on_evict(block, node)
        return block

    def _refuse_foreign(self, blocks: Sequence[int]) -> None:
        if not blocks:
            return
        if min(blocks) < 0 or max(blocks) >= len(self.refs):
            last = len(self.refs) - 1
            raise ValueError(f"blocks {min(blocks)}…{max(blocks)} are not all in 0…{last}; use blocks that alloc gave")
        if len(set(blocks)) != len(blocks):
            twice = sorted({block for block in blocks if list(blocks).count(block) > 1})
            raise ValueError(f"block {twice[0]} is listed twice; a table holds each block once, so list it once")
