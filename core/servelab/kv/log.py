"""The event log of a KV simulation, and what can be read from it.

The clock is an integer: one tick is one decode step, in which every running sequence gains one token. An event at t
is part of the state that tick t shows. Tokens that decode are run-length coded: one event per block that a sequence
touches, so a log is as long as its block tables are, however many tokens they hold. `KINDS` says what each event's
fields mean; `replay` rebuilds block tables, reference counts, fills and prefix nodes from events alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

KINDS = {
    "admit": "seq enters with `tokens` to have in memory, `other` of them reused from the prefix cache",
    "alloc": "block goes into seq's table at slot, empty, `refs` = 1",
    "share": "block, with content, joins seq's table at slot, `refs` after; `other`: its node, or the parent of a fork",
    "prefill": "`tokens` written into block at once, `other` were there before",
    "decode": "`tokens` arrive in block, one per tick from t on (unless seq is preempted); `other` were there before",
    "copy": "copy-on-write: seq's slot changes from block `other` (`refs` left) to `block`, `tokens` are copied",
    "hash": "block is full and enters the prefix cache as node `other` under node `tokens` (−1: a root)",
    "evict": "node `other` leaves the prefix cache; its block can no longer be found",
    "fork": "seq starts as a copy of sequence `other`, sharing all its blocks",
    "release": "block leaves seq's table at slot, `refs` after",
    "park": "block has no owner left but keeps its content, evictable",
    "free": "block has no owner and no content",
    "wait": "seq heads the queue and does not fit: it needs `tokens` blocks, `other` are available",
    "preempt": "seq gives its memory up and queues again, first in line, to be recomputed",
    "finish": "seq is complete: all its tokens were in memory at the tick before",
}
"""Every kind of event and its fields."""


class Event(NamedTuple):
    """One change at tick `t`; fields that a kind does not use keep their defaults."""

    t: int
    kind: str
    seq: int = -1
    block: int = -1
    slot: int = -1
    tokens: int = 0
    refs: int = 0
    other: int = -1


event = Event._make
"""An Event from a tuple of all eight fields, at two thirds of the price: for the loops over blocks."""


class SeqInfo(NamedTuple):
    """Whose sequence `seq` is: sample `sample` of request `request`, which is a turn of conversation `chat`."""

    seq: int
    request: int
    chat: int
    sample: int
    arrival: int
    prompt: int
    output: int
    label: str


@dataclass(frozen=True, slots=True)
class Log:
    """A run of `scheme` over a pool of `blocks` × `block_size` tokens; `events` sorted by t, `end` the last tick.

    `arrival` in `seqs` is the tick of arrival, for a later turn counted from the end of the turn before.
    """

    scheme: str
    blocks: int
    block_size: int
    end: int
    seqs: tuple[SeqInfo, ...]
    events: tuple[Event, ...]


@dataclass(slots=True)
class State:
    """What memory holds at tick `t`: `tables[seq]` blocks head to tail, `refs[block]` ≥ 1, `nodes[block]` prefix nodes.

    `parked`: blocks with content and no owner. `cells[block]` numbers each use of a block, so that two tables hold
    the same content exactly if they hold the same cell. `writes[block]`: the last write, from which `fill` counts
    tokens.
    """

    t: int = 0
    used: int = 0
    tables: dict[int, list[int]] = field(default_factory=dict)
    refs: dict[int, int] = field(default_factory=dict)
    nodes: dict[int, int] = field(default_factory=dict)
    parked: set[int] = field(default_factory=set)
    cells: dict[int, int] = field(default_factory=dict)
    writes: dict[int, Event] = field(default_factory=dict)

    def fill(self, block: int) -> int:
        """Tokens in a block at this state's tick."""
        return written(self.writes[block], self.t) if block in self.writes else 0


def written(event: Event, t: int) -> int:
    """Tokens in the block of a write event (prefill, decode or copy) at tick `t` ≥ event.t."""
    if event.kind == "copy":
        return event.tokens
    return event.other + (event.tokens if event.kind == "prefill" else min(event.tokens, t - event.t + 1))


def replay(log: Log, until: int | None = None) -> State:
    """The state at tick `until` (inclusive; default: the end). ValueError for a tick outside 0…end."""
    last = log.end if until is None else until
    if not 0 <= last <= log.end:
        raise ValueError(f"tick {last} is outside 0…{log.end}; pick a tick of the log")
    state = State()
    for event in log.events:
        if event.t > last:
            break
        apply(state, event)
    state.t = last
    return state


def apply(state: State, event: Event) -> None:
    """Change `state` by one event; ValueError for a kind that `KINDS` does not list."""
    if event.kind not in KINDS:
        raise ValueError(f"event kind {event.kind!r} is unknown; use one of {', '.join(KINDS)}")
    state.t = event.t
    change = _CHANGES.get(event.kind)
    if change:
        change(state, event)


def _take(state: State, event: Event) -> None:
    table, block = state.tables.setdefault(event.seq, []), event.block
    state.cells[block] = state.used
    state.used += 1
    state.writes.pop(block, None)
    if event.kind == "copy":
        table[event.slot] = block
        state.refs[event.other], state.refs[block] = event.refs, 1
        state.writes[block] = event
    else:
        table.append(block)
        state.refs[block] = event.refs


def _share(state: State, event: Event) -> None:
    state.tables.setdefault(event.seq, []).append(event.block)
    state.refs[event.block] = event.refs
    state.parked.discard(event.block)


def _write(state: State, event: Event) -> None:
    state.writes[event.block] = event


def _hash(state: State, event: Event) -> None:
    state.nodes[event.block] = event.other


def _evict(state: State, event: Event) -> None:
    state.nodes.pop(event.block, None)
    state.parked.discard(event.block)


def _release(state: State, event: Event) -> None:
    table = state.tables[event.seq]
    table.pop()
    if not table:
        del state.tables[event.seq]
    state.refs[event.block] = event.refs


def _park(state: State, event: Event) -> None:
    state.refs.pop(event.block, None)
    state.parked.add(event.block)


def _free(state: State, event: Event) -> None:
    state.refs.pop(event.block, None)
    state.writes.pop(event.block, None)


_CHANGES = {
    "alloc": _take,
    "copy": _take,
    "share": _share,
    "prefill": _write,
    "decode": _write,
    "hash": _hash,
    "evict": _evict,
    "release": _release,
    "park": _park,
    "free": _free,
}


def completed(log: Log) -> Iterator[tuple[int, list[tuple[int, int]]]]:
    """(seq, table) in order of finish; a table lists (block, cell) head to tail, equal cells are one shared block."""
    cell: dict[int, int] = {}
    cells, ending = 0, -1
    table: list[tuple[int, int]] = []
    for _, kind, seq, block, slot, _, _, _ in log.events:
        if kind == "alloc" or kind == "copy":
            cell[block] = cells
            cells += 1
        elif kind == "finish":
            ending, table = seq, []
        elif kind == "release" and seq == ending:
            table.append((block, cell[block]))
            if not slot:
                yield seq, table[::-1]
                ending = -1


def usage(log: Log) -> list[tuple[int, int, int]]:
    """(tick, blocks held by sequences, blocks parked) after every tick at which either number changes."""
    out: list[tuple[int, int, int]] = []
    parked: set[int] = set()
    held, now, shown = 0, 0, (0, 0)
    for t, kind, _, block, _, _, refs, _ in log.events:
        if t != now:
            if (held, len(parked)) != shown:
                shown = held, len(parked)
                out.append((now, *shown))
            now = t
        if kind == "release":
            held -= not refs
        elif kind == "alloc":
            held += 1
        elif kind == "copy":
            held += refs > 0
        elif kind == "park":
            parked.add(block)
        elif kind == "evict":
            parked.discard(block)
        elif kind == "share" and refs == 1:
            held += 1
            parked.discard(block)
    if (held, len(parked)) != shown:
        out.append((now, held, len(parked)))
    return out
