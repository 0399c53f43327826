"""The scheduler's prefix cache beside servelab.kv's, and the policy that looks into it."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servelab.kv.prefix import PrefixCache
from servelab.kv.tables import Tables
from servelab.sched.cost import Cost
from servelab.sched.engine import Engine
from servelab.sched.experiments import Prefixes as Mix
from servelab.sched.memory import Prefixes
from servelab.sched.request import PS, Workload, column
from servelab.sched.simulate import simulate

SIZE = 4


@st.composite
def chats(draw: st.DrawFn) -> Workload:
    """Prompts out of a small tree of shared beginnings; each has a token or more beyond them."""
    n = draw(st.integers(1, 14))
    paths = [draw(st.lists(st.integers(0, 1), min_size=0, max_size=5)) for _ in range(n)]
    prompt = [len(path) * SIZE + draw(st.integers(1, SIZE - 1)) for path in paths]
    hashes = tuple(tuple(hash((1, *path[: k + 1])) for k in range(len(path))) for path in paths)
    return Workload(column([0] * n), column(prompt), column([1] * n), hashes, SIZE)


@settings(max_examples=600, deadline=None)
@given(chats(), st.integers(6, 40), st.integers(0, 2**32))
def test_it_finds_and_evicts_what_the_kv_desk_does(work: Workload, blocks: int, seed: int) -> None:
    """One prompt at a time is written; any number stay, in a pool that may be small."""
    rng = Random(seed)
    memory = Prefixes(work, Engine(blocks=blocks, block_size=SIZE, prefix=True))
    tables = Tables(blocks, SIZE, PrefixCache())
    assert work.hashes is not None
    here: list[int] = []
    for i in range(len(work)):
        contents = [(None, (name,)) for name in work.hashes[i]]
        plan = tables.plan(work.prompt[i], contents)
        need = -(-work.prompt[i] // SIZE)
        assert len(memory.found(i)) == len(plan.hits)
        cached = memory.admit(i, work.prompt[i], 0)
        assert (cached >= 0) == (plan.need <= plan.available)
        if cached >= 0:
            assert tables.admit(i, work.prompt[i], contents) == cached
            memory.claim(need - cached // SIZE)
            memory.written(i, work.prompt[i])
            here.append(i)
        while here and rng.random() < 0.5:
            gone = here.pop(rng.randrange(len(here)))
            tables.release(gone)
            memory.release(gone, -(-work.prompt[gone] // SIZE))
        assert memory.free == tables.pool.available
        memory.check(0)


@settings(max_examples=300, deadline=None)
@given(chats(), st.integers(0, 2**32))
def test_prompts_written_side_by_side_are_found_as_the_kv_desk_finds_them(work: Workload, seed: int) -> None:
    """All are admitted before any is written: of two equal blocks the second stays private, not the rest."""
    memory = Prefixes(work, Engine(blocks=1000, block_size=SIZE, prefix=True))
    tables = Tables(1000, SIZE, PrefixCache())
    assert work.hashes is not None
    everyone = list(range(len(work)))
    for i in everyone:
        memory.claim(-(-work.prompt[i] // SIZE) - memory.admit(i, work.prompt[i], 0) // SIZE)
    Random(seed).shuffle(everyone)
    for i in everyone:
        memory.written(i, work.prompt[i])
    for i in everyone:  # there a prompt is admitted and written at once; without hits when each is its own tenant's
        tables.admit(i, work.prompt[i], [(None, (name,)) for name in work.hashes[i]])
    for i in everyone:
        assert len(memory.found(i)) == len(tables.plan(work.prompt[i], [(None, (n,)) for n in work.hashes[i]]).hits)
        memory.release(i, -(-work.prompt[i] // SIZE))
    memory.check(0)
    assert memory.free == 1000


def test_the_longest_cached_prompt_goes_first() -> None:
    """One seat. While the first prompt runs, two wait; the later one shares the first's prefix and overtakes."""
    hashes = ((1, 2, 3), (7, 8, 9), (1, 2, 4))
    work = Workload(column([0, 1, 2]), column([14] * 3), column([5] * 3), hashes, SIZE)
    cost = Cost(graph=PS, mixed=PS, eager=PS)
    for policy, order in (("prefix", [0, 2, 1]), ("chunked", [0, 1, 2])):
        log = simulate(work, Engine(cost, policy, seqs=1, block_size=SIZE, prefix=True))
        assert sorted(range(3), key=log.finish.__getitem__) == order
    with_cache = Engine(cost, "prefix", seqs=1, block_size=SIZE, prefix=True)
    assert simulate(work, replace(with_cache, prefix=False)).finish == simulate(
        work, Engine(cost, "chunked", seqs=1, block_size=SIZE)
    ).finish  # without a cache nobody is preferred


def test_a_small_cache_saves_more_when_the_queue_looks_into_it() -> None:
    """Fifteen prefixes asked for in turn, a pool that holds four prompts: in order of arrival none is found."""
    mix = Mix((8,) * 15, 15, 16)
    work = mix.workload([p for _ in range(8) for p in range(15)])
    work = replace(work, arrival=column([0] * len(work)))
    cost = Cost(graph=PS, mixed=PS, eager=PS)
    found = {}
    for policy in ("chunked", "prefix"):
        log = simulate(work, Engine(cost, policy, seqs=1, blocks=4 * 16, block_size=16, prefix=True))
        found[policy] = sum(log.cached) / sum(work.prompt)
    assert found["chunked"] == 0
    assert found["prefix"] == pytest.approx(15 / 16 * (1 - 1 / 8))
