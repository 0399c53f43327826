"""What a step costs on a GPU: fitted to a real engine where one was measured, else from its data sheet.

`FITTED` holds fits of `servelab sched calibrate` to recordings of vLLM 0.24 (generate/runs). Everything else is a
roofline, a `model`: matrix work at PEAK_SHARE of the tensor cores' dense bf16 peak, bytes at BANDWIDTH_SHARE of the
memory's, launch and host times of a common engine (LAUNCH). A step is as long as the slower of the two.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from servelab.kv.limits import entry
from servelab.kv.models import CARDS, MODELS, Model
from servelab.kv.sizes import kv_bytes, weight_bytes
from servelab.sched.cost import Cost
from servelab.sched.request import PS


class Device(NamedTuple):
    """Memory bandwidth in GB/s and dense bf16 (or fp16) peak in TFLOP/s, as published."""

    bandwidth: float
    tflops: float


DEVICES: dict[str, Device] = {
    "T4": Device(320, 65),
    "A10G": Device(600, 70),
    "L4": Device(300, 121),
    "RTX 4090": Device(1008, 165.2),
    "RTX 5090": Device(1792, 209.5),
    "L40S": Device(864, 362),
    "H100 80GB": Device(3350, 989.4),
    "A100 80GB": Device(2039, 312),
    "H200": Device(4800, 989.4),
    "B200": Device(7700, 2250),
    "MI300X": Device(5300, 1307.4),
}
"""The cards of servelab.kv, with what decides their speed (data sheets)."""

QUERY_HEADS = {"Qwen2.5-0.5B": 14, "Qwen2.5-7B": 28, "Qwen3-8B": 32, "Llama-3.1-8B": 32, "Llama-3.1-70B": 64}
"""Models whose speed is known here: dense ones, with the query heads of each layer (their published configurations)."""

PEAK_SHARE, BANDWIDTH_SHARE = 0.6, 0.85
"""Shares of a data sheet's peak that good kernels reach: assumptions of the roofline."""

_US = PS // 10**6
LAUNCH = Cost(
    host=300 * _US, seq=8 * _US, new=150 * _US, logit=2 * _US, graph=700 * _US, mixed=3_000 * _US, eager=8_000 * _US,
    overlap=True,
)  # fmt: skip
"""The engine's own part of a roofline, an assumption too: an asynchronous engine on a fast CPU."""

FITTED: dict[tuple[str, str], Cost] = {
    ("H200", "Qwen2.5-7B"): Cost(
        host=1_347_000_000, seq=45_200_000, new=854_800_000, fixed=2_230_000_000, pieces=224_400_000,
        weights=2_419_000_000, token=17_480_000, tile=1, context=21_480, work=1_914, logit=11_140_000,
        graph=555_000_000, mixed=536_800_000, eager=10_920_000_000, overlap=True,
    ),
}  # fmt: skip
"""By card and model: bf16, vLLM 0.24.0 with asynchronous scheduling; ps."""


def cost(card: str, model: str) -> tuple[Cost, str]:
    """The cost of a step and where it is from, "fitted" or "roofline". ValueError for an unknown name."""
    entry("card", card, DEVICES)
    entry("model", model, QUERY_HEADS)
    if (card, model) in FITTED:
        return FITTED[card, model], "fitted"
    return roofline(DEVICES[card], MODELS[model], QUERY_HEADS[model]), "roofline"


def roofline(device: Device, model: Model, heads: int) -> Cost:
    """Two operations per parameter and token, four per query–key pair, head and element; weights and KV read once."""
    ops = device.tflops * 1e12 * PEAK_SHARE
    read = device.bandwidth * 1e9 * BANDWIDTH_SHARE
    return replace(
        LAUNCH,
        weights=round(PS * weight_bytes(model, "bf16") / read),
        token=round(PS * 2 * model.params / ops),
        context=round(PS * kv_bytes(model, "bf16", 1) / read),
        work=round(PS * 4 * model.layers * heads * model.head_dim / ops),
    )


DRAFT = "Qwen2.5-0.5B"
"""The model that guesses for another, where nothing else is said."""


def draft(card: str) -> int:
    """What one pass of DRAFT takes on a card, ps: reading its weights, a roofline; its small KV cache is left out."""
    return roofline(entry("card", card, DEVICES), MODELS[DRAFT], QUERY_HEADS[DRAFT]).weights


def link(model: str, gigabytes_per_s: float) -> int:
    """What it takes to move one prompt token's KV cache, ps."""
    return round(PS * kv_bytes(MODELS[model], "bf16", 1) / (gigabytes_per_s * 1e9))


def pool(card: str, model: str, block_size: int = 16, share: float = 0.9) -> int:
    """KV blocks that fit beside the weights in a share of the card's memory, at least 1. ValueError when none does."""
    room = CARDS[card].mib * 2**20 * share - weight_bytes(MODELS[model], "bf16")
    blocks = int(room / (kv_bytes(MODELS[model], "bf16", 1) * block_size))
    if blocks < 1:
        full = f"{model} does not fit on {card}: its weights take all of {share:.0%} of the memory"
        raise ValueError(f"{full}; use a larger GPU or a smaller model")
    return blocks
