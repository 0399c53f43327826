"""A Hugging Face `config.json`, read field by field, and the weights of common layers, counted.

A count is a Counter of parameters by part of the model (PARTS): the parts are what formats and ranks treat differently.
Sources: the model classes of transformers 5 by `model_type`; DeepSeek-V2 2024 (latent attention), Dao & Gu 2024
(Mamba-2), Yang et al. 2024 (gated delta nets).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, TypeAlias

from servelab.kv.limits import short

PARTS = (
    "embedding", "head", "attention", "mlp", "experts", "shared", "router", "recurrent", "norms", "vision",
)  # fmt: skip
"""Where a parameter belongs: `head` the output matrix where it is not the embedding's, `shared` experts that every
token uses, `recurrent` linear attention and state spaces, `norms` everything that is no matrix."""

Count: TypeAlias = "Counter[str]"

LARGEST = 10**9


class Fields:
    """One JSON object of a configuration; every error names the field."""

    def __init__(self, values: Mapping[str, Any], where: str = "config.json") -> None:
        if not isinstance(values, Mapping):
            raise ValueError(f"{where} holds {short(values)}; it has to be a JSON object")
        self.values, self.where = values, where

    def whole(self, name: str, default: int | None = None, least: int = 1) -> int:
        """A whole number of at least `least`. ValueError where it is missing without a default, or no such number."""
        value = self.values.get(name)
        if value is None:
            if default is None:
                raise ValueError(f"{self.where} has no {name}; add it as the model's repository has it")
            return default
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= LARGEST:
            raise ValueError(f"{self.where}: {name}={short(value)} is outside {least} to {LARGEST:,}; correct it")
        return value

    def flag(self, name: str, default: bool) -> bool:
        return bool(self._of(name, bool, default, "neither true nor false"))

    def text(self, name: str, default: str = "") -> str:
        return str(self._of(name, str, default, "no text"))

    def listed(self, name: str) -> list[Any]:
        return list(self._of(name, list, [], "no list"))

    def _of(self, name: str, kind: type, default: Any, problem: str) -> Any:
        value = self.values.get(name)
        if value is None:
            return default
        if not isinstance(value, kind):
            raise ValueError(f"{self.where}: {name}={short(value)} is {problem}; correct it")
        return value

    def has(self, name: str) -> bool:
        return self.values.get(name) is not None

    def inner(self, name: str) -> Fields:
        return Fields(self.values[name], f"{self.where}: {name}")


def times(count: Count, layers: int) -> Count:
    """A layer's count, of so many layers."""
    return Counter({part: n * layers for part, n in count.items()})


def grouped(
    hidden: int, heads: int, kv_heads: int, dim: int, *, bias: bool = False, out_bias: bool = False,
    qk_norm: int = 0, gate: bool = False, sinks: bool = False,
) -> Count:  # fmt: skip
    """Grouped-query attention: `qk_norm` elements of query and key norms, `gate` as many gates as queries."""
    queries, keys = heads * dim * (2 if gate else 1), 2 * kv_heads * dim
    small = (queries + keys if bias else 0) + (hidden if out_bias else 0) + qk_norm + (heads if sinks else 0)
    return Counter(attention=hidden * (queries + keys + heads * dim), norms=small)


def latent(hidden: int, heads: int, q_rank: int, kv_rank: int, nope: int, rope: int, value: int) -> Count:
    """Multi-head latent attention; `q_rank` 0 leaves the queries uncompressed."""
    head = heads * (nope + rope)
    queries = hidden * q_rank + q_rank * head if q_rank else hidden * head
    keys = hidden * (kv_rank + rope) + kv_rank * heads * (nope + value)
    return Counter(attention=queries + keys + heads * value * hidden, norms=q_rank + kv_rank)


def indexer(hidden: int, q_rank: int, heads: int, dim: int) -> Count:
    """The lightning indexer of DeepSeek's sparse attention, one per layer."""
    return Counter(attention=q_rank * heads * dim + hidden * (dim + heads), norms=2 * dim)


def dense(hidden: int, width: int, *, gated: bool = True, bias: bool = False, part: str = "mlp") -> Count:
    """A feed-forward block."""
    matrices = 3 if gated else 2
    return Counter({part: matrices * hidden * width, "norms": (matrices - 1) * width + hidden if bias else 0})


def experts(
    hidden: int, count: int, width: int, *, gated: bool = True, bias: bool = False, correction: bool = False
) -> Count:
    """Routed experts and their router; `correction` is its bias per expert, `bias` every expert's own and the router's.

    The biases count as the experts' where they are chosen with them.
    """
    one = dense(hidden, width, gated=gated, bias=bias)
    small = count if correction or bias else 0
    return Counter(experts=count * (one["mlp"] + one["norms"]), router=hidden * count, norms=small)


def delta_net(hidden: int, key_heads: int, value_heads: int, key_dim: int, value_dim: int, kernel: int) -> Count:
    """A gated delta net: two gates per value head, a convolution over queries, keys and values."""
    keys, values = key_heads * key_dim, value_heads * value_dim
    matrices = hidden * (2 * keys + 2 * values + 2 * value_heads) + values * hidden
    return Counter(recurrent=matrices, norms=(2 * keys + values) * kernel + 2 * value_heads + value_dim)


def mamba2(hidden: int, heads: int, dim: int, groups: int, state: int, kernel: int) -> Count:
    inner, mixed = heads * dim, heads * dim + 2 * groups * state
    matrices = hidden * (inner + mixed + heads) + inner * hidden
    return Counter(recurrent=matrices, norms=mixed * (kernel + 1) + 3 * heads + inner)


def mamba1(hidden: int, inner: int, rank: int, state: int, kernel: int) -> Count:
    """As in Jamba, which normalises the step and both state projections."""
    matrices = hidden * 2 * inner + inner * (rank + 2 * state) + rank * inner + inner * hidden
    return Counter(recurrent=matrices, norms=inner * (kernel + 3 + state) + rank + 2 * state)


def siglip(hidden: int, layers: int, width: int, patch: int, image: int) -> Count:
    """A SigLIP vision tower."""
    embedded = 3 * patch * patch * hidden + hidden + (image // patch) ** 2 * hidden
    layer = 4 * (hidden * hidden + hidden) + 2 * hidden * width + width + hidden + 4 * hidden
    return Counter(vision=embedded + layers * layer + 2 * hidden)
