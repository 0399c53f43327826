"""Predictions beside measured runs: how far off, by engine, model and precision, and what was never answered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from servelab.plan import engines
from servelab.plan.plan import solve
from servelab.plan.rows import Row
from servelab.plan.speed import Engine
from servelab.receipt.samples import percentile


@dataclass(frozen=True, slots=True)
class Score:
    """A row and what was predicted for it, s. `problem` says why there is no prediction."""

    row: Row
    ttft: float = 0.0
    tpot: float = 0.0
    problem: str = ""

    @property
    def ttft_error(self) -> float:
        return self.ttft / self.row.ttft - 1

    @property
    def tpot_error(self) -> float:
        return self.tpot / self.row.tpot - 1


def predict(row: Row, engine: Engine) -> Score:
    """A row's TTFT and TPOT. Disaggregated: decodes see no prompts, prompts wait for those of their own workers."""
    if not row.stated:
        return Score(row, problem="the row does not say how many workers share its clients")
    if row.prefill is None:
        answer = solve(row.plan(), engine)
        return Score(row, answer.ttft, answer.tpot, answer.memory.reason)
    first, rest = (solve(row.plan(side), replace(engine, mix=0.0)) for side in (0, 1))
    queue = first.work.waiting * row.output * first.tpot if first.work else 0.0  # a prompt worker keeps no answers
    return Score(row, first.ttft - queue, rest.tpot, first.memory.reason or rest.memory.reason)


def scores(rows: Iterable[Row], calibrate: bool = True) -> list[Score]:
    """Every row's Score, with its family's coefficients and, where there are any, its deployment's own."""
    out = []
    for row in rows:
        engine = engines.family(row.engine, row.shape.kind)
        out.append(predict(row, engines.calibrated(engine, row.deployment) if calibrate else engine))
    return out


def held_out(row: Row) -> bool:
    """Whether no fit has seen a row's workload."""
    return list(row.workload) in engines.fitted()["held_out"]


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the table: errors in %, medians and 90th percentiles of absolute ones; None without answers."""

    name: str
    rows: int
    answered: int
    tpot: float | None
    tpot_p90: float | None
    ttft: float | None
    ttft_p90: float | None

    @property
    def coverage(self) -> float:
        return self.answered / self.rows


def line(name: str, found: Sequence[Score]) -> Line:
    """The line of some scores."""
    good = [score for score in found if not score.problem]
    tpot, ttft = ([abs(getattr(s, what)) * 100 for s in good] for what in ("tpot_error", "ttft_error"))
    figures = [percentile(values, q) if values else None for values in (tpot, ttft) for q in (0.5, 0.9)]
    return Line(name, len(found), len(good), *figures)


def table(found: Sequence[Score], key: Callable[[Row], str]) -> list[Line]:
    """A line for each value of `key`, sorted."""
    groups: dict[str, list[Score]] = {}
    for score in found:
        groups.setdefault(key(score.row), []).append(score)
    return [line(name, groups[name]) for name in sorted(groups)]
