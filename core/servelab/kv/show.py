"""Show: the memory room's results as tables that people read (rich)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from servelab.kv.waste import Slots


def pages(result: Mapping[str, Any]) -> None:
    """Blocks of three schemes, and how many conversations fit where the preallocated ones did."""
    n, common = result["conversations"], result["prefix_blocks"]
    lengths = f"blocks of {result['block_size']} tokens, slots of {result['max_len']:,}"
    _title(f"{n} conversations ({result['example']}), {lengths}")
    table = _table("scheme", "blocks", "saved %", "waste %", "used tokens", "peak in run")
    for name, row in result["schemes"].items():
        shares = f"{row['saved_percent']:.1f}", f"{row['waste_percent']:.1f}"
        table.add_row(name, f"{row['blocks']:,}", *shares, f"{row['used_tokens']:,}", f"{row['peak_blocks']:,}")
    Console().print(table)
    fits, times = result["conversations_that_fit_shared"], result["times_as_many"]
    _title("Blocks: with every conversation complete. Peak in run: they start 4 steps apart, so some end before others")
    _title(f"{common} shared blocks: {fits} conversations fit where {n} were preallocated ({times:.1f} times as many)")


def waste(trace: Mapping[str, Any], slots: Mapping[str, Slots]) -> None:
    """The three definitions, a row each."""
    back = f", {trace['reordered']:,} put back in order of arrival" if trace["reordered"] else ""
    _title(f"{trace['name']}: {trace['requests']:,} requests{back}")
    size = slots["at_completion"].block_size
    _title(f"Waste in blocks of {size} tokens, beside the expectation (B − 1) / (2·mean length)")
    table = _table("definition", "waste %", "expected %", "allocated slots", "n")
    for name, row in slots.items():
        shares = f"{row.percent:.3f}", f"{row.expected_percent:.3f}"
        table.add_row(name.replace("_", " "), *shares, f"{row.allocated:,}", f"{row.n:,}")
    Console().print(table)


def converted(path: str, requests: int, sha256: str) -> None:
    """A file that was written, and the digest that a receipt would name."""
    _title(f"{path}: {requests:,} requests, sha256 {sha256}")


def reuse(hits: Mapping[str, Any]) -> None:
    """Hits in block references and in prompt tokens."""
    cache = "an infinite cache" if hits["blocks"] == "inf" else f"{hits['policy']}, {hits['blocks']:,} blocks"
    _title(f"Prefix reuse in {cache}, blocks of {hits['block_tokens']} tokens")
    table = _table("of", "hit", "hit %", "usable", "usable %", "n")
    for label, key, n in (("block references", "hit", "references"), ("prompt tokens", "hit_token", "prompt_tokens")):
        cells = [hits[f"{key}s"], hits[f"{key}_percent"], hits[f"usable_{key}s"], hits[f"usable_{key}_percent"]]
        text = [f"{cell:.2f}" if isinstance(cell, float) else f"{cell:,}" for cell in cells]
        table.add_row(label, *text, f"{hits[n]:,}")
    Console().print(table)


def kv_bytes(model: Mapping[str, Any], rows: Mapping[str, Mapping[str, Any]], chosen: str, of: str) -> None:
    """Bytes by KV format, `chosen` in bold; `of` says what context."""
    _title(f"{model['name']} ({model['source']}), {of}")
    table = _table("KV dtype", "bytes/token", "in windows", "context", "in blocks", "vs bf16")
    for name, row in rows.items():
        table.add_row(
            name,
            f"{row['bytes_per_token_full_layers']:,}",
            f"{row['bytes_per_token_window_layers']:,}",
            size(row["kv_bytes"]),
            size(row["kv_bytes_paged"]),
            f"{row['percent_against_bf16']:+.1f} %",
            style="bold" if name == chosen else None,
        )
    Console().print(table)


def card(row: Mapping[str, Any], model: str, context: int) -> None:
    """Conversations by scheme, or why there are none."""
    need, budget = size(row["weight_bytes"]), size(row["budget_bytes"])
    if not row["fits"]:
        _title(f"{model} does not fit on {row['name']}: weights {need}, budget {budget}")
        return
    _title(f"{row['name']} ({row['source']}): budget {budget}, weights {need}, room {size(row['room_bytes'])}")
    table = _table("scheme", "each", "once for all", "conversations")
    for name, scheme in row["schemes"].items():
        table.add_row(name, size(scheme["bytes_each"]), size(scheme["bytes_once"]), f"{scheme['conversations']:,}")
    Console().print(table)
    slot = row["slot_tokens"]
    whose = "the model's whole context" if slot == context else "as asked with --max-len"
    _title(f"A preallocated slot holds {slot:,} tokens, {whose}; the other schemes take blocks as they fill")


def size(count: int) -> str:
    """Bytes as people read them."""
    for unit, name in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if abs(count) >= unit:
            return f"{count / unit:,.2f} {name}"
    return f"{count} B"


def _title(text: str) -> None:
    Console().print(Text(text), soft_wrap=True)


def _table(first: str, *numbers: str) -> Table:
    table = Table(first)
    for heading in numbers:
        table.add_column(heading, justify="right")
    return table
