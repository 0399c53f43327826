"""Codes of a few bits in whole bytes: the first code in the lowest bits, as GGUF, compressed-tensors and MX have it."""

from __future__ import annotations

import numpy as np

from servelab.kv.limits import within
from servelab.quant.minifloat import Codes


def packed_bytes(count: int, bits: int) -> int:
    """Bytes of `count` codes."""
    return -(-count * bits // 8)


def pack(codes: Codes, bits: int) -> Codes:
    """uint8[⌈n·bits/8⌉] of uint8[n]. ValueError for a code that needs more bits."""
    within("bits", bits, 1, 8, "give the width of a code")
    if codes.size and int(codes.max()) >> bits:
        raise ValueError(f"code {int(codes.max())} needs more than {bits} bits; codes are 0…{(1 << bits) - 1}")
    flat = codes.reshape(-1)
    if bits == 8:
        return flat.copy()
    if bits == 4:
        even = np.append(flat, np.uint8(0)) if flat.size % 2 else flat
        both: Codes = np.bitwise_or(even[::2], even[1::2] << 4, dtype=np.uint8)
        return both
    return np.packbits(np.unpackbits(flat[:, None], axis=1, count=bits, bitorder="little"), bitorder="little")


def unpack(data: Codes, bits: int, count: int) -> Codes:
    """uint8[count], the inverse of `pack`. ValueError where the bytes are not as many as that takes."""
    within("bits", bits, 1, 8, "give the width of a code")
    if data.size != packed_bytes(count, bits):
        raise ValueError(
            f"{data.size} bytes do not hold {count} codes of {bits} bits; that takes {packed_bytes(count, bits)}"
        )
    if bits == 8:
        return data.copy()
    if bits == 4:
        codes = np.empty(2 * data.size, np.uint8)
        codes[::2], codes[1::2] = data & 15, data >> 4
        return codes[:count]
    single = np.unpackbits(data, bitorder="little", count=count * bits).reshape(count, bits)
    return np.packbits(single, axis=1, bitorder="little").reshape(-1)
