"""The planner's pictures: memory and time by number of GPUs, the batching curve, the roofline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from servelab.plan import engines
from servelab.plan.devices import GIB
from servelab.plan.memory import Layout, problem
from servelab.plan.plan import Answer, Plan, solve
from servelab.plan.search import SPREADS
from servelab.plan.speed import touched
from servelab.receipt.schema import Receipt
from servelab.view.bars import Bar, Bars
from servelab.view.frame import f32
from servelab.view.plot import Plot

MEMORY = (("weights", "weights"), ("KV of who runs", "kv"), ("activations", "activations"), ("runtime", "runtime"))
TIME = (
    ("weights", "weights"), ("KV cache", "kv"), ("arithmetic", "decode"), ("others’ prompts", "prefill"),
    ("interconnect", "activations"), ("launch", "runtime"),
)  # fmt: skip
STREAMS = tuple(2**i for i in range(11))


def beside(made: Plan) -> list[Answer]:
    """The plan on 1, 2, 4 and 8 GPUs per layer and on its own number; those that the model cannot do are left out."""
    counts = sorted({*SPREADS, made.layout.tp})
    tried = [replace(made, layout=replace(made.layout, tp=n)) for n in counts]
    return [solve(one) for one in tried if one.layout == made.layout or not problem(made.shape, one.layout)]


def _name(layout: Layout) -> str:
    return f"{layout.ranks} GPU{'s' if layout.ranks > 1 else ''}"


def memory_bars(made: Plan, answers: Sequence[Answer]) -> Bars:
    """Memory of the fullest GPU by layout."""
    rows = []
    for answer in answers:
        m = answer.memory
        kv = m.kv if answer.fits else m.sequence
        end = f"{m.capacity:,} fit" if answer.fits else "no room"
        parts = (m.weights / GIB, kv / GIB, m.activations / GIB, m.runtime / GIB)
        rows.append(Bar(_name(answer.plan.layout), parts, end, {"tp": str(answer.plan.layout.tp)}))
    mark = [a.plan.layout for a in answers].index(made.layout)
    chosen = answers[mark]
    caption = chosen.memory.reason and f"Does not fit: {chosen.memory.reason}."
    if not caption:
        waits = made.clients - chosen.running
        caption = f"{waits:,} of {made.clients:,} clients wait for room." if waits else "All clients have room at once."
    return Bars(
        "memory", f"Memory of each {made.device.name}", "stage", MEMORY, tuple(rows), "GiB", 1,
        chosen.memory.budget / GIB, "0.9 of it", "model", caption, mark,
    )  # fmt: skip


def time_bars(made: Plan, answers: Sequence[Answer], limit: float) -> Bars:
    """What the time per output token is spent on, by layout; the limit is the service level's."""
    rows = []
    for answer in answers:
        spent = answer.spent()
        spent["others’ prompts"] = max(0.0, answer.tpot - answer.step)
        parts = tuple(1e3 * spent.get(name, 0.0) for name, _ in TIME)
        end = f"{answer.throughput:,.0f} tok/s" if answer.fits else "–"
        rows.append(Bar(_name(answer.plan.layout), parts, end, {"tp": str(answer.plan.layout.tp)}))
    mark = [a.plan.layout for a in answers].index(made.layout)
    chosen = answers[mark]
    caption = f"Limited by {chosen.regime}." if chosen.fits else "A plan that does not fit takes no time."
    return Bars(
        "time", "Time per output token", "stage", TIME, tuple(rows), "ms", 1, limit, "asked for", "model", caption, mark
    )


def _streams(made: Plan) -> list[Answer]:
    """The plan with 1, 2, 4 … streams at once, as far as there is room."""
    tried = (solve(replace(made, clients=n)) for n in STREAMS)
    return [a for a in tried if a.fits and a.memory.capacity >= a.plan.clients]


def batching(made: Plan) -> list[Plot]:
    """Tokens/s of all and of each over the streams that run at once, as far as there is room."""
    answers = _streams(made)
    if not answers:
        return []
    x = [float(a.plan.clients) for a in answers]
    steps = [a.step for a in answers]
    lines = {
        "all, decoding": ([n / s for n, s in zip(x, steps, strict=True)], "$decode", "solid"),
        "all, with prompts": ([a.throughput for a in answers], "$prefill", "dash"),
        "each stream": ([1 / s for s in steps], "$wasted", "dot"),
    }
    traces = tuple(
        {"type": "scatter", "mode": "lines+markers", "name": name, "x": f32(x), "y": f32(y),
         "line": {"color": color, "dash": dash}}
        for name, (y, color, dash) in lines.items()
    )  # fmt: skip
    gain, loss = x[-1] * steps[0] / steps[-1] / x[0], steps[0] / steps[-1]
    told = (
        f"From 1 to {x[-1]:,.0f} streams all of them decode {gain:,.1f} times as fast, and each {loss:.2f} times: the "
        "total never falls: twice the streams never take more than twice as long."
    )
    return [Plot("batching", "More streams at once", "side", traces, "streams", "tokens/s", "model", told, log="xy")]


def roofline(answer: Answer, receipts: Mapping[str, Receipt]) -> list[Plot]:
    """Where decode steps stand under the roofs of memory and arithmetic; the H200's measured roofs beside its own."""
    if answer.work is None:
        return []
    made, device = answer.plan, answer.plan.device
    peak, x = device.rate(made.format.units) / 1e12, [2.0**i for i in range(-1, 13)]
    traces: list[dict[str, Any]] = [_line("data sheet", x, device.bandwidth, peak, "$muted", "solid")]
    measured, claim = receipts.get("plan_roofline"), ""
    if measured and measured.workload["device"] == device.name:
        top = f"matmul_{'fp8' if made.format.units == 'fp8' else 'bf16'}_tflops_median"
        read, product = (float(measured.metrics[name].value) for name in ("read_gbs_median", top))
        traces.append(_line("measured", x, read, product, "$shared", "dash"))
        claim = "plan_roofline"
    path = [_point(a) for a in _streams(made)]
    if path:
        traces.append(_marks("1, 2, 4 … streams", path, "$cached", 6))
    traces.append(_marks("this plan", [_point(answer)], "$decode", 14))
    at, done = _point(answer)
    told = (
        f"A decode step does {at:,.1f} operations per byte that it reads and reaches {done:,.1f} of {peak:,.0f} "
        f"TFLOP/s; the two roofs meet at {1e3 * peak / device.bandwidth:,.0f}."
    )
    return [Plot("roofline", f"Under the roofs of the {device.name}", "side", tuple(traces), "FLOP per byte",
                 "TFLOP/s of a GPU", "model", told, log="xy", claim=claim)]  # fmt: skip


def _line(name: str, x: Sequence[float], bandwidth: float, peak: float, color: str, dash: str) -> dict[str, Any]:
    y = [min(peak, at * bandwidth / 1e3) for at in x]
    line = {"color": color, "dash": dash}
    return {"type": "scatter", "mode": "lines", "name": name, "x": f32(x), "y": f32(y), "line": line}


def _marks(name: str, points: Sequence[tuple[float, float]], color: str, size: int) -> dict[str, Any]:
    x, y = zip(*points, strict=True)
    marker = {"color": color, "size": size}
    return {"type": "scatter", "mode": "markers", "name": name, "x": f32(x), "y": f32(y), "marker": marker}


def _point(answer: Answer) -> tuple[float, float]:
    """(FLOP per byte, TFLOP/s) of a decode step of one GPU."""
    assert answer.work is not None
    w, made, device = answer.work, answer.plan, answer.plan.device
    engine = engines.family(made.engine, made.shape.kind)
    flop = w.decode * device.rate(made.format.units)
    read = (w.weights + w.experts * touched(w, engine) + w.cache) * device.bandwidth * 1e9
    return flop / read, flop / answer.step / 1e12
