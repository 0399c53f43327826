"""Static against continuous batching by hand: the arithmetic of one published comparison, and the same corrected.

Prompts cost `PREFILL` ms per token; a decode step of b of 32 slots costs 25·(0.4 + 0.6·b/32) ms. Static: up to 32
waiting requests form a batch, their prompts are computed together, and all decode until the longest is done, each step
at the price of the whole batch; the first token comes at the end of the first decode step. Continuous: while any
running request has prompt left, a step computes one chunk of up to 512 tokens of each; else all decode.

The comparison's own accounting charges a chunk 512 tokens however short it is, and takes the end of the prompt for
the first token, which for static batching it does not. Corrected: exact tokens, and the first decode step for both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

SLOTS, CHUNK, PREFILL = 32, 512, 0.06

Request = tuple[float, int, int]
"""Arrival in seconds, prompt tokens, output tokens; in order of arrival."""


def step_ms(sequences: int) -> float:
    """A decode step."""
    return 25 * (0.4 + 0.6 * sequences / SLOTS)


def static(requests: Sequence[Request]) -> float:
    """Sum of the waits for a first token under static batching, ms."""
    now, at, spent = 0.0, 0, []
    while at < len(requests):
        now = max(now, 1e3 * requests[at][0])
        batch = [r for r in requests[at : at + SLOTS] if 1e3 * r[0] <= now]
        at += len(batch)
        now += PREFILL * sum(prompt for _, prompt, _ in batch)
        spent += [now + step_ms(len(batch)) - 1e3 * arrival for arrival, _, _ in batch]
        now += max(output for _, _, output in batch) * step_ms(len(batch))
    return math.fsum(spent)


def continuous(requests: Sequence[Request], own: bool) -> float:
    """The same under continuous batching, in the comparison's own accounting or corrected."""
    now, at, spent = 0.0, 0, []
    running: list[list[float]] = []  # arrival ms, prompt left, output left, 1 once its first token came
    while at < len(requests) or running:
        if not running:
            now = max(now, 1e3 * requests[at][0])
        while at < len(requests) and len(running) < SLOTS and 1e3 * requests[at][0] <= now:
            arrival, prompt, output = requests[at]
            running.append([1e3 * arrival, prompt, output, 0])
            at += 1
        prompts = [one for one in running if one[1]]
        for one in prompts:
            now += PREFILL * (CHUNK if own else min(CHUNK, one[1]))
            one[1] -= min(CHUNK, one[1])
        if not prompts:
            now += step_ms(len(running))
            for one in running:
                one[2] -= 1
        for one in running:
            if not one[3] and not one[1] and (own or not prompts):
                one[3] = 1
                spent.append(now - one[0])
        running = [one for one in running if one[2]]
    return math.fsum(spent)


def waits(requests: Sequence[Request]) -> dict[str, float]:
    """All three sums, ms; divide by the number of requests for the mean TTFT."""
    return {
        "static_ms": static(requests),
        "own_ms": continuous(requests, True),
        "corrected_ms": continuous(requests, False),
    }
