"""A memory log as panels: one fold of its events gives the pool's cells, the prefix tree's nodes and the usage curve.

Within a tick only the last state of a cell is kept. The tokens in use are a sum of ramps (a block that decodes gains
one token per tick until it is full, shared, released or preempted), so the curve is stored at its bends and is exact.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

from servelab.kv.log import Event, Log
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
class Cell:
    """One block: its fill at tick c ≥ since is fill + min(grow, c − since); `counted` is what the curve holds of it."""

    state: int = FREE
    owner: int = -1
    refs: int = 0
    fill: int = 0
    grow: int = 0
    since: int = 0
    counted: tuple[int, int, int] | None = None

    def rest(self, t: int) -> None:
        """Stop the ramp: what is written by tick t stays."""
        if self.grow:
            self.fill += min(self.grow, t - self.since)
            self.grow = 0


@dataclass(slots=True)
class Fold:
    """A log, read once: `cells` and `nodes` are rows for the panels, `usage` the curve."""

    log: Log
    cells: list[tuple[int, ...]] = field(default_factory=list)
    nodes: list[tuple[int, ...]] = field(default_factory=list)
    _level: defaultdict[int, int] = field(default_factory=lambda: defaultdict(int))
    _slope: defaultdict[int, int] = field(default_factory=lambda: defaultdict(int))
    _held: defaultdict[int, int] = field(default_factory=lambda: defaultdict(int))

    def __post_init__(self) -> None:
        pool = [Cell() for _ in range(self.log.blocks)]
        chat = {info.seq: info.chat for info in self.log.seqs} | {-1: -1}
        empty = RESERVED if self.log.scheme == "preallocated" else PRIVATE
        nodes: dict[int, tuple[int, int, int]] = {}  # block → (node, parent, hue)
        dirty: dict[int, None] = {}
        now = 0
        for e in self.log.events:
            if e.t != now:
                self._flush(now, dirty, pool, nodes)
                dirty, now = {}, e.t
            block = e.block
            if block < 0:
                continue
            dirty[block] = None
            if e.kind == "hash":
                nodes[block] = (e.other, e.tokens, chat[e.seq])
                continue
            if e.kind == "copy":
                pool[e.other].rest(now)
                pool[e.other].refs = e.refs
                pool[e.other].state = SHARED if e.refs > 1 else PRIVATE
                dirty[e.other] = None
            _change(pool[block], e, chat[e.seq], empty)
            if e.kind in ("evict", "free") and block in nodes:
                node, parent, hue = nodes.pop(block)
                self.nodes.append((now, node, parent, block, FREE, hue, 0))
        self._flush(now, dirty, pool, nodes)

    def _flush(self, t: int, dirty: dict[int, None], pool: list[Cell], nodes: dict[int, tuple[int, int, int]]) -> None:
        """Write down what tick t changed."""
        level, slope = self._level, self._slope
        for block in dirty:
            c = pool[block]
            done = min(c.grow, t - c.since)
            self.cells.append((t, block, c.state, c.owner, c.refs, c.fill + done, c.grow - done))
            if block in nodes:
                node, parent, hue = nodes[block]
                self.nodes.append((t, node, parent, block, c.state, hue, c.refs))
            if c.counted:
                fill, grow, since = c.counted
                self._held[t] -= 1
                level[t] -= fill + min(grow, t - since)
                if t < since + grow:
                    slope[t] -= 1
                    slope[since + grow] += 1
            c.counted = (c.fill, c.grow, c.since) if c.refs else None
            if c.counted:
                self._held[t] += 1
                level[t] += c.fill + min(c.grow, t - c.since)
                if t < c.since + c.grow:
                    slope[t] += 1
                    slope[c.since + c.grow] -= 1

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


def _change(cell: Cell, e: Event, hue: int, empty: int) -> None:
    """Apply one event to its block."""
    kind = e.kind
    if kind in ("prefill", "decode"):
        decode = kind == "decode"
        cell.fill, cell.since = e.other + (1 if decode else e.tokens), e.t
        cell.grow = e.tokens - 1 if decode else 0
        cell.state = SHARED if cell.refs > 1 else PRIVATE
    elif kind in ("alloc", "copy"):
        cell.state, cell.owner, cell.refs = (empty if kind == "alloc" else PRIVATE), hue, 1
        cell.fill, cell.grow, cell.since = (e.tokens if kind == "copy" else 0), 0, e.t
    elif kind in ("share", "release"):
        cell.rest(e.t)
        cell.refs = e.refs
        cell.state = SHARED if e.refs > 1 else PRIVATE if e.refs else cell.state
    elif kind == "park":
        cell.rest(e.t)
        cell.state, cell.refs = CACHED, 0
    elif kind == "free" or not cell.refs:  # evict: a block still in use only loses its node
        cell.state, cell.owner, cell.refs, cell.fill, cell.grow = FREE, -1, 0, 0, 0


def _columns(rows: Sequence[tuple[int, ...]], width: int) -> list[Column]:
    return [i32(column) for column in zip(*rows, strict=True)] if rows else [i32(()) for _ in range(width)]


def pool_panel(fold: Fold, panel: str, title: str, caption: str, area: Area = "stage") -> Blocks:
    """The pool as a grid of cells over time."""
    columns = _columns(fold.cells, 7)
    seen = set(columns[2].data)
    legend = tuple(name for state, name in enumerate(STATE_NAMES) if state in seen)
    log = fold.log
    return Blocks(panel, title, area, log.scheme, log.blocks, log.block_size, legend, caption, *columns)


def tree_panel(fold: Fold, title: str, area: Area) -> PrefixTree:
    """The prefix cache's nodes over time."""
    return PrefixTree("tree", title, area, fold.log.scheme, fold.log.block_size, *_columns(fold.nodes, 7))


def tables_panel(log: Log, title: str, area: Area) -> BlockTables:
    """One row of block numbers per sequence."""
    rows = [
        (e.t, e.seq, e.slot, -1 if e.kind == "release" else e.block)
        for e in log.events
        if e.kind in ("alloc", "share", "copy", "release")
    ]
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
    rows = [(e.t, numbers[e.kind], e.seq, e.block, e.tokens, e.other) for e in log.events if e.kind in numbers]
    names = tuple(info.label[:1].upper() + info.label[1:] for info in log.seqs)
    return Text("story", title, area, (), tuple(STORY.values()), *_columns(rows, 6), names=names)
