"""Which block to give up: cache policies over a stream of block references.

The model is the plain one of cache theory: a cache of `capacity` blocks; each reference to a resident block is a hit;
each miss inserts the block (no bypass: also one that is never used again), and when the cache is full one resident
block leaves first. Policies say which:

    lru     the least recently referenced          fifo    the longest resident
    lfu     the least often referenced since it came in, then the least recently referenced
    belady  the one whose next reference is farthest: optimal under this model (Belady 1966; Mattson et al. 1970)

A policy maps (references, capacity) to one flag per reference, 1 = hit. All are exact and deterministic.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from heapq import heappop, heappush

Policy = Callable[[Sequence[int], int], bytearray]


def lru(refs: Sequence[int], capacity: int) -> bytearray:
    """Least recently used; O(1) a reference."""
    _check(capacity)
    hits = bytearray(len(refs))
    resident: OrderedDict[int, None] = OrderedDict()
    touch, evict, room = resident.move_to_end, resident.popitem, capacity
    for i, block in enumerate(refs):
        if block in resident:
            touch(block)
            hits[i] = 1
        else:
            if room:
                room -= 1
            else:
                evict(False)
            resident[block] = None
    return hits


def fifo(refs: Sequence[int], capacity: int) -> bytearray:
    """First in, first out; O(1) a reference."""
    _check(capacity)
    hits = bytearray(len(refs))
    resident: OrderedDict[int, None] = OrderedDict()
    for i, block in enumerate(refs):
        if block in resident:
            hits[i] = 1
        else:
            if len(resident) == capacity:
                resident.popitem(last=False)
            resident[block] = None
    return hits


def lfu(refs: Sequence[int], capacity: int) -> bytearray:
    """Least frequently used while resident, ties by recency; O(log n) a reference."""
    _check(capacity)
    hits = bytearray(len(refs))
    resident: dict[int, tuple[int, int]] = {}
    heap: list[tuple[int, int, int]] = []
    for i, block in enumerate(refs):
        if block in resident:
            hits[i] = 1
            rank = resident[block][0] + 1, i
        else:
            if len(resident) == capacity:
                count, last, oldest = heappop(heap)
                while resident.get(oldest) != (count, last):
                    count, last, oldest = heappop(heap)
                del resident[oldest]
            rank = 1, i
        resident[block] = rank
        heappush(heap, (*rank, block))
    return hits


def belady(refs: Sequence[int], capacity: int) -> bytearray:
    """Farthest next reference, known from the future: no policy has more hits; O(log n) a reference."""
    _check(capacity)
    hits = bytearray(len(refs))
    resident: set[int] = set()
    heap: list[int] = []
    for i, (block, following) in enumerate(zip(refs, next_use(refs), strict=True)):
        if block in resident:
            hits[i] = 1
        else:
            if len(resident) == capacity:
                resident.discard(refs[_last_before(-heappop(heap), len(refs))])
            resident.add(block)
        heappush(heap, -following)
    return hits


def next_use(refs: Sequence[int]) -> list[int]:
    """For each reference the index of the next one to the same block; n + i (i its own index) when there is none."""
    following = [0] * len(refs)
    seen: dict[int, int] = {}
    last = len(refs)
    for i in range(last - 1, -1, -1):
        block = refs[i]
        following[i] = seen.get(block, last + i)
        seen[block] = i
    return following


def infinite_hits(refs: Sequence[int]) -> int:
    """Hits of a cache that never evicts: references less distinct blocks."""
    return len(refs) - len(set(refs))


def lru_hits(refs: Sequence[int], capacity: int) -> int:
    """Hits under `lru`."""
    return lru(refs, capacity).count(1)


def belady_hits(refs: Sequence[int], capacity: int) -> int:
    """Hits under `belady`."""
    return belady(refs, capacity).count(1)


POLICIES: dict[str, Policy] = {"lru": lru, "fifo": fifo, "lfu": lfu, "belady": belady}


def _last_before(key: int, count: int) -> int:
    return key if key < count else key - count


def _check(capacity: int) -> None:
    if capacity < 1:
        raise ValueError(f"capacity {capacity} is outside 1…; every miss inserts its block, so allow at least one")
