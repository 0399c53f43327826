"""What a command line says of traffic and engine, read into Traffic, Engine and Limits; a mistake names the option."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Annotated

import typer

from servelab.kv.limits import beginning, entry, short, whole
from servelab.sched import hardware
from servelab.sched.arrivals import GAPS, Lengths, Traffic
from servelab.sched.closed import closed
from servelab.sched.disaggregate import Pools, disaggregate
from servelab.sched.engine import Engine
from servelab.sched.metrics import SLOS, Limits
from servelab.sched.policies import POLICIES
from servelab.sched.request import PS, Workload
from servelab.sched.routing import ROUTERS, Router
from servelab.sched.simulate import Log, simulate
from servelab.sched.traffic import NAMED

Scheduler = Annotated[str, typer.Option("--scheduler", help=f"One of {', '.join(POLICIES)}.", metavar="NAME")]
Budget = Annotated[
    str, typer.Option("--chunk-budget", "--token-budget", help="Most tokens in an iteration.", metavar="N")
]
Slots = Annotated[str, typer.Option("--slots", help="Most sequences at once.", metavar="N")]
Blocks = Annotated[
    str | None, typer.Option("--kv-blocks", help="KV blocks.", metavar="N", show_default="what the card holds")
]
BlockSize = Annotated[str, typer.Option("--block-size", help="Tokens per KV block.", metavar="N")]
Swap = Annotated[bool, typer.Option("--swap", help="Preempted sequences go to host memory, instead of recomputing.")]
Card = Annotated[str, typer.Option("--hardware", help=f"One of {', '.join(hardware.DEVICES)}.", metavar="NAME")]
ModelName = Annotated[str, typer.Option("--model", help=f"One of {', '.join(hardware.QUERY_HEADS)}.", metavar="NAME")]
Replicas = Annotated[str, typer.Option("--replicas", help="Engines side by side.", metavar="N")]
RouterName = Annotated[str, typer.Option("--router", help=f"One of {', '.join(ROUTERS)}.", metavar="NAME")]
TrafficName = Annotated[str, typer.Option("--traffic", help=f"One of {', '.join(NAMED)}.", metavar="NAME")]
Rate = Annotated[
    str | None, typer.Option("--rate", help="Requests per second.", metavar="X", show_default="the traffic's")
]
Requests = Annotated[str, typer.Option("--requests", help="How many.", metavar="N")]
Arrivals = Annotated[
    str | None, typer.Option("--arrivals", help=f"One of {', '.join(GAPS)}.", metavar="NAME", show_default="its own")
]
Cv = Annotated[str | None, typer.Option("--cv", help="Burstiness of gamma arrivals; 1 is Poisson.", metavar="X")]
Prompt = Annotated[str | None, typer.Option("--prompt", help="Every prompt's tokens, not drawn.", metavar="N")]
Output = Annotated[str | None, typer.Option("--output", help="Every answer's tokens.", metavar="N")]
Guesses = Annotated[
    str | None,
    typer.Option("--guesses", help="Speculate: how likely each guess of a draft holds, as 0.8,0.7.", metavar="LIST"),
]
Prefills = Annotated[str, typer.Option("--prefills", help="So many more replicas only for prompts.", metavar="N")]
Link = Annotated[str, typer.Option("--link", help="GB/s from each of those.", metavar="X")]
Clients = Annotated[
    str | None, typer.Option("--clients", help="A closed loop of so many, instead of arrivals.", metavar="N")
]
Think = Annotated[str, typer.Option("--think", help="Seconds between answer and question.", metavar="X")]
Seed = Annotated[str, typer.Option("--seed", help="Of the draws.", metavar="N")]
Slo = Annotated[
    str | None,
    typer.Option("--slo", help=f"{'; '.join(SLOS)}; or TTFT/TPOT in ms, as 2000/100.", metavar="LEVEL"),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]


@dataclass(frozen=True, slots=True)
class Machine:
    """Engine, how many of them, the router; `source`, "fitted" or "roofline": where the step costs come from."""

    engine: Engine
    replicas: int
    router: Router
    source: str
    about: str


def machine(
    scheduler: str, budget: str, slots: str, blocks: str | None, block_size: str, swap: bool, card: str, model: str,
    replicas: str, router: str,
) -> Machine:  # fmt: skip
    """The engines that the options describe. ValueError names the option, its value, the range and the fix."""
    entry("--scheduler", scheduler, POLICIES)
    card = beginning("--hardware", card, hardware.DEVICES)
    model = beginning("--model", model, hardware.QUERY_HEADS)
    size = whole("--block-size", block_size, 1, 65_536, "engines use 16")
    most = whole("--chunk-budget", budget, 1, 2**24, "use 512 to 16,384")
    seqs = whole("--slots", slots, 1, 2**24, "use 8 to 1,024")
    if seqs > most:
        raise ValueError(f"--slots={seqs:,} is above --chunk-budget={most:,}: each sequence wants a token in a step")
    held = hardware.pool(card, model, size) if blocks is None else whole("--kv-blocks", blocks, 1, 2**40)
    cost, source = hardware.cost(card, model)
    one = Engine(cost, scheduler, most, seqs, held, size, swap=swap)
    many = whole("--replicas", replicas, 1, 4096, "use at least 1")
    return Machine(one, many, entry("--router", router, ROUTERS), source, f"{model} on {card} ({source} step costs)")


def traffic(
    name: str, rate: str | None, requests: str, arrivals: str | None, cv: str | None, prompt: str | None,
    output: str | None,
) -> Traffic:  # fmt: skip
    """The traffic that the options describe."""
    base = entry("--traffic", name, NAMED)
    base = replace(base, requests=whole("--requests", requests, 0, 10**7, "use up to ten million"))
    if rate is not None:
        base = replace(base, rate=number("--rate", rate, 1e-6, 1e9, "requests per second"))
    if cv is not None:
        base = replace(base, arrivals="gamma", cv=number("--cv", cv, 0.05, 20, "1 is Poisson, more comes in bursts"))
    if arrivals is not None:
        base = replace(base, arrivals=entry("--arrivals", arrivals, {kind: kind for kind in GAPS}))
    if prompt is not None:
        base = replace(base, prompt=Lengths(mean=whole("--prompt", prompt, 1, 10**7)))
    if output is not None:
        length = whole("--output", output, 0, 10**7)
        base = replace(base, output=Lengths(mean=length) if length else Lengths(low=0, high=0))
    return base


def guessing(m: Machine, text: str | None, card: str) -> Machine:
    """The machine with a draft that guesses: hardware.DRAFT on the same card."""
    if text is None:
        return m
    accept = tuple(numbers("--guesses", text, 0, 1, "a probability"))
    card = beginning("--hardware", card, hardware.DEVICES)
    cost = replace(m.engine.cost, draft=hardware.draft(card))
    return replace(m, engine=replace(m.engine, cost=cost, accept=accept))


def play(
    work: Workload, m: Machine, prefills: str, link: str, model: str, clients: str | None, think: str
) -> Log:  # fmt: skip
    """The workload through the machine: at its own times, in a closed loop, or with prefill and decode apart."""
    apart = whole("--prefills", prefills, 0, 2048, "0 for none")
    speed = number("--link", link, 1e-3, 1e6, "GB/s")
    pause = round(number("--think", think, 0, 1e6, "seconds") * PS)
    if apart and clients is not None:
        raise ValueError("--prefills and --clients: a closed loop is not simulated apart; use one of the two")
    if apart:
        moving = hardware.link(beginning("--model", model, hardware.QUERY_HEADS), speed)
        return disaggregate(work, Pools(m.engine, m.engine, apart, m.replicas, moving))
    if clients is not None:
        return closed(work, m.engine, whole("--clients", clients, 1, 2**20), pause, m.replicas, m.router)
    return simulate(work, m.engine, m.replicas, m.router)


def limits(text: str | None) -> Limits | None:
    """A named service level, or TTFT/TPOT in ms."""
    if text is None or text in SLOS:
        return SLOS[text] if text else None
    parts = text.split("/")
    if len(parts) != 2:
        names = "; ".join(SLOS)
        raise ValueError(f"--slo={short(text)} is unknown; use one of {names}, or TTFT/TPOT in ms, as 2000/100")
    return Limits(*(number("--slo", part, 0, math.inf, "milliseconds") for part in parts))


def number(name: str, text: str, low: float, high: float, fix: str) -> float:
    """The number that `text` writes, in low…high."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not low <= value <= high:
        raise ValueError(f"{name}={short(text)} is outside {low:g} to {high:g}; give {fix}")
    return value


def numbers(name: str, text: str, low: float, high: float, fix: str) -> list[float]:
    """Numbers with commas between them."""
    return [number(name, part.strip(), low, high, fix) for part in text.split(",")]
