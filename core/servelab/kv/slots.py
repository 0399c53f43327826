"""Naive preallocation: every sequence reserves one slot of `max_len` tokens, contiguous, for as long as it lives.

Slots are cut from the pool at multiples of ceil(max_len / block size) blocks; what does not make a whole slot stays
unused. This is how engines stored KV before paging, and the baseline of the PagedAttention paper (arXiv:2309.06180,
section 3).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from heapq import heapify, heappop, heappush

from servelab.kv.log import Event, event
from servelab.kv.prefix import Content
from servelab.kv.tables import Plan


class Slots:
    """Slots over a pool of `blocks` × `block_size` tokens, with the interface of `Tables`; nothing is ever shared."""

    forks = False

    def __init__(self, blocks: int, block_size: int, max_len: int) -> None:
        self.block_size = block_size
        self.width = -(-max_len // block_size)
        self.tables: dict[int, list[int]] = {}
        self.lengths: dict[int, int] = {}
        self.events: list[Event] = []
        self.now = 0
        self._starts = list(range(0, blocks - self.width + 1, self.width))
        heapify(self._starts)

    def plan(self, tokens: int, contents: Sequence[Content] = (), salt: Hashable = 0, spare: int = 0) -> Plan:
        """A whole slot, whatever the sequence's length; ValueError when it would outgrow the slot."""
        if not 1 <= tokens + spare <= self.width * self.block_size:
            most = self.width * self.block_size
            raise ValueError(f"{tokens + spare} tokens is outside 1…{most}; raise max_len or shorten the request")
        return Plan([], False, self.width, len(self._starts) * self.width)

    def admit(
        self, seq: int, tokens: int, contents: Sequence[Content] = (), salt: Hashable = 0, plan: Plan | None = None
    ) -> int:
        """Reserve the lowest free slot and write `tokens` into it; 0 tokens are reused, always."""
        need, free = (plan or self.plan(tokens))[2:]
        if seq in self.tables or need > free:
            raise ValueError(f"sequence {seq} needs a new slot of {need} blocks, {free} are free; release one first")
        start, size, now, add = heappop(self._starts), self.block_size, self.now, self.events.append
        self.tables[seq], self.lengths[seq] = list(range(start, start + self.width)), tokens
        add(Event(now, "admit", seq, -1, -1, tokens, 0, 0))
        for slot in range(self.width):
            add(event((now, "alloc", seq, start + slot, slot, 0, 1, -1)))
        for slot in range(-(-tokens // size)):
            add(event((now, "prefill", seq, start + slot, slot, min(size, tokens - slot * size), 0, 0)))
        return 0

    def reserve(self, seq: int, tokens: int) -> int:
        """Room in the block that the next token goes to; the slot has it already."""
        slot, fill = divmod(self.lengths[seq], self.block_size)
        room = min(tokens, self.block_size - fill)
        self.events.append(Event(self.now, "decode", seq, self.tables[seq][slot], slot, room, 0, fill))
        return room

    def commit(self, seq: int, tokens: int) -> None:
        """`tokens` of the room reserved have arrived."""
        self.lengths[seq] += tokens

    def fork(self, parent: int, child: int, contents: Sequence[Content] = ()) -> None:
        """Slots cannot be shared: ValueError, always."""
        raise ValueError(f"sequence {child} cannot fork {parent}: slots are private; admit it as a sequence of its own")

    def release(self, seq: int) -> None:
        """Give the whole slot back."""
        table, now, add = self.tables.pop(seq), self.now, self.events.append
        del self.lengths[seq]
        heappush(self._starts, table[0])
        for slot in range(len(table) - 1, -1, -1):
            add(event((now, "release", seq, table[slot], slot, 0, 0, -1)))
            add(event((now, "free", -1, table[slot], -1, 0, 0, -1)))

    def check(self) -> None:
        """The invariants: slots are disjoint, and lengths fit them."""
        starts = self._starts + [table[0] for table in self.tables.values()]
        assert len(set(starts)) == len(starts), "a slot is given out twice"
        most = self.width * self.block_size
        assert all(self.lengths[seq] <= most for seq in self.tables), "a sequence outgrew its slot"
