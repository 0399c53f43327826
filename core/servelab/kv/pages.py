"""One workload under three memory schemes: what preallocation wastes, what paging saves, what sharing saves on top.

For n conversations with a common prefix of S blocks, private lengths of p_i blocks and slots of M blocks, the blocks
held with every conversation complete are

    preallocated n·M        paged Σ (S + p_i)        shared S + Σ p_i        (lengths in whole blocks)

and where the preallocated ones fitted, ⌊(n·M − S) / mean p⌋ conversations fit when the prefix is shared. `compare`
does not use these formulas: it counts blocks in the three logs, so it also holds for turns, samples, ragged tails and
preemption.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from servelab.kv.log import Log, completed, usage
from servelab.kv.request import Request, output_content
from servelab.kv.simulate import SCHEMES, simulate

PRIVATE = (496, 464, 416, 368, 320, 272, 224, 192)
"""Private tokens (prompt and output halves) of the example's 8 conversations; mean 344."""


def private_lengths(n: int, mean: int) -> list[int]:
    """`n` private lengths with the example's spread: PRIVATE interpolated at n points, scaled to the mean, rounded."""
    if n < 1 or mean < 2:
        raise ValueError(f"{n} conversations of {mean} private tokens on average; use at least 1 and at least 2 tokens")
    steps = max(n - 1, 1)
    table = []
    for i in range(n):
        left, rest = divmod(i * (len(PRIVATE) - 1), steps)
        right = min(left + 1, len(PRIVATE) - 1)
        table.append(PRIVATE[left] * (steps - rest) + PRIVATE[right] * rest)
    total = sum(table)
    return [(2 * value * mean * n + total) // (2 * total) for value in table]


def conversations(
    n: int, prefix: int, private_mean: int, turns: int = 1, samples: int = 1, gap: int = 4, tenants: int = 1
) -> tuple[Request, ...]:
    """`n` conversations that share a `prefix` (tokens) and add private text: half prompt, half output, in each turn.

    Conversation i starts at tick i·`gap` and has namespace i mod `tenants`; a turn's prompt repeats all turns before
    it (of sample 0) and arrives `gap` ticks after they end. ValueError for values outside their range.
    """
    if prefix < 0 or turns < 1 or gap < 0 or tenants < 1:
        raise ValueError(
            f"prefix {prefix}, turns {turns}, gap {gap}, tenants {tenants}; use prefix and gap of at least 0, "
            "turns and tenants of at least 1"
        )
    requests = []
    for chat, private in enumerate(private_lengths(n, private_mean)):
        segments: tuple[tuple[int, int], ...] = ((0, prefix),) if prefix else ()
        for turn in range(turns):
            number = chat * turns + turn
            asked, answered = private // 2, private - private // 2
            if asked:
                segments += ((1 + number, asked),)
            arrival, after = (chat * gap, -1) if not turn else (gap, number - 1)
            label = f"chat {chat + 1}" + (f", turn {turn + 1}" if turns > 1 else "")
            requests.append(Request(number, arrival, segments, answered, samples, chat % tenants, chat, after, label))
            segments += ((output_content(number), answered),)
    return tuple(requests)


ENTRIES = 200_000
"""Block-table entries of a workload that three simulations still finish in seconds, within 1 GB."""


def within_reach(requests: Sequence[Request], block_size: int, max_len: int) -> None:
    """ValueError when slots of `max_len` tokens, at least the longest request's, take more entries than ENTRIES."""
    sequences = sum(r.samples for r in requests)
    entries = sequences * -(-max_len // block_size)
    if entries > ENTRIES:
        raise ValueError(
            f"{sequences:,} slots of {max_len:,} tokens are {entries:,} block-table entries, allowed are 1 to "
            f"{ENTRIES:,}; use fewer or shorter conversations, shorter slots or larger blocks"
        )


@dataclass(frozen=True, slots=True)
class Example:
    """A named workload with its block size (tokens), slot length (tokens) and pool (blocks)."""

    requests: tuple[Request, ...]
    block_size: int
    max_len: int
    blocks: int


EXAMPLES = {"shared-prefix": Example(conversations(8, 512, 344), 16, 1008, 504)}
"""Workloads by name, for the command line and receipts."""


@dataclass(frozen=True, slots=True)
class SchemeRow:
    """One scheme with every conversation at its completion.

    `blocks` distinct blocks, `used` tokens in them (a shared token counts once), `waste` = 1 − used / (blocks × block
    size), `saved` = 1 − blocks / preallocated blocks; `peak` blocks held at once in the run; preemptions and
    evictions in the run.
    """

    scheme: str
    blocks: int
    used: int
    waste: float
    saved: float
    peak: int
    preemptions: int
    evictions: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """Three runs side by side.

    `tables[scheme]`: for each conversation (its last turn; each sample) the cells of its table, head to tail; cells
    number distinct blocks from 0, so equal numbers are shared blocks. `prefix_blocks`: blocks that two or more
    conversations share. `fits`: conversations of this mean that would share the preallocated ones' blocks, `ratio` =
    fits / conversations.
    """

    block_size: int
    blocks: int
    max_len: int
    conversations: int
    logs: dict[str, Log]
    rows: dict[str, SchemeRow]
    tables: dict[str, tuple[tuple[int, ...], ...]]
    prefix_blocks: int
    fits: int
    ratio: float


def compare(
    requests: Sequence[Request], *, block_size: int, max_len: int | None = None, blocks: int | None = None
) -> Comparison:
    """Simulate `requests` under every scheme in a pool of `blocks` (default: what preallocation needs for all at once).

    ValueError as in `simulate`, and for no requests.
    """
    if not requests:
        raise ValueError("0 requests have nothing to compare; use at least 1")
    longest = max(r.tokens + r.output for r in requests)
    slot = longest if max_len is None else max_len
    final = {r.id if r.chat < 0 else r.chat: r for r in requests}
    pool = sum(r.samples for r in final.values()) * -(-slot // max(block_size, 1)) if blocks is None else blocks
    logs = {s: simulate(requests, blocks=pool, block_size=block_size, scheme=s, max_len=slot) for s in SCHEMES}
    last = {r.id for r in final.values()}
    counted = {name: _distinct(log, last) for name, log in logs.items()}
    blocks_of = {name: len({cell for table in tables for cell in table}) for name, (tables, _, _) in counted.items()}
    reserved = blocks_of["preallocated"]
    rows = {name: _row(logs[name], used, blocks_of[name], reserved) for name, (_, used, _) in counted.items()}
    tables, _, chats = counted["shared"]
    holders: dict[int, set[int]] = {}
    for chat, table in zip(chats, tables, strict=True):
        for cell in table:
            holders.setdefault(cell, set()).add(chat)
    common = sum(len(owners) > 1 for owners in holders.values())
    n = len(final)
    fits = max(reserved - common, 0) * n // max(len(holders) - common, 1)
    return Comparison(
        block_size, pool, slot, n, logs, rows, {name: c[0] for name, c in counted.items()}, common, fits, fits / n
    )


def _distinct(log: Log, last: set[int]) -> tuple[tuple[tuple[int, ...], ...], int, list[int]]:
    """Tables by sequence with cells renumbered from 0, the distinct tokens in them, each table's conversation."""
    number: dict[int, int] = {}
    tails: dict[int, int] = {}
    tables, chats = [], []
    for seq, table in sorted(completed(log)):
        info = log.seqs[seq]
        if info.request not in last:
            continue
        tables.append(tuple(number.setdefault(cell, len(number)) for _, cell in table))
        chats.append(info.chat)
        left = info.prompt + info.output
        whole = left // log.block_size
        for cell in tables[-1][whole:]:
            tails[cell] = max(left - whole * log.block_size, 0)
            whole, left = whole + 1, 0
    full = len(number) - len(tails)
    return tuple(tables), full * log.block_size + sum(tails.values()), chats


def _row(log: Log, used: int, blocks: int, reserved: int) -> SchemeRow:
    kinds = [event[1] for event in log.events]
    peak = max((held for _, held, _ in usage(log)), default=0)
    waste, saved = 1 - used / (blocks * log.block_size), 1 - blocks / reserved
    return SchemeRow(log.scheme, blocks, used, waste, saved, peak, kinds.count("preempt"), kinds.count("evict"))
