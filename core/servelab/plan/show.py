"""Show: plans as tables that people read (rich)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from servelab.plan.engines import NAMES, interval
from servelab.plan.plan import Answer, Plan
from servelab.plan.queue import queue
from servelab.plan.spec import Speculation


def answer(found: Answer) -> None:
    """One plan."""
    made, m = found.plan, found.memory
    _title(f"{made.shape.name} ({made.quant}) on {made.layout.ranks} × {made.device.name}, {NAMES[made.engine]}")
    if not found.fits:
        return _title(f"does not fit: {m.reason}", "red")
    table = _table("memory of a rank", "GiB", "of the budget")
    for name, value in (("weights", m.weights), ("KV cache", m.kv), ("activations", m.activations),
                        ("runtime", m.runtime), ("free", m.free)):  # fmt: skip
        table.add_row(name, f"{value / 2**30:,.1f}", f"{value / m.budget:.0%}")
    Console().print(table)
    ttft, tpot = found.between("ttft"), found.between("tpot")
    table = _table("speed", "predicted", "9 of 10 within")
    table.add_row("time to first token", f"{found.ttft * 1e3:,.0f} ms", f"{ttft[0] * 1e3:,.0f} to {ttft[1] * 1e3:,.0f}")
    table.add_row("per output token", f"{found.tpot * 1e3:,.2f} ms", f"{tpot[0] * 1e3:,.2f} to {tpot[1] * 1e3:,.2f}")
    low, high = found.between("throughput")
    table.add_row("output of all", f"{found.throughput:,.0f} tokens/s", f"{low:,.0f} to {high:,.0f}")
    table.add_row("output of a device", f"{found.per_device:,.0f} tokens/s")
    Console().print(table)
    n = interval("tpot", made.shape.kind).n
    _title(f"limited by {found.regime}; room for {m.capacity:,} sequences at once")
    if made.clients > m.capacity:
        seen = queue(found)
        _title(
            f"more clients than room is a queue: in the simulator {seen.waiting:,.0f} of {made.clients:,} wait on "
            f"average, {seen.ttft:,.1f} s to the first token, {seen.throughput:,.0f} tokens/s, "
            f"{seen.preempted:,} preemptions"
        )
    _title(f"a model; intervals from {n} runs of models that the fit had not seen")
    return None


def beside(found: Mapping[str, Any]) -> None:
    """The plan beside the machine."""
    verdict = "enough" if found["enough"] else "not enough"
    _title(
        f"here: {found['count']} × {found['name']}, {found['memory_gib']:.1f} GiB, {found['free_gib']:.1f} free "
        f"(driver {found['driver']}); a rank needs {found['needed_gib']:.1f}: {verdict}"
    )


def compare(plan: Plan, lines: Sequence[Mapping[str, Any]], of: int = 0) -> None:
    """The matrix of one model."""
    count = f", {len(lines)} of {of}" if of > len(lines) else ""
    load = f"prompts of {plan.prompt:,}, answers of {plan.output:,} tokens"
    varied = len({(line["quant"], line["clients"]) for line in lines}) > 1
    same = "" if varied else f", {plan.quant}, {plan.clients:,} clients"
    _title(f"{plan.shape.name}: {load}{same}, {NAMES[plan.engine]}{count}")
    table = _table("plan", "memory", "room", "TTFT ms", "TPOT ms", "tokens/s", "$/1M", "limit")
    for line in lines:
        name = f"{line['gpus']} × {line['device']}" + (f", {line['quant']}, {line['clients']:,}" if varied else "")
        if not line["fits"]:
            table.add_row(name, *[""] * 6, Text("no room", "dim"))
            continue
        dollars = "" if line["usd_per_million"] is None else f"{line['usd_per_million']:,.2f}"
        table.add_row(
            name, f"{line['used']:.0%}", f"{line['capacity']:,}", f"{line['ttft_s'] * 1e3:,.0f}",
            f"{line['tpot_s'] * 1e3:,.2f}", f"{line['tokens_per_s']:,.0f}", dollars, line["regime"],
        )  # fmt: skip
    Console().print(table)
    _title("a model; $ per million output tokens at the median listed rent; room: sequences at once")
    if not all(line["fits"] for line in lines):
        _title("servelab plan fit says why a plan does not fit")


def matrix(grid: Sequence[Sequence[Answer]]) -> None:
    """All models on all devices."""
    _title("fewest devices that hold a model and one of its sequences; – where 8 do not")
    table = _table("model", *(_brief(answer.plan.device.name) for answer in grid[0]))
    for line in grid:
        name = line[0].plan.shape.name
        cells = [str(a.plan.layout.ranks) if a.fits else "–" for a in line]
        table.add_row(name if len(name) < 24 else name[:23] + "…", *cells)
    Console().print(table)
    _title("--json has each one's latencies")


def _brief(name: str) -> str:
    return name.removeprefix("RTX ").replace(" SXM", "").removesuffix(" (per GPU)").removesuffix(" 80GB")


def tco(found: Mapping[str, Any]) -> None:
    """Ways of paying."""
    plan = found["plan"]
    what = f"{plan['model']} ({plan['quant']}) on {plan['tp']} × {plan['device']}"
    _title(f"{what}: {found['tokens_per_s']:,.0f} tokens/s, busy {found['utilisation']:.0%} of the time")
    table = _table("way", "$/device/hour", "$/1M output tokens")
    for way, line in found["ways"].items():
        table.add_row(way, f"{line['usd_per_device_hour']:.2f}", f"{line['usd_per_million']:,.2f}")
    for one in found["apis"][:5]:
        table.add_row(f"API, {one['provider']}", "", f"{one['usd_per_million']:,.2f}")
    Console().print(table)
    pays = found["own_pays_above"]
    _title("owning never beats this rent" if pays is None else f"owning beats renting on demand above {pays:.0%} use")


def speculation(plan: Plan, draft: str, found: Speculation) -> None:
    _title(f"{plan.shape.name} with {found.guesses} guesses of {draft}, each holding with {found.accept:.0%}")
    table = _table("quantity", "value")
    table.add_row("tokens per step", f"{found.tokens:.2f}")
    for name, seconds in (("step", found.step), ("verifying step", found.verify), ("guess", found.draft)):
        table.add_row(name, f"{seconds * 1e3:.2f} ms")
    table.add_row("speedup", f"{found.speedup:.2f} ×")
    table.add_row("pays above", "never" if found.break_even is None else f"{found.break_even:.0%}")
    Console().print(table)


def scores(lines: Sequence[Mapping[str, Any]]) -> None:
    """Errors by group."""
    table = _table("engine, model, precision, device", "rows", "answered", "TPOT %", "p90", "TTFT %", "p90")
    for line in lines:
        errors = ("" if line[k] is None else f"{line[k]:.1f}" for k in ("tpot", "tpot_p90", "ttft", "ttft_p90"))
        table.add_row(line["name"], f"{line['rows']:,}", f"{line['coverage']:.0%}", *errors)
    Console().print(table)
    _title("medians and 90th percentiles of |predicted/measured − 1|")


def models(lines: Sequence[Mapping[str, Any]]) -> None:
    table = _table("model", "parameters", "active", "layers", "context", "published as", "source")
    for one in lines:
        counts = (f"{one['params']:,}", f"{one['active']:,}", str(one["layers"]), f"{one['context']:,}")
        table.add_row(one["model"], *counts, one["native"], one["source"])
    Console().print(table)


def devices(lines: Sequence[Mapping[str, Any]]) -> None:
    table = _table("device", "GiB", "GB/s", "bf16", "fp8", "fp4", "watts", "link GB/s", "basis")
    for one in lines:
        rates = (f"{one['tflops'].get(k, 0) or '':}" for k in ("bf16", "fp8", "fp4"))
        sizes = f"{one['memory_gib']:,.1f}", f"{one['bandwidth']:,.0f}"
        table.add_row(one["name"], *sizes, *rates, f"{one['watts']:.0f}", f"{one['link']:.0f}", one["basis"])
    Console().print(table)


def _title(text: str, style: str = "") -> None:
    Console().print(Text(text, style), soft_wrap=True)


def _table(first: str, *others: str) -> Table:
    table = Table(box=None, pad_edge=False, collapse_padding=True, header_style="bold")
    table.add_column(first, no_wrap=True)
    for name in others:
        table.add_column(name, justify="left" if name in ("limit", "source", "basis", "weights") else "right")
    return table
