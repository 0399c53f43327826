"""The price of a step against its formula, written down again term by term, and its sums against adding up."""

from __future__ import annotations

import math

from hypothesis import given, settings
from hypothesis import strategies as st
from test_sched_simulate import COSTS

from servelab.sched.cost import Cost, reach, total

COUNT = st.integers(0, 30)


def formula(c: Cost, sequences: int, tokens: int, ctx: int, pairs: int, sampled: int, admitted: int, passes: int,
            launch: int, beside: bool) -> int:  # fmt: skip
    cpu = c.host + c.seq * sequences + c.new * admitted
    matrices = c.token * c.tile * math.ceil(tokens / c.tile)
    gpu = c.fixed + max(c.weights, matrices) + c.context * ctx + c.work * pairs + c.logit * sampled + c.draft * passes
    return max(cpu + launch, gpu) if beside else cpu + max(launch, gpu)


@settings(max_examples=400, deadline=None)
@given(COSTS, st.integers(1, 30), COUNT, COUNT, st.integers(0, 300))
def test_a_decode_step(cost: Cost, decodes: int, guesses: int, passes: int, ctx: int) -> None:
    floor, base, slope = cost.line(decodes, guesses, passes)
    tokens = decodes + guesses
    expected = formula(cost, decodes, tokens, ctx, 0, tokens, 0, passes, cost.graph, cost.overlap)
    assert max(floor, base + slope * ctx) == expected


@settings(max_examples=400, deadline=None)
@given(COSTS, COUNT, st.integers(0, 300), st.integers(1, 90), st.integers(0, 300), COUNT, COUNT, COUNT, st.booleans())
def test_a_step_with_prompts(
    cost: Cost, decodes: int, ctx: int, tokens: int, pairs: int, chunks: int, admitted: int, sampled: int, woken: bool
) -> None:
    got = cost.step(decodes, ctx, tokens, pairs, chunks, admitted, sampled, woken)
    launch = cost.mixed if decodes + tokens <= cost.graph_tokens else cost.eager
    beside = cost.overlap and not woken
    assert got == formula(
        cost, decodes + chunks, decodes + tokens, ctx, pairs, sampled, admitted, 0, launch, beside
    )


@settings(max_examples=600, deadline=None)
@given(COSTS, st.integers(1, 30), st.integers(0, 300), st.integers(1, 60), st.integers(1, 20_000))
def test_sums_and_the_first_step_that_reaches_a_span(cost: Cost, n: int, ctx: int, steps: int, span: int) -> None:
    line = cost.line(n)
    sums = [0]
    while len(sums) <= steps or sums[-1] < span:
        k = len(sums)
        sums.append(sums[-1] + max(line.floor, line.base + line.slope * (ctx + n * k)))
    assert [total(line, ctx, n, k) for k in range(len(sums))] == sums
    assert reach(line, ctx, n, span) == next(k for k, passed in enumerate(sums) if passed >= span)
