"""`servelab sched`: run, compare, replay, sweep, capacity, calibrate, validate, trace."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from servelab.kv import trace as traces
from servelab.kv.limits import entry, whole
from servelab.sched import options as o
from servelab.sched import perfetto, show, sweep, validate
from servelab.sched.arrivals import generate
from servelab.sched.metrics import summary
from servelab.sched.policies import POLICIES
from servelab.sched.request import Workload, from_trace
from servelab.sched.runs import Run, read_run
from servelab.sched.search import max_goodput
from servelab.sched.simulate import Log, simulate
from servelab.terminal import errors, print_json, progress

app = typer.Typer(help="Scheduling: traffic through simulated engines.", no_args_is_help=True)

File = Annotated[str, typer.Argument(help="Azure CSV or Mooncake JSON lines, plain or gzip.", metavar="TRACE")]
Runs = Annotated[list[Path], typer.Option("--runs", help="Run files of a real engine.", metavar="FILE")]
Scale = Annotated[str, typer.Option("--rate-scale", help="Arrivals so many times as dense.", metavar="X")]
Cache = Annotated[bool, typer.Option("--cache/--no-cache", help="Prefix cache, where the trace has block hashes.")]


@app.command()
def run(
    scheduler: o.Scheduler = "chunked", budget: o.Budget = "8192", slots: o.Slots = "256", blocks: o.Blocks = None,
    block_size: o.BlockSize = "16", swap: o.Swap = False, card: o.Card = "H200", model: o.ModelName = "Qwen2.5-7B",
    replicas: o.Replicas = "1", router: o.RouterName = "round_robin", traffic: o.TrafficName = "azure-conversation",
    rate: o.Rate = None, requests: o.Requests = "1000", arrivals: o.Arrivals = None, cv: o.Cv = None,
    prompt: o.Prompt = None, output: o.Output = None, seed: o.Seed = "0", guesses: o.Guesses = None,
    prefills: o.Prefills = "0", link: o.Link = "64", clients: o.Clients = None, think: o.Think = "0", slo: o.Slo = None,
    as_json: o.Json = False,
) -> None:  # fmt: skip
    """Generated traffic through one scheduler: TTFT, TPOT, ITL, E2E, throughput, goodput."""
    with errors():
        flow = o.traffic(traffic, rate, requests, "burst" if clients else arrivals, cv, prompt, output)
        work = generate(flow, _seed(seed))
        m = o.machine(scheduler, budget, slots, blocks, block_size, swap, card, model, replicas, router)
        m, level = o.guessing(m, guesses, card), o.limits(slo)
        with progress("simulating"):
            found = summary(o.play(work, m, prefills, link, model, clients, think), level)
    if as_json:
        return print_json(found | {"basis": "model", "step_costs": m.source, "scheduler": scheduler})
    return show.run(f"{scheduler}, {traffic}, {m.about}", found)


@app.command()
def compare(
    schedulers: Annotated[str, typer.Option("--schedulers", help="Names with commas.", metavar="LIST")] = "",
    budget: o.Budget = "8192", slots: o.Slots = "256", blocks: o.Blocks = None, block_size: o.BlockSize = "16",
    swap: o.Swap = False, card: o.Card = "H200", model: o.ModelName = "Qwen2.5-7B", replicas: o.Replicas = "1",
    router: o.RouterName = "round_robin", traffic: o.TrafficName = "azure-conversation", rate: o.Rate = None,
    requests: o.Requests = "1000", arrivals: o.Arrivals = None, cv: o.Cv = None, prompt: o.Prompt = None,
    output: o.Output = None, seed: o.Seed = "0", slo: o.Slo = None, as_json: o.Json = False,
) -> None:  # fmt: skip
    """The same traffic through several schedulers, side by side."""
    names = [name.strip() for name in schedulers.split(",")] if schedulers else list(POLICIES)
    with errors():
        work = generate(o.traffic(traffic, rate, requests, arrivals, cv, prompt, output), _seed(seed))
        level, rows = o.limits(slo), {}
        for name in names:
            m = o.machine(name, budget, slots, blocks, block_size, swap, card, model, replicas, router)
            with progress(f"simulating {name}"):
                rows[name] = summary(simulate(work, m.engine, m.replicas, m.router), level)
    if as_json:
        return print_json({"basis": "model", "step_costs": m.source, "schedulers": rows})
    return show.compare(f"{traffic}, {m.about}; latencies in ms", rows)


@app.command()
def replay(
    file: File, scale: Scale = "1", cache: Cache = True, scheduler: o.Scheduler = "chunked", budget: o.Budget = "8192",
    slots: o.Slots = "256", blocks: o.Blocks = None, block_size: o.BlockSize = "16", swap: o.Swap = False,
    card: o.Card = "H200", model: o.ModelName = "Qwen2.5-7B", replicas: o.Replicas = "1",
    router: o.RouterName = "round_robin", slo: o.Slo = None, as_json: o.Json = False,
) -> None:  # fmt: skip
    """A trace at its own times through one scheduler."""
    with errors():
        m = o.machine(scheduler, budget, slots, blocks, block_size, swap, card, model, replicas, router)
        level = o.limits(slo)
        work = _trace(file, scale)
        prefix = cache and work.hashes is not None and not swap
        with progress("simulating"):
            log = simulate(work, replace(m.engine, prefix=prefix), m.replicas, m.router)
        found = summary(log, level)
    if as_json:
        about = {"basis": "model", "step_costs": m.source, "scheduler": scheduler, "prefix_cache": prefix}
        return print_json(found | about | {"trace": file})
    return show.run(f"{scheduler}, {file}, {m.about}", found)


@app.command("sweep")
def sweep_(
    rates: Annotated[str, typer.Option("--rates", help="Requests/s, with commas.", metavar="LIST")] = "1,2,4,8,16",
    schedulers: Annotated[str, typer.Option("--schedulers", help="Names.", metavar="LIST")] = "continuous,chunked",
    budgets: Annotated[str, typer.Option("--budgets", help="Token budgets.", metavar="LIST")] = "512,8192",
    slots: o.Slots = "256", card: o.Card = "H200", model: o.ModelName = "Qwen2.5-7B",
    replicas: o.Replicas = "1", traffic: o.TrafficName = "azure-conversation", requests: o.Requests = "1000",
    seed: o.Seed = "0", slo: o.Slo = None,
    executor: Annotated[str, typer.Option("--executor", help="process or dask.", metavar="NAME")] = "process",
    dask: Annotated[str | None, typer.Option("--dask", help="A Dask scheduler.", metavar="ADDRESS")] = None,
    as_json: o.Json = False,
) -> None:  # fmt: skip
    """Every rate with every scheduler and budget, on all cores or on a Dask cluster."""
    with errors():
        level = o.limits(slo)
        several = [whole("--budgets", part.strip(), 1, 2**24) for part in budgets.split(",")]
        names = [name.strip() for name in schedulers.split(",")]
        for name in names:
            entry("--schedulers", name, POLICIES)
        m = o.machine(names[0], str(max(several)), slots, None, "16", False, card, model, replicas, "round_robin")
        point = sweep.Point(
            o.traffic(traffic, None, requests, None, None, None, None), m.engine, _seed(seed), m.replicas, limits=level
        )
        points = sweep.grid(point, o.numbers("--rates", rates, 1e-6, 1e9, "requests per second"), names, several)
        rows: list[dict[str, Any]] = []
        with sweep.executor(executor, dask) as pool, progress("sweeping", len(points)) as report:
            for row in sweep.sweep(points, pool):
                rows.append(row)
                report(len(rows))
    if as_json:
        return print_json({"basis": "model", "step_costs": m.source, "runs": rows})
    return show.sweep(rows)


@app.command()
def capacity(
    scheduler: o.Scheduler = "chunked", budget: o.Budget = "8192", slots: o.Slots = "256", card: o.Card = "H200",
    model: o.ModelName = "Qwen2.5-7B", traffic: o.TrafficName = "azure-conversation", requests: o.Requests = "1000",
    seed: o.Seed = "0", slo: o.Slo = "8B, server",
    share: Annotated[str, typer.Option("--share", help="Of the requests, 0 to 1.", metavar="X")] = "0.99",
    as_json: o.Json = False,
) -> None:  # fmt: skip
    """The largest rate at which a share of the requests meets every limit."""
    with errors():
        m = o.machine(scheduler, budget, slots, None, "16", False, card, model, "1", "round_robin")
        level = o.limits(slo)
        if level is None:
            raise ValueError("--slo is missing; name a level, or give TTFT/TPOT in ms")
        flow = o.traffic(traffic, None, requests, None, None, None, None)
        wanted = o.number("--share", share, 1e-9, 1, "a share above 0")
        with progress("searching"):
            found = asdict(max_goodput(flow, m.engine, level, wanted, _seed(seed)))
    found["above"] = None if found["above"] == float("inf") else found["above"]
    if as_json:
        return print_json(found | {"basis": "model", "step_costs": m.source, "slo": slo})
    return show.capacity(f"{scheduler}, {traffic}, {m.about}, {slo}", found)


@app.command()
def calibrate(runs: Runs, as_json: o.Json = False) -> None:
    """Fit a step's cost to run files of real engines, of which the in-sample recordings are seen."""
    with errors():
        files = list(_runs(runs))
        with progress(f"fitting {', '.join(one.name for one in files)}"):
            out = {one.name: found for one, found in zip(files, validate.calibrate(files), strict=True)}
    if as_json:
        return print_json({name: asdict(found) for name, found in out.items()})
    for name, found in out.items():
        show.fit(name, found)
    return None


@app.command("validate")
def validate_(runs: Runs, as_json: o.Json = False) -> None:
    """The simulator beside a real engine: errors in-sample and held out, and whether steps are composed alike."""
    out = {}
    with errors():
        files = list(_runs(runs))
        with progress(f"fitting {', '.join(one.name for one in files)}"):
            fits = validate.calibrate(files)
        for one, fitted in zip(files, fits, strict=True):
            with progress(f"simulating {one.name}"):
                out[one.name] = validate.validate(one, fitted.cost, files)
    if as_json:
        rows = {name: [_plain(verdict) for verdict in found] for name, found in out.items()}
        return print_json(rows)
    for name, found in out.items():
        show.verdicts(name, found)
    return None


@app.command()
def trace(
    out: Annotated[Path, typer.Argument(help="Where the Perfetto trace goes.", metavar="OUT")],
    scheduler: o.Scheduler = "chunked", budget: o.Budget = "8192", slots: o.Slots = "256", blocks: o.Blocks = None,
    block_size: o.BlockSize = "16", swap: o.Swap = False, card: o.Card = "H200", model: o.ModelName = "Qwen2.5-7B",
    replicas: o.Replicas = "1", router: o.RouterName = "round_robin", traffic: o.TrafficName = "azure-conversation",
    rate: o.Rate = None, requests: o.Requests = "200", seed: o.Seed = "0",
) -> None:  # fmt: skip
    """Write a run for ui.perfetto.dev: replicas as processes, slots as threads."""
    with errors():
        if out.exists():
            raise ValueError(f"{out} exists already; give a new path, or remove it first")
        work = generate(o.traffic(traffic, rate, requests, None, None, None, None), _seed(seed))
        m = o.machine(scheduler, budget, slots, blocks, block_size, swap, card, model, replicas, router)
        log: Log = simulate(work, m.engine, m.replicas, m.router, detail=True)
        about = {"made_by": "servelab sched trace", "scheduler": scheduler, "traffic": traffic, "engine": m.about}
        try:
            out.write_text(perfetto.to_json(log, about), encoding="utf-8")
        except OSError as error:
            raise ValueError(f"{out}: {(error.strerror or 'unwritable').lower()}; give a path in a folder") from error
    typer.echo(f"{out}: {out.stat().st_size:,} bytes; open it in ui.perfetto.dev")


def _seed(text: str) -> int:
    return whole("--seed", text, 0, 2**63)


def _trace(file: str, scale: str) -> Workload:
    factor = o.number("--rate-scale", scale, 1e-6, 1e6, "1 to replay as recorded")
    with progress(f"reading {file}", 1.0) as report:
        return from_trace(traces.read(file, progress=report), factor)


def _runs(paths: list[Path]) -> Iterator[Run]:
    for path in paths:
        if not path.is_file():
            raise ValueError(f"{path} is no file; give a run file, as generate/engine_steps.py writes it")
        yield read_run(path)


def _plain(verdict: validate.Verdict) -> dict[str, Any]:
    rows = [asdict(row) | {"error_percent": row.error} for row in verdict.rows]
    same = 100 * verdict.same / verdict.steps if verdict.steps else 100.0
    return asdict(verdict) | {"rows": rows, "same_percent": same}
