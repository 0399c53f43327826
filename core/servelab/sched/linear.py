"""A small dense linear system, in plain Python."""

from __future__ import annotations

import math
from collections.abc import Sequence


def solve(left: Sequence[Sequence[float]], right: Sequence[float], damping: float) -> list[float]:
    """(A + damping·diag(A) + ε)·x = b by elimination with pivoting."""
    n = len(right)
    rows = [[*row, b] for row, b in zip(left, right, strict=True)]
    for i, row in enumerate(rows):
        row[i] += damping * row[i] + 1e-9
    for i in range(n):
        pivot = max(range(i, n), key=lambda k: abs(rows[k][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for k in range(i + 1, n):
            factor = rows[k][i] / rows[i][i]
            rows[k] = [x - factor * y for x, y in zip(rows[k], rows[i], strict=True)]
    out = [0.0] * n
    for i in reversed(range(n)):
        out[i] = (rows[i][n] - math.fsum(rows[i][k] * out[k] for k in range(i + 1, n))) / rows[i][i]
    return out

