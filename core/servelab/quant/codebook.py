"""Sixteen levels and a scale per group: NF4, and a codebook of ours.

    NF4      the largest |x| of a group becomes ±1; levels are quantiles of a Gaussian (Dettmers et al. 2023)
    lloyd4   the largest |x| becomes +1, whatever its sign, which the fp16 scale carries: no level is spent on −1

lloyd4's levels minimise the squared error of Gaussian groups of 64 scaled so (Lloyd 1982; `train` finds them again).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from servelab.kv.limits import entry, within
from servelab.quant.minifloat import Codes, Reals
from servelab.quant.packing import pack, unpack
from servelab.quant.tensor import Quantised, finite, groups

NF4 = np.array([
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
    -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
    0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
], np.float32)  # fmt: skip
"""A constant of the format, as bitsandbytes has it."""


def train(group: int, samples: int, seed: int, rounds: int = 1000) -> Reals:
    """Sixteen levels, the last of them 1, for Gaussian groups scaled by their signed largest element."""
    within("group", group, 2, 1 << 16, "give the weights that share a scale")
    x = np.random.default_rng(seed).standard_normal((samples // group, group)).astype(np.float32)
    scale = _signed(x)
    weight = np.square(scale)[:, None].repeat(group, 1).reshape(-1).astype(np.float64)
    y = (x / scale[:, None]).reshape(-1).astype(np.float64)
    order = np.argsort(y)
    y, weight = y[order], weight[order]
    total, moment = np.concatenate([[0], np.cumsum(weight)]), np.concatenate([[0], np.cumsum(weight * y)])
    levels = np.linspace(-0.9, 1, 16)
    for _ in range(rounds):
        cuts = np.concatenate([[0], np.searchsorted(y, (levels[1:] + levels[:-1]) / 2), [len(y)]])
        mass = np.diff(total[cuts])
        levels = np.where(mass > 0, np.diff(moment[cuts]) / np.where(mass > 0, mass, 1), levels)
        levels[-1] = 1
    return levels.astype(np.float32)


LLOYD4 = np.array([
    -0.860206, -0.675517, -0.531454, -0.410220, -0.302621, -0.203551, -0.109444, -0.017908,
    0.073093, 0.165968, 0.262605, 0.366028, 0.480452, 0.612601, 0.775041, 1.0,
], np.float32)  # fmt: skip
"""train(64, 8_000_000, seed=0), six digits."""

LEVELS = {"nf4": NF4, "lloyd4": LLOYD4}
SPREAD = np.linspace(0.8, 1.25, 46)
"""Multiples of the usual scale that a search tries."""


def encode(x: Reals, name: str, group: int = 64, search: bool = False) -> Quantised:
    """float32 of any shape, finite. A group of zeros has scale 0. ValueError for an unknown codebook or NaN."""
    levels = entry("codebook", name, LEVELS)
    within("group", group, 2, 1 << 16, "give the weights that share a scale")
    blocks = groups(finite(x), group)
    most = _signed(blocks) if name == "lloyd4" else np.abs(blocks).max(axis=1, initial=0)
    scale = most.astype(np.float16)
    codes = _codes(blocks, scale, levels)
    if search:
        scale, codes = _searched(blocks, scale, codes, levels)
    return Quantised({"codes": pack(codes, 4), "scales": scale}, x.shape)


def decode(q: Quantised, name: str, group: int = 64) -> Reals:
    """float32 of the tensor's shape."""
    levels, scale = entry("codebook", name, LEVELS), q.parts["scales"].astype(np.float32)
    codes = unpack(q.parts["codes"], 4, len(scale) * group)
    return (levels[codes].reshape(-1, group) * scale[:, None]).reshape(-1)[: q.count].reshape(q.shape)


def _codes(blocks: Reals, scale: NDArray[np.float16], levels: Reals) -> Codes:
    s = scale.astype(np.float32)
    s[s == 0] = np.inf
    return nearest(blocks / s[:, None], levels)


def _searched(
    blocks: Reals, scale: NDArray[np.float16], codes: Codes, levels: Reals
) -> tuple[NDArray[np.float16], Codes]:
    """Per group, of SPREAD times the usual scale and the least-squares scale of each, the one with the least error."""

    def error(scale: NDArray[np.float16], codes: Codes) -> NDArray[np.float64]:
        decoded = levels[codes] * scale.astype(np.float32)[:, None]
        squares: NDArray[np.float64] = np.square(blocks - decoded, dtype=np.float64).sum(axis=1)
        return squares

    usual, least = scale, error(scale, codes)
    for factor in SPREAD:
        tried = (usual * factor).astype(np.float16)
        found = _codes(blocks, tried, levels)
        for _ in range(2):
            cost = error(tried, found)
            better = cost < least
            scale, codes = np.where(better, tried, scale), np.where(better[:, None], found, codes)
            least = np.minimum(least, cost)
            y = levels[found].astype(np.float64)
            norm = np.square(y).sum(axis=1)
            best = np.divide((blocks * y).sum(axis=1), norm, out=np.zeros_like(norm), where=norm > 0)
            tried = best.astype(np.float16)
            found = _codes(blocks, tried, levels)
    return scale, codes


def _signed(blocks: Reals) -> Reals:
    """The element of each group with the largest size, its sign kept."""
    at = np.abs(blocks).argmax(axis=1)
    return np.take_along_axis(blocks, at[:, None], axis=1)[:, 0]


def nearest(y: Reals, levels: Reals) -> Codes:
    """The code of the nearest level, the lower one in the middle."""
    return np.searchsorted((levels[1:] + levels[:-1]) / 2, y, side="left").astype(np.uint8)
