"""GGUF's block types without grids, decoded: blocks of bytes to weights, as ggml lays them out.

    legacy   one scale (and minimum) per 32: Q4_0, Q4_1, Q5_0, Q5_1, Q8_0
    K        256 weights in sub-blocks, whose scales are themselves of 4 to 8 bits: Q2_K … Q6_K
    ternary  −1, 0, 1: TQ1_0 keeps five in a byte (base 3, as a fraction), TQ2_0 four
    small    MXFP4, NVFP4, BF16;  IQ4_NL and IQ4_XS look codes up in sixteen levels

All arithmetic is in float32, one operation after the other as ggml does it, so that results are equal to the last bit.
Source: ggml's ggml-common.h and ggml-quants.c.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from servelab.quant.minifloat import FORMATS, Codes, Reals, magnitude, values

IQ4 = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.float32)
"""The sixteen levels of IQ4_NL and IQ4_XS, a constant of the format."""

FP4 = 2 * values("e2m1fn") + np.float32(0)
"""ggml keeps E2M1 doubled, as whole numbers, which have no −0, and halves the scale."""


UE4M3 = np.array([0 if code == 127 else magnitude(FORMATS["e4m3fn"], code & 127) for code in range(256)], np.float32)
"""NVFP4's scales: E4M3 whose sign is not looked at; 127 counts as 0 and 255 as 480, where others have NaN."""


class Type(NamedTuple):
    """Weights and bytes of a block, and how it is decoded: uint8[n, bytes] → float32[n, weights]."""

    weights: int
    bytes: int
    decode: Callable[[Codes], Reals]


def half(data: Codes) -> Reals:
    """fp16 in two bytes: float32[n, 1]."""
    out: Reals = np.ascontiguousarray(data).view(np.float16).astype(np.float32)
    return out


def bits(data: Codes, width: int) -> Codes:
    """Every `width` bits of each byte, lowest first: [n, 8/width, bytes], so that a shift is one run of weights."""
    shifts = np.arange(0, 8, width, dtype=np.uint8)[None, :, None]
    return (data[:, None, :] >> shifts) & np.uint8((1 << width) - 1)


def signed(data: Codes) -> Reals:
    return data.view(np.int8).astype(np.float32)


def scaled(scale: Reals, q: Reals) -> Reals:
    """[n, k] scales over [n, weights] in k equal runs."""
    out: Reals = scale[:, :, None] * q.reshape(*scale.shape, -1)
    return out.reshape(len(scale), -1)


def bf16(b: Codes) -> Reals:
    words = np.ascontiguousarray(b).view(np.uint16).astype(np.uint32) << 16
    return words.view(np.float32)


def q4_0(b: Codes) -> Reals:
    return half(b[:, :2]) * (bits(b[:, 2:], 4).reshape(-1, 32).astype(np.float32) - 8)


def q4_1(b: Codes) -> Reals:
    return half(b[:, :2]) * bits(b[:, 4:], 4).reshape(-1, 32).astype(np.float32) + half(b[:, 2:4])


def _fifth(high: Codes, low: Codes) -> Reals:
    """Four bits of each weight, and the fifth from 32 in a row."""
    top = np.unpackbits(np.ascontiguousarray(high), axis=1, bitorder="little")
    return (bits(low, 4).reshape(-1, 32) | (top << 4)).astype(np.float32)


def q5_0(b: Codes) -> Reals:
    return half(b[:, :2]) * (_fifth(b[:, 2:6], b[:, 6:]) - 16)


def q5_1(b: Codes) -> Reals:
    return half(b[:, :2]) * _fifth(b[:, 4:8], b[:, 8:]) + half(b[:, 2:4])


def q8_0(b: Codes) -> Reals:
    return half(b[:, :2]) * signed(b[:, 2:])


def q2_k(b: Codes) -> Reals:
    scales, d, least = b[:, :16], half(b[:, 80:82]), half(b[:, 82:84])
    q = bits(b[:, 16:80].reshape(-1, 32), 2).reshape(-1, 16, 16).astype(np.float32)
    scale, low = d * (scales & 15), least * (scales >> 4)
    return (scale[:, :, None] * q - low[:, :, None]).reshape(-1, 256)


def q3_k(b: Codes) -> Reals:
    low = bits(b[:, 32:96].reshape(-1, 32), 2).reshape(-1, 16, 16)
    high = bits(b[:, :32], 1).reshape(-1, 16, 16)
    packed = b[:, 96:108]
    four = bits(packed[:, :8], 4).reshape(-1, 16)
    two = bits(packed[:, 8:], 2).reshape(-1, 16)
    scale = half(b[:, 108:]) * ((four | (two << 4)).astype(np.float32) - 32)
    q = low.astype(np.float32) - ((high ^ 1) << 2)
    return scaled(scale, q)


def _six(packed: Codes) -> tuple[Codes, Codes]:
    """Eight scales and eight minima of six bits in twelve bytes."""
    a, b, c = packed[:, :4], packed[:, 4:8], packed[:, 8:]
    scales = np.concatenate([a & 63, (c & 15) | ((a >> 6) << 4)], axis=1)
    least = np.concatenate([b & 63, (c >> 4) | ((b >> 6) << 4)], axis=1)
    return scales, least


def _with_minima(b: Codes, q: Reals) -> Reals:
    scales, least = _six(b[:, 4:16])
    scale, low = half(b[:, :2]) * scales, half(b[:, 2:4]) * least
    return (scale[:, :, None] * q - low[:, :, None]).reshape(-1, 256)


def q4_k(b: Codes) -> Reals:
    return _with_minima(b, bits(b[:, 16:].reshape(-1, 32), 4).reshape(-1, 8, 32).astype(np.float32))


def q5_k(b: Codes) -> Reals:
    low = bits(b[:, 48:].reshape(-1, 32), 4).reshape(-1, 8, 32)
    high = bits(b[:, 16:48], 1)
    return _with_minima(b, (low | (high << 4)).astype(np.float32))


def q6_k(b: Codes) -> Reals:
    low = bits(b[:, :128].reshape(-1, 64), 4).reshape(-1, 16, 16)
    high = bits(b[:, 128:192].reshape(-1, 32), 2).reshape(-1, 16, 16)
    scale = half(b[:, 208:]) * signed(np.ascontiguousarray(b[:, 192:208]))
    q = (low | (high << 4)).astype(np.float32) - 32
    return scaled(scale, q)


def _trits(data: Codes, count: int) -> Codes:
    """`count` base-3 digits of each byte, which is ⌈256·n/243⌉: the highest first, [n, count, bytes]."""
    powers = np.array([1, 3, 9, 27, 81], np.uint8)[:count]
    lower = data[:, None, :] * powers[None, :, None]  # modulo 256
    return ((lower.astype(np.uint16) * 3) >> 8).astype(np.uint8)


def tq1_0(b: Codes) -> Reals:
    parts = (_trits(b[:, :32], 5), _trits(b[:, 32:48], 5), _trits(b[:, 48:52], 4))
    q = np.concatenate([part.reshape(len(b), -1) for part in parts], axis=1)
    return half(b[:, 52:]) * (q.astype(np.float32) - 1)


def tq2_0(b: Codes) -> Reals:
    q = bits(b[:, :64].reshape(-1, 32), 2).reshape(-1, 256)
    return half(b[:, 64:]) * (q.astype(np.float32) - 1)


def mxfp4(b: Codes) -> Reals:
    scale = np.ldexp(np.float32(0.5), b[:, :1].astype(np.int32) - 127).astype(np.float32)
    return scale * FP4[bits(b[:, 1:], 4).reshape(-1, 32)]


def nvfp4(b: Codes) -> Reals:
    """Four scales, then four runs of sixteen."""
    scale = UE4M3[b[:, :4]] * np.float32(0.5)
    q = FP4[bits(b[:, 4:].reshape(-1, 8), 4).reshape(-1, 4, 16)]
    return scaled(scale, q)


def iq4_nl(b: Codes) -> Reals:
    return half(b[:, :2]) * IQ4[bits(b[:, 2:], 4).reshape(-1, 32)]


def iq4_xs(b: Codes) -> Reals:
    high = np.ascontiguousarray(b[:, 2:4]).view(np.uint16) >> np.arange(0, 16, 2, dtype=np.uint16)
    low = np.stack([b[:, 4:8] & 15, b[:, 4:8] >> 4], axis=2).reshape(-1, 8)
    six = low | ((high & 3) << 4).astype(np.uint8)
    scale = half(b[:, :2]) * (six.astype(np.float32) - 32)
    q = IQ4[bits(b[:, 8:].reshape(-1, 16), 4).reshape(-1, 8, 32)]
    return scaled(scale, q)


TYPES: dict[str, Type] = {
    "BF16": Type(1, 2, bf16),
    "Q4_0": Type(32, 18, q4_0), "Q4_1": Type(32, 20, q4_1), "Q5_0": Type(32, 22, q5_0), "Q5_1": Type(32, 24, q5_1),
    "Q8_0": Type(32, 34, q8_0), "Q2_K": Type(256, 84, q2_k), "Q3_K": Type(256, 110, q3_k),
    "Q4_K": Type(256, 144, q4_k), "Q5_K": Type(256, 176, q5_k), "Q6_K": Type(256, 210, q6_k),
    "TQ1_0": Type(256, 54, tq1_0), "TQ2_0": Type(256, 66, tq2_0), "MXFP4": Type(32, 17, mxfp4),
    "NVFP4": Type(64, 36, nvfp4), "IQ4_NL": Type(32, 18, iq4_nl), "IQ4_XS": Type(256, 136, iq4_xs),
}  # fmt: skip
