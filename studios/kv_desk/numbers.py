"""KV desk's tiles, tables and the curve over time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from servelab.kv.log import Log
from servelab.kv.pages import private_lengths
from servelab.kv.sizes import CARDS, MODELS, Fit, conversations_that_fit, kv_bytes, layer_bytes
from servelab.view import f32, i32
from servelab.view.memory import Fold, Usage
from servelab.view.metric import Metric
from servelab.view.plot import Plot
from servelab.view.words import Cell, Table

if TYPE_CHECKING:
    from studios.kv_desk.view import State

CLAIMS = {
    "preallocated": "kv_pages.preallocated_blocks",
    "paged": "kv_pages.paged_blocks",
    "shared": "kv_pages.shared_blocks",
}
TONES = {"preallocated": "wasted", "paged": "decode", "shared": "shared"}


def tiles(state: State, shared: Log, use: Mapping[str, Usage]) -> list[Metric]:
    """Blocks in use by scheme and what they waste, at the clock's tick; then what fits and what the cache saved."""
    receipt = state == type(state)()
    out = []
    for scheme, one in use.items():
        waste = [100 * one.waste(i) for i in range(len(one.t))]
        out.append(Metric(
            f"blocks_{scheme}", scheme.capitalize(), "tiles", max(one.allocated), "blocks", "derived",
            f"{waste[one.peak]:.1f} % of the slots empty", tone=TONES[scheme],
            claim=CLAIMS[scheme] if receipt else "", t=i32(one.t), series=f32(one.allocated),
        ))
    reused, prompts = prefix_hits(shared)
    out.append(Metric(
        "reused", "Prompt tokens from cache", "tiles", 100 * reused / prompts, "%", "derived",
        f"{reused:,} of {prompts:,} tokens", 1, "cached",
    ))
    fit = fit_on_card(state).schemes
    out.append(Metric(
        "fit", f"Fit on one {state.card}", "tiles", fit["shared"].conversations, "conversations", "model",
        f"{fit['preallocated'].conversations:,} preallocated, {fit['paged'].conversations:,} paged",
    ))
    return out


def prefix_hits(log: Log) -> tuple[int, int]:
    """(prompt tokens found in the cache, prompt tokens asked for), re-admissions included."""
    admitted = [(event.other, event.tokens) for event in log.events if event.kind == "admit"]
    return sum(hit for hit, _ in admitted), sum(tokens for _, tokens in admitted)


def fit_on_card(state: State) -> Fit:
    """How many of these conversations the chosen card holds, under each scheme."""
    longest = state.prefix + state.turns * max(private_lengths(state.conversations, state.private))
    mean = state.prefix + state.turns * state.private
    return conversations_that_fit(
        MODELS[state.model], CARDS[state.card], state.dtype, mean, state.prefix, state.block_size, max_len=longest,
    )


def schemes(state: State, folds: Mapping[str, Fold], use: Mapping[str, Usage]) -> Table:
    """The three runs side by side, each at its own peak; savings only where preallocation held everybody at once."""
    peaks = {scheme: max(one.allocated) for scheme, one in use.items()}
    log = folds["preallocated"].log
    held, want = most_running(log), state.conversations * state.samples
    rows: list[tuple[Cell, ...]] = []
    for scheme, one in use.items():
        fold = folds[scheme]
        saved = None if held < want else 100 * (1 - peaks[scheme] / peaks["preallocated"])
        waste = 100 * one.waste(one.peak)
        rows.append((scheme, peaks[scheme], saved, waste, fold.preemptions, fold.evictions, fold.log.end))
    columns = (
        ("Scheme", ""), ("Peak", "blocks"), ("Saved", "%"), ("Empty", "%"), ("Preempted", ""), ("Evicted", ""),
        ("End", "step"),
    )
    story = _queued(log, held, want) if held < want else _room(state, peaks)
    digits = (0, 0, 1, 1, 0, 0, 0)
    title, caption = "Three schemes", f"Empty: the unused slots at the peak. {story}"
    return Table("schemes", title, "below", columns, digits, tuple(rows), "derived", caption, 2)


def most_running(log: Log) -> int:
    """Most sequences that held memory at once."""
    running = most = 0
    for event in log.events:
        running += (event.kind in ("admit", "fork")) - (event.kind in ("finish", "preempt"))
        most = max(most, running)
    return most


def _queued(log: Log, held: int, want: int) -> str:
    width = -(-max(info.prompt + info.output for info in log.seqs) // log.block_size)
    return (
        f"Preallocation finds room for {held:,} of {want:,} at once and the others wait, so nothing is said of "
        f"savings: all at once would reserve {want * width:,} blocks, and the pool has {log.blocks:,}."
    )


def _room(state: State, peaks: Mapping[str, int]) -> str:
    n, reserved = state.conversations, peaks["preallocated"]
    common = state.prefix // state.block_size if n > 1 else 0
    room = max(reserved - common, 0) * n // max(peaks["shared"] - common, 1)
    return (
        f"In the {reserved:,} blocks that {n} preallocated conversations take, {room:,} of their mean size fit when "
        f"the prefix is shared: {room / n:.1f} times as many."
    )


def fits(state: State) -> Table:
    """Conversations on every card, and what one token costs."""
    model = MODELS[state.model]
    here = fit_on_card(state)
    rows: list[tuple[Cell, ...]] = []
    for name in CARDS:
        fit = fit_on_card(replace(state, card=name))
        counts = [fit.schemes[s].conversations for s in ("preallocated", "paged", "shared")]
        rows.append((name, CARDS[name].mib / 1024, max(0.0, fit.room / 2**30), *counts))
    columns = (
        ("Card", ""), ("Memory", "GiB"), ("Room for KV", "GiB"), ("Preallocated", ""), ("Paged", ""), ("Shared", ""),
    )
    per_token = kv_bytes(model, state.dtype, 1)
    caption = (
        f"{state.model} with {state.dtype} KV keeps {layer_bytes(model, state.dtype):,} bytes per token and layer, "
        f"{per_token:,} bytes per token, beside {here.weights / 2**30:.1f} GiB of weights. Model: 90 % of what the "
        "driver reports, activations not counted; one sample each; a slot is as long as the longest conversation."
    )
    title, digits, mark = "How many conversations fit", (0, 1, 1, 0, 0, 0), list(CARDS).index(state.card)
    return Table("fits", title, "below", columns, digits, tuple(rows), "model", caption, mark)


def over_time(use: Mapping[str, Usage]) -> Plot:
    """Blocks in use by scheme."""
    traces = tuple(
        {
            "type": "scatter", "mode": "lines", "name": scheme.capitalize(), "x": i32(one.t), "y": i32(one.allocated),
            "line": {"color": f"${TONES[scheme]}", "shape": "hv", "dash": dash},
        }
        for (scheme, one), dash in zip(use.items(), ("dot", "dash", "solid"), strict=True)
    )
    alt = "; ".join(f"{scheme}: at most {max(one.allocated):,} blocks" for scheme, one in use.items())
    return Plot("over_time", "Blocks in use", "below", traces, "decode steps", "blocks", "derived", alt, cursor=True)
