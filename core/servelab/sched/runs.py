"""Run files: what a real engine did, step by step, as `generate/engine_steps.py` writes it (JSON, plain or gzip).

A file is one engine: model, gpu, engine version, token budget, KV blocks, and recordings. A recording is a list of
steps, and in `online` also requests with the times of their tokens. A step is [time s, prefill requests, prefill
tokens, decode requests, context tokens, …]: time when schedule() returned. Where a file does not write what a step did
to which prompt, it follows from the prompts' order, since the engine serves first come, first served (`rebuild`).
"""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from servelab.sched.request import PS, Workload, column

REPEATS = 5
"""Prompts behind the median of a sweep."""


MOST = 8
"""Steps of a span."""


@dataclass(frozen=True, slots=True)
class Step:
    """What a step computed and what it took.

    `decodes` over `ctx` tokens (this step's included) beside `chunks` of prompts with `tokens` and `work` query–key
    pairs; `admitted` chunks were the first of their prompt, `sampled` sequences got a token; `woken`: the engine was
    idle before. `seconds`: from the end of the step before, or from the arrival that woke the engine, to the step's
    end; 0 where that is not known. `cpu`, `launch`, `gpu`: seconds of its parts (`servelab.sched.cost`), 0 where the
    file does not tell them apart. `host`: how slow the CPU was then, 1 on average (`servelab.sched.host`).
    """

    decodes: int
    ctx: int
    tokens: int
    work: int
    chunks: int
    admitted: int
    sampled: int
    woken: bool
    seconds: float
    cpu: float = 0.0
    launch: float = 0.0
    gpu: float = 0.0
    host: float = 1.0


@dataclass(frozen=True, slots=True)
class Recording:
    """One stretch of a run. `first`, `last`: seconds of each request's first and last token; `gaps`: seconds between
    tokens, empty where the file has none; `step_s`: when the scheduler began (or, in files without that, ended) each
    step; `scheduling`: seconds that it took, empty where the file does not say."""

    name: str
    budget: int
    steps: tuple[Step, ...]
    work: Workload | None = None
    step_s: tuple[float, ...] = ()
    scheduling: tuple[float, ...] = ()
    added: tuple[float, ...] = ()
    first: tuple[float, ...] = ()
    last: tuple[float, ...] = ()
    gaps: tuple[float, ...] = ()
    about: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """One engine's file. `overlap`: it scheduled the next step while the GPU worked (asynchronous scheduling);
    `graph_tokens`: the largest step with a captured graph; `held`: recordings in which the GPU waited for each step to
    be issued as a whole, so that its time is its own."""

    name: str
    model: str
    gpu: str
    engine: str
    budget: int
    seqs: int
    blocks: int
    overlap: bool
    graph_tokens: int
    sweeps: tuple[Recording, ...]
    held: tuple[Recording, ...]
    online: tuple[Recording, ...]

    @property
    def kind(self) -> tuple[Any, ...]:
        """Equal for files of one engine."""
        return *self.device, self.seqs

    @property
    def device(self) -> tuple[Any, ...]:
        """Equal for files whose GPU's part of a step is the same. An engine that overlaps gives it no pause, in which
        it could cool."""
        return self.model, self.gpu, self.engine, self.overlap, self.graph_tokens


def read_run(source: Path | bytes, name: str = "") -> Run:
    """A run file. ValueError names the key that is missing or wrong."""
    data = source if isinstance(source, bytes) else source.read_bytes()
    name = name or (source.name if isinstance(source, Path) else "run")
    try:
        plain = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
        run = json.loads(plain)
        overlap = bool(run["async"]) if "async" in run else "_async" in name
        budget = int(run["budget"])
        return Run(
            name, run["model"], run["gpu"], f"vLLM {run['vllm']}", budget, int(run.get("seqs", 256)),
            int(run["kv_blocks"]), overlap, int(run.get("graph_tokens", 512)), tuple(_sweeps(run, budget, overlap)),
            tuple(_online(one, k, budget, overlap, True) for k, one in enumerate(run.get("held", ()))),
            tuple(_online(one, k, budget, overlap) for k, one in enumerate(run["online"])),
        )  # fmt: skip
    except (KeyError, TypeError, IndexError, ValueError, OSError, EOFError) as error:
        what = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error)
        raise ValueError(f"{name} is no run file: {what}; write one with generate/engine_steps.py") from error


def _sweeps(run: Mapping[str, Any], budget: int, overlap: bool) -> Iterator[Recording]:
    """The calibration parts; one without steps stands as its median, REPEATS times or as often as it has steps."""
    for one in run.get("offline", ()):
        yield _offline(f"offline {one['c']}×{one['n_in']}", one, one["n_in"], budget, overlap)
    for one in run.get("longctx", ()):
        yield _offline(f"context {one['c']}×{one['ctx']}", one, one["ctx"], budget, overlap)
    for one in run.get("prefill", ()):
        n = one["n_in"]
        if "runs" in one:
            for again in one["runs"]:
                yield _offline(f"prompt {n}", again, n, budget, overlap)
        elif n <= budget:
            step = Step(0, 0, n, n * (n + 1) // 2, 1, 1, 1, True, one["ttft_ms"] / 1e3)
            yield Recording(f"prompt {n}", budget, (step,) * REPEATS)
    for one in run.get("beside", ()):
        prompts = [one["ctx"]] * one["c"] + [n for n in one["sizes"] for _ in range(3)]
        yield _recording(f"beside {one['c']}", one, prompts, budget, overlap)


def _offline(name: str, one: Mapping[str, Any], prompt: int, budget: int, overlap: bool) -> Recording:
    count = one["c"]
    if one.get("steps"):
        return _recording(name, one, [prompt] * count, budget, overlap)
    output = one.get("n_out", 128)
    step = Step(count, count * (prompt + output // 2), 0, 0, 0, 0, count, False, one["decode_step_ms"] / 1e3)
    return Recording(name, budget, (step,) * output)


def _recording(name: str, one: Mapping[str, Any], prompts: Sequence[int], budget: int, overlap: bool) -> Recording:
    steps = [row for row in one["steps"] if row[1] or row[3]]
    added = [0.0 if len(prompts) == 1 else math.nan] * len(prompts)  # adding many at once takes longer than a step
    return Recording(name, budget, tuple(_steps(one, steps, prompts, added, overlap)))


def _online(one: Mapping[str, Any], number: int, budget: int, overlap: bool, held: bool = False) -> Recording:
    rows = sorted(one["requests"], key=lambda row: row["arrival"])
    prompts = [row["n_in"] for row in rows]
    arrival = column(round(row["arrival"] * PS) for row in rows)
    work = Workload(arrival, column(prompts), column(row["n_out"] for row in rows))
    added = tuple(row.get("added", row["arrival"]) for row in rows)
    steps = [row for row in one["steps"] if row[1] or row[3]]
    return Recording(
        one.get("name", f"{one['rate']:g}/s #{number + 1}"), one.get("budget", budget),
        tuple(_steps(one, steps, prompts, added, overlap, held)), work,
        tuple(row[7] if len(row) > 7 else row[0] for row in steps),
        tuple(row[0] - row[7] for row in steps if len(row) > 7), added,
        tuple(row["first"] for row in rows), tuple(row["last"] for row in rows),
        tuple(gap / 1e6 for row in rows for gap in row.get("gaps_us", ())),
        {key: value for key, value in one.items() if key not in ("requests", "steps", "ends")},
    )  # fmt: skip


def _steps(
    one: Mapping[str, Any], rows: Sequence[Sequence[float]], prompts: Sequence[int], added: Sequence[float],
    overlap: bool, held: bool = False,
) -> Iterator[Step]:  # fmt: skip
    ends = _ends(one, rows, overlap)
    if not rows or len(rows[0]) < 11:
        yield from rebuild(rows, prompts, added, ends)
        return
    before = math.nan
    issued = over = math.nan  # when the step before was issued, and when the GPU was done with the one before that
    for row, end in zip(rows, ends, strict=True):
        _, chunks, tokens, decodes, _, work, ctx, _, admitted, sampled, woken = row[:11]
        seconds = end - (woken if woken >= 0 else before)
        parts = (0.0, 0.0, 0.0)
        if len(row) > 14:
            free = woken if woken >= 0 else max(issued, over) if overlap else before
            parts = _parts(row[11:15], free, end, overlap or held)
            issued, over = row[12], before
        yield Step(
            int(decodes), int(ctx), int(tokens), round(work), int(chunks), int(admitted), int(sampled), woken >= 0,
            seconds if seconds > 0 and not held else 0.0, *parts,
        )  # fmt: skip
        before = end


def _parts(times: Sequence[float], free: float, end: float, ahead: bool) -> tuple[float, float, float]:
    """Seconds of the CPU before (and, in an engine that waits for the GPU, after), of issuing, and of the GPU alone.

    The GPU's is known where the CPU was `ahead` of it, all issued before it began, or else far from holding it up.
    """
    forward, launched, begun, done = times
    launch = launched - forward
    alone, since = (launched <= begun, begun) if ahead else (done - forward > 2 * launch, forward)
    cpu = forward - free + (0 if ahead else end - done)
    return cpu if cpu > 0 else 0.0, launch, done - since if alone else 0.0


def _ends(one: Mapping[str, Any], steps: Sequence[Sequence[float]], overlap: bool) -> list[float]:
    """When each step ended, NaN where unknown.

    A synchronous engine says so, or schedules the next one then. An asynchronous one schedules step k + 2 as soon as
    step k has ended, if it was not idle in between.
    """
    if overlap and steps and len(steps[0]) > 14:
        return [row[14] for row in steps]
    woken = [row[3] == 0 and row[4] == row[2] for row in steps]
    if overlap:
        later = zip(steps[2:], map(max, woken[1:], woken[2:]), strict=False)
        return [math.nan if waits else row[0] for row, waits in later] + [math.nan] * min(2, len(steps))
    if len(one.get("ends", ())) == len(one["steps"]):
        return [end for row, (end, _) in zip(one["steps"], one["ends"], strict=True) if row[1] or row[3]]
    later = zip(steps[1:], woken[1:], strict=False)
    return [math.nan if waits else row[0] for row, waits in later] + [math.nan] * min(1, len(steps))


def spans(recording: Recording, overlap: bool) -> Iterator[tuple[tuple[Step, ...], float]]:
    """Consecutive steps and the seconds that they took together: one step, unless the engine overlaps.

    There, launching a step with prompts delays the end of the step before it, so each such step stands with its
    neighbours: their sum is what the GPU took. At full load one follows the other without end; MOST of them do.
    """
    group: list[Step] = []
    for step, after in zip(recording.steps, (*recording.steps[1:], None), strict=True):
        group.append(step)
        if overlap and after and (step.tokens or after.tokens) and len(group) < MOST:
            continue
        if all(one.seconds for one in group):
            yield tuple(group), math.fsum(one.seconds for one in group)
        group = []


def rebuild(
    rows: Sequence[Sequence[float]], prompts: Sequence[int], added: Sequence[float], ends: Sequence[float]
) -> Iterator[Step]:
    """What each step did to which prompt. ValueError when no first come, first served order gives these rows."""
    at, done, before = 0, 0, math.nan
    for k, (row, end) in enumerate(zip(rows, ends, strict=True)):
        _, chunks, tokens, decodes, context = (int(value) for value in row[:5])
        free = not decodes and not done  # nothing was left to do: the step began when its first request came
        woken = free and at < len(added) and not added[at] < before
        begun = added[at] if woken else before
        left, work, admitted, complete, seen = tokens, 0, 0, 0, 0
        for number in range(chunks):
            if at == len(prompts):
                raise ValueError(f"step {k} computes a prompt that no request has")
            n = min(prompts[at] - done, left - (chunks - number - 1))
            admitted += not done
            work += n * done + n * (n + 1) // 2
            done += n
            left -= n
            seen += done
            if done == prompts[at]:
                at, done, complete = at + 1, 0, complete + 1
        if left:
            raise ValueError(f"step {k}: {tokens} prompt tokens in {chunks} chunks; the waiting prompts are shorter")
        seconds = end - begun
        yield Step(
            decodes, context - seen, tokens, work, chunks, admitted, decodes + complete, woken,
            seconds if seconds > 0 else 0.0,
        )  # fmt: skip
        before = end
