"""The planner's wide views: the cheapest plans, the Pareto front, all models on all devices."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from servelab.plan import devices, models, plain, search
from servelab.plan.memory import Layout
from servelab.plan.money import rent
from servelab.plan.plan import Answer, Plan, solve
from servelab.view.frame import f32, i32
from servelab.view.heat import Fact, Heat
from servelab.view.plot import Plot

SPEEDS = (20, 50, 100, 200)
PRICES = (0.5, 2, 8, 30)
LEVELS = {
    "gpus": ("1 GPU", "2", "4", "8"),
    "speed": ("< 20 tokens/s", "20–50", "50–100", "100–200", "≥ 200"),
    "price": ("< $0.50", "0.50–2", "2–8", "8–30", "≥ $30"),
    "regime": ("bandwidth", "compute", "launch", "interconnect"),
}


def candidates(made: Plan, terms: str, ttft: float, tpot: float) -> list[tuple[float, Answer]]:
    """(dollars per million tokens of a busy GPU, plan), cheapest first, of all that keep the service level."""
    quants = dict.fromkeys((made.shape.native, "fp8", "int4"))
    return search.search(made, devices.table().values(), quants, search.Slo(ttft, tpot), terms, (1, 4, 16, 64, 256))


def front(made: Plan) -> Plot:
    """Tokens/s of a user against tokens/s of a GPU: what common devices offer, and which no other beats in both."""
    found = []
    for device in plain.cards(False):
        for layout in search.layouts(made.shape):
            tried = replace(made, device=device, layout=layout)
            found += [a for n in (1, 4, 16, 64, 256) if (a := solve(replace(tried, clients=n))).fits]
    best = search.pareto(found)
    traces: list[dict[str, Any]] = [
        _points("all", found, "$muted", "markers"), _points("not beaten", best, "$decode", "lines+markers")
    ]  # fmt: skip
    told = "No device holds the model." if not best else (
        f"{len(found)} plans; {len(best)} are not beaten in both. Fastest for one: {_told(best[-1])}; most per GPU: "
        f"{_told(best[0])}."
    )  # fmt: skip
    return Plot("front", "One user’s speed against a GPU’s output", "rest", tuple(traces), "tokens/s of a user",
                "tokens/s of a GPU", "model", told, log="xy")  # fmt: skip


def _told(answer: Answer) -> str:
    one = answer.plan
    return f"{one.layout.ranks} × {one.device.name} with {one.clients} client{'s' if one.clients > 1 else ''}"


def _points(name: str, answers: list[Answer], color: str, mode: str) -> dict[str, Any]:
    text = [f"{a.plan.layout.ranks} × {a.plan.device.name}, {a.plan.clients} clients" for a in answers]
    return {
        "type": "scatter", "mode": mode, "name": name, "x": f32(a.per_user for a in answers),
        "y": f32(a.per_device for a in answers), "text": text, "marker": {"color": color, "size": 6},
        "line": {"color": color},
    }  # fmt: skip


def heat(made: Plan, quant: str, terms: str, shade: str) -> Heat:
    """Every model of the table on the fewest of every device that hold it, under the same load."""
    shapes = sorted((models.model(name) for name in models.table()), key=lambda shape: shape.total)
    cards = sorted(devices.table().values(), key=lambda device: (device.memory_gib, device.bandwidth))
    base = replace(made, layout=Layout())
    found = []
    for shape in shapes:
        of = replace(base, shape=shape, quant=shape.native if quant == "published" else quant)
        found += [search.smallest(replace(of, device=device)) for device in cards]
    hourly = {device.name: rent(device.name, terms) for device in cards}
    dollars = [_dollars(answer, hourly[answer.plan.device.name]) for answer in found]
    facts = (
        Fact("GPUs", "", 0, f32(a.plan.layout.ranks if a.fits else math.nan for a in found)),
        Fact("each client reads", "tokens/s", 0, f32(a.per_user if a.fits else math.nan for a in found)),
        Fact("all", "tokens/s", 0, f32(a.throughput if a.fits else math.nan for a in found)),
        Fact("1M tokens of a busy GPU", "$", 2, f32(dollars)),
    )
    names = tuple(shape.name for shape in shapes), tuple(device.name for device in cards)
    mark = -1
    if made.shape.name in names[0]:
        mark = names[0].index(made.shape.name) * len(cards) + names[1].index(made.device.name)
    fit = sum(a.fits for a in found)
    caption = (
        f"{len(shapes)} models by size, from top to bottom, × {len(cards)} devices by memory, from left to right: "
        f"{fit:,} of {len(found):,} pairs fit on up to 8 GPUs. Each cell is the fewest that do, under the load above."
    )
    none = "more than 8 GPUs" if shade != "price" else "more than 8 GPUs, or no listed price"
    levels = i32(_level(shade, answer, price) for answer, price in zip(found, dollars, strict=True))
    return Heat("heat", "All models on all devices", "rest", *names, levels, LEVELS[shade], none, facts,
                ("model", "device"), "model", caption, mark)  # fmt: skip


def _dollars(answer: Answer, hourly: float | None) -> float:
    """$ per million output tokens of a busy GPU; NaN where there is none."""
    if hourly is None or not answer.fits:
        return math.nan
    return 1e6 * hourly * answer.plan.layout.ranks / 3600 / answer.throughput


def _level(shade: str, answer: Answer, dollars: float) -> int:
    if not answer.fits:
        return -1
    if shade == "gpus":
        return (1, 2, 4, 8).index(answer.plan.layout.ranks)
    if shade == "regime":
        return LEVELS["regime"].index(answer.regime)
    if shade == "price":
        return -1 if math.isnan(dollars) else sum(dollars >= bound for bound in PRICES)
    return sum(answer.per_user >= bound for bound in SPEEDS)
