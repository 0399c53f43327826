"""Block tables: which blocks hold a sequence's tokens, in order. The logical side of paged KV memory.

    sequence ──tables──▶ [block, block, …] ──BlockPool──▶ refs, free order
                             └──PrefixCache──▶ node of each full block (scheme "shared")

The rule that keeps sharing safe: a sequence writes only into a block that it alone holds and that has no node. Any
other block is copied first (copy-on-write), which covers a forked tail and a prompt that the cache holds entirely. Of
such a prompt all tokens but the last are reused: the last one is computed again, since its logits start the answer,
and its KV goes into a private copy of the last block, so a shared block never changes. Where the copy does not fit,
that block is recomputed.

Writing has two steps, because tokens decode one per tick: `reserve` room, later `commit` the tokens that arrived.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

from servelab.kv.blocks import DEBUG, BlockPool
from servelab.kv.log import Event, event
from servelab.kv.prefix import Content, Node, PrefixCache

BROKEN = -(1 << 60)
"""A chain tip that can take no child: a block of the sequence could not be cached, so nothing after it can."""


class Plan(NamedTuple):
    """How a sequence would be admitted: reuse `hits`, copy the last of them or not; `need` blocks of `available`."""

    hits: list[Node]
    copy: bool
    need: int
    available: int


class Tables:
    """Block tables over a pool of `blocks` × `block_size` tokens; with a `cache`, full blocks are shared by content.

    `tables[seq]` and `lengths[seq]` (tokens committed) are open to read; `events` collects the log at the tick `now`.
    `forks`: samples of one request start as forks (else each is a sequence of its own).
    """

    def __init__(self, blocks: int, block_size: int, cache: PrefixCache | None = None) -> None:
        if block_size < 1:
            raise ValueError(f"block size {block_size} is outside 1…; use at least 1 token a block")
        self.pool = BlockPool(blocks, self._evicted)
        self.block_size = block_size
        self.cache = cache
        self.forks = cache is not None
        self.tables: dict[int, list[int]] = {}
        self.lengths: dict[int, int] = {}
        self.events: list[Event] = []
        self.now = 0
        self._contents: dict[int, Sequence[Content]] = {}
        self._tips: dict[int, int] = {}

    def plan(self, tokens: int, contents: Sequence[Content] = (), salt: Hashable = 0, spare: int = 0) -> Plan:
        """What admitting `tokens` (≥ 1) would take; `spare` further tokens must find room too, but are not reserved."""
        if tokens < 1 or spare < 0:
            raise ValueError(f"{tokens} tokens and {spare} spare: use at least 1 token and 0 spare")
        size, free, refs = self.block_size, self.pool.available, self.pool.refs
        total = -(-(tokens + spare) // size)
        hits = self.cache.match(contents[: tokens // size], salt) if self.cache else []
        parked = sum(not refs[node.block] for node in hits)
        need = total - len(hits) + parked
        if not hits or len(hits) * size < tokens:
            return Plan(hits, False, need, free)
        if need + 1 <= free:
            return Plan(hits, True, need + 1, free)
        last = hits.pop()
        return Plan(hits, False, need + bool(refs[last.block]), free)

    def admit(
        self, seq: int, tokens: int, contents: Sequence[Content] = (), salt: Hashable = 0, plan: Plan | None = None
    ) -> int:
        """Give `seq` a table with `tokens` written; returns how many of them the cache had.

        `contents[i]` is the content of full block i, and may be a list that grows with the sequence. ValueError, and no
        change, when the sequence exists or the blocks do not suffice.
        """
        if seq in self.tables:
            raise ValueError(f"sequence {seq} has a table already; release it first or use another id")
        hits, copy, need, free = plan or self.plan(tokens, contents, salt)
        if need > free:
            raise ValueError(f"sequence {seq} needs {need} blocks, {free} are available; release or preempt a sequence")
        size, now, add = self.block_size, self.now, self.events.append
        reused = len(hits) * size - copy
        table = self.tables[seq] = [node.block for node in hits]
        self.lengths[seq], self._contents[seq] = tokens, contents
        self._tips[seq] = hits[-1].id if hits else self.cache.root(salt) if self.cache else BROKEN
        add(Event(now, "admit", seq, -1, -1, tokens, 0, reused))
        self.pool.share(table)
        for slot, node in enumerate(hits):
            add(event((now, "share", seq, node.block, slot, 0, self.pool.refs[node.block], node.id)))
        if copy:
            add(Event(now, "prefill", seq, self._copy(seq, len(table) - 1, size - 1), len(table) - 1, 1, 0, size - 1))
        table += self.pool.alloc(-(-tokens // size) - len(table))
        for slot in range(len(hits), len(table)):
            block = table[slot]
            fill = min(size, tokens - slot * size)
            add(event((now, "alloc", seq, block, slot, 0, 1, -1)))
            add(event((now, "prefill", seq, block, slot, fill, 0, 0)))
            if fill == size:
                self._hash(seq, slot)
        if DEBUG:
            self.check()
        return reused

    def reserve(self, seq: int, tokens: int) -> int:
        """Room for up to `tokens` (≥ 1) where the next token goes; 0 when that takes a block and none is left."""
        table = self._table(seq)
        slot, fill = divmod(self.lengths[seq], self.block_size)
        if tokens < 1:
            raise ValueError(f"{tokens} tokens to reserve is outside 1…; reserve for at least one")
        if slot < len(table):
            block = table[slot]
            if self.pool.refs[block] > 1:
                if not self.pool.available:
                    return 0
                block = self._copy(seq, slot, fill)
        elif self.pool.available:
            block = self.pool.alloc()[0]
            table.append(block)
            self.events.append(Event(self.now, "alloc", seq, block, slot, 0, 1))
        else:
            return 0
        room = min(tokens, self.block_size - fill)
        self.events.append(Event(self.now, "decode", seq, block, slot, room, 0, fill))
        return room

    def commit(self, seq: int, tokens: int) -> None:
        """`tokens` of the room reserved have arrived; a block that they fill enters the prefix cache."""
        room = len(self._table(seq)) * self.block_size - self.lengths[seq]
        if not 0 <= tokens <= room:
            raise ValueError(f"{tokens} tokens for sequence {seq} is outside 0…{room}; reserve room before committing")
        after = self.lengths[seq] = self.lengths[seq] + tokens
        if tokens and not after % self.block_size:
            self._hash(seq, after // self.block_size - 1)
        if DEBUG:
            self.check()

    def fork(self, parent: int, child: int, contents: Sequence[Content] = ()) -> None:
        """`child` starts with the parent's committed tokens and shares every block; who writes first copies the tail.

        Fork between writes: room that the parent has reserved and not filled would be shared too.
        """
        if child in self.tables:
            raise ValueError(f"sequence {child} has a table already; release it first or use another id")
        table = self.tables[child] = self._table(parent)[:]
        self.lengths[child], self._tips[child] = self.lengths[parent], self._tips[parent]
        self._contents[child] = contents
        self.pool.share(table)
        now, refs, add = self.now, self.pool.refs, self.events.append
        add(Event(now, "fork", child, other=parent))
        for slot, block in enumerate(table):
            add(Event(now, "share", child, block, slot, 0, refs[block], parent))
        if DEBUG:
            self.check()

    def release(self, seq: int) -> None:
        """Give up the table of `seq`, tail first: hashed blocks without owner stay evictable, others become free."""
        table, now, add, pool = self._table(seq), self.now, self.events.append, self.pool
        del self.tables[seq], self.lengths[seq], self._contents[seq], self._tips[seq]
        pool.release(table)
        for slot in range(len(table) - 1, -1, -1):
            block = table[slot]
            left = pool.refs[block]
            add(event((now, "release", seq, block, slot, 0, left, -1)))
            if not left:
                add(event((now, "free" if pool.nodes[block] < 0 else "park", -1, block, -1, 0, 0, -1)))
        if DEBUG:
            self.check()

    def check(self) -> None:
        """The invariants: reference counts are the sum of tables, tables cover their lengths, pool and cache agree."""
        self.pool.check()
        counts = [0] * len(self.pool.refs)
        for seq, table in self.tables.items():
            assert -(-self.lengths[seq] // self.block_size) <= len(table), f"table of sequence {seq} is too short"
            assert len(set(table)) == len(table), f"table of sequence {seq} repeats a block"
            for block in table:
                counts[block] += 1
        assert counts == self.pool.refs, "reference counts differ from the sum of tables"
        labelled = {node: block for block, node in enumerate(self.pool.nodes) if node >= 0}
        if self.cache:
            self.cache.check()
            assert labelled == {node.id: node.block for node in self.cache.nodes.values()}, "pool and cache differ"

    def _table(self, seq: int) -> list[int]:
        if seq not in self.tables:
            raise ValueError(f"sequence {seq} has no table (there are {len(self.tables)}); admit or fork it first")
        return self.tables[seq]

    def _copy(self, seq: int, slot: int, fill: int) -> int:
        table = self.tables[seq]
        old, new = table[slot], self.pool.alloc()[0]
        table[slot] = new
        self.pool.release((old,))
        left = self.pool.refs[old]
        self.events.append(Event(self.now, "copy", seq, new, slot, fill, left, old))
        if not left:
            self.events.append(Event(self.now, "park", -1, old))
        return new

    def _hash(self, seq: int, slot: int) -> None:
        tip = self._tips[seq]
        if self.cache is None or tip == BROKEN:
            return
        block = self.tables[seq][slot]
        node = self.cache.insert(tip, self._contents[seq][slot], block)
        self._tips[seq] = BROKEN if node is None else node.id
        if node is not None and node.block == block:
            self.pool.label(block, node.id)
            self.events.append(event((self.now, "hash", seq, block, slot, max(tip, -1), 0, node.id)))

    def _evicted(self, block: int, node: int) -> None:
        if self.cache is None:
            return
        first, *under = self.cache.forget(node)
        self.events.append(Event(self.now, "evict", -1, block, other=node))
        for child in under:
            self.events.append(Event(self.now, "evict", -1, child.block, other=child.id))
            if self.pool.unlabel(child.block):
                self.events.append(Event(self.now, "free", -1, child.block))
