"""In which order checkpoints keep 4-bit codes in 32-bit words: GPTQ, AWQ, and HQQ's three bits.

    GPTQ   qweight[in/8, out]: eight rows of one column in a word, first row lowest
           qzeros[groups, out/8]: eight columns; version 1 stores z − 1 (modulo 16), version 2 stores z
    AWQ    qweight[in, out/8]: eight columns of one row, in the order 0 2 4 6 1 3 5 7
    HQQ    three bits: ten codes in a word, the first in bits 27–29, each of a tenth of the rows

A version-1 zero point of 0 wraps to 15: who reads it as version 2 is one step off everywhere.
Sources: AutoGPTQ and GPTQModel (qlinear), AutoAWQ (packing_utils), HQQ (bitpack).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from servelab.kv.limits import within
from servelab.quant.minifloat import Codes

Words = NDArray[np.int32]
AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)
"""Column of a word's nibbles, lowest first."""

TENTHS = 10


def _words(codes: Codes, width: int) -> Words:
    """[…, k] codes → […] words, the first code lowest."""
    shifted = codes.astype(np.uint32) << (np.arange(codes.shape[-1], dtype=np.uint32) * np.uint32(width))
    words: Words = np.bitwise_or.reduce(shifted, axis=-1).view(np.int32)
    return words


def _codes(words: Words, width: int, count: int) -> Codes:
    """[…] words → […, count] codes."""
    shifted = words.view(np.uint32)[..., None] >> (np.arange(count, dtype=np.uint32) * np.uint32(width))
    return (shifted & np.uint32((1 << width) - 1)).astype(np.uint8)


def _checked(codes: Codes, axis: int, width: int, of: int) -> Codes:
    if codes.ndim != 2 or codes.shape[axis] % of:
        raise ValueError(f"codes of shape {codes.shape} do not fill words of {of}; pad axis {axis} of a matrix to that")
    if codes.size and int(codes.max()) >> width:
        raise ValueError(f"code {int(codes.max())} needs more than {width} bits; codes are 0…{(1 << width) - 1}")
    return codes


def pack_gptq(codes: Codes, width: int = 4) -> Words:
    """int32[in·width/32, out] of codes[in, out]."""
    within("width", width, 2, 8, "GPTQ's 2, 4 or 8 bits")
    each = 32 // width
    rows = _checked(codes, 0, width, each).reshape(-1, each, codes.shape[1])
    return _words(np.moveaxis(rows, 1, 2), width)


def unpack_gptq(words: Words, width: int = 4) -> Codes:
    """codes[in, out]."""
    within("width", width, 2, 8, "GPTQ's 2, 4 or 8 bits")
    return np.moveaxis(_codes(words, width, 32 // width), 2, 1).reshape(-1, words.shape[1])


def pack_zeros_gptq(zeros: Codes, version: int, width: int = 4) -> Words:
    """int32[groups, out·width/32] of zero points[groups, out]."""
    within("version", version, 1, 2, "GPTQ version 1 stores z − 1, version 2 stores z")
    each, mask = 32 // width, (1 << width) - 1
    stored = ((_checked(zeros, 1, width, each).astype(np.int16) - (version == 1)) & mask).astype(np.uint8)
    return _words(stored.reshape(len(zeros), -1, each), width)


def unpack_zeros_gptq(words: Words, version: int, width: int = 4) -> Codes:
    """zero points[groups, out]; a version-1 word gives z = stored + 1 modulo 2^width."""
    within("version", version, 1, 2, "GPTQ version 1 stores z − 1, version 2 stores z")
    stored = _codes(words, width, 32 // width).reshape(len(words), -1)
    return ((stored + (version == 1)) & ((1 << width) - 1)).astype(np.uint8)


def pack_awq(codes: Codes) -> Words:
    """int32[in, out/8] of codes[in, out]."""
    eights = _checked(codes, 1, 4, 8).reshape(len(codes), -1, 8)
    return _words(eights[..., AWQ_ORDER], 4)


def unpack_awq(words: Words) -> Codes:
    """codes[in, out]."""
    back = np.argsort(AWQ_ORDER)
    return _codes(words, 4, 8)[..., back].reshape(len(words), -1)


def pack_hqq3(codes: Codes) -> Words:
    """int32[⌈rows/10⌉, columns] of codes[rows, columns]; rows that are missing are zeros."""
    _checked(codes, 1, 3, 1)
    rows = -(-len(codes) // TENTHS)
    padded = np.zeros((rows * TENTHS, codes.shape[1]), np.uint8)
    padded[: len(codes)] = codes
    tenths = np.moveaxis(padded.reshape(TENTHS, rows, -1)[::-1], 0, 2)
    return _words(tenths, 3)


def unpack_hqq3(words: Words, rows: int) -> Codes:
    """codes[rows, columns]."""
    tenths = np.moveaxis(_codes(words, 3, TENTHS), 2, 0)[::-1]
    return tenths.reshape(-1, words.shape[1])[:rows]
