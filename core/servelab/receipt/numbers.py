"""When two numbers are the same number: reals to 12 significant digits, counts exactly.

Two C libraries may differ in a real's last bits; a count has no last bits. |a − b| ≤ ½·10^(e−11) with e the decimal
exponent of the larger one, so that no pair straddles a rounding edge.
"""

from __future__ import annotations

import math

Number = int | float

DIGITS = 12


def same(committed: Number, recomputed: Number) -> bool:
    """Equal exactly when `recomputed` is a count (int), else to 12 significant digits."""
    if committed == recomputed:
        return True
    if isinstance(recomputed, int):
        return False
    exponent = math.floor(math.log10(max(abs(committed), abs(recomputed))))
    return abs(committed - recomputed) <= 0.5 * 10.0 ** (exponent - DIGITS + 1)


def real(x: float) -> float:
    """`x` at 15 significant digits, the most that a receipt states; ValueError for NaN and infinities."""
    if not math.isfinite(x):
        raise ValueError(f"a receipt holds finite numbers only, got {x}; leave the metric out and say why in losses")
    return float(f"{x:.15g}")
