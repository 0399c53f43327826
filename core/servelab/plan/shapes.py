"""A model's shape: what of it decides memory and speed.

All sizes are in elements, all counts in layers; a Shape says nothing about number formats, which servelab.plan.formats
does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from servelab.kv.limits import MAX_TOKENS
from servelab.plan import config
from servelab.plan.config import Count, Fields


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """A decoder. `full`, `windowed` and `recurrent` count its layers by what they remember: all, `window` tokens, or
    `state` elements a sequence.

    `latent` is (latent, rotary key) elements per token and layer where heads share them. `experts` of each of
    `expert_layers`, `active` of them per token. `params` by part, `used` those that a token passes through.
    """

    name: str
    hidden: int
    vocab: int
    heads: int
    kv_heads: int
    head_dim: int
    context: int
    full: int
    params: Mapping[str, int]
    value_dim: int = 0
    windowed: int = 0
    window: int = 0
    recurrent: int = 0
    state: int = 0
    latent: tuple[int, int] | None = None
    experts: int = 0
    active: int = 0
    expert_layers: int = 0
    copied: int = 0
    """Attention weights that every rank of a tensor-parallel group holds whole: down-projections, indexers."""
    layers: int = 0
    """Blocks with a norm and a residual of their own, as `num_hidden_layers` counts them."""
    native: str = "bf16"
    """The format its weights are published in."""
    used: Mapping[str, int] = field(default_factory=dict)

    @property
    def total(self) -> int:
        """Parameters."""
        return sum(self.params.values())

    @property
    def active_params(self) -> int:
        """Parameters that a token passes through, its embedding's included."""
        return sum(self.used.values())

    @property
    def kind(self) -> str:
        """"experts" of a mixture, else "dense": what engines' coefficients are told apart by."""
        return "experts" if self.experts else "dense"


def decoder(c: Fields, layers: Count, *, norms: int = 2, **more: Any) -> Shape:
    """A decoder whose layers hold `layers` in all, with `norms` vectors per layer beside what they count themselves."""
    hidden, vocab, depth = c.whole("hidden_size"), c.whole("vocab_size"), c.whole("num_hidden_layers")
    heads = c.whole("num_attention_heads")
    tied = c.flag("tie_word_embeddings", more.pop("tied", False))
    count = layers + Counter(embedding=vocab * hidden, norms=hidden * (norms * depth + 1))
    if not tied:
        count += Counter(head=vocab * hidden)
    given: dict[str, Any] = {
        "name": "", "hidden": hidden, "vocab": vocab, "heads": heads, "params": count, "full": depth, "layers": depth,
        "kv_heads": c.whole("num_key_value_heads", heads), "head_dim": head_dim(c),
        "context": min(MAX_TOKENS, c.whole("max_position_embeddings", 4096)),
    }  # fmt: skip
    return Shape(**(given | more))


def head_dim(c: Fields) -> int:
    """Elements of a head, stated or as they follow. ValueError where heads do not divide what they share."""
    hidden, heads = c.whole("hidden_size"), c.whole("num_attention_heads")
    kv_heads = c.whole("num_key_value_heads", heads)
    if heads % kv_heads:
        raise ValueError(
            f"config.json: num_key_value_heads={kv_heads} does not divide num_attention_heads={heads}; correct one"
        )
    if not c.has("head_dim") and hidden % heads:
        raise ValueError(f"config.json: hidden_size={hidden} does not split into {heads} heads; add head_dim")
    return c.whole("head_dim", hidden // heads)


def attention(c: Fields, **more: Any) -> Count:
    """A layer's grouped-query attention as the common fields give it."""
    heads = c.whole("num_attention_heads")
    kv_heads = c.whole("num_key_value_heads", heads)
    return config.grouped(c.whole("hidden_size"), heads, kv_heads, head_dim(c), **more)


def windows(c: Fields, otherwise: int) -> dict[str, Any]:
    """full, windowed and window of a model whose `layer_types` lists them, or which has `otherwise` windowed layers."""
    depth, kinds = c.whole("num_hidden_layers"), c.listed("layer_types")
    count = sum("sliding" in str(kind) or "chunked" in str(kind) for kind in kinds) if kinds else otherwise
    if not count or not (c.has("sliding_window") or c.has("attention_chunk_size")):
        return {}
    span = c.whole("sliding_window") if c.has("sliding_window") else c.whole("attention_chunk_size")
    return {"full": depth - count, "windowed": count, "window": span}

