"""The price of a step against its formula, written down again term by term, and its sums against adding up."""

from __future__ import annotations

import math
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from test_sched_simulate import COSTS

from servelab.sched.cost import Cost, reach, total

COUNT = st.integers(0, 30)


def parts(c: Cost, sequences: int, tokens: int, ctx: int, pairs: int, sampled: int, admitted: int,
          passes: int) -> tuple[int, int]:  # fmt: skip
    """The CPU's time and the GPU's."""
    matrices = c.token * c.tile * math.ceil(tokens / c.tile)
    gpu = c.fixed + max(c.weights, matrices) + c.context * ctx + c.work * pairs + c.logit * sampled + c.draft * passes
    return c.host + c.seq * sequences + c.new * admitted, gpu


@settings(max_examples=400, deadline=None)
@given(COSTS, st.integers(1, 30), COUNT, COUNT, st.integers(0, 300))
def test_a_decode_step(cost: Cost, decodes: int, guesses: int, passes: int, ctx: int) -> None:
    floor, base, slope = cost.line(decodes, guesses, passes)
    tokens = decodes + guesses
    cpu, gpu = parts(cost, decodes, tokens, ctx, 0, tokens, 0, passes)
    expected = max(cpu + cost.graph, gpu) if cost.overlap else cpu + max(cost.graph, gpu)
    assert max(floor, base + slope * ctx) == expected


@settings(max_examples=400, deadline=None)
@given(COSTS, COUNT, st.integers(0, 300), st.integers(1, 90), st.integers(0, 300), COUNT, COUNT, COUNT, st.booleans())
def test_a_step_with_prompts(
    cost: Cost, decodes: int, ctx: int, tokens: int, pairs: int, chunks: int, admitted: int, sampled: int, far: bool
) -> None:
    cpu, gpu = parts(cost, decodes + chunks, decodes + tokens, ctx, pairs, sampled, admitted, 0)
    gpu += cost.pieces
    launch = cost.mixed if decodes + tokens <= cost.graph_tokens else cost.eager
    took, _ = cost.step(decodes, ctx, tokens, pairs, chunks, admitted, sampled, 10**9 if far else 0)
    assert took == (max(1, gpu) if far and cost.overlap else cpu + max(launch, gpu))


STEP = st.tuples(st.booleans(), st.integers(1, 30), st.integers(0, 300), st.integers(1, 90), st.integers(1, 9))


@settings(max_examples=600, deadline=None)
@given(COSTS, st.lists(STEP, min_size=1, max_size=20))
def test_an_engine_that_overlaps_on_two_clocks(cost: Cost, steps: list[tuple[bool, int, int, int, int]]) -> None:
    """The CPU's and the GPU's clock kept as the engine's loop does, beside what each step is said to take."""
    cost = replace(cost, overlap=True, fixed=cost.fixed + 1)
    free = ended = now = ahead = 0
    prompts = True
    for mixed, decodes, ctx, tokens, chunks in steps:
        if not mixed and not prompts:
            continue  # decodes after decodes go at their pace, which is for the test above
        cpu, gpu = parts(cost, decodes + chunks * mixed, decodes + tokens * mixed, ctx, 0, decodes, 0, 0)
        if mixed:
            launch = cost.mixed if decodes + tokens <= cost.graph_tokens else cost.eager
            took, ahead = cost.step(decodes, ctx, tokens, 0, chunks, 0, decodes, ahead)
        else:
            launch, line = cost.graph, cost.line(decodes)
            took = max(line.floor, gpu) + cost.first(line, gpu, ahead)
        forward = free + cpu
        done = max(max(forward, ended) + gpu + cost.pieces * mixed, forward + launch)
        now += took
        assert now == done
        free, ended = max(forward + launch, ended), done
        ahead = ended - free
        prompts = mixed


@settings(max_examples=300, deadline=None)
@given(COSTS, st.integers(1, 30))
def test_decodes_of_one_kind_come_to_their_pace_and_lead(cost: Cost, decodes: int) -> None:
    """On the two clocks, from a standing start; the context is free, so that all steps are equal."""
    cost = replace(cost, overlap=True, context=0)
    cpu, gpu = parts(cost, decodes, decodes, 0, 0, decodes, 0, 0)
    free = ended = took = 0
    for _ in range(2 * (cpu + cost.graph + gpu) + 2):
        forward, before = free + cpu, ended
        ended = max(max(forward, before) + gpu, forward + cost.graph)
        free, took = max(forward + cost.graph, before), ended - before
    line = cost.line(decodes)
    assert took == max(line.floor, line.base)
    if line.floor != line.base:  # else it stays as far ahead as it began
        assert ended - free == cost.lead(line, line.base)


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
