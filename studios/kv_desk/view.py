"""KV desk: the same conversations in three memory schemes on one clock: preallocated, paged, paged and shared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated

from servelab.kv.pages import conversations
from servelab.kv.request import Request
from servelab.kv.simulate import SCHEMES, simulate
from servelab.kv.sizes import CARDS, DTYPES, MODELS
from servelab.receipt.schema import Receipt
from servelab.view import Clock, Control, Frame, i32
from servelab.view.control import names
from servelab.view.memory import Fold, Usage, pool_panel, story_panel, tables_panel, tree_panel
from servelab.view.studio import Preset
from studios.kv_desk import evidence, numbers
from studios.kv_desk.trace import drop as drop

TITLE = "KV desk"
SENTENCE = "The same conversations, three ways to keep their keys and values. Drag a slider and watch the blocks."
SUMMARY = "Paged KV cache: block tables, prefix sharing, copy-on-write, eviction, and what fits on a card."
NEEDS: tuple[str, ...] = ()
RECEIPTS = ("kv_pages", "kv_waste", "kv_prefix")
FILE = "a trace file"

ENTRIES = 40_000
"""Block-table entries over a whole run: what a browser simulates and draws in a few seconds."""

CAPTIONS = {
    "preallocated": "Each conversation reserves blocks for the longest one.",
    "paged": "Each takes a block when it fills the last one.",
    "shared": "And blocks with equal prefixes are kept once.",
}


@dataclass(frozen=True, slots=True)
class State:
    """Every field is a control and a URL key."""

    block_size: Annotated[int, Control(
        "Block size", "tokens", 1, 256, scale="log2", group="Memory",
        help="Small blocks waste less in each conversation's last block; large ones need shorter tables.",
    )] = 16
    pool: Annotated[int, Control(
        "Pool", "blocks", 1, 16384, scale="log2", group="Memory",
        help="Blocks that the card has for KV. When they run out, conversations wait or are preempted.",
    )] = 504
    conversations: Annotated[int, Control("Conversations", "", 1, 64, group="Work")] = 8
    prefix: Annotated[int, Control(
        "Shared prefix", "tokens", 0, 8192, step=16, group="Work", help="A system prompt that all of them begin with.",
    )] = 512
    private: Annotated[int, Control(
        "Private text", "tokens", 16, 4096, step=8, group="Work",
        help="Mean per conversation and turn, half prompt and half output, spread from 0.56 to 1.44 of it.",
    )] = 344
    turns: Annotated[int, Control(
        "Turns", "", 1, 4, group="Work", help="Every turn sends the whole conversation again.",
    )] = 1
    samples: Annotated[int, Control(
        "Samples", "per prompt", 1, 4, group="Work",
        help="Parallel answers: forks that share the prompt and copy a block when they write into it.",
    )] = 1
    focus: Annotated[str, Control(
        "Details of", choices=names(SCHEMES), group="Memory",
        help="Which scheme the tables, the tree and the story below show.",
    )] = "shared"
    model: Annotated[str, Control("Model", choices=names(MODELS), group="Card")] = "Llama-3.1-8B"
    dtype: Annotated[str, Control("KV format", choices=names(DTYPES), group="Card")] = "bf16"
    card: Annotated[str, Control("Card", choices=names(CARDS), group="Card")] = "H100 80GB"


PRESETS = {
    "prefix": Preset("Shared prefix", State(), "504 blocks become 428 when paged and 204 when the prefix is shared."),
    "samples": Preset(
        "Samples", State(conversations=4, samples=4, prefix=200, private=240, pool=512),
        "Each prompt forks into four answers; the block they share is copied when the first of them writes.",
    ),
    "chat": Preset(
        "Turns", State(conversations=6, turns=4, private=160, pool=448),
        "A turn finds its whole past in the cache, as long as nobody evicted it.",
    ),
    "pressure": Preset(
        "Pressure", State(conversations=24, pool=300, private=344),
        "A pool too small for all: preallocated ones mostly wait, the others preempt, and sharing is done first.",
    ),
    "coarse": Preset(
        "Coarse", State(block_size=256, pool=32),
        "Large blocks: the end of each last block stays empty, and a prefix is shared in whole blocks only.",
    ),
    "large": Preset(
        "10k blocks", State(conversations=64, prefix=1024, private=904, pool=10240),
        "Sixty-four long conversations in a pool of ten thousand blocks.",
    ),
}


def view(state: State, receipts: Mapping[str, Receipt]) -> Frame:
    """The Frame of a state. ValueError when a conversation alone is larger than the pool."""
    requests = workload(state)
    _check_size(requests, state.block_size)
    folds = {scheme: _played(requests, state.pool, state.block_size, scheme) for scheme in SCHEMES}
    logs = {scheme: fold.log for scheme, fold in folds.items()}
    use = {scheme: fold.usage() for scheme, fold in folds.items()}
    log = logs[state.focus]
    start = use[state.focus].t[use[state.focus].peak]
    marks = sorted({event.t for event in log.events} | {start})
    clock = Clock(max(one.end for one in logs.values()), "decode steps", i32(marks), start)
    return Frame(
        headline(state, use),
        clock,
        (
            *numbers.tiles(state, logs["shared"], use),
            *(pool_panel(fold, scheme, scheme.capitalize(), CAPTIONS[scheme]) for scheme, fold in folds.items()),
            story_panel(log, f"What happens ({state.focus})", "side"),
            tables_panel(log, f"Block tables ({state.focus})", "below"),
            tree_panel(folds[state.focus], f"Prefix tree ({state.focus})", "below"),
            numbers.schemes(state, folds, use),
            numbers.fits(state),
            numbers.over_time(use),
            *evidence.plots(state, receipts),
        ),
    )


@lru_cache(maxsize=len(SCHEMES))
def _played(requests: tuple[Request, ...], blocks: int, block_size: int, scheme: str) -> Fold:
    """A run and its fold, kept while only model, format, card or focus change."""
    return Fold(simulate(requests, blocks=blocks, block_size=block_size, scheme=scheme))


def workload(state: State) -> tuple[Request, ...]:
    """The conversations, each starting so that all first turns end together: most memory is used at one moment."""
    requests = conversations(state.conversations, state.prefix, state.private, state.turns, state.samples)
    longest = max(r.output for r in requests)
    return tuple(replace(r, arrival=longest - r.output) if r.after < 0 else r for r in requests)


def _check_size(requests: Sequence[Request], block_size: int) -> None:
    entries = sum(r.samples * -(-(r.tokens + r.output) // block_size) for r in requests)
    if entries > ENTRIES:
        raise ValueError(
            f"these settings fill {entries:,} block-table entries and a page draws up to {ENTRIES:,}; use a larger "
            "block size, shorter conversations, or fewer of them, of their turns or samples"
        )


def headline(state: State, use: Mapping[str, Usage]) -> str:
    """One sentence with the three peaks."""
    held = {scheme: max(one.allocated) for scheme, one in use.items()}
    return (
        f"At most {held['preallocated']:,} blocks in use when preallocated, {held['paged']:,} when paged, "
        f"{held['shared']:,} when the prefix is shared, of a pool of {state.pool:,}."
    )
