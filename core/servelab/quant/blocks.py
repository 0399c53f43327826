"""Small floats under a shared scale: the OCP microscaling formats, and NVFP4.

    MX      a power of two per 32: 2^(⌊log2 max|x|⌋ − e), e the exponent of the element's largest number
    NVFP4   E2M1 under an E4M3 scale per 16, and one float32 for the tensor: max|x| / (448·6)

What is too large for an element after scaling becomes its largest number (the MX specification asks for that). With
`search` NVFP4 tries every scale code near the usual one in each block and keeps the one with the least squared error.
Sources: OCP Microscaling Formats 1.0; NVIDIA, "Pretraining LLMs with NVFP4", arXiv:2509.25149.
"""

from __future__ import annotations

import numpy as np

from servelab.kv.limits import entry
from servelab.quant.minifloat import FORMATS, Codes, Reals, decode, encode, values
from servelab.quant.packing import pack, unpack
from servelab.quant.tensor import Quantised, finite, groups

MX, NV = 32, 16
ELEMENTS = {"mxfp8": "e4m3fn", "mxfp8-e5m2": "e5m2", "mxfp6": "e2m3fn", "mxfp6-e3m2": "e3m2fn", "mxfp4": "e2m1fn"}
NEAR = 12
"""Scale codes that a search tries on each side."""


def largest(element: str) -> float:
    """The largest number of a small float."""
    return float(values(element)[FORMATS[element].largest])


def encode_mx(x: Reals, name: str) -> Quantised:
    """float32 of any shape, finite. ValueError for an unknown format or what is not finite."""
    element = entry("format", name, ELEMENTS)
    blocks = groups(finite(x), MX)
    most = np.abs(blocks).max(axis=1, initial=0)
    exponent = np.frexp(most)[1] - 1 - (np.frexp(largest(element))[1] - 1)
    scale = np.clip(np.where(most > 0, exponent, -127), -127, 127)
    scaled = np.ldexp(blocks, -scale[:, None])
    codes = encode(scaled, element, saturate=True)
    return Quantised(
        {"codes": pack(codes, FORMATS[element].bits), "scales": (scale + 127).astype(np.uint8)}, x.shape
    )  # fmt: skip


def decode_mx(q: Quantised, name: str) -> Reals:
    """float32 of the tensor's shape."""
    element = entry("format", name, ELEMENTS)
    scale = decode(q.parts["scales"], "e8m0fnu")
    codes = unpack(q.parts["codes"], FORMATS[element].bits, len(scale) * MX)
    return _whole(decode(codes, element).reshape(-1, MX) * scale[:, None], q)


def encode_nv(x: Reals, search: bool = False) -> Quantised:
    """NVFP4 of float32 of any shape, finite."""
    blocks = groups(finite(x), NV)
    most = np.abs(blocks).max(axis=1, initial=0)
    tensor = np.float32(most.max(initial=0) / (largest("e4m3fn") * largest("e2m1fn"))) or np.float32(1)
    scales = encode(most / np.float32(largest("e2m1fn")) / tensor, "e4m3fn", saturate=True)
    if search:
        scales = _searched(blocks, scales, tensor)
    codes = _elements(blocks, scales, tensor)
    return Quantised({"codes": pack(codes, 4), "scales": scales, "tensor": np.array([tensor])}, x.shape)


def decode_nv(q: Quantised) -> Reals:
    """float32 of the tensor's shape."""
    scale = decode(q.parts["scales"], "e4m3fn") * q.parts["tensor"]
    codes = unpack(q.parts["codes"], 4, len(scale) * NV)
    return _whole(decode(codes, "e2m1fn").reshape(-1, NV) * scale[:, None], q)


def _elements(blocks: Reals, scales: Codes, tensor: np.float32) -> Codes:
    scale = decode(scales, "e4m3fn") * tensor
    scale[scale == 0] = np.inf
    return encode(blocks / scale[:, None], "e2m1fn", saturate=True)


def _searched(blocks: Reals, scales: Codes, tensor: np.float32) -> Codes:
    """Per block the scale code with the least squared error, the usual one where several have it."""
    best, least = scales.copy(), np.full(len(blocks), np.inf)
    top = FORMATS["e4m3fn"].largest
    for step in sorted(range(-NEAR, NEAR + 1), key=abs):
        tried = np.clip(scales.astype(np.int16) + step, 0, top).astype(np.uint8)
        decoded = decode(_elements(blocks, tried, tensor), "e2m1fn") * (decode(tried, "e4m3fn") * tensor)[:, None]
        error = np.square(blocks - decoded, dtype=np.float64).sum(axis=1)
        better = error < least
        best[better], least[better] = tried[better], error[better]
    return best


def _whole(blocks: Reals, q: Quantised) -> Reals:
    return blocks.reshape(-1)[: q.count].reshape(q.shape)
