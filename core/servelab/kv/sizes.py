"""KV bytes: what one token's keys and values cost, and how many conversations fit on a card.

    bytes(n) = v · (full layers · n + window layers · min(n, window))

v is the bytes that one layer keeps for one token: 2·kv_heads vectors of head_dim elements (grouped-query attention), or
one latent and one rotary key shared by all heads (MLA: 512 + 64 elements).

A *scale group* is the set of elements that share one scale: here always one stored vector, the key or the value of one
KV head at one token (head_dim elements); in MLA the latent and the rotary key are one group each. INT8 adds an fp16
scale to a group, INT4 an fp16 scale and a one-byte zero point: at head_dim 64 a vector of 128 bytes (fp16) takes 66 and
35. FP8 uses one scale per tensor and layer, which is not counted.

Sources: Ainslie et al. 2023 (grouped-query attention), DeepSeek-V2 2024 (the latent cache), Jiang et al. 2023 (the
rolling window of Mistral 7B); models and cards name theirs in servelab.kv.models.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

from servelab.kv.limits import MAX_BLOCK, MAX_TOKENS, entry, within
from servelab.kv.models import CARDS as CARDS
from servelab.kv.models import MODELS as MODELS
from servelab.kv.models import Card, Model


@dataclass(frozen=True, slots=True)
class Dtype:
    """A KV format: `bits` per element and `extra` bytes per scale group."""

    bits: int
    extra: int
    scale: str

    def group_bytes(self, elements: int) -> int:
        """Bytes of one scale group, whole bytes."""
        return -(-elements * self.bits // 8) + self.extra


DTYPES = {
    "bf16": Dtype(16, 0, "no scale"),
    "fp16": Dtype(16, 0, "no scale"),
    "fp8": Dtype(8, 0, "one scale per tensor and layer, not counted"),
    "int8": Dtype(8, 2, "fp16 scale per key or value vector"),
    "int4": Dtype(4, 3, "fp16 scale and 1-byte zero point per key or value vector"),
}

WEIGHT_BITS = {
    "bf16": Fraction(16),
    "fp16": Fraction(16),
    "fp8": Fraction(8),  # tile or channel scales (below 0.1 %) are not counted, here and for int8
    "int8": Fraction(8),
    "int4": 4 + Fraction(16, 128),  # one fp16 scale per 128 weights
    "mxfp4": 4 + Fraction(8, 32),  # OCP MX: one E8M0 byte per 32 weights
}


def layer_bytes(model: Model, dtype: str) -> int:
    """Bytes that one layer keeps for one token."""
    kind = entry("dtype", dtype, DTYPES)
    return sum(kind.group_bytes(elements) for elements in model.vectors)


def unwindowed(model: Model) -> Model:
    """The same model in an engine that keeps every token in every layer (no sliding-window cache)."""
    return replace(model, window_layers=0, window=0)


def expanded(model: Model) -> Model:
    """The same model in an engine that stores per-head keys and values instead of the MLA latent."""
    return replace(model, latent=None)


def kv_bytes(model: Model, dtype: str, tokens: int) -> int:
    """Bytes of a context of `tokens` tokens, no block rounding."""
    n = within("tokens", tokens, 1, MAX_TOKENS, "count the prompt and the output")
    slots = (model.layers - model.window_layers) * n + model.window_layers * min(n, model.window)
    return layer_bytes(model, dtype) * slots


def blocks(model: Model, tokens: int, block_size: int) -> tuple[int, int]:
    """(blocks of a full layer, blocks of a window layer) for `tokens` tokens.

    A window layer holds every block that the last `window` tokens touch, one more than ⌈window/B⌉ when they straddle.
    """
    n = within("tokens", tokens, 1, MAX_TOKENS, "count the prompt and the output")
    b = within("block_size", block_size, 1, MAX_BLOCK, "16 is a common choice")
    full = -(-n // b)
    return full, full - _first_block(model, n, b) if model.window_layers else 0


def paged_bytes(model: Model, dtype: str, tokens: int, block_size: int) -> int:
    """Bytes of the whole blocks that hold `tokens` tokens."""
    full, window = blocks(model, tokens, block_size)
    return _bytes(model, dtype, block_size, full, window)


@lru_cache(maxsize=64)
def weight_bytes(model: Model, dtype: str | None = None) -> int:
    """Bytes of the weights as published, or with every parameter stored as `dtype`."""
    parts: Iterable[tuple[str, int]] = model.weights if dtype is None else [(dtype, model.params)]
    bits = sum(entry("weights_dtype", name, WEIGHT_BITS) * count for name, count in parts)
    return math.ceil(bits / 8)


@dataclass(frozen=True, slots=True)
class Scheme:
    """One way of storing conversations: `each` bytes per conversation, `once` bytes for all of them."""

    each: int
    once: int
    conversations: int


@dataclass(frozen=True, slots=True)
class Fit:
    """The `room` is the `budget` (card bytes · utilisation) less the `weights`, bytes; the model fits when room > 0.

    In a real engine activations and graphs come out of the room too: these counts are upper bounds.
    """

    budget: int
    weights: int
    schemes: dict[str, Scheme]

    @property
    def room(self) -> int:
        return self.budget - self.weights


def conversations_that_fit(
    model: Model,
    card: Card,
    dtype: str,
    tokens_per_conversation: int,
    shared_prefix: int = 0,
    block_size: int = 16,
    utilisation: float = 0.9,
    weights_dtype: str | None = None,
    max_len: int | None = None,
) -> Fit:
    """How many conversations of `tokens_per_conversation` tokens, `shared_prefix` of them common to all, a card holds.

    preallocated: each reserves the blocks of `max_len` tokens (default: the model's context) for its whole life.
    paged: each holds the blocks it touches. shared: as paged, with the prefix's whole blocks stored once.
    """
    n = within("tokens_per_conversation", tokens_per_conversation, 1, MAX_TOKENS, "count the prompt and the output")
    within("shared_prefix", shared_prefix, 0, n - 1, "a conversation must add at least one token of its own")
    longest = within("max_len", model.context if max_len is None else max_len, n, MAX_TOKENS, "reserve n or more")
    if not 0 < utilisation <= 1:
        raise ValueError(f"utilisation={utilisation!r} is outside 0 to 1 (0 excluded); 0.9 is a common choice")
    size = _footprints(model, dtype, n, shared_prefix, block_size, longest)
    budget, weights = math.floor(card.mib * 2**20 * utilisation), weight_bytes(model, weights_dtype)
    room = budget - weights
    schemes = {name: Scheme(each, once, max(0, room - once) // each) for name, (each, once) in size.items()}
    return Fit(budget, weights, schemes)


@lru_cache(maxsize=64)
def _footprints(
    model: Model, dtype: str, n: int, shared_prefix: int, block_size: int, longest: int
) -> dict[str, tuple[int, int]]:
    """Scheme → (bytes of each conversation, bytes once for all): the same on every card."""
    full, window = blocks(model, n, block_size)
    common = shared_prefix // block_size
    common_window = max(0, common - _first_block(model, n, block_size)) if model.window_layers else 0
    return {
        "preallocated": (paged_bytes(model, dtype, longest, block_size), 0),
        "paged": (_bytes(model, dtype, block_size, full, window), 0),
        "shared": (
            _bytes(model, dtype, block_size, full - common, window - common_window),
            _bytes(model, dtype, block_size, common, common_window),
        ),
    }


def _first_block(model: Model, tokens: int, block_size: int) -> int:
    return (tokens - min(tokens, model.window)) // block_size


def _bytes(model: Model, dtype: str, block_size: int, full: int, window: int) -> int:
    count = (model.layers - model.window_layers) * full + model.window_layers * window
    return layer_bytes(model, dtype) * block_size * count
