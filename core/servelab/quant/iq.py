"""GGUF's IQ types: groups of weights from a grid of good points, signs and scales beside them.

    IQ2_XXS, IQ2_XS, IQ2_S    eight weights from 256, 512 or 1,024 points     IQ3_XXS, IQ3_S    four from 256 or 512
    IQ1_S, IQ1_M              eight of −1, 0, 1 from 2,048 points, and a shift of an eighth

The grids are constants of the format and are read from the `gguf` package, where it is installed, not typed again.
Signs come in eights, of which seven are stored: their number is even. All arithmetic is in float32, in ggml's order.
Source: ggml's ggml-common.h and ggml-quants.c.
"""

from __future__ import annotations

import importlib
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from servelab.quant.kquants import Type, bits, half, scaled
from servelab.quant.minifloat import Codes, Reals

SEVEN = np.arange(128, dtype=np.uint8)
SIGNS = 1 - 2 * np.unpackbits(
    (SEVEN | ((np.unpackbits(SEVEN[:, None], axis=1).sum(axis=1) & 1) << 7).astype(np.uint8))[:, None],
    axis=1, bitorder="little",
).astype(np.float32)  # fmt: skip
"""float32[128, 8]: the eight signs of seven bits."""

DELTA = np.float32(0.125)


@lru_cache(maxsize=8)
def grid(name: str) -> Reals:
    """float32[points, 4 or 8]. ValueError where the gguf package is missing."""
    try:
        found = getattr(importlib.import_module("gguf.quants"), name)
    except ModuleNotFoundError:
        raise ValueError(f"{name} needs the grids of the gguf package; pip install gguf") from None
    found.init_grid()
    points: Reals = np.asarray(found.grid, np.float32).reshape(found.grid_shape)
    return points


def words(data: Codes, kind: type[np.unsignedinteger]) -> NDArray[np.uint32]:
    """Little-endian whole numbers of 2 or 4 bytes."""
    return np.ascontiguousarray(data).view(kind).astype(np.uint32)


def flags(data: Codes) -> Reals:
    """The sign of every bit, lowest first: [n, 8 · bytes]."""
    return 1 - 2 * np.unpackbits(np.ascontiguousarray(data), axis=1, bitorder="little").astype(np.float32)


def sevens(word: NDArray[np.uint32]) -> Reals:
    """Four times seven bits of each word as signs: [n, words, 4, 8]."""
    index = (word[:, :, None] >> np.array([0, 7, 14, 21], np.uint32)) & 127
    out: Reals = SIGNS[index]
    return out


def iq2_xxs(b: Codes) -> Reals:
    word = words(b[:, 2:], np.uint32).reshape(-1, 8, 2)
    index = np.ascontiguousarray(word[:, :, 0]).view(np.uint8).reshape(-1, 8, 4)
    scale = half(b[:, :2]) * (np.float32(0.5) + (word[:, :, 1] >> 28).astype(np.float32)) * np.float32(0.25)
    return scaled(scale, grid("IQ2_XXS")[index] * sevens(word[:, :, 1]))


def iq2_xs(b: Codes) -> Reals:
    word = words(b[:, 2:66], np.uint16)
    nibbles = np.stack([b[:, 66:] & 15, b[:, 66:] >> 4], axis=2).reshape(-1, 16)
    scale = half(b[:, :2]) * (np.float32(0.5) + nibbles.astype(np.float32)) * np.float32(0.25)
    return scaled(scale, grid("IQ2_XS")[word & 511] * SIGNS[word >> 9])


def iq2_s(b: Codes) -> Reals:
    low, signs, high = b[:, 2:34], flags(b[:, 34:66]), b[:, 66:74]
    nibbles = np.stack([b[:, 74:] & 15, b[:, 74:] >> 4], axis=2).reshape(-1, 16)
    scale = half(b[:, :2]) * (np.float32(0.5) + nibbles.astype(np.float32)) * np.float32(0.25)
    two = (high[:, :, None] >> np.array([0, 2, 4, 6], np.uint8)) & 3
    index = low.astype(np.uint16) | (two.reshape(-1, 32).astype(np.uint16) << 8)
    return scaled(scale, grid("IQ2_S")[index].reshape(-1, 256) * signs)


def iq3_xxs(b: Codes) -> Reals:
    word = words(b[:, 66:], np.uint32)
    scale = half(b[:, :2]) * (np.float32(0.5) + (word >> 28).astype(np.float32)) * np.float32(0.5)
    return scaled(scale, grid("IQ3_XXS")[b[:, 2:66]].reshape(-1, 256) * sevens(word).reshape(-1, 256))


def iq3_s(b: Codes) -> Reals:
    low, high, signs = b[:, 2:66], b[:, 66:74], flags(b[:, 74:106])
    nibbles = np.stack([b[:, 106:] & 15, b[:, 106:] >> 4], axis=2).reshape(-1, 8)
    scale = half(b[:, :2]) * (1 + 2 * nibbles).astype(np.float32)
    top = np.unpackbits(np.ascontiguousarray(high), axis=1, bitorder="little")
    index = low.astype(np.uint16) | (top.astype(np.uint16) << 8)
    return scaled(scale, grid("IQ3_S")[index].reshape(-1, 256) * signs)


def iq1_s(b: Codes) -> Reals:
    high = words(b[:, 34:], np.uint16)
    scale = half(b[:, :2]) * (2 * ((high >> 12) & 7) + 1).astype(np.float32)
    shift = np.where(high & 0x8000, -DELTA, DELTA).astype(np.float32)
    three = (high[:, :, None] >> np.array([0, 3, 6, 9], np.uint32)) & 7
    index = b[:, 2:34] | (three.reshape(-1, 32) << 8)
    return scaled(scale, grid("IQ1_S")[index].reshape(-1, 8, 32) + shift[:, :, None])


def iq1_m(b: Codes) -> Reals:
    low, high, scales = b[:, :32], bits_of_nibbles(b[:, 32:48]), words(b[:, 48:], np.uint16)
    tops = (scales >> 12) << np.array([0, 4, 8, 12], np.uint32)
    d = np.bitwise_or.reduce(tops, axis=1).astype(np.uint16).view(np.float16).astype(np.float32)
    three = (scales[:, :, None] >> np.array([0, 3, 6, 9], np.uint32)) & 7
    scale = d[:, None] * (2 * three.reshape(-1, 16) + 1).astype(np.float32)
    index = low | ((high & 7).astype(np.uint16) << 8)
    shift = np.where(high & 8, -DELTA, DELTA).astype(np.float32)
    return scaled(scale, grid("IQ1_M")[index] + shift[:, :, None])


def bits_of_nibbles(data: Codes) -> Codes:
    """Both halves of each byte, the low one first: [n, 2 · bytes]."""
    return np.swapaxes(bits(data, 4), 1, 2).reshape(len(data), -1)


TYPES: dict[str, Type] = {
    "IQ2_XXS": Type(256, 66, iq2_xxs), "IQ2_XS": Type(256, 74, iq2_xs), "IQ2_S": Type(256, 82, iq2_s),
    "IQ3_XXS": Type(256, 98, iq3_xxs), "IQ3_S": Type(256, 110, iq3_s), "IQ1_S": Type(256, 50, iq1_s),
    "IQ1_M": Type(256, 56, iq1_m),
}  # fmt: skip
