"""The simulator beside a real engine: fitted on the calibration part of its run file, judged on the rest.

In-sample and held-out errors are never mixed: what a fit has seen are the sweeps and the online recordings whose name
begins with "fit", of all files of one engine together; every other recording is a prediction. Three questions are asked
of each. Fed with the engine's own clock, does the scheduler compose the same steps (`composition`)? On its own clock,
does it give the same TTFT, TPOT, ITL, E2E and throughput (`compare`)? And, told how slow the host's CPU was from step
to step (`servelab.sched.host`), as it was told the arrivals: how much of the error was the host's? A 99th percentile is
stated from n ≥ 1,000 on.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from servelab.sched.calibrate import Fit, errors, fit, fit_cpu, fit_gpu
from servelab.sched.cost import Cost
from servelab.sched.engine import Engine
from servelab.sched.host import Hosted, told
from servelab.sched.metrics import MS, Stat, itl, latencies, stat
from servelab.sched.reference import Reference
from servelab.sched.reference import Sequence as Queued
from servelab.sched.request import PS, Workload
from servelab.sched.runs import Recording, Run, spans
from servelab.sched.simulate import simulate

P99 = 1000
"""Requests from which on a 99th percentile is stated."""


@dataclass(frozen=True, slots=True)
class Row:
    """One figure of one recording: `measured`, `simulated` and, told the host's speed, `hosted` in `unit`; `error` and
    `hosted_error` in percent of the measured one."""

    metric: str
    unit: str
    n: int
    measured: float
    simulated: float
    hosted: float = math.nan

    @property
    def error(self) -> float:
        return 100 * (self.simulated / self.measured - 1) if self.measured else math.nan

    @property
    def hosted_error(self) -> float:
        return 100 * (self.hosted / self.measured - 1) if self.measured else math.nan


@dataclass(frozen=True, slots=True)
class Verdict:
    """A recording judged. `seen`: the fit has seen it. `mape`: mean absolute error of its `timed` steps' durations,
    percent, and `hosted_mape` told the host's speed; `same` of `steps` steps are composed as the engine's were."""

    name: str
    seen: bool
    rows: tuple[Row, ...]
    mape: float
    hosted_mape: float
    timed: int
    same: int
    steps: int


def in_sample(recording: Recording) -> bool:
    """Whether a fit may see this online recording."""
    return recording.name.startswith("fit")


def seen(runs: Iterable[Run]) -> list[Recording]:
    """What a fit may see of these files."""
    return [recording for run in runs for recording in run.online if in_sample(recording)]


def calibrate(runs: Sequence[Run]) -> list[Fit]:
    """The Cost of each file's engine.

    The CPU's part is the file's own (its machine), from its in-sample recordings or, where it has none, from those of
    the same engine's other files. The GPU's is that of all files in which it can be told apart; where there is none,
    all is fitted to whole steps of one engine's files together, or to their sweeps.
    """
    found: dict[tuple[Any, ...], Any] = {}
    return [_calibrate(run, runs, found) for run in runs]


def _calibrate(run: Run, runs: Sequence[Run], found: dict[tuple[Any, ...], Any]) -> Fit:
    same = [one for one in runs if one.kind == run.kind]
    clocked = [one for one in runs if one.device == run.device and one.held]
    if not clocked:
        if run.kind not in found:
            found[run.kind] = _whole(same)
        fitted: Fit = found[run.kind]
        return fitted
    if run.device not in found:
        loaded, held = seen(clocked), [one for file in clocked for one in file.held]
        some, alone = ([step for one in of for step in one.steps] for of in (loaded, held))
        found[run.device] = fit_gpu(some, alone, run.graph_tokens)
    own = [run] if seen([run]) else same
    hosted = seen([told(one, seen(own)) for one in own])
    return fit_cpu(replace(found[run.device], overlap=run.overlap), hosted)


def _whole(runs: Sequence[Run]) -> Fit:
    overlap = runs[0].overlap
    hosted = [told(run, seen(runs)) for run in runs]
    loaded = [span for recording in seen(hosted) for span in spans(recording, overlap)]
    swept = () if loaded else [span for run in runs for recording in run.sweeps for span in spans(recording, overlap)]
    return fit(loaded, swept, overlap, runs[0].graph_tokens)


def engine(run: Run, recording: Recording, cost: Cost) -> Engine:
    """The engine of a recording, with a fitted cost."""
    blocks = (recording.about or {}).get("kv_blocks", run.blocks) - 1  # vLLM keeps one as its null block
    return Engine(cost, "chunked", recording.budget, min(run.seqs, recording.budget), blocks)


def validate(run: Run, cost: Cost, runs: Sequence[Run]) -> list[Verdict]:
    """Every online recording of a run against the simulator; `runs`: all files, for the host's usual speed."""
    own = [run] if seen([run]) else [one for one in runs if one.kind == run.kind]
    hosted = told(run, seen(own), cost)
    return [_verdict(run, *pair, cost) for pair in zip(run.online, hosted.online, strict=True)]


def _verdict(run: Run, recording: Recording, hosted: Recording, cost: Cost) -> Verdict:
    off, rest = (errors(cost, spans(one, run.overlap)) for one in (recording, hosted))
    n = max(len(off), 1)
    return Verdict(
        recording.name, in_sample(recording), tuple(compare(run, hosted, cost)), 100 * math.fsum(map(abs, off)) / n,
        100 * math.fsum(map(abs, rest)) / n, len(off), composition(run, recording), len(recording.steps),
    )  # fmt: skip


def compare(run: Run, recording: Recording, cost: Cost) -> Iterable[Row]:
    """Measured and simulated figures of one recording."""
    work = recording.work
    assert work is not None
    log = simulate(work, engine(run, recording, cost))
    hosted = _hosted(work, Hosted(work, engine(run, recording, cost), recording))
    arrivals = [t / PS for t in work.arrival]
    measured = {
        "ttft": [1e3 * (first - t) for first, t in zip(recording.first, arrivals, strict=True)],
        "tpot": [
            1e3 * (last - first) / (n - 1)
            for first, last, n in zip(recording.first, recording.last, work.output, strict=True) if n > 1
        ],
        "e2e": [1e3 * (last - t) for last, t in zip(recording.last, arrivals, strict=True)],
    }  # fmt: skip
    simulated = {name: stat(values) for name, values in latencies(log).items()} | {"itl": itl(log)}
    if recording.gaps:
        measured["itl"] = [1e3 * gap for gap in recording.gaps]
    for name, values in measured.items():
        yield from _beside(name, stat(values), simulated[name], stat(hosted[name]))
    said = sum(work.output)
    begun = arrivals[0]
    yield Row("throughput", "tokens/s", len(work), said / (max(recording.last) - begun),
              said / (max(log.finish) / PS - begun), said / (hosted["end"][0] - begun))  # fmt: skip


def _hosted(work: Workload, reference: Hosted) -> dict[str, list[float]]:
    """Latencies in ms of a step-by-step run, and the second at which it ended."""
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    gaps = []
    for t, kind, i, _ in reference.run():
        if kind == "token":
            gaps += [(t - last[i]) / MS] if i in last else []
            first.setdefault(i, t)
            last[i] = t
    return {
        "ttft": [(t - work.arrival[i]) / MS for i, t in first.items()],
        "tpot": [(last[i] - t) / MS / (work.output[i] - 1) for i, t in first.items() if work.output[i] > 1],
        "e2e": [(t - work.arrival[i]) / MS for i, t in last.items()],
        "itl": gaps,
        "end": [max(last.values()) / PS],
    }


def _beside(name: str, measured: Stat, simulated: Stat, hosted: Stat) -> Iterable[Row]:
    yield Row(f"{name}_mean", "ms", measured.n, measured.mean, simulated.mean, hosted.mean)
    for p in ("p50", "p90", "p99"):
        if p != "p99" or measured.n >= P99:
            figures = (one.percentiles[p] for one in (measured, simulated, hosted))
            yield Row(f"{name}_{p}", "ms", measured.n, *figures)


class Fed(Reference):
    """The step-by-step scheduler on a recording's clock: its steps begin when the engine's began."""

    def __init__(self, run: Run, recording: Recording) -> None:
        assert recording.work is not None
        super().__init__(recording.work, engine(run, recording, Cost(overlap=run.overlap)))
        self.added = [round(t * PS) for t in recording.added]
        self.made: list[tuple[int, int, int, int]] = []

    def arrive(self, until: int) -> None:
        while self.next < len(self.added) and self.added[self.next] <= until:
            self.waiting.append(Queued(self.next, 0, self.work.prompt[self.next]))
            self.next += 1

    def execute(self, decodes: list[tuple[Queued, int]], chunks: list[tuple[Queued, int]], admitted: int) -> None:
        context = sum(one.done + 1 for one, _ in decodes)
        self.made.append((len(decodes), context, len(chunks), sum(n for _, n in chunks)))
        super().execute(decodes, chunks, admitted)


def composition(run: Run, recording: Recording) -> int:
    """How many steps the scheduler composes as the engine did, on the engine's clock."""
    fed = Fed(run, recording)
    same = 0
    for t, step in zip(recording.step_s, recording.steps, strict=True):
        fed.now = round(t * PS)
        fed.arrive(fed.now)
        made = len(fed.made)
        for _ in range(2):  # the first may only preempt
            if (fed.running or fed.waiting) and len(fed.made) == made:
                fed.iterate()
        if len(fed.made) > made:
            same += fed.made[-1] == (step.decodes, step.ctx, step.chunks, step.tokens)
    return same


def worst(verdicts: Iterable[Verdict], seen: bool) -> dict[str, Any]:
    """By metric the largest absolute error in percent, and where it is."""
    out: dict[str, Any] = {}
    for verdict in verdicts:
        for row in verdict.rows if verdict.seen == seen else ():
            if abs(row.error) > abs(out.get(row.metric, (0.0, ""))[0]):
                out[row.metric] = (row.error, verdict.name)
    return out
