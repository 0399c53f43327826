"""`servelab plan`: fit, compare, matrix, search, tco, spec, validate, models, devices."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from servelab.kv.limits import short
from servelab.kv.sizes import DTYPES
from servelab.plan import devices, engines, models, money, plain, rows, search, show, validate
from servelab.plan.formats import FORMATS
from servelab.plan.memory import Layout
from servelab.plan.nvml import installed
from servelab.plan.plan import Plan, solve
from servelab.plan.shapes import Shape
from servelab.plan.spec import speculate
from servelab.terminal import errors, print_json, progress

app = typer.Typer(help="Capacity: will it fit, how fast, at what price.", no_args_is_help=True)

Model = Annotated[str, typer.Option("--model", help="A model of `servelab plan models`, or its beginning.")]
Config = Annotated[
    Path | None, typer.Option("--config", help="A Hugging Face config.json instead of a model's name.", metavar="FILE")
]
Device = Annotated[str, typer.Option("--device", help="A device of `servelab plan devices`, or its beginning.")]
Quant = Annotated[
    str, typer.Option("--quant", help=f"Weights: {', '.join(FORMATS)}.", show_default="as the model is published")
]
Kv = Annotated[str, typer.Option("--kv", help=f"KV cache: {', '.join(DTYPES)}.")]
Prompt = Annotated[int, typer.Option("--prompt", help="Tokens of a prompt.")]
Output = Annotated[int, typer.Option("--output", help="Tokens of an answer.")]
Clients = Annotated[int, typer.Option("--clients", "--batch", help="Requests at once.")]
Engine = Annotated[str, typer.Option("--engine", help=f"{', '.join(engines.NAMES)}.")]
Tp = Annotated[int, typer.Option("--tp", help="Ranks that share each layer.")]
Pp = Annotated[int, typer.Option("--pp", help="Pipeline stages.")]
Dp = Annotated[int, typer.Option("--dp", "--ep", help="Copies of the attention that share a mixture's experts.")]
Terms = Annotated[str, typer.Option("--terms", help=f"Of the rent: {', '.join(money.TERMS)}.")]
Ttft = Annotated[float, typer.Option("--ttft", help="Most seconds to the first token.")]
Tpot = Annotated[float, typer.Option("--tpot", help="Most seconds per output token after it.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]


def _shape(name: str, config: Path | None) -> Shape:
    if config is None:
        return models.model(name)
    try:
        values = json.loads(config.read_text())
    except OSError as error:
        raise ValueError(f"--config={short(str(config))} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise ValueError(f"--config={short(str(config))} is no JSON: {error}") from None
    return models.read(values, config.stem if config.stem != "config" else config.resolve().parent.name)


def _plan(name: str, config: Path | None, device: str, quant: str, kv: str, **more: Any) -> Plan:
    shape = _shape(name, config)
    return Plan(shape, devices.device(device), quant=quant or shape.native, kv=kv, **more)


@app.command()
def fit(
    model: Model = "Qwen2.5-7B", config: Config = None, device: Device = "H200", quant: Quant = "", kv: Kv = "bf16",
    tp: Tp = 1, pp: Pp = 1, dp: Dp = 1, prompt: Prompt = 2048, output: Output = 256, clients: Clients = 16,
    engine: Engine = "vllm",
    nvml: Annotated[bool, typer.Option("--nvml", help="Check against the GPU that is in this machine.")] = False,
    as_json: Json = False,
) -> None:  # fmt: skip
    """One plan: memory by part, speed with intervals, what limits it."""
    with errors():
        plan = _plan(
            model, config, device, quant, kv, layout=Layout(tp, pp, dp), prompt=prompt, output=output,
            clients=clients, engine=engine,
        )  # fmt: skip
        answer = solve(plan)
        here = installed() if nvml else None
    if as_json:
        return print_json(plain.answer(answer) | ({"nvml": plain.beside(answer, here)} if here else {}))
    show.answer(answer)
    if here:
        show.beside(plain.beside(answer, here))
    return None


@app.command()
def compare(
    model: Model = "Qwen2.5-7B", config: Config = None, quant: Quant = "", kv: Kv = "bf16", prompt: Prompt = 2048,
    output: Output = 256, clients: Clients = 16, engine: Engine = "vllm", terms: Terms = "on demand",
    device: Annotated[list[str] | None, typer.Option("--device", help="Only these; may be given often.")] = None,
    every: Annotated[bool, typer.Option("--all", help="All devices of the table.")] = False, as_json: Json = False,
) -> None:  # fmt: skip
    """The multi-GPU matrix of one model: every device and layout, what fits, how fast, at what price."""
    with errors():
        plan = _plan(
            model, config, "H200", quant, kv, prompt=prompt, output=output, clients=clients, engine=engine
        )
        chosen = [devices.device(name) for name in device] if device else plain.cards(every)
        found = search.compare(plan, chosen)
        lines = [plain.row(answer, search.cost(answer, terms)) for answer in found]
    if as_json:
        return print_json({"plan": plain.plan(plan), "rows": lines})
    return show.compare(plan, lines)


@app.command()
def matrix(
    quant: Annotated[str, typer.Option("--quant", help="Weights of all models.", show_default="as published")] = "",
    prompt: Prompt = 2048, output: Output = 256, clients: Clients = 16, engine: Engine = "vllm",
    every: Annotated[bool, typer.Option("--all", help="All devices of the table.")] = False, as_json: Json = False,
) -> None:  # fmt: skip
    """All models on all devices: the fewest that hold each, and a client's tokens/s there."""
    with errors():
        shapes, chosen = [models.model(name) for name in models.table()], plain.cards(every)
        grid = []
        for shape in shapes:
            plan = Plan(
                shape, chosen[0], quant=quant or shape.native, prompt=prompt, output=output, clients=clients,
                engine=engine,
            )  # fmt: skip
            grid.append(search.matrix(plan, [shape], chosen)[0])
    if as_json:
        rows_ = [{"model": line[0].plan.shape.name, "devices": [plain.row(a, None) for a in line]} for line in grid]
        return print_json({"rows": rows_})
    return show.matrix(grid)


@app.command("search")
def find(
    model: Model = "Qwen2.5-7B", config: Config = None, prompt: Prompt = 2048, output: Output = 256,
    ttft: Ttft = 2.0, tpot: Tpot = 0.1, terms: Terms = "on demand", engine: Engine = "vllm",
    quant: Annotated[list[str] | None, typer.Option("--quant", help="Formats that are allowed.")] = None,
    top: Annotated[int, typer.Option("--top", help="Rows printed.")] = 10, as_json: Json = False,
) -> None:  # fmt: skip
    """The cheapest plans that meet a service level, across devices, layouts, formats and batches."""
    with errors():
        plan = _plan(model, config, "H200", "", "bf16", prompt=prompt, output=output, engine=engine)
        formats = quant or list(dict.fromkeys((plan.shape.native, "bf16", "fp8", "int4")))
        found = search.search(plan, devices.table().values(), formats, search.Slo(ttft, tpot), terms)
        if not found:
            raise ValueError(f"no plan gives {short(plan.shape.name)} ttft={ttft} and tpot={tpot}; allow more seconds")
        lines = [plain.row(answer, dollars) for dollars, answer in found[:top]]
        front = search.pareto([answer for _, answer in found])
    if as_json:
        return print_json({"rows": lines, "pareto": [plain.row(a, search.cost(a, terms)) for a in front]})
    return show.compare(plan, lines, len(found))


@app.command()
def tco(
    model: Model = "Llama-3.1-70B", config: Config = None, device: Device = "H200", quant: Quant = "fp8",
    tp: Tp = 2, prompt: Prompt = 2048, output: Output = 256, clients: Clients = 32, engine: Engine = "vllm",
    utilisation: Annotated[float, typer.Option("--utilisation", help="Share of the time with this load.")] = 0.5,
    capital: Annotated[float, typer.Option("--capital", help="Dollars per device, host included.")] = 30_000.0,
    years: Annotated[float, typer.Option("--years", help="It is written off over.")] = 4.0,
    kwh: Annotated[float, typer.Option("--kwh", help="Dollars per kWh.")] = 0.12, as_json: Json = False,
) -> None:  # fmt: skip
    """Dollars per million output tokens: rented on each term, owned, and what APIs ask."""
    with errors():
        plan = _plan(
            model, config, device, quant, "bf16", layout=Layout(tp), prompt=prompt, output=output, clients=clients,
            engine=engine,
        )  # fmt: skip
        found = plain.tco(solve(plan), money.Own(capital, years, kwh), utilisation)
    if as_json:
        return print_json(found)
    return show.tco(found)


@app.command()
def spec(
    model: Model = "Llama-3.1-70B", device: Device = "H200", quant: Quant = "fp8", tp: Tp = 1,
    draft: Annotated[str, typer.Option("--draft", help="The model that guesses.")] = "Llama-3.2-1B",
    guesses: Annotated[int, typer.Option("--guesses", "-k", help="Tokens it guesses per step.")] = 4,
    accept: Annotated[float, typer.Option("--accept", help="Share of guesses that hold.")] = 0.7,
    prompt: Prompt = 2048, output: Output = 256, clients: Clients = 1, as_json: Json = False,
) -> None:  # fmt: skip
    """What speculative decoding gains, and the acceptance at which it pays."""
    with errors():
        plan = _plan(
            model, None, device, quant, "bf16", layout=Layout(tp), prompt=prompt, output=output, clients=clients
        )
        found = speculate(plan, models.model(draft), guesses, accept)
    if as_json:
        return print_json(asdict(found))
    return show.speculation(plan, draft, found)


@app.command("validate")
def score(
    file: Annotated[Path, typer.Argument(help="A CSV of measured runs, plain or gzip.", metavar="FILE")],
    device: Annotated[str, typer.Option("--device", help="Only this one's rows.")] = "",
    unseen: Annotated[bool, typer.Option("--held-out", help="Only workloads that no fit has seen.")] = False,
    uncalibrated: Annotated[bool, typer.Option("--uncalibrated", help="Without deployments' own factors.")] = False,
    as_json: Json = False,
) -> None:  # fmt: skip
    """Score predictions against measured runs, by engine, model and precision."""
    with errors():
        try:
            data = file.read_bytes()
        except OSError as error:
            raise ValueError(f"{short(str(file))} cannot be read: {error.strerror}") from None
        with progress("predicting"):
            found = rows.read(data)
            if device:
                wanted = devices.device(device)
                found = [row for row in found if row.device == wanted]
            if unseen:
                found = [row for row in found if validate.held_out(row)]
            if not found:
                raise ValueError("0 rows are left; leave --device or --held-out out")
            lines = plain.scores(validate.scores(found, not uncalibrated))
    if as_json:
        return print_json(lines)
    return show.scores(lines)


@app.command("models")
def known_models(as_json: Json = False) -> None:
    """The table of models."""
    lines = plain.models()
    return print_json(lines) if as_json else show.models(lines)


@app.command("devices")
def known_devices(as_json: Json = False) -> None:
    """The table of devices."""
    lines = plain.devices()
    return print_json(lines) if as_json else show.devices(lines)
