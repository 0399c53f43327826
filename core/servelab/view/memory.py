"""A memory log as panels: one fold of its events gives the pool's cells, the prefix tree's nodes and the usage curve.

The tokens in use are a sum of ramps (a block that decodes gains
one token per tick until it is full, shared, released or preempted), so the curve is stored at its bends and is exact.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from dataclasses import dataclass, field

from servelab.kv.log import Log
from servelab.view.blocks import CACHED, FREE, PRIVATE, RESERVED, SHARED, STATE_NAMES, Blocks, BlockTables, PrefixTree
from servelab.view.frame import Area, Column, i32
from servelab.view.words import Text


@dataclass(frozen=True, slots=True)
class Usage:
    """Allocated blocks and used tokens at the ticks `t`; between two of them both are linear.

    A block counts once however many tables hold it; a cached block (ref count 0) counts as neither.
    """

    block_size: int
    t: tuple[int, ...]
    allocated: tuple[int, ...]
    used: tuple[int, ...]

    def waste(self, i: int) -> float:
        """Unused share of the allocated slots at `t[i]`, 0…1."""
        slots = self.allocated[i] * self.block_size
        return 1 - self.used[i] / slots if slots else 0.0

    @property
    def peak(self) -> int:
        """Index of the last moment with most tokens in use."""
        return max(range(len(self.t)), key=lambda i: (self.used[i], i), default=0)


@dataclass(slots=True)
class Fold:
    """A log, read once: `cells` and `nodes` are the panels' rows of 7, one after the other; `usage` is the curve.

    An alloc or a copy gets no row of its own: the write that follows at the same tick has it. Neither has a release
    that leaves no owner: a park or a free follows.
    """

    log: Log
    cells: list[int] = field(default_factory=list)
    nodes: list[int] = field(default_factory=list)
    evictions: int = 0
    preemptions: int = 0
    _level: defaultdict[int, int] = field(default_factory=lambda: defaultdict(int))
    _slope: defaultdict[int, int] = field(default_factory=lambda: defaultdict(int))
    _held: defaultdict[int, int] = field(default_factory=lambda: defaultdict(int))

    def __post_init__(self) -> None:
        log, cells, rows, ramp = self.log, self.cells, self.nodes, self._ramp
        slots, held, level = log.scheme == "preallocated", self._held, self._level
        chat = [info.chat for info in log.seqs]
        refs, owner = [0] * log.blocks, [-1] * log.blocks
        writes: list[tuple[int, int, int]] = [(0, 0, 0)] * log.blocks  # fill, grow, since
        nodes: dict[int, tuple[int, int, int, int]] = {}  # block → (node, parent, block, hue)
        for t, kind, seq, block, _, tokens, left, other in log.events:
            if block < 0:
                self.preemptions += kind == "preempt"
                continue
            if kind == "decode" or kind == "prefill":
                last = writes[block]
                if kind == "decode":
                    write = writes[block] = (other + 1, tokens - 1, t)
                    ramp(t, last, write)
                else:
                    write = writes[block] = (other + tokens, 0, t)
                    level[t] += write[0] - last[0]
                owners = refs[block]
                cells += (t, block, SHARED if owners > 1 else PRIVATE, owner[block], owners, write[0], write[1])
            elif kind == "alloc" or kind == "copy":
                refs[block], owner[block], writes[block] = 1, chat[seq], (tokens, 0, t)
                held[t] += 1
                level[t] += tokens
                if slots:
                    cells += (t, block, RESERVED, chat[seq], 1, 0, 0)
                if kind == "copy":
                    self._drop(t, other, refs, writes, left)
                    if left:
                        state = SHARED if left > 1 else PRIVATE
                        cells += (t, other, state, owner[other], left, *_rest(writes[other], t))
            elif kind == "hash":
                nodes[block] = (other, tokens, block, chat[seq])
            elif kind == "share" or kind == "release":
                if left > refs[block] == 0:
                    held[t] += 1
                    ramp(t, (0, 0, t), writes[block])
                self._drop(t, block, refs, writes, left)
                if not left:
                    continue
                cells += (t, block, SHARED if left > 1 else PRIVATE, owner[block], left, *_rest(writes[block], t))
            elif kind == "park":
                cells += (t, block, CACHED, owner[block], 0, writes[block][0], 0)
            elif kind == "free" or not refs[block]:  # evict: a block still in use only loses its node
                writes[block] = (0, 0, t)
                cells += (t, block, FREE, -1, 0, 0, 0)
            if block in nodes:
                node, parent, _, hue = nodes[block]
                if kind == "evict" or kind == "free":
                    self.evictions += kind == "evict"
                    del nodes[block]
                    rows += (t, node, parent, block, FREE, hue, 0)
                else:
                    state = CACHED if kind == "park" else SHARED if refs[block] > 1 else PRIVATE
                    rows += (t, node, parent, block, state, hue, refs[block])

    def _drop(self, t: int, block: int, refs: list[int], writes: list[tuple[int, int, int]], left: int) -> None:
        """`left` owners remain; without any, what is written by tick t stays and counts no more."""
        refs[block] = left
        if not left:
            last = writes[block]
            writes[block] = (last[0] + min(last[1], t - last[2]), 0, t)
            self._held[t] -= 1
            self._ramp(t, last, (0, 0, t))

    def _ramp(self, t: int, last: tuple[int, int, int], write: tuple[int, int, int]) -> None:
        """From tick t the curve holds `write` in place of `last`, both (fill, grow, since)."""
        fill, grow, since = last
        full = since + grow
        if t < full:  # cut short
            fill += t - full
            self._slope[t] -= 1
            self._slope[full] += 1
        self._level[t] += write[0] - fill - grow
        if write[1]:
            self._slope[t] += 1
            self._slope[t + write[1]] -= 1

    def usage(self) -> Usage:
        """The curve: sampled at every bend, and at the tick before it so that jumps stay jumps."""
        ticks = sorted(self._level.keys() | self._slope.keys() | self._held.keys())
        rows: list[tuple[int, int, int]] = []
        held = used = rate = last = 0
        for t in ticks:
            if rows and t - 1 > last:
                rows.append((t - 1, held, used + rate * (t - 1 - last)))
            used += rate * (t - last) + self._level.get(t, 0)
            held += self._held.get(t, 0)
            rate += self._slope.get(t, 0)
            last = t
            rows.append((t, held, used))
        ticks_seen, allocated, tokens = zip(*rows or [(0, 0, 0)], strict=True)
        return Usage(self.log.block_size, ticks_seen, allocated, tokens)


def _rest(write: tuple[int, int, int], t: int) -> tuple[int, int]:
    """(tokens written by tick t, tokens still to come)."""
    fill, grow, since = write
    done = min(grow, t - since)
    return fill + done, grow - done


def _columns(flat: list[int], width: int) -> list[Column]:
    rows = array("i", flat)
    return [Column("i32", rows[i::width]) for i in range(width)]


def pool_panel(fold: Fold, panel: str, title: str, caption: str, area: Area = "stage") -> Blocks:
    """The pool as a grid of cells over time."""
    columns = _columns(fold.cells, 7)
    seen = {FREE, *columns[2].data}
    legend = tuple(name for state, name in enumerate(STATE_NAMES) if state in seen)
    log = fold.log
    return Blocks(panel, title, area, log.scheme, log.blocks, log.block_size, legend, caption, *columns)


def tree_panel(fold: Fold, title: str, area: Area) -> PrefixTree:
    """The prefix cache's nodes over time."""
    return PrefixTree("tree", title, area, fold.log.scheme, fold.log.block_size, *_columns(fold.nodes, 7))


def tables_panel(log: Log, title: str, area: Area) -> BlockTables:
    """One row of block numbers per sequence."""
    kinds = ("alloc", "share", "copy", "release")
    rows: list[int] = []
    for t, kind, seq, block, slot, _, _, _ in log.events:
        if kind in kinds:
            rows += (t, seq, slot, -1 if kind == "release" else block)
    labels = tuple(info.label for info in log.seqs)
    owners = i32(info.chat for info in log.seqs)
    return BlockTables("tables", title, area, log.scheme, labels, owners, *_columns(rows, 4))


STORY = {
    "admit": "{n0} is admitted with {2} prompt tokens, {3} of them from the cache.",
    "alloc": "{n0} takes block {1}.",
    "copy": "{n0} is about to write into a shared block: block {3} is copied to {1} first.",
    "hash": "Block {1} of {n0} is full and enters the prefix tree.",
    "fork": "{n0} forks from {n3}: it takes no block until it writes.",
    "evict": "Node {3} leaves the prefix tree: block {1} can be found no more.",
    "wait": "{n0} waits: it needs {2} blocks and {3} are free.",
    "preempt": "No block is left: {n0} is preempted and will be computed again.",
    "finish": "{n0} finishes.",
}
"""Event kind → its sentence; 0 sequence, 1 block, 2 tokens, 3 the event's `other`."""


def story_panel(log: Log, title: str, area: Area) -> Text:
    """What happens, in words: one sentence per event a reader would want, told along the clock."""
    numbers = {kind: i for i, kind in enumerate(STORY)}
    rows: list[int] = []
    for t, kind, seq, block, _, tokens, _, other in log.events:
        if kind in numbers:
            rows += (t, numbers[kind], seq, block, tokens, other)
    names = tuple(info.label[:1].upper() + info.label[1:] for info in log.seqs)
    when, template, a0, a1, a2, a3 = _columns(rows, 6)
    return Text("story", title, area, (), tuple(STORY.values()), when, template, a0, a1, a2, a3, names)
