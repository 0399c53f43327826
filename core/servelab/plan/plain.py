"""Plans, tables and scores as plain data: what --json prints and tables are made of. Seconds, GiB, dollars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from servelab.plan import devices as cards_
from servelab.plan import models as models_
from servelab.plan import money
from servelab.plan.devices import GIB, Device
from servelab.plan.nvml import Installed
from servelab.plan.plan import Answer, Plan
from servelab.plan.queue import queue
from servelab.plan.validate import Score, line, table

COMMON = (
    "T4", "A10G", "L4", "RTX 4090", "RTX 5090", "L40S", "A100 SXM 80GB", "H100 SXM", "H200 SXM", "MI300X", "MI355X",
    "B200 SXM", "B300 SXM", "GB300 (per GPU)",
)  # fmt: skip
"""What most people rent, smallest first."""


def cards(every: bool) -> list[Device]:
    """The common devices, or all of them."""
    return list(cards_.table().values()) if every else [cards_.table()[name] for name in COMMON]


def plan(made: Plan) -> dict[str, Any]:
    return {
        "model": made.shape.name, "device": made.device.name, "tp": made.layout.tp, "pp": made.layout.pp,
        "dp": made.layout.dp, "quant": made.quant, "kv": made.kv, "prompt": made.prompt, "output": made.output,
        "clients": made.clients, "engine": made.engine,
    }  # fmt: skip


def memory(found: Answer) -> dict[str, float]:
    """GiB of the fullest rank."""
    m = found.memory
    parts = {"weights": m.weights, "kv": m.kv, "activations": m.activations, "runtime": m.runtime, "budget": m.budget}
    return {name: value / GIB for name, value in parts.items()}


def answer(found: Answer) -> dict[str, Any]:
    """Everything about one plan."""
    out: dict[str, Any] = {"plan": plan(found.plan), "fits": found.fits, "memory_gib": memory(found)}
    out["params"] = {"total": found.plan.shape.total, "active": found.plan.shape.active_params}
    if not found.fits:
        return out | {"reason": found.memory.reason}
    return out | {
        "capacity": found.memory.capacity, "running": found.running, "regime": found.regime,
        "ttft_s": found.ttft, "ttft_interval_s": found.between("ttft"), "tpot_s": found.tpot,
        "tpot_interval_s": found.between("tpot"), "tokens_per_s": found.throughput,
        "tokens_per_s_interval": found.between("throughput"),
        "tokens_per_s_per_device": found.per_device, "tokens_per_s_per_user": found.per_user,
        "spent_s": found.spent(), "evidence": "model",
        "simulated": asdict(queue(found)) if found.plan.clients > found.memory.capacity else None,
    }  # fmt: skip


def row(found: Answer, dollars: float | None) -> dict[str, Any]:
    """One line of a comparison."""
    made = found.plan
    return {
        "device": made.device.name, "gpus": made.layout.ranks, "layout": str(made.layout), "quant": made.quant,
        "clients": made.clients, "fits": found.fits, "reason": found.memory.reason,
        "used": (found.memory.weights + found.memory.kv + found.memory.activations + found.memory.runtime)
        / found.memory.budget,
        "capacity": found.memory.capacity, "ttft_s": found.ttft, "tpot_s": found.tpot,
        "tokens_per_s": found.throughput, "regime": found.regime, "usd_per_million": dollars,
    }  # fmt: skip


def beside(found: Answer, here: Installed) -> dict[str, Any]:
    """The plan's device beside the one in the machine."""
    need = (found.memory.weights + found.memory.activations + found.memory.runtime + found.memory.sequence) / GIB
    free = here.memory_gib - here.used_gib
    return asdict(here) | {
        "planned_device": found.plan.device.name, "planned_gib": found.plan.device.memory_gib,
        "needed_gib": need, "free_gib": free,
        "enough": found.fits and need <= free and here.count >= found.plan.layout.ranks,
    }  # fmt: skip


def tco(found: Answer, own: money.Own, utilisation: float) -> dict[str, Any]:
    """Dollars per million output tokens by way of paying. ValueError where the plan does not fit."""
    if not found.fits:
        raise ValueError(f"the plan does not fit: {found.memory.reason}")
    made, ranks = found.plan, found.plan.layout.ranks
    hourly: dict[str, float | None] = {f"rent, {terms}": money.rent(made.device.name, terms) for terms in money.TERMS}
    hourly["own"] = own.hourly(made.device.watts)
    ways = {
        way: {
            "usd_per_device_hour": each,
            "usd_per_million": money.per_million(each * ranks, found.throughput, utilisation),
        }
        for way, each in hourly.items() if each is not None
    }  # fmt: skip
    name = made.shape.name
    asked = [asdict(one) | {"usd_per_million": money.api_price(one, made.prompt, made.output)}
             for one in money.apis() if one.model == name]  # fmt: skip
    demand = money.rent(made.device.name)
    even = money.break_even(demand, own, made.device.watts) if demand is not None else None
    return {
        "plan": plan(made), "tokens_per_s": found.throughput, "utilisation": utilisation, "ways": ways,
        "apis": sorted(asked, key=lambda one: float(one["usd_per_million"])), "own_pays_above": even,
        "own": asdict(own),
    }  # fmt: skip


def scores(found: Sequence[Score]) -> list[dict[str, Any]]:
    """Lines by engine, model and precision, then all."""
    lines = table(found, lambda row: f"{row.engine}, {row.model}, {row.precision}, {row.device.name}")
    return [asdict(one) | {"coverage": one.coverage} for one in (*lines, line("all", found))]


def models() -> list[dict[str, Any]]:
    out = []
    for name, one in models_.table().items():
        shape = models_.model(name)
        out.append({
            "model": name, "params": shape.total, "active": shape.active_params, "published": one.published,
            "basis": one.basis, "layers": shape.layers, "context": shape.context, "native": shape.native,
            "kind": shape.kind, "licence": one.licence, "source": one.source,
        })  # fmt: skip
    return out


def devices() -> list[dict[str, Any]]:
    return [asdict(one) for one in cards_.table().values()]
