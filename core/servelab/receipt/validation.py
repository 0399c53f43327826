"""sched_validation: the simulator beside recordings of a real engine, from run files to named metrics.

The statistic holds, to six significant digits so that two C libraries give the same, the fitted coefficients of every
file and, of every recording, [measured, simulated, simulated on a host as slow as the recording's] by figure. The
metrics are medians and the largest of the errors, in-sample and held out apart; of each engine the medians too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from statistics import median
from typing import Any

from servelab.receipt.result import Files, Result
from servelab.receipt.schema import Metric, Receipt
from servelab.sched.runs import Recording, Run, read_run
from servelab.sched.validate import Verdict, calibrate, validate

FIGURES = (
    *(f"{name}_{part}" for name in ("ttft", "tpot", "itl", "e2e") for part in ("mean", "p50", "p90", "p99")),
    "throughput",
)
WAYS = {"": 1, "told_": 2}
"""Simulated blind, and told how fast the host was: prefix → place in a figure's row."""

OF_ENGINE = ("ttft_mean", "tpot_mean", "e2e_mean", "throughput")


def validation_result(runs: Iterable[Run]) -> Result:
    """From run files, all of them known to each fit."""
    fits, recordings = {}, {}
    files = list(runs)
    for run, found in zip(files, calibrate(files), strict=True):
        stated = {"n": found.n, "mape": _short(found.mape), "bias": _short(found.bias)}
        fits[run.name] = {"cost": asdict(found.cost), **stated}
        for recording, verdict in zip(run.online, validate(run, found.cost, files), strict=True):
            recordings[f"{run.name} {verdict.name}"] = _stated(run, recording, verdict)
    statistic = {"fits": fits, "recordings": recordings}
    return Result(validation_metrics(statistic), statistic)


def _stated(run: Run, recording: Recording, verdict: Verdict) -> dict[str, Any]:
    """One recording in the statistic."""
    return {
        "model": run.model, "overlap": run.overlap, "budget": recording.budget, "seen": verdict.seen,
        "requests": len(recording.work or ()), "steps": verdict.steps, "same": verdict.same,
        "step_error": _short(verdict.mape), "told_step_error": _short(verdict.hosted_mape),
        "figures": {row.metric: [_short(x) for x in (row.measured, row.simulated, row.hosted)] for row in verdict.rows},
    }  # fmt: skip


def validation_metrics(statistic: Mapping[str, Any]) -> dict[str, Metric]:
    """Shares of steps composed alike, errors of steps, and errors by figure: percent, without sign."""
    rows = list(statistic["recordings"].values())
    held = [row for row in rows if not row["seen"]]
    steps = sum(row["steps"] for row in rows)
    alike = [100 * row["same"] / row["steps"] for row in rows]
    out = {
        "held_out_runs": Metric(len(held), "runs", len(held)),
        "in_sample_runs": Metric(len(rows) - len(held), "runs", len(rows) - len(held)),
        "composed_alike_percent": Metric(100 * sum(row["same"] for row in rows) / steps, "%", steps),
        "composed_alike_percent_least": Metric(min(alike), "%", len(rows)),
    }
    for way, key in (("", "step_error"), ("told_", "told_step_error")):
        out |= _two(f"{way}step_error_percent", [row[key] for row in held])
    for engine in sorted({(row["model"], row["overlap"]) for row in held}):
        out |= _of_engine(engine, [row for row in held if (row["model"], row["overlap"]) == engine])
    for figure in FIGURES:
        for way, place in WAYS.items():
            out |= _two(f"{way}{figure}_error_percent", errors(held, figure, place))
        known = list(map(abs, errors([row for row in rows if row["seen"]], figure, 1)))
        out |= {f"in_sample_{figure}_error_percent_most": Metric(max(known), "%", len(known))} if known else {}
    return out


def engine_name(model: str, overlap: bool) -> str:
    """As metrics name it: qwen2_5_7b_async."""
    return re.sub("[^a-z0-9]+", "_", model.lower()) + ("_async" if overlap else "_sync")


def _of_engine(engine: tuple[str, bool], held: Sequence[Mapping[str, Any]]) -> dict[str, Metric]:
    """Medians over the held-out recordings of one engine, blind and told."""
    name, n = engine_name(*engine), len(held)
    out = {f"{name}_held_out_runs": Metric(n, "runs", n)}
    for way, place in WAYS.items():
        sizes = {"step": [row[f"{way}step_error"] for row in held]}
        sizes |= {figure: list(map(abs, errors(held, figure, place))) for figure in OF_ENGINE}
        out |= {f"{name}_{way}{of}_error_percent": Metric(median(x), "%", len(x)) for of, x in sizes.items() if x}
    return out


def errors(rows: Sequence[Mapping[str, Any]], figure: str, place: int) -> list[float]:
    """Signed, percent, of the recordings that state the figure."""
    stated = [row["figures"][figure] for row in rows if figure in row["figures"]]
    return [100 * (one[place] / one[0] - 1) for one in stated if one[0]]


def recompute_validation(receipt: Receipt, files: Files) -> Result:
    """From the committed statistic; from the run files, fits included, when all of them are here."""
    names = [d.name for d in receipt.data]
    if all(name in files for name in names):
        return validation_result(read_run(files[name], name) for name in names)
    return Result(validation_metrics(receipt.statistic or {}))


def _two(name: str, values: Sequence[float]) -> dict[str, Metric]:
    sizes = [abs(value) for value in values]
    if not sizes:
        return {}
    n = len(sizes)
    return {f"{name}_median": Metric(median(sizes), "%", n), f"{name}_most": Metric(max(sizes), "%", n)}


def _short(x: float) -> float:
    return float(f"{x:.6g}")
