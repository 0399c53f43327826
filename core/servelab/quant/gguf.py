"""GGUF's 24 quantised types: what a block is, and its weights, equal to ggml's to the last bit."""

from __future__ import annotations

import numpy as np

from servelab.kv.limits import entry
from servelab.quant import iq, kquants
from servelab.quant.kquants import Type
from servelab.quant.minifloat import Codes, Reals

TYPES: dict[str, Type] = kquants.TYPES | iq.TYPES


def decode(data: Codes, name: str) -> Reals:
    """float32 of the weights in uint8 bytes.

    ValueError for an unknown type, a cut block, or an IQ type where the gguf package, which has its grid, is missing.
    """
    kind = entry("type", name, TYPES)
    if data.size % kind.bytes:
        raise ValueError(f"{data.size} bytes are no whole blocks of {name}, which has {kind.bytes} bytes each")
    with np.errstate(invalid="ignore", over="ignore"):  # scales of random bytes may be NaN or infinite
        return kind.decode(data.reshape(-1, kind.bytes)).reshape(-1)


def bpw(name: str) -> float:
    """Bits per weight of a type."""
    kind = entry("type", name, TYPES)
    return 8 * kind.bytes / kind.weights
