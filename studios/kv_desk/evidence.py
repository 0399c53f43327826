"""What real traces say: the figures of the receipts kv_waste and kv_prefix, beside the formula or the optimum."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from servelab.receipt.schema import Receipt
from servelab.view.plot import Plot

if TYPE_CHECKING:
    from studios.kv_desk.view import State

WASTE = {
    "at_completion": ("at completion", "$wasted", "solid"),
    "over_decode_steps": ("over decode steps", "$decode", "dash"),
    "prompts_only": ("prompts only", "$prefill", "dot"),
}


def plots(state: State, receipts: Mapping[str, Receipt]) -> list[Plot]:
    """One plot per receipt that the page carries."""
    draw = {"kv_waste": waste, "kv_prefix": reuse}
    return [plot(receipts[kind]) for kind, plot in draw.items() if kind in receipts]


def waste(receipt: Receipt) -> Plot:
    """Empty slots against block size, three definitions and the expectation (B−1)/(2·mean length)."""
    sizes = receipt.workload["block_sizes"]
    value = {name: metric.value for name, metric in receipt.metrics.items()}
    traces: list[dict[str, Any]] = [
        _line(label, sizes, [value[f"b{b}_{name}_percent"] for b in sizes], colour, dash)
        for name, (label, colour, dash) in WASTE.items()
    ]
    expected = [value[f"b{b}_at_completion_expected_percent"] for b in sizes]
    traces.append(_line("(B−1)/(2·mean length)", sizes, expected, "$muted", "longdash"))
    low, high = traces[0]["y"][0], traces[0]["y"][-1]
    alt = f"Empty slots grow with the block size, from {low:.2f} % to {high:.2f} % at completion."
    title, x, y = "Empty slots on the Azure conversation trace", "block size, tokens", "empty slots, %"
    return Plot("waste_plot", title, "below", tuple(traces), x, y, "replayed", alt, "xy", claim="kv_waste")


def reuse(receipt: Receipt) -> Plot:
    """Prefix-cache hits against pool size: LRU's whole curve, Belady's optimum at three sizes, the infinite cache."""
    traces: list[dict[str, Any]] = []
    for (trace, _), colour in zip(receipt.workload["traces"].items(), ("$cached", "$prefill"), strict=True):
        curve = (receipt.statistic or {})[trace]
        hits, rates = 0, []
        for row in curve["bins"]:
            hits += row[0]
            rates.append(100 * hits / curve["references"])
        traces.append(_line(f"{trace}, LRU", curve["edges"], rates[:-1], colour, "solid"))
        sizes = receipt.workload["capacities"]
        best = [receipt.metrics[f"{trace}_belady_{c}_hit_percent"].value for c in sizes]
        marker = {"mode": "markers", "marker": {"color": colour, "symbol": "diamond-open", "size": 10}}
        traces.append(_line(f"{trace}, Belady", sizes, best, colour, "solid") | marker)
        edge = [curve["edges"][0], curve["edges"][-1]]
        traces.append(_line(f"{trace}, infinite", edge, [rates[-1]] * 2, colour, "dot"))
    alt = "Hits rise with the pool towards an infinite cache's; Belady's optimum shows what a better policy could get."
    title = "Prefix-cache hits on the Mooncake traces"
    x = "pool, blocks of 512 tokens"
    y = "block references hit, %"
    return Plot("reuse_plot", title, "below", tuple(traces), x, y, "replayed", alt, "x", claim="kv_prefix")


def _line(name: str, x: list[Any], y: list[Any], colour: str, dash: str) -> dict[str, Any]:
    line = {"color": colour, "dash": dash}
    return {"type": "scatter", "mode": "lines+markers", "name": name, "x": x, "y": y, "line": line}
