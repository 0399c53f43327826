"""Small floats: FP8, FP6, FP4 and the power-of-two scale E8M0, encoded and decoded through tables.

A float32's upper 16 bits hold its sign, exponent and 7 bits of mantissa. If any lower bit is set, the lowest of those 7
is set too: rounding to odd. Rounding that once more, to at most 5 bits and ties to even, gives what rounding the
float32 itself gives (Boldo & Melquiond 2008), so one table of 65,536 codes a format encodes every float32 exactly.

    fn     no infinity, NaN is all ones, what is too large becomes NaN      (E4M3, OCP FP8)
    fnuz   no infinity and no −0, whose code is NaN                         (Noune et al. 2022)
    ieee   infinities and NaNs                                              (E5M2)
    finite no infinity and no NaN: what is too large becomes the largest    (FP6 and FP4, OCP MX)
    scale  powers of two, no sign, no zero; NaN is all ones                 (E8M0, OCP MX)

Sources: OCP 8-bit Floating Point Specification 1.0, OCP Microscaling Formats 1.0; checked against ml_dtypes on every
float32 (generate/fp8_exact.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from servelab.kv.limits import entry

Codes = NDArray[np.uint8]
Reals = NDArray[np.float32]
Special = Literal["fn", "fnuz", "ieee", "finite", "scale"]


@dataclass(frozen=True, slots=True)
class Mini:
    """`exponent` and `mantissa` bits beside the sign (a scale has none), and what its special codes mean."""

    exponent: int
    mantissa: int
    bias: int
    special: Special

    @property
    def bits(self) -> int:
        return self.exponent + self.mantissa + (self.special != "scale")

    @property
    def sign(self) -> int:
        """The sign's bit; of a scale none."""
        return 0 if self.special == "scale" else 1 << (self.bits - 1)

    @property
    def largest(self) -> int:
        """The code of the largest finite number."""
        top = (1 << (self.exponent + self.mantissa)) - 1
        taken = {"fn": 1, "scale": 1, "ieee": 1 << self.mantissa}
        return top - taken.get(self.special, 0)

    @property
    def nan(self) -> int | None:
        """The code of a positive NaN; None where there is none."""
        if self.special == "finite":
            return None
        if self.special == "fnuz":
            return self.sign
        if self.special == "ieee":
            return self.largest + 1 + (1 << (self.mantissa - 1))  # quiet
        return (1 << (self.exponent + self.mantissa)) - 1


FORMATS: dict[str, Mini] = {
    "e4m3fn": Mini(4, 3, 7, "fn"),
    "e4m3fnuz": Mini(4, 3, 8, "fnuz"),
    "e5m2": Mini(5, 2, 15, "ieee"),
    "e5m2fnuz": Mini(5, 2, 16, "fnuz"),
    "e8m0fnu": Mini(8, 0, 127, "scale"),
    "e2m3fn": Mini(2, 3, 1, "finite"),
    "e3m2fn": Mini(3, 2, 3, "finite"),
    "e2m1fn": Mini(2, 1, 1, "finite"),
}


def magnitude(kind: Mini, code: int) -> float:
    """The number of a code without its sign, special codes read as if they were numbers."""
    field, fraction = code >> kind.mantissa, code & ((1 << kind.mantissa) - 1)
    if kind.special == "scale":
        return math.ldexp(1.0, code - kind.bias)
    if field == 0:
        return math.ldexp(fraction, 1 - kind.bias - kind.mantissa)
    return math.ldexp((1 << kind.mantissa) + fraction, field - kind.bias - kind.mantissa)


@lru_cache(maxsize=32)
def values(name: str) -> Reals:
    """float32[2^bits]: the number of every code."""
    kind = entry("format", name, FORMATS)
    out = np.empty(1 << kind.bits, np.float32)
    for code in range(len(out)):
        low = code & ~kind.sign
        number = magnitude(kind, low)
        if low > kind.largest:
            number = math.inf if kind.special == "ieee" and low == kind.largest + 1 else math.nan
        out[code] = -number if code & kind.sign else number
    if kind.special == "fnuz":
        out[kind.sign] = math.nan
    return out


@lru_cache(maxsize=32)
def table(name: str, saturate: bool = False) -> Codes:
    """uint8[65,536]: the code of every float32 rounded to odd at 16 bits.

    Ties go to even significands; what is too large becomes the largest number with `saturate` or where the format has
    nothing else, infinity or NaN otherwise. A NaN stays one; in a finite format it becomes a zero of the other sign,
    as ml_dtypes has it.
    """
    kind = entry("format", name, FORMATS)
    upper = np.arange(1 << 15, dtype=np.uint32)  # without the sign
    with np.errstate(invalid="ignore"):  # signalling NaNs among them
        numbers = (upper << 16).view(np.float32).astype(np.float64)
    grid = np.array([magnitude(kind, code) for code in range(kind.largest + 2)])  # and the one that is too large
    below = np.clip(np.searchsorted(grid, numbers, side="right") - 1, 0, kind.largest)
    low, high = numbers - grid[below], grid[below + 1] - numbers
    odd = (below % 2 == 1) | (kind.special == "scale")  # a scale's significand is always 1: ties go up
    codes = (below + ((high < low) | ((high == low) & odd))).astype(np.int64)
    codes[numbers > grid[-1]] = kind.largest + 1
    if kind.special == "scale":
        codes[numbers == 0] = 255
    over = codes > kind.largest if kind.special != "scale" else (codes > kind.largest) & (numbers != 0)
    if saturate or kind.special == "finite":
        codes[over] = kind.largest
    elif kind.special != "scale":
        codes[over] = kind.largest + 1 if kind.special in ("fn", "ieee") else kind.sign
    negative = codes | kind.sign
    if kind.special == "fnuz":
        negative[codes == 0] = 0
    if kind.special == "scale":
        negative = np.full_like(codes, 255)
    both = np.concatenate([codes, negative])
    nan = np.isnan(numbers)
    for half, sign in ((0, 0), (1, kind.sign)):
        both[half * len(upper) :][: len(upper)][nan] = kind.sign ^ sign if kind.nan is None else kind.nan | sign
    return both.astype(np.uint8)


def encode(x: Reals, name: str, saturate: bool = False) -> Codes:
    """uint8 of x's shape: the code of each float32, see `table`. Values of other types are refused."""
    if x.dtype != np.float32:
        raise ValueError(f"x.dtype={x.dtype} is not float32; convert it first, so that nothing is rounded twice unseen")
    bits = np.ascontiguousarray(x).view(np.uint32)
    key = (bits >> 16) | ((bits & 0xFFFF) != 0)
    codes: Codes = table(name, saturate)[key]
    return codes.reshape(x.shape)


def decode(codes: Codes, name: str) -> Reals:
    """float32 of the codes' shape. ValueError for a code that the format is too short for."""
    found = values(name)
    if codes.size and int(codes.max()) >= len(found):
        raise ValueError(f"code {int(codes.max())} is outside 0…{len(found) - 1} of {name}; mask the unused bits first")
    return found[codes]
