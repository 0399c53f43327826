"""How far a decoded tensor is from the original.

    SQNR = 10·log10(Σx² / Σe²) dB          a rate R of bits a weight cannot beat 6.02·R dB on iid Gaussian weights
"""

from __future__ import annotations

import math

import numpy as np

from servelab.quant.minifloat import Reals

DB_PER_BIT = 20 * math.log10(2)


def sqnr(x: Reals, decoded: Reals) -> float:
    """dB, in double precision; infinite where nothing is lost, NaN where there is no signal either."""
    signal = float(np.sum(np.square(x, dtype=np.float64)))
    noise = float(np.sum(np.square(x.astype(np.float64) - decoded)))
    if noise == 0:
        return math.inf if signal else math.nan
    return 10 * math.log10(signal / noise) if signal else -math.inf


def shannon(bits: float) -> float:
    """dB: the most that `bits` a weight can give on iid Gaussian weights (Shannon 1959)."""
    return DB_PER_BIT * bits
