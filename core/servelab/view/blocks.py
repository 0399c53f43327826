"""Block pools, block tables and the prefix tree: the memory panels, replayed by the page from one log of changes.

All three hold changes, not snapshots: row i says what is true of one cell from tick `t[i]` on, rows sorted by t. The
page keeps keyframes, so any tick is reached without Python. Panels with the same `pool` highlight each other's blocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from servelab.view.frame import Column, Panel

FREE, PRIVATE, SHARED, CACHED, RESERVED = range(5)
"""Cell states. PRIVATE: one owner. SHARED: ref count > 1. CACHED: ref count 0, content kept, evictable.
RESERVED: preallocated and not (yet) written."""

STATE_NAMES = ("free", "private", "shared", "cached", "reserved")


@dataclass(frozen=True, slots=True)
class Blocks(Panel):
    """A pool of `count` cells of `block_size` tokens as a grid.

    Columns (i32): `t`, `block` (0…count−1), `state` (see above), `owner` (conversation for the hue, −1 none), `refs`,
    `fill` (tokens written at t) and `grow` (tokens that then arrive one per tick: fill(c) = fill + min(grow, c − t)).
    `legend`: the states that occur, in order. `caption`: one sentence under the grid.
    """

    kind: ClassVar[str] = "blocks"
    pool: str
    count: int
    block_size: int
    legend: tuple[str, ...]
    caption: str
    t: Column
    block: Column
    state: Column
    owner: Column
    refs: Column
    fill: Column
    grow: Column


@dataclass(frozen=True, slots=True)
class BlockTables(Panel):
    """One row of block numbers per sequence: row `row[i]`, position `slot[i]` holds `block[i]` from t on (−1: removed).

    `rows`: labels; `owner`: the hue of each row; the page shows at most `shown` rows and says how many it left out.
    """

    kind: ClassVar[str] = "tables"
    pool: str
    rows: tuple[str, ...]
    owner: Column
    t: Column
    row: Column
    slot: Column
    block: Column


@dataclass(frozen=True, slots=True)
class PrefixTree(Panel):
    """The prefix cache as a tree: `node[i]`, child of `parent[i]` (−1 = root), in `block[i]`, enters `state[i]` at t.

    State FREE means the node left the cache. `owner`: hue of the sequence that wrote it. Nodes count up by creation.
    """

    kind: ClassVar[str] = "tree"
    pool: str
    block_size: int
    t: Column
    node: Column
    parent: Column
    block: Column
    state: Column
    owner: Column
    refs: Column
