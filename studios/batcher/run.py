"""A state's run: its traffic and its engines, simulated."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

from servelab.sched import hardware
from servelab.sched.admission import ADMISSIONS, Limit
from servelab.sched.arrivals import generate
from servelab.sched.closed import closed
from servelab.sched.disaggregate import Pools, disaggregate
from servelab.sched.engine import Engine
from servelab.sched.metrics import SLOS
from servelab.sched.request import Workload, column
from servelab.sched.routing import ROUTERS
from servelab.sched.simulate import Log, simulate
from servelab.sched.timeline import Span, spans
from servelab.sched.traffic import NAMED, Sessions, sessions
from servelab.view.schedule import LAST, TICK

if TYPE_CHECKING:
    from studios.batcher.view import State

TURNS, SYSTEM, FRESH, ANSWER = 4, 512, 900, 150
"""Of a chat: its turns, its system prompt, what each turn adds, and the mean answer; tokens."""


@lru_cache(maxsize=4)
def played(state: State) -> tuple[Log, list[Span]]:
    """The log of a state and its spans, kept while only the view of them changes. ValueError with the fix."""
    traffic = state.traffic, state.arrivals, state.rate, state.requests, state.cv, state.seed
    log = _log(state, _work(*traffic), _engine(state))
    if max(log.finish) // TICK >= LAST:
        raise ValueError(
            f"this run lasts {max(log.finish) / 1e12:,.0f} s and a page draws up to {LAST / 1e3:,.0f}; "
            "use a higher rate, fewer requests or a faster GPU"
        )
    return log, spans(log)


def _log(state: State, work: Workload, engine: Engine) -> Log:
    router = ROUTERS[state.router]
    if state.prefills:
        if state.gate != "none" or state.arrivals == "closed" or state.guesses or state.cache:
            raise ValueError(
                "replicas only for prompts go without a gate, a closed loop, guesses and a prefix cache here; "
                "set those off, or use none of these replicas"
            )
        moving = hardware.link(state.model, state.link)
        return disaggregate(work, Pools(engine, engine, state.prefills, state.replicas, moving), detail=True)
    if state.arrivals == "closed":
        if state.gate != "none":
            raise ValueError("a closed loop asks no more than its clients do; use no gate, or other arrivals")
        return closed(work, engine, state.limit, 0, state.replicas, router, detail=True)
    gate = None
    if state.gate != "none":
        limit = Limit(Fraction(state.limit), state.limit, state.limit, Fraction(1))
        gate = ADMISSIONS[state.gate](limit)
    return simulate(work, engine, state.replicas, router, gate, detail=True)


def _engine(state: State) -> Engine:
    cost, _ = hardware.cost(state.hardware, state.model)
    room = hardware.pool(state.hardware, state.model)
    if state.pool > room:
        raise ValueError(
            f"a KV pool of {state.pool:,} blocks is more than {state.hardware} holds beside {state.model}, {room:,}; "
            "use a smaller pool, another GPU or model"
        )
    if state.slots * (1 + state.guesses) > state.budget:
        raise ValueError(
            f"{state.slots} slots with a budget of {state.budget} tokens: each sequence wants {1 + state.guesses} in "
            "every iteration; use fewer slots or a larger budget"
        )
    accept = (state.accepted / 100,) * state.guesses
    if accept and state.cache:
        raise ValueError("guesses are simulated without a prefix cache; set one of the two off")
    cost = replace(cost, draft=hardware.draft(state.hardware) if accept else 0)
    return Engine(
        cost, state.scheduler, state.budget, state.slots, state.pool, prefix=state.cache and state.traffic == "chats",
        accept=accept,
    )  # fmt: skip


@lru_cache(maxsize=4)
def _work(traffic: str, arrivals: str, rate: float, requests: int, cv: float, seed: int) -> Workload:
    if traffic == "chats":
        count = -(-requests // TURNS)
        work = sessions(Sessions(count, TURNS, rate / TURNS, 1.5, 8, SYSTEM, FRESH, ANSWER, 16), seed)
    else:
        gaps = "burst" if arrivals == "closed" else arrivals
        work = generate(replace(NAMED[traffic], rate=rate, requests=requests, arrivals=gaps, cv=cv), seed)
    due = round(SLOS["8B, server"].ttft) * 10**9
    return replace(work, due=column(due if i % 4 else due // 4 for i in range(len(work))))  # one in four is in a hurry
