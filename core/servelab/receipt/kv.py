"""The memory room's receipts: from kv results to named metrics, once for the generator and for everybody who
recomputes.

kv_pages    derived    blocks of one example in three schemes; statistic: the block map
kv_waste    replayed   slots in each sequence's last block; statistic: two length histograms, which decide every metric
kv_prefix   replayed   prefix-cache hits; statistic: LRU hit curves, which decide all metrics but Belady's
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from servelab.kv import pages, reuse, trace, waste
from servelab.receipt.numbers import same
from servelab.receipt.result import Files, Result
from servelab.receipt.schema import Metric, Receipt

CURVE = (250, 500, 1_000, 2_000, 3_000, 5_000, 7_000, 10_000, 14_000, 20_000, 30_000, 50_000, 70_000, 100_000, 150_000)
"""Capacities, blocks, at which the statistic of kv_prefix holds the LRU hit curve."""

UNITS = (
    ("percent", "%"),
    ("slots", "slots"),
    ("tokens", "tokens"),
    ("hits", "references"),
    ("references", "references"),
    ("blocks", "blocks"),
    ("requests", "requests"),
    ("steps", "steps"),
)
"""A metric's unit by the last word of its name."""


def pages_result(workload: Mapping[str, Any]) -> Result:
    """kv_pages from its workload: blocks held with every conversation complete, in three schemes."""
    w = workload
    requests = pages.conversations(w["conversations"], w["prefix_tokens"], w["private_mean_tokens"])
    done = pages.compare(requests, block_size=w["block_size"], max_len=w["max_len"], blocks=w["blocks"])
    saved = {name: 100 * row.saved for name, row in done.rows.items()}
    values: dict[str, tuple[int | float, str]] = {
        "conversations": (done.conversations, "conversations"),
        "prefix_blocks": (done.prefix_blocks, "blocks"),
        "paged_saved_percent": (saved["paged"], "%"),
        "shared_saved_percent": (saved["shared"], "%"),
        "sharing_saved_points": (saved["shared"] - saved["paged"], "points"),
        "fitting_conversations": (done.fits, "conversations"),
        "fitting_ratio": (done.ratio, "×"),
    }
    for name, row in done.rows.items():
        values[f"{name}_blocks"] = row.blocks, "blocks"
        values[f"{name}_waste_percent"] = 100 * row.waste, "%"
    metrics = {name: Metric(value, unit, done.conversations) for name, (value, unit) in values.items()}
    return Result(metrics, {"tables": {name: [list(t) for t in tables] for name, tables in done.tables.items()}})


def recompute_pages(receipt: Receipt, files: Files) -> Result:
    """The whole receipt, block map included; no file is needed."""
    return pages_result(receipt.workload)


def waste_result(lengths: waste.Lengths, block_sizes: Sequence[int]) -> Result:
    """kv_waste from its statistic: slots in three definitions, each beside its expectation."""
    table = waste.waste_table(lengths, block_sizes)
    steps, requests = int(table["decode_steps"]), int(table["requests"])
    metrics = {
        name: _metric(name, value, steps if "decode_steps" in name else requests) for name, value in table.items()
    }
    return Result(metrics, statistic=lengths.plain())


def recompute_waste(receipt: Receipt, files: Files) -> Result:
    """From the committed histograms; from the trace, histograms included, when it is here."""
    block_sizes = receipt.workload["block_sizes"]
    if files:
        return waste_result(waste.histograms(_trace(files, receipt.data[0].name)), block_sizes)
    return Result(waste_result(waste.lengths(receipt.statistic or {}), block_sizes).metrics)


def prefix_result(traces: Mapping[str, trace.Trace], capacities: Sequence[int], curve: Sequence[int]) -> Result:
    """kv_prefix from traces: infinite, LRU and Belady per capacity, each metric led by its trace's name."""
    metrics: dict[str, Metric] = {}
    statistic: dict[str, Any] = {}
    for name, requests in traces.items():
        counted = reuse.distances(requests, (*curve, *capacities))
        table = _lru(counted, capacities)
        for capacity in capacities:
            hits = reuse.replay(requests, "belady", capacity).metrics(counted.references, counted.prompt_tokens)
            table |= {f"belady_{capacity}_{key}": hits[key] for key in ("hits", "hit_percent")}
        metrics |= _named(name, table)
        statistic[name] = counted.plain()
    return Result(metrics, statistic)


def recompute_prefix(receipt: Receipt, files: Files) -> Result:
    """Each trace that is here in full; for the others, from the committed curves, all but Belady's."""
    capacities, curve = receipt.workload["capacities"], receipt.workload["curve"]
    metrics: dict[str, Metric] = {}
    statistic: dict[str, Any] = {}
    missing: dict[str, str] = {}
    for name, file in receipt.workload["traces"].items():
        if file in files:
            result = prefix_result({name: _trace(files, file)}, capacities, curve)
            metrics |= result.metrics
            statistic |= result.statistic
            continue
        counted = reuse.from_plain((receipt.statistic or {})[name])
        metrics |= _named(name, _lru(counted, capacities))
        _bounds(receipt, name, counted, capacities)
        why = f"Belady's policy looks at every reference, not at the LRU curve: it needs {file}"
        missing |= {metric: why for metric in receipt.metrics if metric.startswith(f"{name}_belady_")}
    return Result(metrics, statistic, missing)


def _bounds(receipt: Receipt, name: str, counted: reuse.Distances, capacities: Sequence[int]) -> None:
    """What the curve says of Belady's hits: no fewer than LRU's, no more than an infinite cache's, and their share."""
    high = counted.at(None).blocks
    for capacity in capacities:
        metric = f"{name}_belady_{capacity}_hits"
        hits, low = receipt.metrics[metric].value, counted.at(capacity).blocks
        if not low <= hits <= high:
            raise ValueError(f"{metric}={hits} is outside {low:,} (LRU) to {high:,} (infinite); restore the receipt")
        metric = f"{name}_belady_{capacity}_hit_percent"
        percent, share = receipt.metrics[metric].value, 100 * hits / counted.references
        if not same(percent, share):
            raise ValueError(f"{metric}={percent} is not the share of {hits} hits, {share:.12g}; restore the receipt")


def _lru(counted: reuse.Distances, capacities: Sequence[int]) -> dict[str, int | float]:
    """The table at `capacities` alone: the curve's other points stay in the statistic."""
    hidden = tuple(f"lru_{edge}_" for edge in counted.edges if edge not in capacities)
    return {name: value for name, value in reuse.lru_table(counted).items() if not name.startswith(hidden)}


def _named(trace_name: str, table: Mapping[str, int | float]) -> dict[str, Metric]:
    """Metrics of one trace; n counts what a share is a share of, block references or prompt tokens."""
    return {
        f"{trace_name}_{name}": _metric(name, value, int(table["prompt_tokens" if "token" in name else "references"]))
        for name, value in table.items()
    }


def _metric(name: str, value: int | float, n: int) -> Metric:
    unit = next(unit for word, unit in UNITS if name.endswith(word))
    return Metric(value, unit, n)


def _trace(files: Files, name: str) -> trace.Trace:
    return trace.read(files[name], name)
