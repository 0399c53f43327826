"""Speculative decoding, sized: what a draft of K guesses has to hit before it pays.

    tokens per step  E = (1 − α^(K+1)) / (1 − α)           each guess holds with α, if all before it did
    speedup          S = E · step(1) / (K · draft + step(K + 1))

step(n) is a step in which every sequence brings n tokens: the weights and the cache are read once, arithmetic, experts
and messages grow. Break-even is the α at which S = 1. Source: Leviathan et al., arXiv:2211.17192.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from servelab.kv.limits import within
from servelab.plan import engines
from servelab.plan.plan import Answer, Plan, solve
from servelab.plan.shapes import Shape
from servelab.plan.speed import parts


@dataclass(frozen=True, slots=True)
class Speculation:
    """`speedup` of K guesses that hold with `accept`; `break_even` is None where no acceptance pays. Seconds."""

    guesses: int
    accept: float
    tokens: float
    step: float
    verify: float
    draft: float
    speedup: float
    break_even: float | None


def tokens(accept: float, guesses: int) -> float:
    """Expected tokens of a step."""
    return guesses + 1.0 if accept == 1 else (1 - accept ** (guesses + 1)) / (1 - accept)


def speculate(plan: Plan, draft: Shape, guesses: int, accept: float) -> Speculation:
    """The plan with a draft model on the same devices. ValueError outside the limits or where the plan does not fit."""
    within("guesses", guesses, 1, 32, "give the draft's tokens per step")
    if not 0 <= accept <= 1:
        raise ValueError(f"accept={accept!r} is outside 0 to 1; give the share of guesses that hold")
    alone = replace(plan, shape=draft, quant="bf16", layout=replace(plan.layout, tp=1, dp=1))
    target, small = solve(plan), solve(alone)
    for name, answer in (("the model", target), ("the draft", small)):
        if not answer.fits:
            raise ValueError(f"{name} does not fit: {answer.memory.reason}")
    step, verify, guess = _step(target, 1), _step(target, guesses + 1), _step(small, 1)

    def speedup(accept: float) -> float:
        return tokens(accept, guesses) * step / (guesses * guess + verify)

    return Speculation(
        guesses, accept, tokens(accept, guesses), step, verify, guess, speedup(accept), _root(speedup)
    )  # fmt: skip


def _step(answer: Answer, n: int) -> float:
    """Seconds of a decode step in which every sequence brings n tokens."""
    assert answer.work is not None
    w = answer.work
    more = replace(w, decode=w.decode * n, sent=w.sent * n, tokens=w.tokens * n)
    return float(sum(parts(more, engines.family(answer.plan.engine, answer.plan.shape.kind)).values()))


def _root(speedup: object) -> float | None:
    assert callable(speedup)
    if speedup(1.0) < 1:
        return None
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if speedup(middle) >= 1 else (middle, high)
    return high
