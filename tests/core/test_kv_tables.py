"""Block tables: copy-on-write, forks, growth, and errors."""

import pytest
from kv_world import World

from servelab.kv.log import Log, replay
from servelab.kv.prefix import PrefixCache, full_blocks
from servelab.kv.slots import Slots
from servelab.kv.tables import Tables


def copies(world):
    return [(e.seq, e.block, e.other, e.tokens) for e in world.tables.events if e.kind == "copy"]


def test_forked_tails_diverge_after_both_append():
    """atlas#1193, vllm#3347: a partly filled tail block was shared without a copy."""
    world = World(8, 4)
    parent = world.admit([0, 1, 2, 0, 1, 2], 0)
    child = world.fork(parent)
    assert world.tables.tables[child] == world.tables.tables[parent] == [0, 1]
    assert world.append(child, 1)
    assert world.append(parent, 2)
    assert copies(world) == [(child, 2, 1, 2)]
    assert world.tables.tables == {parent: [0, 1], child: [0, 2]}
    assert [world.content[b] for b in (1, 2)] == [[1, 2, 2], [1, 2, 1]]
    assert world.tables.pool.refs == [2, 1, 1]
    world.release(parent)
    world.release(child)
    assert set(world.tables.pool.refs) == {0}
    assert world.tables.pool.available == 8
    world.tables.check()


@pytest.mark.parametrize("samples", [2, 3, 5])
def test_the_last_writer_of_a_shared_tail_writes_in_place(samples):
    """atlas#1193, vllm#3347: n forks of one tail take n − 1 copies."""
    world = World(16, 4)
    seqs = [world.admit([0, 1, 2, 0, 1], 0)]
    seqs += [world.fork(seqs[0]) for _ in range(samples - 1)]
    for token, seq in enumerate(seqs):
        world.append(seq, token)
    assert len(copies(world)) == samples - 1
    assert len({table[-1] for table in world.tables.tables.values()}) == samples
    for seq in seqs:
        world.release(seq)
    assert world.tables.pool.in_use == 0


def test_a_fork_at_a_block_boundary_copies_nothing():
    world = World(8, 4)
    parent = world.admit([0, 1, 2, 0], 0)
    child = world.fork(parent)
    world.append(parent, 1)
    world.append(child, 1)
    assert copies(world) == []
    assert world.tables.tables == {parent: [0, 1], child: [0, 2]}


def test_generated_blocks_are_reused_by_the_next_turn():
    world = World(16, 2)
    first = world.admit([0, 1, 2], 0)
    for token in (0, 1, 2, 2):
        world.append(first, token)
    history, _ = world.release(first)
    before = len(world.tables.events)
    world.admit([*history, 1, 1], 0)
    assert world.tables.events[before].other == 6


def test_preempted_work_is_found_again_as_far_as_it_was_not_evicted():
    world = World(6, 2)
    seq = world.admit([0, 1, 2, 0, 1, 2], 0)
    for token in (1, 1, 0):
        world.append(seq, token)
    world.preempt(seq)
    assert world.tables.pool.evictable == 4
    other = world.admit([2] * 6, 0)
    assert world.tables.pool.evictable == 3
    world.release(other)
    before = len(world.tables.events)
    world.admit(*world.waiting.pop(0))
    assert world.tables.events[before].other == 6, "the tail was evicted, the head is found"


def test_a_prompt_needs_no_more_than_its_uncached_blocks():
    tables = Tables(5, 4, PrefixCache())
    text = list(range(12))
    tables.admit(0, 12, full_blocks(text, 4))
    plan = tables.plan(14, full_blocks([*text, 0, 0], 4))
    assert ([node.id for node in plan.hits], plan.need, plan.available) == ([0, 1, 2], 1, 2)
    tables.release(0)
    plan = tables.plan(14, full_blocks([*text, 0, 0], 4))
    assert (plan.need, plan.available) == (4, 5), "cached blocks that come back into use are no longer available"


def test_replay_rebuilds_tables_refs_and_fills():
    world = World(12, 3)
    a = world.admit([0, 1, 2, 0, 1, 2, 0], 0)
    b = world.fork(a)
    world.append(b, 2)
    world.append(a, 1)
    world.append(a, 1)
    state = replay(Log("shared", 12, 3, world.tables.now, (), tuple(world.tables.events)))
    assert state.tables == world.tables.tables
    assert [state.refs[block] for block in sorted(state.refs)] == world.tables.pool.refs
    assert {block: state.fill(block) for block in state.refs} == {b: len(c) for b, c in world.content.items()}
    assert state.nodes == world.node


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda t: t.admit(0, 4), "sequence 0 has a table already"),
        (lambda t: t.admit(1, 40), "needs 10 blocks, 3 are available"),
        (lambda t: t.admit(1, 0), "0 tokens and 0 spare"),
        (lambda t: t.reserve(9, 1), "sequence 9 has no table"),
        (lambda t: t.reserve(0, 0), "0 tokens to reserve"),
        (lambda t: t.commit(0, 4), r"outside 0…3; reserve room"),
        (lambda t: t.fork(0, 0), "sequence 0 has a table already"),
        (lambda t: t.fork(9, 1), "sequence 9 has no table"),
        (lambda t: t.release(9), "sequence 9 has no table"),
    ],
)
def test_errors_name_the_fix_and_change_nothing(call, message):
    tables = Tables(4, 4)
    tables.admit(0, 1)
    events = len(tables.events)
    with pytest.raises(ValueError, match=message):
        call(tables)
    tables.check()
    assert len(tables.events) == events
    assert (tables.tables, tables.lengths) == ({0: [0]}, {0: 1})


def test_slots_are_contiguous_disjoint_and_reused_lowest_first():
    slots = Slots(10, 4, 11)
    assert slots.admit(0, 5) == slots.admit(1, 1) == slots.admit(2, 11) == 0
    assert slots.tables == {0: [0, 1, 2], 1: [3, 4, 5], 2: [6, 7, 8]}
    with pytest.raises(ValueError, match="needs a new slot of 3 blocks, 0 are free"):
        slots.admit(3, 1)
    slots.release(1)
    slots.admit(3, 1)
    slots.check()
    assert slots.tables[3] == [3, 4, 5]
    with pytest.raises(ValueError, match="outside 1…12"):
        slots.plan(13)
    with pytest.raises(ValueError, match="slots are private"):
        slots.fork(0, 4)
