"""Speed of a plan: ideal times from the device's rates, real ones through an engine's shares of them.

`work` counts what a decode step and a prompt have to read, multiply and send, in seconds at the data sheet's rates. An
Engine says what share of each rate it reaches and what it adds. A step of B sequences takes

    step + layer·L + routed·Lr + (weights + experts·touched)/read + cache/kv + decode/multiply
         + sent/link + 2L·collective

with touched = 1 − (1 − k/E)^(spread·B), the experts that B tokens with k of E each reach. In a closed loop of B clients
each output token also waits for its share of the other clients' prompts:

    TPOT = step(B) + mix·(B − 1)·prompt/O          TTFT = first + step(B) + prefill·prompt·(1 + wave·(B − 1)) + queue

More clients than the KV cache holds wait: queue = (C/B − 1)·O·TPOT, by Little's law. Every line works on numbers and on
numpy arrays alike, which is how the coefficients are fitted (generate/plan_fit.py).
Sources: Williams et al. 2009 (roofline), Yuan et al. 2024 (LLM roofline), Little 1961.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import lru_cache
from typing import Any

from servelab.kv.sizes import layer_bytes
from servelab.plan.devices import Device
from servelab.plan.formats import Format, part_bytes
from servelab.plan.memory import Layout, rank_cache, rank_params
from servelab.plan.shapes import Shape

Number = Any
"""A float, or a numpy array of them where many plans are computed at once."""


@dataclass(frozen=True, slots=True)
class Engine:
    """What an engine makes of a device: shares of rates (1 is the data sheet) and seconds that it adds."""

    read: Number = 0.85
    """Share of the memory bandwidth at which weights come."""
    kv: Number = 0.8
    """The same of the KV cache, which may be stored in fewer bits than assumed."""
    multiply: Number = 0.6
    """Share of the peak in decode steps."""
    prefill: Number = 0.5
    """Share of the peak in prompts."""
    attend: Number = 0.3
    """Share of the bf16 peak in a prompt's attention."""
    link: Number = 0.5
    collective: Number = 8e-6
    """Seconds of each of a layer's two collectives."""
    step: Number = 4e-4
    layer: Number = 3e-5
    routed: Number = 2e-5
    """Seconds more in a layer with experts."""
    spread: Number = 0.8
    """1 where every token chooses its experts independently, less where they agree."""
    mix: Number = 0.8
    """Share of the other clients' prompts that falls into a client's decode."""
    first: Number = 0.03
    wave: Number = 0.06
    """Share of the other clients' prompts that a prompt waits for."""
    lead: Number = 0.8
    """What a prompt takes in its own time to the first token, of its time in a full chunk."""


NAMES = tuple(f.name for f in fields(Engine))


@dataclass(frozen=True, slots=True)
class Work:
    """One plan's demands, in seconds at full rates where no unit is given; decode's are of one step."""

    layers: Number
    routed: Number
    """Layers with experts."""
    weights: Number
    experts: Number
    missed: Number
    """Share of the experts that one token does not reach."""
    tokens: Number
    """Tokens of a step that choose among the same experts."""
    cache: Number
    decode: Number
    sent: Number
    collectives: Number
    prefill: Number
    attend: Number
    prompt_sent: Number
    batch: Number
    """Sequences at once in each copy of the attention."""
    waiting: Number
    """Clients that wait, per one that runs."""
    output: Number


def work(
    shape: Shape, device: Device, layout: Layout, kind: Format, kv: str, prompt: int, output: int, clients: float,
    capacity: int,
) -> Work:  # fmt: skip
    """Demands of `clients` with so many prompt and output tokens each, of whom `capacity` run at once."""
    params = rank_params(shape, layout)
    running = min(clients, capacity)
    batch = max(1.0, running / layout.dp / layout.pp)  # of the sequences in one stage
    tokens = batch * layout.dp
    multiplied = 2 * sum(params.get(part, 0.0) for part in ("attention", "mlp", "shared", "recurrent", "router"))
    share = shape.active / shape.experts if shape.experts else 0.0
    chosen = 2 * params.get("experts", 0.0) * share * layout.dp
    head = params["head"] if shape.params.get("head") else params["embedding"]
    units, half = device.rate(kind.units), device.rate("bf16")
    dense, experts = _read(shape, layout, kind)
    others = (layout.tp * layout.dp - 1) / (layout.tp * layout.dp)
    # Two sums a layer, each two ways, of vectors of 2 bytes.
    vectors = 8 * shape.layers / layout.pp * shape.hidden * others / device.one_way
    wide = shape.head_dim + (shape.value_dim or shape.head_dim)
    reach = shape.full * prompt**2 / 2 + shape.windowed * prompt * min(prompt / 2, shape.window)
    return Work(
        layers=shape.layers, routed=shape.expert_layers,
        weights=dense * layout.pp / device.bandwidth / 1e9, experts=experts * layout.pp / device.bandwidth / 1e9,
        missed=1 - share, tokens=tokens,
        cache=batch * layout.pp * _cached(shape, layout, kv, prompt + output // 2) / device.bandwidth / 1e9,
        decode=batch * layout.pp * ((multiplied + chosen) / units + 2 * head / half),
        sent=batch * layout.pp * vectors, collectives=2 * shape.layers if layout.tp * layout.dp > 1 else 0,
        prefill=prompt * layout.pp * (multiplied + chosen) / units,
        attend=2 * shape.heads * wide * reach / layout.tp / half,
        prompt_sent=prompt * layout.pp * vectors, batch=running / layout.dp, waiting=clients / running - 1,
        output=output,
    )  # fmt: skip


@lru_cache(maxsize=4096)
def _read(shape: Shape, layout: Layout, kind: Format) -> tuple[float, float]:
    """Bytes of weights that a step reads on a rank: of all but the experts, and of all experts."""
    params = rank_params(shape, layout)
    dense = sum(
        part_bytes(part, n, kind) for part, n in params.items()
        if part not in ("experts", "vision") and not (part == "embedding" and shape.params.get("head"))
    )  # fmt: skip
    return dense, part_bytes("experts", params.get("experts", 0.0), kind)


def _cached(shape: Shape, layout: Layout, kv: str, context: int) -> float:
    """Bytes that a step reads of one sequence on a rank, its state read and written."""
    cache = rank_cache(shape, layout)
    state = 2 * 2 * shape.state * shape.recurrent / layout.tp / layout.pp
    if cache is None:
        return state
    full = (cache.layers - cache.window_layers) * context + cache.window_layers * min(context, cache.window)
    return layer_bytes(cache, kv) * full + state


def touched(w: Work, e: Engine) -> Number:
    """Share of the experts that a step's tokens reach."""
    return 1 - w.missed ** (e.spread * w.tokens)


def parts(w: Work, e: Engine) -> dict[str, Number]:
    """Seconds of a decode step by cause."""
    return {
        "weights": (w.weights + w.experts * touched(w, e)) / e.read,
        "KV cache": w.cache / e.kv,
        "arithmetic": w.decode / e.multiply,
        "interconnect": w.sent / e.link + w.collectives * e.collective,
        "launch": e.step + e.layer * w.layers + e.routed * w.routed,
    }


def prompt_time(w: Work, e: Engine) -> Number:
    """Seconds that a prompt takes of the device."""
    return w.prefill / e.prefill + w.attend / e.attend + w.prompt_sent / e.link


def latencies(w: Work, e: Engine) -> tuple[Number, Number]:
    """(TTFT, TPOT) in seconds."""
    step, prompt = sum(parts(w, e).values()), prompt_time(w, e)
    tpot = step + e.mix * (w.batch - 1) * (w.batch > 1) * prompt / w.output
    ttft = e.first + step + e.lead * prompt * (1 + e.wave * (w.batch - 1) * (w.batch > 1))
    return ttft + w.waiting * w.output * tpot, tpot


REGIMES = {
    "weights": "bandwidth", "KV cache": "bandwidth", "arithmetic": "compute", "interconnect": "interconnect",
    "launch": "launch",
}  # fmt: skip


def regime(w: Work, e: Engine) -> str:
    """What most of a decode step is spent on: bandwidth, compute, launch or interconnect."""
    spent: dict[str, float] = {}
    for part, seconds in parts(w, e).items():
        spent[REGIMES[part]] = spent.get(REGIMES[part], 0.0) + seconds
    return max(spent, key=lambda name: spent[name])
