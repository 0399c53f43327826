"""A dropped trace: its waste by block size and, where it has block hashes, its prefix-cache hits by pool size."""

from __future__ import annotations

from collections.abc import Mapping

from servelab.kv import reuse
from servelab.kv.trace import Trace, read
from servelab.kv.waste import BLOCK_SIZES, DEFINITIONS, histograms, waste
from servelab.receipt.schema import Receipt
from servelab.view import Frame
from servelab.view.metric import Metric
from servelab.view.words import Table

CAPACITIES = (500, 1_000, 2_000, 5_000, 10_000, 30_000, 100_000)


def drop(name: str, data: bytes, receipts: Mapping[str, Receipt]) -> Frame:
    """Replay a trace file, plain or gzip, in the publishers' columns or renamed ones. ValueError when it is none."""
    trace = read(data, name)
    panels = [wasted(trace)]
    if trace.hash_ids is not None:
        panels.append(reused(trace))
    prompts, outputs = sum(trace.prompt_tokens), sum(trace.output_tokens)
    count = len(trace.prompt_tokens)
    match = next((k for k, r in receipts.items() if any(d.sha256 == trace.sha256 for d in r.data)), "")
    tiles = (
        Metric("requests", "Requests", "tiles", count, "", "replayed", f"sha256 {trace.sha256[:16]}…"),
        Metric("prompt", "Mean prompt", "tiles", prompts / count, "tokens", "replayed", digits=1),
        Metric("output", "Mean output", "tiles", outputs / count, "tokens", "replayed", digits=1),
    )
    known = f" It is the very file of receipt {match}." if match else ""
    return Frame(f"{name}: {count:,} requests replayed.{known}", None, (*tiles, *panels))


def wasted(trace: Trace) -> Table:
    """Three definitions of waste by block size."""
    hist = histograms(trace)
    rows = []
    for b in BLOCK_SIZES:
        slots = waste(hist, b)
        rows.append((b, *(slots[d].percent for d in DEFINITIONS), slots["at_completion"].expected_percent))
    definitions = [(name.replace("_", " ").capitalize(), "%") for name in DEFINITIONS]
    columns = (("Block size", "tokens"), *definitions, ("Expected", "%"))
    caption = "Empty slots as a share of the allocated ones; expected: (B−1)/(2·mean length)."
    return Table("waste", "Empty slots", "below", columns, (0, 3, 3, 3, 3), tuple(rows), "replayed", caption)


def reused(trace: Trace) -> Table:
    """LRU hits by pool size, and the infinite cache's."""
    counted = reuse.distances(trace, CAPACITIES)
    rows = []
    for capacity in (*CAPACITIES, None):
        hits = counted.at(capacity)
        shares = 100 * hits.blocks / counted.references, 100 * hits.tokens / counted.prompt_tokens
        rows.append(("infinite" if capacity is None else capacity, hits.blocks, *shares))
    columns = (("Pool", "blocks"), ("Hits", "references"), ("Hits", "%"), ("Prompt tokens", "%"))
    caption = f"{counted.references:,} block references to {counted.distinct:,} distinct blocks of 512 tokens, LRU."
    return Table("reuse", "Prefix-cache hits", "below", columns, (0, 0, 2, 2), tuple(rows), "replayed", caption)
