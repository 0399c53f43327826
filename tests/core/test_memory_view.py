"""The memory panels against a second reading of the same log: `servelab.kv.log.replay`, tick by tick."""

from bisect import bisect_right
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servelab.kv.log import Log, replay
from servelab.kv.pages import conversations
from servelab.kv.simulate import SCHEMES, simulate
from servelab.view.blocks import CACHED, FREE, SHARED
from servelab.view.memory import Fold, pool_panel, story_panel, tables_panel, tree_panel

RUNS = st.tuples(
    st.integers(1, 6), st.integers(0, 90), st.integers(8, 120), st.integers(1, 3), st.integers(1, 3),
    st.sampled_from([1, 5, 16, 64]), st.integers(0, 60), st.sampled_from(sorted(SCHEMES)),
)  # fmt: skip


def run(n: int, prefix: int, mean: int, turns: int, samples: int, block: int, spare: int, scheme: str) -> Log:
    requests = conversations(n, prefix, mean, turns, samples)
    longest = max(-(-(r.tokens + r.output) // block) for r in requests)
    return simulate(requests, blocks=longest + spare, block_size=block, scheme=scheme)


def at(ticks, values, tick: int) -> float:
    """A piecewise-linear curve at a tick."""
    i = bisect_right(ticks, tick) - 1
    if ticks[i] == tick or i + 1 == len(ticks):
        return values[i]
    return values[i] + (values[i + 1] - values[i]) * (tick - ticks[i]) / (ticks[i + 1] - ticks[i])


@settings(max_examples=60, deadline=None)
@given(RUNS)
def test_the_usage_curve_is_the_replayed_state_at_every_tick(case):
    log = run(*case)
    curve = Fold(log).usage()
    assert all(a < b for a, b in pairwise(curve.t))
    for tick in range(0, log.end + 1, max(1, log.end // 40)):
        state = replay(log, tick)
        assert at(curve.t, curve.used, tick) == pytest.approx(sum(state.fill(b) for b in state.refs), abs=1e-6)
        assert curve.allocated[bisect_right(curve.t, tick) - 1] == len(state.refs)


@settings(max_examples=60, deadline=None)
@given(RUNS, st.floats(0, 1))
def test_pool_rows_rebuild_the_pool_at_any_tick(case, share):
    log = run(*case)
    tick = int(share * log.end)
    panel, state = pool_panel(Fold(log), "p", "P", ""), replay(log, tick)
    assert list(panel.t.data) == sorted(panel.t.data)
    last = {}
    columns = (panel.t, panel.block, panel.state, panel.refs, panel.fill, panel.grow)
    for t, block, kind, refs, fill, grow in zip(*(c.data for c in columns), strict=True):
        if t <= tick:
            last[block] = (kind, refs, fill + min(grow, tick - t))
    for block in range(log.blocks):
        kind, refs, fill = last.get(block, (FREE, 0, 0))
        assert refs == state.refs.get(block, 0)
        assert (kind == CACHED) == (block in state.parked)
        assert (kind == SHARED) == (refs > 1)
        if refs:
            assert fill == state.fill(block)


@settings(max_examples=40, deadline=None)
@given(RUNS, st.floats(0, 1))
def test_table_and_tree_rows_rebuild_tables_and_nodes(case, share):
    log = run(*case)
    tick = int(share * log.end)
    state, tables, nodes = replay(log, tick), {}, {}
    panel = tables_panel(log, "T", "below")
    for t, row, slot, block in zip(*(c.data for c in (panel.t, panel.row, panel.slot, panel.block)), strict=True):
        if t <= tick:
            tables[row, slot] = block
    held = {(seq, slot): block for seq, table in state.tables.items() for slot, block in enumerate(table)}
    assert {key: block for key, block in tables.items() if block >= 0} == held
    tree = tree_panel(Fold(log), "N", "below")
    for t, node, block, kind in zip(*(c.data for c in (tree.t, tree.node, tree.block, tree.state)), strict=True):
        if t <= tick:
            nodes[node] = (block, kind)
    assert {block: node for node, (block, kind) in nodes.items() if kind != FREE} == state.nodes


def test_every_story_line_can_be_told():
    log = run(4, 40, 90, 2, 2, 16, 3, "shared")
    panel = story_panel(log, "S", "side")
    assert len(panel.t.data) and all(0 <= i < len(panel.templates) for i in panel.template.data)
