"""A quantised tensor: named arrays of packed codes and scales, and how many bytes they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from servelab.quant.minifloat import Reals


@dataclass(frozen=True, slots=True)
class Quantised:
    """`parts`: arrays as they would lie in a file; `shape` of the tensor that they stand for."""

    parts: Mapping[str, NDArray[Any]]
    shape: tuple[int, ...]

    @property
    def count(self) -> int:
        """Weights."""
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def ledger(self) -> dict[str, int]:
        """Bytes by part."""
        return {name: int(part.nbytes) for name, part in self.parts.items()}

    @property
    def bytes(self) -> int:
        return sum(self.ledger.values())

    @property
    def bpw(self) -> float:
        """Bits per weight, scales and padding included; 0 of an empty tensor."""
        return 8 * self.bytes / self.count if self.count else 0.0


def finite(x: Reals) -> Reals:
    """x as contiguous float32. ValueError for another type, or naming the first NaN or infinity: integers have none."""
    if x.dtype != np.float32:
        raise ValueError(f"x.dtype={x.dtype} is not float32; convert it first, so that nothing is rounded twice unseen")
    bad = np.flatnonzero(~np.isfinite(x))
    if bad.size:
        where = tuple(int(i) for i in np.unravel_index(bad[0], x.shape))
        raise ValueError(f"x{list(where)}={x[where]} is no finite number, and {bad.size} in all; replace them first")
    return np.ascontiguousarray(x)


def groups(x: Reals, size: int) -> Reals:
    """float32[n, size]: the weights in order, the last group filled with zeros."""
    flat = x.reshape(-1)
    short = -flat.size % size
    return (np.concatenate([flat, np.zeros(short, np.float32)]) if short else flat).reshape(-1, size)
