"""Batcher: traffic through one engine's scheduler, iteration by iteration, on a clock of milliseconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import Annotated

from servelab.receipt.schema import Receipt
from servelab.sched import hardware
from servelab.sched.admission import ADMISSIONS, Limit
from servelab.sched.arrivals import GAPS, generate
from servelab.sched.engine import Engine
from servelab.sched.metrics import SLOS
from servelab.sched.policies import POLICIES
from servelab.sched.request import Workload
from servelab.sched.simulate import Log, simulate
from servelab.sched.timeline import Span, spans
from servelab.sched.traffic import NAMED
from servelab.view import Clock, Control, Frame, i32
from servelab.view.schedule import LAST, TICK, curves, gantt_panel, story
from servelab.view.studio import Preset
from studios.batcher import numbers

TITLE = "Batcher"
SENTENCE = "Requests through one GPU's scheduler. Drag the rate or the token budget and watch who waits for whom."
SUMMARY = "Continuous batching, live: schedulers, chunked prefill, preemption, admission, and what they do to a token."
NEEDS: tuple[str, ...] = ()


def names(table: Mapping[str, object]) -> tuple[tuple[str, str], ...]:
    """A table's keys as menu choices."""
    return tuple((name, name) for name in table)


@dataclass(frozen=True, slots=True)
class State:
    """Every field is a control and a URL key."""

    scheduler: Annotated[str, Control(
        "Scheduler", choices=names(POLICIES), group="Engine",
        help="static: a batch ends before the next begins. continuous: whole prompts first, decodes stand still. "
        "chunked: decodes and prompt chunks share a token budget, as in vLLM. sjf, edf: chunked, in another order.",
    )] = "chunked"
    budget: Annotated[int, Control(
        "Token budget", "tokens", 64, 16384, scale="log2", group="Engine",
        help="Most tokens in one iteration. Small ones keep decodes quick, large ones finish prompts sooner.",
    )] = 2048
    slots: Annotated[int, Control(
        "Slots", "sequences", 1, 64, group="Engine", help="Most sequences at once, no more than the token budget.",
    )] = 32
    pool: Annotated[int, Control(
        "KV pool", "blocks", 256, 65536, scale="log2", group="Engine",
        help="Blocks of 16 tokens. When they run out, the last admitted sequence is preempted and computed again.",
    )] = 8192
    rate: Annotated[float, Control("Rate", "requests/s", 0.5, 60, step=0.5, group="Traffic")] = 10.0
    requests: Annotated[int, Control("Requests", "", 10, 1000, step=10, group="Traffic")] = 120
    traffic: Annotated[str, Control(
        "Lengths of", choices=names(NAMED), group="Traffic",
        help="Prompt and output lengths drawn from the quantiles of a public trace, or from two log-normal mixes.",
    )] = "azure-conversation"
    arrivals: Annotated[str, Control(
        "Arrivals", choices=names(GAPS), group="Traffic",
        help="poisson: independent. gamma: the same rate in bursts. constant: a metronome. burst: all at once.",
    )] = "poisson"
    cv: Annotated[float, Control(
        "Burstiness", "cv", 0.5, 8, step=0.5, group="Traffic", help="Of gamma arrivals; 1 is Poisson.",
    )] = 3.0
    seed: Annotated[int, Control("Seed", "", 0, 99, group="Traffic")] = 1
    gate: Annotated[str, Control(
        "Admission", choices=(("none", "none"), *names(ADMISSIONS)), group="Admission",
        help="What refuses requests before they enter. Refused ones count as misses of the service level.",
    )] = "none"
    limit: Annotated[int, Control(
        "Limit", "per s, or at once", 1, 60, group="Admission", help="Requests per second, or inside for concurrency.",
    )] = 8
    hardware: Annotated[str, Control("GPU", choices=names(hardware.DEVICES), group="Hardware")] = "H200"
    model: Annotated[str, Control("Model", choices=names(hardware.QUERY_HEADS), group="Hardware")] = "Qwen2.5-7B"
    rows: Annotated[str, Control(
        "Rows are", choices=(("slots", "slots"), ("requests", "requests")), group="View",
        help="slots: what the engine is busy with. requests: every life from arrival to end, waiting included.",
    )] = "slots"
    slo: Annotated[str, Control("Service level", choices=names(SLOS), group="View")] = "8B, interactive"
    request: Annotated[int, Control(
        "Request", "", 0, 999, group="View", help="Whose waits are explained under the picture.",
    )] = 0


PRESETS = {
    "chunked": Preset(
        "Chunked prefill", State(),
        "Prompts in chunks beside the decodes: an iteration never holds more than the budget.",
    ),
    "static": Preset(
        "Static batching", State(scheduler="static"),
        "A batch ends before the next begins: hatched slots are paid for and empty until the longest answer is done.",
    ),
    "blocking": Preset(
        "Head of line", State(scheduler="continuous", traffic="long", rate=6.0, requests=60, slots=16),
        "Whole prompts go first: every decode stands still while one is computed. Then try chunked, 512 tokens.",
    ),
    "chunk512": Preset(
        "Chunk 512", State(budget=512, traffic="long", rate=6.0, requests=60, slots=16),
        "The same traffic in chunks of 512 tokens: decodes go on, and prompts take a little longer.",
    ),
    "bursty": Preset(
        "Bursts", State(traffic="azure-code", arrivals="gamma", cv=6.0, rate=6.0, requests=150),
        "Lengths of the Azure code trace, in bursts: the same rate on average, and a queue all the same.",
    ),
    "pressure": Preset(
        "Pressure", State(pool=512, slots=48, traffic="sharegpt", rate=8.0, requests=80),
        "A pool too small for all who run: the last admitted give their blocks up and start again.",
    ),
    "flood": Preset(
        "Flood",
        State(gate="token_bucket", limit=8, rate=40.0, requests=300, traffic="short", slots=16),
        "Forty requests a second at a gate that lets eight in: who gets in is served quickly, and most do not.",
    ),
}


def view(state: State, receipts: Mapping[str, Receipt]) -> Frame:
    """The Frame of a state. ValueError where a setting contradicts another, with the fix."""
    log, found = _played(replace(state, rows="slots", slo="8B, server", request=0))
    end = max([log.work.arrival[-1], *log.finish]) // TICK + 1
    curve = curves(log, found)
    marks = sorted({t for i, t in enumerate(log.finish) if log.replica[i] >= 0} | {t for t in log.first if t >= 0})
    clock = Clock(end, "ms", i32(sorted({t // TICK for t in marks})), end * 2 // 5)
    return Frame(
        numbers.headline(state, log),
        clock,
        (
            *numbers.tiles(state, log, curve),
            gantt_panel(log, found, state.rows, f"Who is in the engine ({state.scheduler})" if state.rows == "slots"
                        else f"Every request ({state.scheduler})", numbers.caption(state, log)),
            story(log, found, "What happens"),
            numbers.over_time(curve),
            numbers.percentiles(state, log),
            numbers.waits(state, log, found),
        ),
    )  # fmt: skip


@lru_cache(maxsize=4)
def _played(state: State) -> tuple[Log, list[Span]]:
    """A run and its spans, kept while only the view of it changes."""
    cost, _ = hardware.cost(state.hardware, state.model)
    room = hardware.pool(state.hardware, state.model)
    if state.pool > room:
        raise ValueError(
            f"a KV pool of {state.pool:,} blocks is more than {state.hardware} holds beside {state.model}, {room:,}; "
            "use a smaller pool, another GPU or model"
        )
    if state.slots > state.budget:
        raise ValueError(
            f"{state.slots} slots with a budget of {state.budget} tokens: each sequence wants a token in every "
            "iteration; use fewer slots or a larger budget"
        )
    gate = None
    if state.gate != "none":
        limit = Limit(Fraction(state.limit), state.limit, state.limit, Fraction(1))
        gate = ADMISSIONS[state.gate](limit)
    engine = Engine(cost, state.scheduler, state.budget, state.slots, state.pool)
    log = simulate(_work(state), engine, gate=gate, detail=True)
    if max(log.finish) // TICK >= LAST:
        raise ValueError(
            f"this run lasts {max(log.finish) / 1e12:,.0f} s and a page draws up to {LAST / 1e3:,.0f}; "
            "use a higher rate, fewer requests or a faster GPU"
        )
    return log, spans(log)


def _work(state: State) -> Workload:
    traffic = replace(
        NAMED[state.traffic], rate=state.rate, requests=state.requests, arrivals=state.arrivals, cv=state.cv
    )
    work = generate(traffic, state.seed)
    due = round(SLOS["8B, server"].ttft) * 10**9
    spread = [due if i % 4 else due // 4 for i in range(len(work))]  # one in four is in a hurry: what edf orders by
    return replace(work, due=type(work.arrival)("q", spread))
