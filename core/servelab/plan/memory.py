"""Memory of a plan: what each rank holds, how many sequences fit beside it, and why a plan does not fit.

    budget = memory · utilisation = weights + activations + runtime + KV blocks

Tensor parallelism splits heads, widths and the vocabulary (padded to 64, as vLLM does); KV heads are copied where there
are fewer of them than ranks, latents on every rank. Pipeline stages take whole layers; experts spread over all
ranks of tensor and data parallelism. Activations and runtime are a `model`, its constants below.
Sources: vLLM's gpu_worker and parallel layers, Shoeybi et al. 2019 (Megatron), DeepSeek-V2 2024.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from servelab.kv.limits import MAX_TOKENS, within
from servelab.kv.models import Model
from servelab.kv.sizes import kv_bytes
from servelab.plan.devices import GIB, Device
from servelab.plan.formats import Format, part_bytes
from servelab.plan.shapes import Shape

RUNTIME = 0.6 * GIB
"""CUDA context, libraries and graphs of one rank; an assumption, as is what communication adds."""

RUNTIME_PARALLEL = 0.9 * GIB
UTILISATION = 0.9
"""Share of a device's memory that an engine takes, as vLLM's gpu_memory_utilization."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How a replica is spread: `tp` ranks share each layer, `pp` stages share the layers, `dp` copies of the attention
    share the experts."""

    tp: int = 1
    pp: int = 1
    dp: int = 1

    def __post_init__(self) -> None:
        for name in ("tp", "pp", "dp"):
            within(name, getattr(self, name), 1, 1024, "give the ranks of one replica")

    @property
    def ranks(self) -> int:
        return self.tp * self.pp * self.dp

    def __str__(self) -> str:
        parts = [f"{name}{n}" for name, n in (("TP", self.tp), ("PP", self.pp), ("DP", self.dp)) if n > 1]
        return "·".join(parts) or "1 GPU"


@lru_cache(maxsize=4096)
def problem(shape: Shape, layout: Layout) -> str:
    """Why a model cannot be laid out so, in words; empty where it can."""
    if shape.heads % layout.tp:
        legal = ", ".join(str(n) for n in range(1, shape.heads + 1) if shape.heads % n == 0 and n <= 64)
        return f"{shape.heads} heads do not split by tp={layout.tp}; use one of {legal}"
    if not shape.latent and max(shape.kv_heads, layout.tp) % min(shape.kv_heads, layout.tp):
        return f"{shape.kv_heads} KV heads neither split by tp={layout.tp} nor are copied evenly; use a divisor"
    if layout.pp > shape.layers:
        return f"pp={layout.pp} is more than the model's {shape.layers} layers; use fewer stages"
    if layout.dp > 1 and not shape.experts:
        return f"dp={layout.dp} inside a replica is for mixtures of experts; run replicas of a dense model instead"
    return ""


@lru_cache(maxsize=4096)
def rank_params(shape: Shape, layout: Layout) -> Mapping[str, float]:
    """Parameters that the fullest rank holds, by part."""
    tp, stage = layout.tp, math.ceil(shape.layers / layout.pp) / shape.layers
    attending = shape.full + shape.windowed
    keys = 0 if shape.latent else attending * shape.hidden * 2 * shape.kv_heads * shape.head_dim
    more = keys * (max(1, tp / shape.kv_heads) - 1) / tp  # of copied KV heads
    out = {
        part: n * stage / (1 if part in ("router", "norms", "vision") else tp) for part, n in shape.params.items()
    }
    out["attention"] = ((shape.params.get("attention", 0) - shape.copied) / tp + shape.copied + more) * stage
    if shape.experts:
        spread = tp * layout.dp
        out["experts"] = shape.params["experts"] * stage * math.ceil(shape.experts / spread) / shape.experts
        if spread > shape.experts:
            out["experts"] = shape.params["experts"] * stage / spread
    padded = math.ceil(shape.vocab / 64) * 64 / shape.vocab / tp
    ends = {part: shape.params.get(part, 0) * padded for part in ("embedding", "head")}
    if layout.pp > 1:  # the first stage embeds, the last one has the output matrix
        larger = max(ends, key=lambda part: ends[part])
        ends = {part: n if part == larger else 0.0 for part, n in ends.items()}
    return out | ends


@lru_cache(maxsize=4096)
def rank_bytes(shape: Shape, layout: Layout, kind: Format) -> float:
    """Bytes of the weights of the fullest rank."""
    return sum(part_bytes(part, n, kind) for part, n in rank_params(shape, layout).items())


@lru_cache(maxsize=4096)
def rank_cache(shape: Shape, layout: Layout) -> Model | None:
    """The KV cache of a rank as servelab.kv counts it; None where no layer attends."""
    full, windowed = (math.ceil(n / layout.pp) for n in (shape.full, shape.windowed))
    if not full + windowed:
        return None
    heads = math.ceil(shape.kv_heads / layout.tp)
    return Model(
        shape.name, (), full + windowed, heads, shape.head_dim, max(1, shape.context), "", shape.value_dim,
        shape.latent, windowed, shape.window if windowed else 0,
    )  # fmt: skip


@lru_cache(maxsize=16384)
def sequence_bytes(shape: Shape, layout: Layout, kv: str, tokens: int) -> int:
    """Bytes that one sequence of `tokens` tokens keeps on a rank: KV cache and recurrent state."""
    cache = rank_cache(shape, layout)
    state = 2 * shape.state * math.ceil(shape.recurrent / layout.pp) // layout.tp
    return (kv_bytes(cache, kv, tokens) if cache else 0) + state


@lru_cache(maxsize=4096)
def activation_bytes(shape: Shape, layout: Layout, tokens: int, sequences: int) -> float:
    """Peak of a step of `tokens` tokens: a few hidden vectors, the widest block's, and 32-bit logits (a `model`)."""
    blocks = max(1, shape.layers - shape.expert_layers)
    width = (shape.params.get("mlp", 0) + shape.params.get("shared", 0)) / max(1, blocks) / (3 * shape.hidden)
    chosen = shape.active * shape.params.get("experts", 0) / max(1, shape.experts * shape.expert_layers)
    widest = max(width / layout.tp, chosen / (3 * shape.hidden) / layout.tp)
    return tokens * 2 * (6 * shape.hidden + 3 * widest) + min(sequences, tokens) * shape.vocab * 4 / layout.tp


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes of the fullest rank. `each` sequence takes `sequence`; `capacity` of them fit at once."""

    budget: float
    weights: float
    activations: float
    runtime: float
    sequence: int
    capacity: int
    batch: int
    reason: str

    @property
    def fits(self) -> bool:
        return not self.reason

    @property
    def kv(self) -> float:
        """Bytes of the sequences that run at once, of those asked for."""
        return min(self.batch, self.capacity) * self.sequence

    @property
    def free(self) -> float:
        return self.budget - self.weights - self.activations - self.runtime - self.kv


def memory(
    shape: Shape, device: Device, layout: Layout, kind: Format, kv: str = "bf16", tokens: int = 4096,
    longest: int | None = None, batch: int = 1, chunk: int = 8192, utilisation: float = UTILISATION,
) -> Memory:  # fmt: skip
    """What a rank holds with `batch` sequences of `tokens` tokens on average, prompts computed in chunks of `chunk`.

    A plan fits where one sequence of `longest` tokens does (default: `tokens`): more of them than `capacity` wait their
    turn. ValueError outside the limits.
    """
    within("tokens", tokens, 1, MAX_TOKENS, "count the prompt and the output")
    within("longest", tokens if longest is None else longest, tokens, MAX_TOKENS, "no sequence is below their average")
    within("batch", batch, 1, 10**6, "give the sequences at once")
    within("chunk", chunk, 1, 10**6, "give the tokens of a step")
    if not 0 < utilisation <= 1:
        raise ValueError(f"utilisation={utilisation!r} is outside 0 to 1 (0 excluded); 0.9 is a common choice")
    reason = problem(shape, layout)
    if reason:
        return Memory(device.memory * utilisation, 0, 0, 0, 0, 0, batch, reason)
    weights, activations = rank_bytes(shape, layout, kind), activation_bytes(shape, layout, chunk, batch)
    runtime = RUNTIME + (RUNTIME_PARALLEL if layout.ranks > 1 else 0)
    sequence, budget = sequence_bytes(shape, layout, kv, tokens), device.memory * utilisation
    room = budget - weights - activations - runtime
    whole = sequence_bytes(shape, layout, kv, longest or tokens)
    if room < whole:
        reason = _reason(budget, weights, room, whole)
        return Memory(budget, weights, activations, runtime, sequence, 0, batch, reason)
    capacity = int(room // max(1, sequence)) * layout.dp * layout.pp
    return Memory(budget, weights, activations, runtime, sequence, capacity, batch, "")


def _reason(budget: float, weights: float, room: float, sequence: int) -> str:
    gib = [round(x / GIB, 1) for x in (budget, weights, max(0.0, room), sequence)]
    if weights > budget:
        return f"weights take {gib[1]:,} GiB of {gib[0]:,}; use more ranks, fewer bits or a larger device"
    if room <= 0:
        return f"weights take {gib[1]:,} GiB of {gib[0]:,}, activations the rest; use more ranks or fewer bits"
    return f"one sequence takes {gib[3]:,} GiB, beside the weights are {gib[2]:,}; use fewer tokens or more ranks"
