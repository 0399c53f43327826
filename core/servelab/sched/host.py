"""How fast the host was from step to step, read off the engine's own schedule() calls.

A CPU that is shared or whose clock moves is not equally fast all the time, and an engine that waits for its CPU is as
uneven. schedule() does a known amount of work in each step (`Pace`): so much for each decode, each chunk of a prompt,
each block of KV memory that a chunk takes (so for its tokens) and each new request. Its duration over what that work
takes on average is the slowness of the host at that moment: 1 is the average of the recordings that a fit may see. The
median over a few steps around keeps single interrupts out.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import replace
from operator import mul
from statistics import median
from typing import NamedTuple

from servelab.sched.cost import Cost
from servelab.sched.engine import Engine
from servelab.sched.linear import solve
from servelab.sched.reference import Reference
from servelab.sched.request import PS, Workload
from servelab.sched.runs import Recording, Run, Step

AROUND = 5
"""Steps before and after one whose median is its slowness."""

LEVELS = 32
"""Slowness in parts of 1/32, so that few costs have to be made."""


class Pace(NamedTuple):
    """Seconds of a schedule() call: `base`, and for each decode, chunk, prompt token and new request."""

    base: float
    decode: float
    chunk: float
    token: float
    new: float

    def of(self, step: Step) -> float:
        seconds: float = sum(map(mul, self, terms(step)))
        return max(seconds, 1e-6)


def terms(step: Step) -> tuple[float, ...]:
    """What a step has of each part of a Pace."""
    return 1, step.decodes, step.chunks, step.tokens, step.admitted


def pace(recordings: Iterable[Recording]) -> Pace:
    """Least squares on relative errors, in which calls that are far off (an interrupt) count less, ten rounds."""
    rows = [row for one in recordings for row in zip(one.steps, one.scheduling, strict=True) if row[1] > 0]
    if len(rows) < 20:
        raise ValueError(f"{len(rows)} schedule() calls have a duration; a pace needs 20")
    found = Pace(median(took for _, took in rows), *[0.0] * 4)
    for _ in range(10):
        left = [[0.0] * len(found) for _ in found]
        right = [0.0] * len(found)
        for step, took in rows:
            weight = min(1.0, 0.2 / max(abs(found.of(step) / took - 1), 1e-9)) / took**2
            parts = terms(step)
            for i, one in enumerate(parts):
                right[i] += weight * one * took
                for j, other in enumerate(parts):
                    left[i][j] += weight * one * other
        found = Pace(*solve(left, right, 1e-9))
    return found


def slowness(recording: Recording, average: Pace) -> list[float]:
    """Of every step, in whole LEVELS."""
    raw = [took / average.of(step) for step, took in zip(recording.steps, recording.scheduling, strict=True)]
    return _levels(median(raw[max(0, k - AROUND) : k + AROUND + 1]) for k in range(len(raw)))


def slowness_of_parts(recording: Recording, cost: Cost) -> list[float]:
    """The same where the CPU's own time of each step is known: that of the steps around over what `cost` says of it.

    An engine that does not overlap may be held up by the GPU while it issues, so that counts only in one that does.
    """
    took, said = [0.0], [0.0]
    for step in recording.steps:
        cpu, launch = cost.on_host(step.decodes, step.tokens, step.chunks, step.admitted)
        known, issues = step.cpu > 0, cost.overlap
        took.append(took[-1] + known * (step.cpu + issues * step.launch))
        said.append(said[-1] + known * (cpu + issues * launch) / PS)
    ends = [(max(0, k - AROUND), min(len(recording.steps), k + AROUND + 1)) for k in range(len(recording.steps))]
    return _levels((took[b] - took[a]) / (said[b] - said[a]) if said[b] > said[a] else 1.0 for a, b in ends)


def _levels(slow: Iterable[float]) -> list[float]:
    return [min(3 * LEVELS, max(LEVELS // 2, round(LEVELS * h))) / LEVELS for h in slow]


def told(run: Run, seen: Sequence[Recording], cost: Cost | None = None) -> Run:
    """The run with each step's slowness in it; as it is where the file does not tell what the CPU took.

    Without a `cost` only what schedule() says is told: a CPU's own time is fitted as it is.
    """
    if any(step.cpu for one in run.online for step in one.steps):
        slow = [slowness_of_parts(one, cost) for one in run.online] if cost else []
    elif seen and all(one.scheduling for one in run.online):
        average = pace(seen)
        slow = [slowness(one, average) for one in run.online]
    else:
        slow = []
    online = []
    for one, levels in zip(run.online, slow, strict=True) if slow else ():
        steps = tuple(replace(step, host=h) for step, h in zip(one.steps, levels, strict=True))
        online.append(replace(one, steps=steps))
    return replace(run, online=tuple(online)) if online else run


class Hosted(Reference):
    """The step-by-step simulator on a host as slow as a recording's was at the same time."""

    def __init__(self, work: Workload, engine: Engine, recording: Recording) -> None:
        super().__init__(work, engine)
        self.since, self.slow = [t * PS for t in recording.step_s], [step.host for step in recording.steps]
        self.engines = {slow: replace(engine, cost=engine.cost.slowed(slow)) for slow in set(self.slow)}

    def iterate(self) -> None:
        self.engine = self.engines[self.slow[max(0, bisect_right(self.since, self.now) - 1)]]
        super().iterate()
