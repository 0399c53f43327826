"""Planner: will a model fit, how fast is it, at what price: one plan in detail, and beside all others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from servelab.kv.sizes import DTYPES
from servelab.plan import devices, engines, models, money
from servelab.plan.formats import FORMATS
from servelab.plan.memory import Layout
from servelab.plan.plan import Plan, solve
from servelab.receipt.schema import Receipt
from servelab.view import Control, Frame, Panel
from servelab.view.control import names
from servelab.view.studio import Preset
from studios.planner import numbers, pictures, tables, whole, yours
from studios.planner.yours import drop as drop

TITLE = "Planner"
SENTENCE = "Will it fit, how fast, at what price? Drag the load or the number of GPUs and watch memory and time."
SUMMARY = "Capacity: memory, latency and $ per million tokens of 66 models on 74 devices, with measured errors."
NEEDS = ("servelab_plan",)
RECEIPTS = ("plan_roofline",)
FILE = "config.json"
DROPPED = {"model": yours.NAME, "quant": "published"}

SHADES = {"gpus": "GPUs needed", "speed": "speed per user", "price": "$ per 1M tokens", "regime": "what limits it"}


@dataclass(frozen=True, slots=True)
class State:
    """Every field is a control and a URL key."""

    model: Annotated[str, Control(
        "Model", choices=(*names(models.table()), (yours.NAME, "your config.json")), group="Model",
        help="Or drop a Hugging Face config.json on the page, or paste its text: it stays in this tab.",
    )] = "Llama-3.1-70B"
    quant: Annotated[str, Control(
        "Weights", choices=(("published", "as published"), *names(FORMATS)), group="Model",
        help="Scales are counted, and what a format leaves at 16 bits. A GPU without the format’s units multiplies in "
        "bf16.",
    )] = "fp8"
    kv: Annotated[str, Control("KV cache", choices=names(DTYPES), group="Model")] = "bf16"
    device: Annotated[str, Control(
        "Device", choices=names(devices.table()), group="Hardware",
        help="Memory as the driver reports it where that is known, dense rates of the data sheet.",
    )] = "H200 SXM"
    tp: Annotated[int, Control(
        "Tensor parallel", "GPUs", 1, 64, scale="log2", group="Hardware",
        help="GPUs that share each layer. They have to divide the model’s heads; KV heads are copied where they are "
        "fewer.",
    )] = 1
    pp: Annotated[int, Control(
        "Pipeline", "stages", 1, 8, group="Hardware", help="Groups of GPUs that take whole layers, one by one.",
    )] = 1
    dp: Annotated[int, Control(
        "Expert parallel", "copies", 1, 64, scale="log2", group="Hardware",
        help="Copies of the attention, each with its own sequences, that share a mixture’s experts (DP + EP).",
    )] = 1
    engine: Annotated[str, Control("Engine", choices=tuple(engines.NAMES.items()), group="Hardware")] = "vllm"
    prompt: Annotated[int, Control("Prompt", "tokens", 64, 131072, scale="log2", group="Load")] = 2048
    output: Annotated[int, Control("Answer", "tokens", 16, 16384, scale="log2", group="Load")] = 256
    clients: Annotated[int, Control(
        "Clients", "at once", 1, 4096, scale="log2", group="Load",
        help="Each asks again as soon as it is answered. More than there is room for wait in a queue.",
    )] = 32
    ttft: Annotated[float, Control("First token within", "s", 0.1, 30, step=0.1, group="Service level")] = 2.0
    tpot: Annotated[float, Control("Then one each", "ms", 2, 200, group="Service level")] = 50.0
    terms: Annotated[str, Control(
        "Rent", choices=names(dict.fromkeys(money.TERMS)), group="Money", help="The median of the listed prices.",
    )] = "on demand"
    busy: Annotated[int, Control(
        "Busy", "% of the time", 1, 100, group="Money", help="An idle GPU is paid for, too.",
    )] = 60
    capital: Annotated[int, Control(
        "Bought for", "$", 0, 100000, step=500, group="Money", help="One GPU and its share of the host.",
    )] = 30000
    kwh: Annotated[float, Control("Power", "$/kWh", 0, 1, step=0.01, group="Money")] = 0.12
    draft: Annotated[str, Control(
        "Draft", choices=names(models.table()), group="Speculation", help="The small model that guesses.",
    )] = "Llama-3.2-1B"
    guesses: Annotated[int, Control("Guesses", "tokens", 1, 8, group="Speculation")] = 4
    accept: Annotated[int, Control(
        "Each holds in", "%", 0, 100, step=5, group="Speculation", help="Of the cases in which those before it did.",
    )] = 70
    shade: Annotated[str, Control("Heat map", choices=tuple(SHADES.items()), group="View")] = "gpus"
    every: Annotated[bool, Control(
        "All devices", group="View", help="In the matrix: all 74, not only those that most people rent.",
    )] = False


PRESETS = {
    "one": Preset(
        "One GPU", State(), "A 70B model in FP8 on one H200: half of the memory is weights, the load takes a sixth."
    ),
    "quantised": Preset(
        "Four bits", State(quant="int4", device="RTX 5090", tp=2, prompt=1024, clients=4),
        "Seventy billion parameters at four bits on two consumer cards; 16 bits would take five times as many.",
    ),
    "dense": Preset(
        "Four GPUs", State(tp=4, clients=64),
        "Four GPUs share every layer: less memory and time each, and messages between them.",
    ),
    "mla": Preset(
        "Experts", State(model="DeepSeek-V3", quant="fp8-block", tp=8, clients=64, engine="sglang"),
        "671 billion parameters, 37 of them used by a token; the latent cache takes 70 KB a token, on every GPU.",
    ),
    "window": Preset(
        "Long context", State(model="gpt-oss-120b", quant="published", device="H100 SXM", prompt=65536, clients=8),
        "Half of the layers see 128 tokens only: the cache grows half as fast.",
    ),
    "queue": Preset(
        "Queue", State(prompt=8192, output=1024, clients=64),
        "Room for a third of the clients: the others wait. That is a queue, not out of memory; the simulator plays it.",
    ),
    "none": Preset(
        "No room", State(quant="bf16", device="RTX 4090"),
        "It does not fit, and the picture says why: what is missing, and what would help.",
    ),
}


def plan(state: State) -> Plan:
    """The state's plan. ValueError where a setting contradicts another, with the fix."""
    shape = yours.shape(state.model)
    return Plan(
        shape, devices.table()[state.device], Layout(state.tp, state.pp, state.dp),
        shape.native if state.quant == "published" else state.quant, state.kv, state.prompt, state.output,
        state.clients, state.engine,
    )  # fmt: skip


def own(state: State) -> money.Own:
    return money.Own(capital=state.capital, usd_per_kwh=state.kwh)


def view(state: State, receipts: Mapping[str, Receipt]) -> Frame:
    """The Frame of a state. ValueError where a setting contradicts another, with the fix."""
    made = plan(state)
    answer = solve(made)
    beside = pictures.beside(made)
    return Frame(
        numbers.headline(answer),
        None,
        (
            *numbers.tiles(answer, state.terms, state.busy / 100),
            pictures.memory_bars(made, beside),
            pictures.time_bars(made, beside, state.tpot),
            tables.matrix(made, state.terms, state.busy / 100, state.every),
            *pictures.batching(made),
            *pictures.roofline(answer, receipts),
            tables.ways(answer, own(state), state.busy / 100),
            tables.speculation(made, yours.shape(state.draft), state.guesses, state.accept / 100),
            tables.norms(made),
        ),
    )


def rest(state: State, receipts: Mapping[str, Receipt]) -> tuple[Panel, ...]:
    """What takes longer: the queue in the simulator, the cheapest plans, the Pareto front, all models × devices."""
    made = plan(state)
    found = whole.candidates(made, state.terms, state.ttft, state.tpot / 1e3)
    return (
        tables.cheapest(found, state.ttft, state.tpot, state.busy / 100),
        tables.queued(solve(made)),
        whole.front(made),
        whole.heat(made, state.quant, state.terms, state.shade),
    )
