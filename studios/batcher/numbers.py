"""Batcher's tiles, tables and curves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from servelab.sched.hardware import FITTED
from servelab.sched.metrics import SLOS
from servelab.sched.simulate import Log
from servelab.sched.speculate import yielded
from servelab.sched.timeline import Span
from servelab.view.frame import f32, i32
from servelab.view.metric import Metric
from servelab.view.plot import Plot
from servelab.view.schedule import Curves, gaps
from servelab.view.words import Cell, Table

Summary = dict[str, Any]
"""What servelab.sched.metrics.summary says of the run under the chosen service level."""

if TYPE_CHECKING:
    from studios.batcher.view import State


def headline(state: State, all_of: Summary) -> str:
    """One sentence for who hears the page."""
    mean = all_of["ttft"]["mean_ms"]
    wait = "nobody got a token" if mean is None else f"the first token comes after {mean:,.0f} ms on average"
    return (
        f"{state.scheduler}: {all_of['finished']:,} of {all_of['requests']:,} requests done, {wait}, "
        f"{all_of['goodput_percent']:.0f} % meet the service level."
    )


def tiles(state: State, log: Log, all_of: Summary, curve: Curves) -> list[Metric]:
    """Latencies of the whole run, then what is going on at the clock's tick."""
    out = []
    for key, title, tone in (("ttft", "TTFT p50", "prefill"), ("itl", "ITL p99", "decode")):
        row = all_of[key]
        value = row.get("p99_ms" if key == "itl" else "p50_ms")
        other = row.get("p50_ms" if key == "itl" else "p99_ms")
        which = "p50" if key == "itl" else "p99"
        note = "no values" if other is None else f"{which} {other:,.1f} ms, n = {row['n']:,}"
        out.append(Metric(key, title, "tiles", value, "ms", "model", note, 1, tone))
    out.append(Metric(
        "goodput", "Goodput", "tiles", all_of["goodput_percent"], "%", "model",
        f"{state.slo}: {all_of['goodput_per_s']:.1f} requests/s meet every limit; {all_of['refused']:,} refused", 1,
        "shared",
    ))
    out.append(Metric(
        "batch", "Decoding", "tiles", max(curve.running.data), "sequences", "model", "at the clock", 0, "decode",
        t=curve.t, series=f32(curve.running.data),
    ))
    out.append(Metric(
        "queue", "Waiting", "tiles", max(curve.waiting.data), "requests", "model", "at the clock", 0, "waiting",
        t=curve.t, series=f32(curve.waiting.data),
    ))
    room = state.pool * len(log.steps)
    share = [100 * blocks / room for blocks in curve.blocks.data]
    out.append(Metric(
        "kv", "KV pool", "tiles", max(share), "%", "model", f"of {room:,} blocks, exact counts", 1, "cached",
        t=curve.t, series=f32(share),
    ))
    if log.engine.prefix:
        out.append(Metric(
            "cached", "Prompts cached", "tiles", all_of["cached_percent"], "%", "model",
            "of all prompt tokens came from a prefix cache", 1, "cached",
        ))
        return out
    if log.engine.accept:
        out.append(Metric(
            "yielded", "A step yields", "tiles", yields(log), "tokens", "model",
            f"per sequence; the formula says {yielded(log.engine.accept):.2f} for endless answers", 2, "shared",
        ))
        return out
    padding, width = padded(log)
    out.append(Metric(
        "padding", "Static would pad", "tiles", padding, "%", "derived",
        f"decode slots empty in batches of {width}; others pad none while somebody waits", 1, "wasted",
    ))
    return out


def yields(log: Log) -> float:
    """Tokens that a decode got from a step, on average."""
    decodes = sum(count * n for steps in log.steps for count, n in zip(steps[1::7], steps[2::7], strict=True))
    said = sum(max(n - 1, 0) for n, finish in zip(log.work.output, log.finish, strict=True) if finish >= 0)
    return said / decodes if decodes else 1.0


def padded(log: Log) -> tuple[float, int]:
    """1 − Σo/(S·Σ max o) over batches of S = slots requests in order of arrival, percent; and S."""
    outputs, slots = list(log.work.output), min(log.engine.seqs, len(log.work))
    batches = [outputs[k : k + slots] for k in range(0, len(outputs), slots)]
    room = slots * sum(max(batch) for batch in batches)
    return 100 * (1 - sum(outputs) / room) if room else 0.0, slots


def caption(state: State, log: Log) -> str:
    """What is drawn, and on what the times rest."""
    fitted = (state.hardware, state.model) in FITTED
    costs = "fitted to recordings of vLLM" if fitted else "a roofline, an assumption"
    fleet = f"{state.replicas} × " if state.replicas > 1 else ""
    where = f"{fleet}{state.hardware}"
    if state.prefills:
        where = f"{state.prefills} (prompts) + {state.replicas} (decodes) × {state.hardware}"
    return f"{len(log.work):,} requests, {state.model} on {where}; step costs: {costs}."


def over_time(curve: Curves) -> Plot:
    """Sequences that decode, requests that wait and tokens of each iteration."""
    rows = (("Decoding", curve.running, "decode", "solid"), ("Waiting", curve.waiting, "preempted", "dot"))
    seconds = f32([t / 1e3 for t in curve.t.data])
    traces = tuple(
        {
            "type": "scatter", "mode": "lines", "name": name, "x": seconds, "y": i32(column.data),
            "line": {"color": f"${tone}", "shape": "hv", "dash": dash},
        }
        for name, column, tone, dash in rows
    )
    alt = f"Decoding: at most {max(curve.running.data):,}; waiting: at most {max(curve.waiting.data):,}"
    return Plot("over_time", "Batch and queue", "below", traces, "seconds", "requests", "model", alt)


def first_tokens(state: State, log: Log) -> Plot:
    """Every request's time to its first token and per later one, by arrival, and the service level's limits."""
    level, work = SLOS[state.slo], log.work
    rows = [(a, f, e, n) for a, f, e, n in zip(work.arrival, log.first, log.finish, work.output, strict=True) if f >= 0]
    later = [(a, (e - f) / (n - 1) / 1e9) for a, f, e, n in rows if n > 1]
    points = (
        ("TTFT", [a / 1e12 for a, *_ in rows], [(f - a) / 1e9 for a, f, *_ in rows], "prefill", "circle", level.ttft),
        ("TPOT", [a / 1e12 for a, _ in later], [ms for _, ms in later], "decode", "diamond", level.tpot),
    )
    end = max([a / 1e12 for a in work.arrival], default=1.0)
    traces = []
    for name, x, y, tone, symbol, most in points:
        traces.append({
            "type": "scatter", "mode": "markers", "name": name, "x": f32(x), "y": f32(y),
            "marker": {"color": f"${tone}", "size": 5, "symbol": symbol},
        })
        traces.append({
            "type": "scatter", "mode": "lines", "name": f"limit {most:,.0f} ms", "x": f32([0, end]),
            "y": f32([most, most]), "line": {"color": f"${tone}", "dash": "dash"},
        })
    missed = sum((f - a) / 1e9 > level.ttft for a, f, *_ in rows)
    alt = f"{missed:,} of {len(rows):,} first tokens come after the limit of {level.ttft:,.0f} ms ({state.slo})"
    title = "Who meets the service level"
    return Plot("first_tokens", title, "below", tuple(traces), "arrival, seconds", "ms", "model", alt, "y")


def percentiles(all_of: Summary) -> Table:
    """Every latency with n and the 95 % interval of its 99th percentile."""
    rows: list[tuple[Cell, ...]] = []
    for key in ("ttft", "tpot", "itl", "e2e"):
        row = all_of[key]
        pair = row.get("p99_ci95_ms") or (None, None)
        cells = [row["mean_ms"], *(row.get(f"p{p}_ms") for p in (50, 90, 99)), *pair]
        rows.append((key.upper(), row["n"], *cells))
    columns = (
        ("Latency", ""), ("n", ""), ("mean", "ms"), ("p50", "ms"), ("p90", "ms"), ("p99", "ms"), ("p99 from", "ms"),
        ("to", "ms"),
    )  # fmt: skip
    words = (
        "TTFT: arrival to first token. TPOT: mean time per later token. ITL: every gap between two tokens. "
        "E2E: arrival to end. From and to: the 95 % interval of the p99, where n is large enough to bound it."
    )
    return Table("latencies", "Latencies", "below", columns, (0, 0, 1, 1, 1, 1, 1, 1), tuple(rows), "model", words)


def waits(state: State, log: Log, spans: list[Span]) -> Table:
    """Why the chosen request waited, longest first."""
    if state.request >= len(log.work):
        raise ValueError(f"there is no request {state.request}; use one of 0 to {len(log.work) - 1}")
    rows: list[tuple[Cell, ...]] = [
        (start / 1e9, took / 1e9, words) for start, took, words in gaps(log, spans, state.request)[:12]
    ]
    i = state.request
    if log.replica[i] < 0:
        about = f"Request {i} was refused."
    else:
        life = (log.finish[i] - log.work.arrival[i]) / 1e9
        lengths = f"{log.work.prompt[i]:,} prompt and {log.work.output[i]:,} output tokens"
        about = f"Request {i}: {lengths}, {life:,.1f} ms from arrival to end. Waits of 1 ms and more, longest first."
    columns = (("At", "ms"), ("For", "ms"), ("Why", ""))
    title = f"Why did request {i} wait?"
    none: tuple[Cell, ...] = (None, None, "It never waited as long as that.")
    return Table("waits", title, "below", columns, (1, 1, 0), tuple(rows) or (none,), "model", about)


