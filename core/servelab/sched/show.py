"""Show: the scheduling room's results as tables that people read (rich)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from servelab.sched.calibrate import COEFFICIENTS, Fit
from servelab.sched.validate import Verdict

LATENCIES = ("ttft", "tpot", "itl", "e2e")


def run(title: str, found: Mapping[str, Any]) -> None:
    """One run: what it did, then a row per latency; the last two columns are the 95 % interval of the p99."""
    _line(title)
    done = f"{found['finished']:,} of {found['requests']:,} requests finished, {found['refused']:,} refused"
    _line(f"{done}, {found['preemptions']:,} preemptions, {found['iterations']:,} iterations")
    rates = f"{found['requests_per_s']:.2f} requests/s, {found['output_tokens_per_s']:,.0f} output tokens/s"
    _line(f"{rates}, {found['cached_percent']:.1f} % of prompt tokens cached, makespan {found['makespan_s']:,.1f} s")
    if "goodput_percent" in found:
        _line(f"goodput {found['goodput_percent']:.2f} % of the requests that arrived, {found['goodput_per_s']:.2f}/s")
    table = _table("ms", "n", "mean", "p50", "p90", "p95", "p99", "p99 from", "to")
    for name in LATENCIES:
        table.add_row(name.upper(), *_latency(found[name]))
    _console().print(table)


def compare(title: str, rows: Mapping[str, Mapping[str, Any]]) -> None:
    """Several runs of one workload, a row each."""
    _line(title)
    heads = ("TTFT mean", "TTFT p99", "TPOT mean", "ITL p99", "E2E mean", "tokens/s", "preempted")
    table = _table("", *heads, *(["goodput %"] if any("goodput_percent" in row for row in rows.values()) else []))
    for name, row in rows.items():
        cells = [row["ttft"]["mean_ms"], row["ttft"].get("p99_ms"), row["tpot"]["mean_ms"], row["itl"].get("p99_ms")]
        more = [f"{row['goodput_percent']:.1f}"] if "goodput_percent" in row else []
        texts = (*map(_ms, cells), _ms(row["e2e"]["mean_ms"]), f"{row['output_tokens_per_s']:,.0f}")
        table.add_row(name, *texts, f"{row['preemptions']:,}", *more)
    _console().print(table)


def sweep(rows: Sequence[Mapping[str, Any]]) -> None:
    """A row per point."""
    labels = {f"{row['scheduler']}, {row['budget']:,} tokens, {row['rate']:g}/s": row for row in rows}
    compare(f"{len(rows)} runs", labels)


def fit(name: str, found: Fit) -> None:
    """The coefficients, and how well they explain the steps that they were fitted to."""
    _line(f"{name}: {found.n:,} steps in the fit, mean absolute error {found.mape:.2f} %, bias {found.bias:+.2f} %")
    table = _table("coefficient", "value", "unit", "at most")
    for key, c in COEFFICIENTS.items():
        table.add_row(key, f"{getattr(found.cost, key) / c.scale:,.2f}", c.unit, f"{c.most:,.0f}")
    table.add_row("tile", f"{found.cost.tile}", "tokens", "")
    _console().print(table)


def verdicts(name: str, found: Iterable[Verdict]) -> None:
    """Errors in percent, in-sample recordings apart from held-out ones."""
    names = [f"{latency}_{what}" for latency in LATENCIES for what in ("mean", "p50", "p99")] + ["throughput"]
    for seen, title in ((True, "in-sample: the fit has seen these"), (False, "held out")):
        rows = [verdict for verdict in found if verdict.seen == seen]
        if not rows:
            continue
        _line(f"{name}, {title}; simulated against measured, %; in brackets, told how fast the host was")
        table = _table("", *(verdict.name for verdict in rows))
        table.add_row("requests", *(f"{verdict.rows[0].n:,}" for verdict in rows))
        table.add_row("steps composed alike, %", *(f"{100 * v.same / max(v.steps, 1):.2f}" for v in rows))
        steps = (f"{v.mape:.2f} ({v.hosted_mape:.2f})" for v in rows)
        table.add_row("mean absolute error of a step", *steps, end_section=True)
        errors = [{row.metric: f"{row.error:+.1f} ({row.hosted_error:+.1f})" for row in v.rows} for v in rows]
        for key in names:
            table.add_row(key.replace("_", " "), *(row.get(key, "") for row in errors))
        _console().print(table)


def capacity(title: str, found: Mapping[str, Any]) -> None:
    """The largest rate that met the level."""
    _line(f"{title}: {found['rate']:.3g} requests/s ({100 * found['share']:.2f} % of the requests meet every limit)")


def _latency(row: Mapping[str, Any]) -> list[str]:
    cells = [f"{row['n']:,}", _ms(row["mean_ms"]), *(_ms(row.get(f"p{p}_ms")) for p in (50, 90, 95, 99))]
    pair = row.get("p99_ci95_ms")
    return [*cells, *(map(_ms, pair) if pair else ("n too", "small"))]


def _ms(value: float | None) -> str:
    return "" if value is None else f"{value:,.1f}" if value >= 10 else f"{value:.3f}"


def _table(first: str, *heads: str) -> Table:
    table = Table(Column(first, no_wrap=True))
    for head in heads:
        table.add_column(head, justify="right")
    return table


def _line(text: str) -> None:
    _console().print(Text(text), soft_wrap=True)


def _console() -> Console:
    """As wide as the terminal; 120 columns in a file or a pipe."""
    console = Console()
    return console if console.is_terminal else Console(width=120)
