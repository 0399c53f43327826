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
from statistics import median
from typing import Any, NamedTuple

from servelab.sched.cost import Cost
from servelab.sched.linear import solve
from servelab.sched.request import PS
from servelab.sched.runs import Recording, Step, spans

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
    "pieces": Coefficient("µs per step with prompts", 10**6, 200, 10_000),
    "weights": Coefficient("µs per step", 10**6, 3_000, 200_000),
    "token": Coefficient("ns per token", 10**3, 8_000, 10**6),
    "context": Coefficient("ps per context token", 1, 8_000, 10**6),
    "work": Coefficient("ps per query–key pair", 1, 300, 10**5),
    "logit": Coefficient("µs per sampled token", 10**6, 1, 20),
    "graph": Coefficient("µs per step", 10**6, 1_000, 50_000),
    "mixed": Coefficient("µs per step", 10**6, 3_000, 100_000),
    "eager": Coefficient("µs per step", 10**6, 8_000, 200_000),
}
"""What is fitted, in Cost's own names; the least of each is 0 (1 ps for launch times)."""

CPU = ("host", "seq", "new")
GPU = ("fixed", "pieces", "weights", "token", "context", "work", "logit")
LAUNCHES = ("graph", "mixed", "eager")
"""The coefficients of a step's parts."""

TILES = (1, 16, 64, 128)
BIN, HUBER = 60, 0.3
"""Steps of a bin that enter the fit; the relative error beyond which a step counts as an outlier."""


@dataclass(frozen=True, slots=True)
class Fit:
    """`cost` fitted to `n` steps; `mape` their mean absolute relative error in percent, `bias` the mean signed one."""

    cost: Cost
    n: int
    mape: float
    bias: float


def predict(cost: Cost, step: Step, ahead: int | None) -> tuple[int, int]:
    """What the model says a step takes on a host of average speed, and for how long of it the CPU is `ahead`, ps.

    Where it is not known how far ahead it was, the step is one of a run of its like.
    """
    if not step.tokens:
        line = cost.line(step.decodes)
        gpu = line.base + line.slope * step.ctx
        return max(line.floor, gpu) + (0 if ahead is None else cost.first(line, gpu, ahead)), cost.lead(line, gpu)
    parts = step.decodes, step.ctx, step.tokens, step.work, step.chunks, step.admitted, step.sampled
    if not cost.overlap or step.woken or ahead is not None:
        return cost.step(*parts, 0 if step.woken or ahead is None else ahead)
    cpu, launch = cost.on_host(step.decodes, step.tokens, step.chunks, step.admitted)
    gpu, _ = cost.step(*parts, PS)  # nothing waits for a CPU so far ahead
    return max(cpu + launch, gpu), gpu if gpu >= cpu + launch else max(0, gpu - launch)


def errors(cost: Cost, spans: Iterable[Span]) -> list[float]:
    """Relative errors: (predicted − measured) / measured."""
    return [spent / (seconds * PS) - 1 for spent, seconds in _spent(cost, spans)]


def _spent(cost: Cost, spans: Iterable[Span]) -> Iterator[tuple[int, float]]:
    """Of every span what the model says, ps, on a host as slow as it was; and its seconds."""
    at = {1.0: cost}
    for steps, seconds in spans:
        ps = 0
        ahead, prompts = None, False
        for step in steps:
            slow = at.get(step.host) or at.setdefault(step.host, cost.slowed(step.host))
            took, ahead = predict(slow, step, ahead if prompts or step.tokens else None)
            prompts = step.tokens > 0
            ps += took
        yield ps, seconds


def fit(loaded: Sequence[Span], swept: Sequence[Span] = (), overlap: bool = False, graph_tokens: int = 512) -> Fit:
    """The Cost that explains best what was measured under load and, where load did not reach, in sweeps.

    A sweep repeats one thing, which heats the GPU and warms every cache: where both know a bin, load is believed.
    ValueError with fewer than 20 spans.
    """
    rows = _sample(loaded, swept, graph_tokens)
    if len(rows) < 20:
        raise ValueError(f"{len(rows)} steps have a duration; a fit of {len(COEFFICIENTS)} coefficients needs 20")
    best = _best(Cost(overlap=overlap, graph_tokens=graph_tokens), rows, tuple(COEFFICIENTS), TILES)
    return _fit(best, [(steps, seconds) for steps, seconds, _ in rows])


def fit_gpu(loaded: Sequence[Step], held: Sequence[Step], graph_tokens: int = 512) -> Cost:
    """The GPU's coefficients alone, from steps of which a file tells its time; the CPU's are 0.

    `held` steps say what the GPU takes where it is seldom alone under load. Where load knows, it is believed, since a
    GPU that works without pause is slower. ValueError with fewer than 20 steps.
    """
    gpu, alone = ([((step,), step.gpu) for step in some if step.gpu] for some in (loaded, held))
    rows = _sample(gpu, _without_pause(gpu, alone, graph_tokens), graph_tokens)
    if len(rows) < 20:
        raise ValueError(f"{len(rows)} steps tell the GPU's time; a fit of {len(GPU)} coefficients needs 20")
    return _best(Cost(graph_tokens=graph_tokens), rows, GPU, TILES)


def fit_cpu(gpu: Cost, recordings: Sequence[Recording]) -> Fit:
    """The CPU's coefficients beside those of a GPU, for an engine that runs as `gpu` says (overlap, graph_tokens).

    From the CPU's own time where steps tell it, else from the steps' whole time. ValueError with fewer than 20 steps.
    """
    steps = [step for one in recordings for step in one.steps]
    whole = [span for one in recordings for span in spans(one, gpu.overlap)]
    alone = _sample([((step,), step.cpu) for step in steps if step.cpu], (), gpu.graph_tokens)
    rows = alone or _sample(whole, (), gpu.graph_tokens)
    if len(rows) < 20:
        raise ValueError(f"{len(rows)} steps have a duration; a fit of the CPU's part needs 20")
    if not alone:
        return _fit(_best(gpu, rows, (*CPU, *LAUNCHES), (gpu.tile,)), whole)
    cpu = _best(Cost(), alone, CPU, (1,))
    found: dict[str, Any] = {name: getattr(cpu, name) for name in CPU}
    for name in LAUNCHES:
        took = [step.launch for step in steps if step.launch and gpu.launch(step.decodes, step.tokens) == name]
        c = COEFFICIENTS[name]
        found[name] = round(median(took) * PS) if took else round(c.start * c.scale)
    return _fit(_stated(replace(gpu, **found)), whole)


def _without_pause(loaded: Sequence[Span], held: Sequence[Span], graph_tokens: int) -> list[Span]:
    """Held steps with prompts, and without, made as much slower as those are that load knows too (same bin)."""
    busy, calm = _bins(loaded, graph_tokens), _bins(held, graph_tokens)
    ratios: dict[bool, list[float]] = {True: [], False: []}
    for key in busy.keys() & calm.keys():
        if min(len(busy[key]), len(calm[key])) > 2:
            a, b = (median(seconds for _, seconds in bins[key]) for bins in (busy, calm))
            ratios[key[1] >= 0].append(a / b)
    slower = {mixed: median(some) if some else 1.0 for mixed, some in ratios.items()}
    return [(steps, seconds * slower[steps[0].tokens > 0]) for steps, seconds in held]


def _best(cost: Cost, rows: Sequence[Row], names: Sequence[str], tiles: Sequence[int]) -> Cost:
    """The best of the tiles, with `names` fitted and the rest as in `cost`."""
    start: dict[str, Any] = {name: round(COEFFICIENTS[name].start * COEFFICIENTS[name].scale) for name in names}
    tried = []
    for tile in tiles:
        wide = _descend(replace(cost, tile=tile, **start), rows, 1.0, names)
        tried.append(_descend(wide, rows, HUBER, names))
    return _stated(min(tried, key=lambda one: _loss(one, rows, HUBER)))


def _fit(cost: Cost, rows: Sequence[Span]) -> Fit:
    off = errors(cost, rows)
    return Fit(cost, len(off), 100 * math.fsum(map(abs, off)) / len(off), 100 * math.fsum(off) / len(off))


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


def _descend(cost: Cost, rows: Sequence[Row], knee: float, names: Sequence[str]) -> Cost:
    damping, loss = 1e-2, _loss(cost, rows, knee)
    for _ in range(80):
        move = _normal(cost, rows, knee, names)
        for _ in range(12):
            trial = _moved(cost, names, solve(*move, damping))
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


def _normal(
    cost: Cost, rows: Sequence[Row], knee: float, names: Sequence[str]
) -> tuple[list[list[float]], list[float]]:
    """JᵀWJ and −JᵀWr for coefficients in units of their own scale (value, or a tenth of the start)."""
    base = _residuals(cost, rows)
    weights = [row[2] * min(1.0, knee / max(abs(r), 1e-12)) for r, row in zip(base, rows, strict=True)]
    columns = []
    for name in names:
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


def _moved(cost: Cost, names: Sequence[str], moves: Sequence[float]) -> Cost:
    values: dict[str, Any] = {}
    for move, name in zip(moves, names, strict=True):
        c, low = COEFFICIENTS[name], int(name in LAUNCHES)
        wanted = getattr(cost, name) + max(-0.5, min(0.5, move)) * _unit(cost, name)
        values[name] = round(min(max(wanted, low), c.most * c.scale))
    return replace(cost, **values)
