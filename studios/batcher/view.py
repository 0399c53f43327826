"""Batcher: traffic through the schedulers of one engine or several, iteration by iteration, a millisecond a tick."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated

from servelab.receipt.schema import Receipt
from servelab.sched import hardware
from servelab.sched.admission import ADMISSIONS
from servelab.sched.arrivals import GAPS
from servelab.sched.metrics import SLOS, summary
from servelab.sched.policies import POLICIES
from servelab.sched.routing import ROUTERS
from servelab.sched.traffic import NAMED
from servelab.view import Clock, Control, Frame, i32
from servelab.view.control import names
from servelab.view.schedule import TICK, curves, gantt_panel, story
from servelab.view.studio import Preset
from studios.batcher import numbers
from studios.batcher.run import played

TITLE = "Batcher"
SENTENCE = "Requests through a GPU's scheduler. Drag the rate or the token budget and watch who waits for whom."
SUMMARY = "Continuous batching, live: chunked prefill, preemption, admission, routing, prefill apart, speculation."
NEEDS: tuple[str, ...] = ()
RECEIPTS: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class State:
    """Every field is a control and a URL key."""

    scheduler: Annotated[str, Control(
        "Scheduler", choices=names(POLICIES), group="Engine",
        help="static: a batch ends before the next begins. continuous: whole prompts first, decodes stand still. "
        "chunked: decodes and prompt chunks share a token budget, as in vLLM. sjf, edf, prefix: the same, in another "
        "order.",
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
    cache: Annotated[bool, Control(
        "Prefix cache", group="Engine", help="Prompts reuse the blocks of earlier ones; only chats share any.",
    )] = False
    guesses: Annotated[int, Control(
        "Guesses", "tokens", 0, 8, group="Engine",
        help="A draft model (Qwen2.5-0.5B) guesses so many tokens for every decode; one step verifies them all.",
    )] = 0
    accepted: Annotated[int, Control(
        "Each holds in", "%", 0, 100, step=5, group="Engine", help="Of the cases in which those before it did.",
    )] = 70
    replicas: Annotated[int, Control(
        "Replicas", "", 1, 4, group="Fleet", help="Engines side by side, each with its own slots and pool.",
    )] = 1
    router: Annotated[str, Control(
        "Router", choices=names(ROUTERS), group="Fleet",
        help="affinity: to the replica that was given the longest prefix of the prompt, unless another is done sooner.",
    )] = "round_robin"
    prefills: Annotated[int, Control(
        "Only for prompts", "replicas", 0, 3, group="Fleet",
        help="So many more replicas compute all prompts; the others only decode, and the KV cache moves between them.",
    )] = 0
    link: Annotated[int, Control(
        "Link", "GB/s", 1, 512, scale="log2", group="Fleet", help="Of each prompt replica, one prompt after the other.",
    )] = 64
    rate: Annotated[float, Control("Rate", "requests/s", 0.5, 60, step=0.5, group="Traffic")] = 10.0
    requests: Annotated[int, Control("Requests", "", 10, 1000, step=10, group="Traffic")] = 120
    traffic: Annotated[str, Control(
        "Lengths of", choices=(*names(NAMED), ("chats", "chats")), group="Traffic",
        help="Lengths from the quantiles of a public trace or a mix; chats send all they said before with every turn.",
    )] = "azure-conversation"
    arrivals: Annotated[str, Control(
        "Arrivals", choices=(*names(GAPS), ("closed", "closed")), group="Traffic",
        help="poisson: independent. gamma: the same rate in bursts. constant: a metronome. burst: all at once. "
        "closed: so many clients as the limit below says, each asking again when it is answered.",
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
        "Limit", "per s, or at once", 1, 60, group="Admission",
        help="Requests per second; inside at once for concurrency; clients of a closed loop.",
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


SHARED = State(
    traffic="chats", cache=True, replicas=4, router="affinity", rate=40.0, requests=300, slots=16, pool=4096
)

PRESETS = {
    "chunked": Preset(
        "Chunked", State(),
        "Prompts in chunks beside the decodes: an iteration never holds more than the budget.",
    ),
    "continuous": Preset(
        "Continuous", State(scheduler="continuous", traffic="cplan", rate=24.0, requests=100, slots=16),
        "A slot is filled as soon as it is free. The lengths are those of a published comparison with static batches.",
    ),
    "static": Preset(
        "Static", State(scheduler="static", traffic="cplan", rate=24.0, requests=100, slots=16),
        "A batch ends before the next begins: crossed slots are paid for and empty until the longest answer is done. "
        "B fills them at once.",
        beside="continuous",
    ),
    "chunk512": Preset(
        "Chunk 512", State(budget=512, traffic="long", rate=6.0, requests=60, slots=16),
        "Prompts of 2,000 tokens and more in chunks of 512: decodes go on, and prompts take a little longer.",
    ),
    "blocking": Preset(
        "Head of line", State(scheduler="continuous", traffic="long", rate=6.0, requests=60, slots=16),
        "A: whole prompts go first, and every decode stands still while one is computed. B: chunks of 512 tokens.",
        beside="chunk512",
    ),
    "bursty": Preset(
        "Bursts", State(traffic="azure-code", arrivals="gamma", cv=6.0, rate=6.0, requests=150),
        "Lengths of the Azure code trace, in bursts: the same rate on average, and a queue all the same.",
    ),
    "scattered": Preset(
        "Round robin", replace(SHARED, router="round_robin"),
        "The same chats, each turn sent to the next replica: most of what was computed lies somewhere else.",
    ),
    "prefixes": Preset(
        "Shared prefixes", SHARED,
        "Four replicas with prefix caches. A sends a prompt where its beginning was computed, B in turn: "
        "compare what is cached and when the first token comes.",
        beside="scattered",
    ),
    "pressure": Preset(
        "Pressure", State(pool=1024, slots=48, traffic="sharegpt", rate=6.0, requests=80),
        "A pool too small for all who run: the last admitted give their blocks up and start again.",
    ),
    "flood": Preset(
        "Flood",
        State(gate="token_bucket", limit=8, rate=40.0, requests=300, traffic="short", slots=16),
        "Forty requests a second at a gate that lets eight in: who gets in is served quickly, and most do not.",
    ),
    "together": Preset(
        "Two alike", State(replicas=2, traffic="long", rate=12.0, requests=120, slots=48),
        "The same two GPUs, each doing both: prompts delay the decodes beside them.",
    ),
    "apart": Preset(
        "Prefill apart", State(prefills=1, traffic="long", rate=12.0, requests=120, slots=48, budget=8192),
        "A: one GPU computes prompts, the other only decodes, and KV caches move. B: two GPUs that do both.",
        beside="together",
    ),
    "guessing": Preset(
        "Speculation", State(guesses=4, accepted=70, traffic="sharegpt", rate=4.0, requests=60),
        "A draft guesses four tokens for each decode and the model verifies them in one step. Set guesses to 0.",
    ),
}


def view(state: State, receipts: Mapping[str, Receipt]) -> Frame:
    """The Frame of a state. ValueError where a setting contradicts another, with the fix."""
    log, found = played(replace(state, rows="slots", slo="8B, server", request=0))
    end = max([log.work.arrival[-1], *log.finish]) // TICK + 1
    curve, all_of = curves(log, found), summary(log, SLOS[state.slo])
    marks = sorted({t for i, t in enumerate(log.finish) if log.replica[i] >= 0} | {t for t in log.first if t >= 0})
    clock = Clock(end, "ms", i32(sorted({t // TICK for t in marks})), end * 2 // 5)
    return Frame(
        numbers.headline(state, all_of),
        clock,
        (
            *numbers.tiles(state, log, all_of, curve),
            gantt_panel(log, found, state.rows, f"Who is in the engine ({state.scheduler})" if state.rows == "slots"
                        else f"Every request ({state.scheduler})", numbers.caption(state, log)),
            story(log, found, "What happens"),
            numbers.over_time(curve),
            numbers.first_tokens(state, log),
            numbers.percentiles(all_of),
            numbers.waits(state, log, found),
        ),
    )  # fmt: skip
