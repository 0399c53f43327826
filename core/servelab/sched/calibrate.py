"""Fit a Cost to measured steps: a small robust least squares on relative errors, over bounded coefficients.

A residual is ln(predicted / measured). Steps of one kind (launch regime, sequences and prompt tokens to a factor of √2)
share a bin, and a bin of n steps weighs √n, so that ten thousand equal decodes do not drown the few long prompts. Huber
weights keep outliers (a garbage collection, another process) from pulling. Levenberg–Marquardt (Marquardt 1963) with
numerical derivatives, projected on the bounds; the tile is tried from a short list.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, NamedTuple

from servelab.sched.cost import Cost
from servelab.sched.linear import solve
from servelab.sched.request import PS
from servelab.sched.runs import Step

Span = tuple[tuple[Step, ...], float]
"""Consecutive steps and the seconds that they took together."""

Row = tuple[tuple[Step, ...], float, float]
"""A span and its weight."""


class Coefficient(NamedTuple):
    """`unit` for people, `scale` ps in it, where a fit starts and what it may not exceed, in that unit."""

    unit: str
    scale: int
    start: float
    most: float


COEFFICIENTS: dict[str, Coefficient] = {
    "host": Coefficient("µs per step", 10**6, 300, 20_000),
    "seq": Coefficient("µs per sequence", 10**6, 8, 500),
    "new": Coefficient("µs per new request", 10**6, 150, 5_000),
    "fixed": Coefficient("µs per step", 10**6, 500, 50_000),
    "weights": Coefficient("µs per step", 10**6, 3_000, 200_000),
    "token": Coefficient("ns per token", 10**3, 8_000, 10**6),
    "context": Coefficient("ps per context token", 1, 8_000, 10**6),
    "work": Coefficient("ps per query–key pair", 1, 300, 10**5),
    "logit": Coefficient("µs per sampled token", 10**6, 1, 5),
    "graph": Coefficient("µs per step", 10**6, 1_000, 50_000),
    "mixed": Coefficient("µs per step", 10**6, 3_000, 100_000),
    "eager": Coefficient("µs per step", 10**6, 8_000, 200_000),
}
"""What is fitted, in Cost's own names; the least of each is 0 (1 ps for launch times)."""

TILES = (1, 16, 64)
BIN, HUBER = 60, 0.3
"""Steps of a bin that enter the fit; the relative error beyond which a step counts as an outlier."""


@dataclass(frozen=True, slots=True)
class Fit:
    """`cost` fitted to `n` steps; `mape` their mean absolute relative error in percent, `bias` the mean signed one."""

    cost: Cost
    n: int
    mape: float
    bias: float


def predict(cost: Cost, step: Step) -> int:
    """What the model says a step takes on a host of average speed, ps."""
    if not step.tokens:
        floor, base, slope = cost.line(step.decodes)
        return max(floor, base + slope * step.ctx)
    return cost.step(
        step.decodes, step.ctx, step.tokens, step.work, step.chunks, step.admitted, step.sampled, step.woken
    )


def errors(cost: Cost, spans: Iterable[Span]) -> list[float]:
    """Relative errors: (predicted − measured) / measured."""
    return [spent / (seconds * PS) - 1 for spent, seconds in _spent(cost, spans)]


def _spent(cost: Cost, spans: Iterable[Span]) -> Iterator[tuple[int, float]]:
    """Of every span what the model says, ps, on a host as slow as it was; and its seconds."""
    at = {1.0: cost}
    for steps, seconds in spans:
        ps = 0
        for step in steps:
            slow = at.get(step.host) or at.setdefault(step.host, cost.slowed(step.host))
            ps += predict(slow, step)
        yield ps, seconds


def fit(loaded: Sequence[Span], swept: Sequence[Span] = (), overlap: bool = False, graph_tokens: int = 512) -> Fit:
    """The Cost that explains best what was measured under load and, where load did not reach, in sweeps.

    A sweep repeats one thing, which heats the GPU and warms every cache: where both know a bin, load is believed.
    ValueError with fewer than 20 spans.
    """
    rows = _sample(loaded, swept, graph_tokens)
    if len(rows) < 20:
        raise ValueError(f"{len(rows)} steps have a duration; a fit of {len(COEFFICIENTS)} coefficients needs 20")
    values = {name: round(c.start * c.scale) for name, c in COEFFICIENTS.items()}
    start = Cost(**values, overlap=overlap, graph_tokens=graph_tokens)
    tried = [_descend(_descend(replace(start, tile=tile), rows, 1.0), rows, HUBER) for tile in TILES]
    best = _stated(min(tried, key=lambda cost: _loss(cost, rows, HUBER)))
    off = errors(best, [(steps, seconds) for steps, seconds, _ in rows])
    return Fit(best, len(off), 100 * math.fsum(map(abs, off)) / len(off), 100 * math.fsum(off) / len(off))


def _stated(cost: Cost) -> Cost:
    """Coefficients to four significant digits: more is noise, and two C libraries should give the same."""
    values: dict[str, Any] = {name: round(float(f"{getattr(cost, name):.4g}")) for name in COEFFICIENTS}
    return replace(cost, **values)


def _sample(loaded: Sequence[Span], swept: Sequence[Span], graph_tokens: int) -> list[Row]:
    """Spans with their weights: at most BIN of each bin, which together weigh as the √ of the bin."""
    bins, more = _bins(loaded, graph_tokens), _bins(swept, graph_tokens)
    out = []
    rng = Random(0)
    for found in (more | bins).values():
        some = found if len(found) <= BIN else rng.sample(found, BIN)
        out += [(*span, math.sqrt(len(found)) / len(some)) for span in some]
    return out


def _bins(spans: Sequence[Span], graph_tokens: int) -> dict[tuple[int, int, bool], list[Span]]:
    """Spans of one kind together: launch regime, and the largest step's sequences and prompt tokens to a factor √2."""
    bins: dict[tuple[int, int, bool], list[Span]] = {}
    for span in spans:
        most = max(span[0], key=lambda step: (step.tokens, step.decodes))
        key = _octave(most.decodes), _octave(most.tokens), most.decodes + most.tokens > graph_tokens
        bins.setdefault(key, []).append(span)
    return bins


def _octave(n: int) -> int:
    return round(2 * math.log2(n)) if n else -1


def _residuals(cost: Cost, rows: Sequence[Row]) -> list[float]:
    return [math.log(ps / (seconds * PS)) for ps, seconds in _spent(cost, [(row[0], row[1]) for row in rows])]


def _loss(cost: Cost, rows: Sequence[Row], knee: float) -> float:
    """Huber's: quadratic up to the knee, linear beyond."""
    sizes = map(abs, _residuals(cost, rows))
    return math.fsum(
        row[2] * (r * r / 2 if r <= knee else knee * (r - knee / 2)) for r, row in zip(sizes, rows, strict=True)
    )


def _descend(cost: Cost, rows: Sequence[Row], knee: float) -> Cost:
    damping, loss = 1e-2, _loss(cost, rows, knee)
    for _ in range(80):
        move = _normal(cost, rows, knee)
        for _ in range(12):
            trial = _moved(cost, solve(*move, damping))
            lower = _loss(trial, rows, knee)
            if lower < loss:
                break
            damping *= 4
        else:
            return cost
        done = loss - lower < 1e-7 * loss
        cost, loss, damping = trial, lower, max(damping / 8, 1e-9)
        if done:
            return cost
    return cost


def _normal(cost: Cost, rows: Sequence[Row], knee: float) -> tuple[list[list[float]], list[float]]:
    """JᵀWJ and −JᵀWr for coefficients in units of their own scale (value, or a tenth of the start)."""
    base = _residuals(cost, rows)
    weights = [row[2] * min(1.0, knee / max(abs(r), 1e-12)) for r, row in zip(base, rows, strict=True)]
    columns = []
    for name in COEFFICIENTS:
        step = max(1, round(_unit(cost, name) * 1e-3))
        moved = _residuals(replace(cost, **{name: getattr(cost, name) + step}), rows)
        scale = _unit(cost, name) / step
        columns.append([(after - before) * scale for before, after in zip(base, moved, strict=True)])
    left = [[math.fsum(map(lambda w, x, y: w * x * y, weights, a, b)) for b in columns] for a in columns]
    return left, [-math.fsum(map(lambda w, x, r: w * x * r, weights, a, base)) for a in columns]


def _unit(cost: Cost, name: str) -> float:
    c = COEFFICIENTS[name]
    value: int = getattr(cost, name)
    return max(value, c.start * c.scale / 10)


def _moved(cost: Cost, moves: Sequence[float]) -> Cost:
    values = {}
    for move, (name, c) in zip(moves, COEFFICIENTS.items(), strict=True):
        low = 1 if name in ("graph", "mixed", "eager") else 0
        wanted = getattr(cost, name) + max(-0.5, min(0.5, move)) * _unit(cost, name)
        values[name] = round(min(max(wanted, low), c.most * c.scale))
    return replace(cost, **values)
