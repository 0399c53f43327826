"""The planner's tables: all GPUs for one model, ways of paying, guesses, the norm ledger, the queue, cheapest plans."""

from __future__ import annotations

from collections.abc import Sequence

from servelab.plan import plain
from servelab.plan.engines import NAMES
from servelab.plan.ledger import ledger
from servelab.plan.money import Own, per_million, rent
from servelab.plan.plan import Answer, Plan
from servelab.plan.queue import queue
from servelab.plan.search import compare
from servelab.plan.shapes import Shape
from servelab.plan.spec import speculate
from servelab.view.matrix import Matrix
from servelab.view.words import Cell, Table, Text


def matrix(made: Plan, terms: str, busy: float, every: bool) -> Matrix:
    """The plan on every device and number of GPUs."""
    rows: list[tuple[Cell, ...]] = []
    states, mark = [], -1
    for answer in compare(made, plain.cards(every)):
        one = answer.plan
        if (one.device, one.layout) == (made.device, made.layout):
            mark = len(rows)
        rows.append(_row(answer, terms, busy))
        states.append({"device": one.device.name, "tp": str(one.layout.tp), "pp": "1", "dp": "1"})
    columns = (
        ("GPUs", ""), ("Memory", "%"), ("Room", "seq."), ("TTFT", "ms"), ("TPOT", "ms"), ("All", "tokens/s"),
        ("Each GPU", "tokens/s"), ("1M tokens", "$"), ("Limit", ""),
    )  # fmt: skip
    told = f"{made.quant}, {made.clients:,} clients, {made.prompt:,} + {made.output:,} tokens, {NAMES[made.engine]}. "
    return Matrix(
        "matrix", f"{made.shape.name} on other GPUs", "side", columns, (-1, 0, 0, 0, 1, 0, 0, 2, -1), tuple(rows),
        "model", told + "Click a name to plan it, a heading to sort; tick rows to keep them on top.", mark, "",
        tuple(states),
    )  # fmt: skip


def _row(answer: Answer, terms: str, busy: float) -> tuple[Cell, ...]:
    one, m = answer.plan, answer.memory
    name = f"{one.layout.ranks} × {one.device.name}"
    needed = m.weights + m.activations + m.runtime + (m.kv if answer.fits else m.sequence)
    if not answer.fits:
        return (name, 100 * needed / m.budget, None, None, None, None, None, None, "no room")
    hourly = rent(one.device.name, terms)
    dollars = None if hourly is None else per_million(hourly * one.layout.ranks, answer.throughput, busy)
    return (
        name, 100 * needed / m.budget, m.capacity, answer.ttft * 1e3, answer.tpot * 1e3, answer.throughput,
        answer.per_device, dollars, answer.regime,
    )  # fmt: skip


def ways(answer: Answer, own: Own, busy: float) -> Table | Text:
    """Rent on each term, buy, or an API's tokens: $ per million output tokens, cheapest first."""
    columns = (("Way", ""), ("A GPU", "$/hour"), ("1M output tokens", "$"))
    if not answer.fits:
        return Text("ways", "Rent, buy, or an API", "side", ("A plan that does not fit has no price.",))
    found = plain.tco(answer, own, busy)
    rows: list[tuple[Cell, ...]] = [
        (way, line["usd_per_device_hour"], line["usd_per_million"]) for way, line in found["ways"].items()
    ]
    rows += [(f"API, {one['provider']}", None, one["usd_per_million"]) for one in found["apis"][:4]]
    rows.sort(key=lambda row: float(row[2] or 0))
    even = found["own_pays_above"]
    pays = "Owning never beats this rent" if even is None else f"Owning beats renting on demand above {even:.0%} use"
    power = f"{answer.plan.device.watts:,.0f} W · {own.overhead:.1f} · ${own.usd_per_kwh:.2f}/kWh"
    caption = f"{pays}. Own: ${own.capital:,.0f} over {own.years:.0f} years, {power}. APIs: their prompts paid, too."
    return Table("ways", "Rent, buy, or an API", "side", columns, (0, 2, 2), tuple(rows), "model", caption)


def speculation(made: Plan, draft: Shape, guesses: int, accept: float) -> Table | Text:
    """What a draft of one to eight guesses gains, and the acceptance above which it pays."""
    columns = (("Guesses", ""), ("Tokens a step", ""), ("Speedup", "×"), ("Pays above", "%"))
    title, rows = f"Guessing with {draft.name}", []
    for n in range(1, 9):
        try:
            found = speculate(made, draft, n, accept)
        except ValueError as error:
            return Text("guesses", title, "side", (f"{str(error).capitalize()}.",))
        even: Cell = "never" if found.break_even is None else 100 * found.break_even
        rows.append((n, found.tokens, found.speedup, even))
    caption = f"Each guess holds with {accept:.0%}, if those before it did. The draft runs on the same GPUs."
    return Table("guesses", title, "side", columns, (0, 2, 2, 0), tuple(rows), "model", caption,
                 guesses - 1)  # fmt: skip


def norms(made: Plan) -> Table:
    """Bytes that residuals and norms move, apart and fused."""
    found = ledger(made.shape, made.quant)
    kib = 1024
    rows: tuple[tuple[Cell, ...], ...] = (
        ("add, then norm: 6 vectors", found.apart / kib), ("fused: 4 vectors", found.fused / kib),
        ("saved", found.saved / kib),
    )  # fmt: skip
    caption = (
        f"{found.sites} sites of {found.vector / kib:,.0f} KiB vectors. Fusing saves a third of that, and "
        f"{100 * found.share:.2g} % of what a step at batch 1 reads: the gain is launches, not bytes."
    )
    columns = (("Per token", ""), ("Moved", "KiB"))
    return Table("norms", "The norm ledger", "side", columns, (0, 0), rows, "derived", caption)


def queued(answer: Answer) -> Table | Text:
    """Formula and simulator side by side."""
    title = "The same in the scheduler’s simulator"
    if not answer.fits:
        return Text("queue", title, "rest", ("A plan that does not fit has no queue.",))
    seen, made = queue(answer), answer.plan
    rows: tuple[tuple[Cell, ...], ...] = (
        ("TTFT, ms", answer.ttft * 1e3, seen.ttft * 1e3), ("TPOT, ms", answer.tpot * 1e3, seen.tpot * 1e3),
        ("Output of all, tokens/s", answer.throughput, seen.throughput),
        ("Clients that wait", float(made.clients - answer.running), seen.waiting),
        ("Preemptions", None, float(seen.preempted)),
    )  # fmt: skip
    caption = (
        f"{made.clients:,} clients, room for {answer.memory.capacity:,}; {seen.n:,} simulated answers of half to one "
        "and a half times the length. More clients than room is a queue: nobody is refused, nothing is out of memory."
    )
    columns = (("", ""), ("Formula", ""), ("Simulator", ""))
    return Table("queue", title, "rest", columns, (0, 1, 1), rows, "model", caption)


def cheapest(found: Sequence[tuple[float, Answer]], ttft: float, tpot: float, busy: float) -> Matrix | Text:
    """The cheapest plans that keep the service level."""
    title = f"Cheapest within {ttft:g} s to the first token, then {tpot:g} ms each"
    if not found:
        why = "No rented GPU keeps this service level with up to 8 of it; ask for less, or for fewer bits."
        return Text("cheapest", title, "rest", (why,))
    rows: list[tuple[Cell, ...]] = []
    states = []
    for dollars, answer in found[:10]:
        one = answer.plan
        rows.append((
            f"{one.layout.ranks} × {one.device.name}", one.quant, one.clients, answer.ttft * 1e3, answer.tpot * 1e3,
            answer.throughput, dollars / busy,
        ))  # fmt: skip
        states.append({
            "device": one.device.name, "tp": str(one.layout.tp), "pp": "1", "dp": "1", "quant": one.quant,
            "clients": str(one.clients),
        })  # fmt: skip
    columns = (
        ("Plan", ""), ("Weights", ""), ("Clients", ""), ("TTFT", "ms"), ("TPOT", "ms"), ("All", "tokens/s"),
        ("1M tokens", "$"),
    )  # fmt: skip
    return Matrix(
        "cheapest", title, "rest", columns, (-1, -1, 0, 0, 1, 0, 2), tuple(rows), "model",
        "Of all rented devices, 1 to 8 of them, the published format, FP8 and INT4, 1 to 256 clients.", -1, "",
        tuple(states),
    )  # fmt: skip


