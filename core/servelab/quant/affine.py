"""Integers with a scale per group, and a zero point where they are asymmetric.

    symmetric    x ≈ s·q,        s = max|x| / (2^(b−1) − 1)                 q from −(2^(b−1) − 1), stored with an offset
    asymmetric   x ≈ s·(q − z),  s = (max − min) / (2^b − 1), 0 inside      z a whole number, so that 0 stays 0

Scales are fp16, as AWQ and GPTQ store them; the codes are rounded with the scale as stored. A group of zeros has scale
0 and decodes to zeros. For uniform steps the error's power is s²/12.
"""

from __future__ import annotations

import numpy as np

from servelab.kv.limits import within
from servelab.quant.minifloat import Reals
from servelab.quant.packing import pack, unpack
from servelab.quant.tensor import Quantised, finite, groups

LARGEST = float(np.finfo(np.float16).max)


def encode(x: Reals, bits: int, group: int = 128, symmetric: bool = True) -> Quantised:
    """float32 of any shape. ValueError for bits or groups outside their limits and for what is not finite."""
    within("bits", bits, 2, 8, "integers of 2 to 8 bits")
    within("group", group, 1, 1 << 20, "give the weights that share a scale")
    blocks = groups(finite(x), group)
    if symmetric:
        top = (1 << (bits - 1)) - 1
        scale = _half(np.abs(blocks).max(axis=1, initial=0) / np.float32(top))
        codes = _rounded(blocks, scale, -top, top) + np.float32(top)
        zeros = {}
    else:
        low, high = (np.minimum(blocks.min(axis=1, initial=0), 0), np.maximum(blocks.max(axis=1, initial=0), 0))
        top = (1 << bits) - 1
        scale = _half((high - low) / np.float32(top))
        zero = _rounded(-low[:, None], scale, 0, top)
        codes = np.clip(_rounded(blocks, scale, -top, top) + zero, 0, top)
        zeros = {"zeros": pack(zero.astype(np.uint8), bits)}
    return Quantised({"codes": pack(codes.astype(np.uint8), bits), "scales": scale, **zeros}, x.shape)


def decode(q: Quantised, bits: int, group: int = 128, symmetric: bool = True) -> Reals:
    """float32 of the tensor's shape."""
    scale = q.parts["scales"].astype(np.float32)[:, None]
    count = len(scale) * group
    codes = unpack(q.parts["codes"], bits, count).reshape(-1, group).astype(np.float32)
    if symmetric:
        codes -= (1 << (bits - 1)) - 1
    else:
        codes -= unpack(q.parts["zeros"], bits, len(scale))[:, None]
    codes *= scale
    return codes.reshape(-1)[: q.count].reshape(q.shape)


def _half(scale: Reals) -> np.ndarray:
    """As fp16; ValueError where fp16 ends."""
    if scale.size and float(scale.max()) > LARGEST:
        raise ValueError(f"a scale of {float(scale.max()):g} is beyond fp16's {LARGEST:g}; divide the tensor first")
    return scale.astype(np.float16)


def _rounded(blocks: Reals, scale: np.ndarray, low: int, high: int) -> Reals:
    """blocks / scale, to the nearest whole number (ties to even) from low to high; 0 where the scale is 0."""
    s = scale.astype(np.float32)
    s[s == 0] = np.inf
    out = blocks / s[:, None]
    np.rint(out, out=out)
    return np.clip(out, low, high, out=out)
