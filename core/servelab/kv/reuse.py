"""Reuse: how many prompt blocks a prefix cache already holds, on a trace's block hashes.

The reference stream is plain: every prompt's hash ids in order of arrival, each reference touching one block; output
tokens and running requests hold nothing. A block is *hit* when the cache holds it. It is *usable* when, besides, every
earlier block of its prompt was hit: prefill can skip a leading run only. Both are counted, in blocks and in tokens.

`replay` runs one policy at one capacity. The LRU curve needs no replay: the stack distance of a reference is the number
of distinct blocks since the last reference to the same block, itself included (Mattson et al. 1970), and a cache of C
blocks hits exactly when distance ≤ C. A histogram of distances is the whole hit curve; a histogram of their running
maximum within a prompt, cut at the first new block, is the usable one. Where equal ids mean equal prefixes, a block was
last used no later than the block before it, so distances never fall along a prompt and LRU's hits are all usable.

At position q a block last seen at p has distance (q − p) − stale(p, q): positions whose block came again since then are
stale, and a Fenwick tree over them counts in O(log n) (Bennett and Kruskal 1975). When the reference before it came
from p − 1, the window has only shifted by one and the distance is the same: a run of shared prefix costs one count.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import compress, islice
from typing import Any, NamedTuple

from servelab.kv.eviction import POLICIES
from servelab.kv.limits import entry, within
from servelab.kv.trace import HASH_BLOCK, Progress, Trace

CAPACITIES = (2_000, 10_000, 30_000)
MAX_BLOCKS = 2**40


class Hits(NamedTuple):
    """Hit block references and the prompt tokens in them; `usable_*` count leading runs only."""

    blocks: int
    tokens: int
    usable_blocks: int
    usable_tokens: int

    def metrics(self, references: int, prompt_tokens: int) -> dict[str, int | float]:
        """The counts, and their shares of all references and of all prompt tokens in %."""
        return {
            "hits": self.blocks,
            "hit_tokens": self.tokens,
            "usable_hits": self.usable_blocks,
            "usable_hit_tokens": self.usable_tokens,
            "hit_percent": 100 * self.blocks / references,
            "hit_token_percent": 100 * self.tokens / prompt_tokens,
            "usable_hit_percent": 100 * self.usable_blocks / references,
            "usable_hit_token_percent": 100 * self.usable_tokens / prompt_tokens,
        }


@dataclass(frozen=True, slots=True)
class Distances:
    """The sufficient statistic of a trace's LRU curve: hits between neighbouring capacities.

    `bins[i]` counts references with distance in (edges[i−1], edges[i]]; the last bin, beyond every edge, completes the
    infinite cache. First references are in no bin.
    """

    references: int
    prompt_tokens: int
    distinct: int
    edges: tuple[int, ...]
    bins: tuple[Hits, ...]

    def __post_init__(self) -> None:
        for name in ("references", "prompt_tokens", "distinct"):
            within(name, getattr(self, name), 1, 2**53, "count a trace with block hashes")
        if list(self.edges) != sorted(set(self.edges)) or len(self.bins) != len(self.edges) + 1:
            raise ValueError(f"{len(self.bins)} bins at edges {self.edges}; give rising edges and one bin more")

    def at(self, capacity: int | None) -> Hits:
        """Hits of an LRU cache of `capacity` blocks (one of `edges`), or of an infinite one (None)."""
        if capacity is not None and capacity not in self.edges:
            raise ValueError(f"blocks={capacity!r} is not counted; use one of {self.edges} or None for infinite")
        bins = self.bins if capacity is None else self.bins[: self.edges.index(capacity) + 1]
        return Hits(*map(sum, zip(*bins, strict=True)))

    def plain(self) -> dict[str, Any]:
        """For JSON; `from_plain` reads it back."""
        return {
            "references": self.references,
            "prompt_tokens": self.prompt_tokens,
            "distinct_blocks": self.distinct,
            "edges": list(self.edges),
            "bins": [list(row) for row in self.bins],
        }


def from_plain(plain: dict[str, Any]) -> Distances:
    """Distances from their plain form; ValueError for anything else."""
    try:
        bins = tuple(Hits(*row) for row in plain["bins"])
        totals = plain["references"], plain["prompt_tokens"], plain["distinct_blocks"]
        return Distances(*totals, tuple(plain["edges"]), bins)
    except (KeyError, TypeError) as error:
        raise ValueError(f"no distance histogram ({error!r}); give what Distances.plain wrote") from None


def stream(trace: Trace) -> list[int]:
    """Every block reference in order of arrival. ValueError for a trace without any."""
    references = [block for ids in trace.hash_ids or () for block in ids]
    if not references:
        raise ValueError(f"{trace.name} has 0 block hashes, so no block is known to repeat; give a trace with hash_ids")
    return references


def replay(trace: Trace, policy: str = "lru", capacity: int | None = None) -> Hits:
    """Hits of a cache of `capacity` blocks (None: infinite, where every policy is the same) under `policy`."""
    run = entry("policy", policy, POLICIES)
    references = stream(trace)
    blocks = len(references) if capacity is None else within("blocks", capacity, 1, MAX_BLOCKS, "or inf for no limit")
    flags = run(references, min(blocks, len(references)))
    total = [0, 0, 0, 0]
    for tokens, hits in _prompts(trace, flags):
        leading = hits.index(0) if 0 in hits else len(hits)
        total[0] += sum(hits)
        total[1] += sum(compress(tokens, hits))
        total[2] += leading
        total[3] += sum(tokens[:leading])
    return Hits(*total)


def stack_distances(references: Sequence[int], progress: Progress | None = None) -> list[int]:
    """LRU stack distance of each reference, 0 where a block comes for the first time."""
    size = len(references)
    stale = [0] * (size + 1)
    last: dict[int, int] = {}
    out = [0] * size
    gone = distance = 0
    before = -1
    for now, block in enumerate(references, 1):
        seen = last.get(block, -1)
        if seen > 0:
            if seen != before + 1:
                distance, i = now - seen - gone, seen
                while i:
                    distance += stale[i]
                    i &= i - 1
            out[now - 1] = distance
            gone += 1
            i = seen
            while i <= size:
                stale[i] += 1
                i += i & -i
        before = seen
        last[block] = now
        if progress and not now & 65_535:
            progress(now / size)
    return out


def distances(trace: Trace, capacities: Sequence[int] = CAPACITIES, progress: Progress | None = None) -> Distances:
    """The hit histogram of a trace with `capacities` (blocks, ≥1) as bin edges."""
    edges = tuple(sorted({within("blocks", c, 1, MAX_BLOCKS, "or None for an infinite cache") for c in capacities}))
    bins = [[0, 0, 0, 0] for _ in range(len(edges) + 1)]
    references = stream(trace)
    for tokens, row in _prompts(trace, stack_distances(references, progress)):
        farthest, leading = 0, True
        for size, distance in zip(tokens, row, strict=True):
            leading = leading and distance > 0
            if distance:
                hit = bins[bisect_left(edges, distance)]
                hit[0] += 1
                hit[1] += size
            if leading:
                farthest = max(farthest, distance)
                hit = bins[bisect_left(edges, farthest)]
                hit[2] += 1
                hit[3] += size
    rows = tuple(Hits(*row) for row in bins)
    return Distances(len(references), sum(trace.prompt_tokens), len(set(references)), edges, rows)


def lru_table(counted: Distances) -> dict[str, int | float]:
    """Flat metrics that the histogram alone decides: references, infinite_hits, lru_10000_hit_percent and so on."""
    out: dict[str, int | float] = {
        "references": counted.references,
        "prompt_tokens": counted.prompt_tokens,
        "distinct_blocks": counted.distinct,
    }
    for capacity in (None, *counted.edges):
        cache = "infinite" if capacity is None else f"lru_{capacity}"
        metrics = counted.at(capacity).metrics(counted.references, counted.prompt_tokens)
        out |= {f"{cache}_{key}": value for key, value in metrics.items()}
    return out


def reuse_table(trace: Trace, capacities: Sequence[int] = CAPACITIES) -> dict[str, int | float]:
    """`lru_table` of a trace, and belady_10000_hits and so on: the most that any policy can hit in blocks."""
    counted = distances(trace, capacities)
    out = lru_table(counted)
    for capacity in counted.edges:
        metrics = replay(trace, "belady", capacity).metrics(counted.references, counted.prompt_tokens)
        out |= {f"belady_{capacity}_{key}": value for key, value in metrics.items()}
    return out


def _prompts(trace: Trace, values: Sequence[int]) -> Iterator[tuple[list[int], list[int]]]:
    """For each prompt its blocks' token counts and their slice of `values`, one value per reference."""
    rest = iter(values)
    for prompt, ids in zip(trace.prompt_tokens, trace.hash_ids or (), strict=True):
        tokens = [HASH_BLOCK] * len(ids)
        if ids:
            tokens[-1] -= max(0, HASH_BLOCK * len(ids) - prompt)
        yield tokens, list(islice(rest, len(ids)))
