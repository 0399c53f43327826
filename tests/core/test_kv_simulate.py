"""The simulator against a tick-by-tick second implementation, an audit of every log, and logs worked out by hand."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kv_audit import Audit, tick_by_tick

from servelab.kv.log import KINDS, completed, replay, usage
from servelab.kv.pages import conversations
from servelab.kv.request import Request, block_contents, output_content
from servelab.kv.simulate import SCHEMES, simulate


@st.composite
def workloads(draw):
    """A few requests over three texts, with turns, samples, namespaces; a pool that holds the largest alone or more."""
    requests = []
    for number in range(draw(st.integers(1, 7))):
        lengths = draw(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 9)), min_size=1, max_size=3))
        prompt = tuple(lengths) if sum(n for _, n in lengths) else ((0, 4),)
        after = -1
        if requests and draw(st.booleans()):
            past = draw(st.sampled_from(requests))
            after = past.id if draw(st.booleans()) else -1
            prompt = (*past.prompt, (output_content(past.id), past.output), *prompt)[:8]
        requests.append(Request(
            number, draw(st.integers(0, 12)), prompt, draw(st.integers(0, 12)), draw(st.integers(1, 3)),
            draw(st.sampled_from((0, "b"))), after=after,
        ))
    size = draw(st.integers(1, 5))
    most = max(-(-(r.tokens + r.output) // size) for r in requests)
    return requests, most + draw(st.integers(0, 12)), size


@given(workloads())
@settings(max_examples=250, deadline=None)
def test_every_log_audits_in_every_scheme(work):
    """atlas#1193, vllm#3347 and the rest: tables read back their own tokens, refs are sums, nothing leaks."""
    requests, blocks, size = work
    for scheme in SCHEMES:
        log = simulate(requests, blocks=blocks, block_size=size, scheme=scheme)
        audit = Audit(log, requests).run()
        assert usage(log) == audit.usage
        final = replay(log)
        assert (final.tables, final.refs) == ({}, {})
        assert (final.parked, final.nodes) == (audit.parked, audit.node)
        assert {seq for seq, _ in completed(log)} == set(range(len(log.seqs)))
        assert {e.kind for e in log.events} <= set(KINDS)
        assert [e.t for e in log.events] == sorted(e.t for e in log.events)


@given(workloads())
@settings(max_examples=300, deadline=None)
def test_paged_equals_the_tick_by_tick_scheduler(work):
    requests, blocks, size = work
    requests = [Request(r.id, r.arrival, r.prompt, r.output, r.samples) for r in requests]
    log = simulate(requests, blocks=blocks, block_size=size, scheme="paged")
    events = [(e.t, e.kind, e.seq) for e in log.events if e.kind in ("admit", "preempt", "finish")]
    assert events == tick_by_tick(requests, blocks, size)


@given(workloads(), st.data())
@settings(max_examples=100, deadline=None)
def test_replay_at_any_tick_has_refs_equal_to_the_sum_of_tables(work, data):
    requests, blocks, size = work
    log = simulate(requests, blocks=blocks, block_size=size, scheme="shared")
    state = replay(log, data.draw(st.integers(0, log.end)))
    held = [block for table in state.tables.values() for block in table]
    assert {block: held.count(block) for block in held} == state.refs
    assert not set(held) & state.parked
    assert all(0 <= state.fill(block) <= size for block in state.refs)
    assert all(state.fill(block) == size for block in state.parked)


def test_one_sequence_event_by_event():
    log = simulate([Request(5, 3, ((0, 5),), 4)], blocks=4, block_size=4, scheme="shared")
    assert [tuple(e) for e in log.events] == [
        (3, "admit", 0, -1, -1, 5, 0, 0),
        (3, "alloc", 0, 0, 0, 0, 1, -1),
        (3, "prefill", 0, 0, 0, 4, 0, 0),
        (3, "hash", 0, 0, 0, -1, 0, 0),
        (3, "alloc", 0, 1, 1, 0, 1, -1),
        (3, "prefill", 0, 1, 1, 1, 0, 0),
        (4, "decode", 0, 1, 1, 3, 0, 1),
        (7, "hash", 0, 1, 1, 0, 0, 1),
        (7, "alloc", 0, 2, 2, 0, 1, -1),
        (7, "decode", 0, 2, 2, 1, 0, 0),
        (8, "finish", 0, -1, -1, 0, 0, -1),
        (8, "release", 0, 2, 2, 0, 0, -1),
        (8, "free", -1, 2, -1, 0, 0, -1),
        (8, "release", 0, 1, 1, 0, 0, -1),
        (8, "park", -1, 1, -1, 0, 0, -1),
        (8, "release", 0, 0, 0, 0, 0, -1),
        (8, "park", -1, 0, -1, 0, 0, -1),
    ]
    assert [replay(log, t).fill(1) for t in range(3, 8)] == [1, 2, 3, 4, 4]
    assert usage(log) == [(3, 2, 0), (7, 3, 0), (8, 0, 2)]


def test_a_full_pool_preempts_the_last_admitted_and_readmits_it_first():
    requests = [Request(i, i, ((i, 4),), 8) for i in range(3)]
    log = simulate(requests, blocks=5, block_size=4, scheme="paged")
    story = [(e.t, e.kind, e.seq) for e in log.events if e.kind in ("admit", "preempt", "finish", "wait")]
    assert story == [
        (0, "admit", 0), (1, "admit", 1), (2, "wait", 2), (6, "preempt", 1), (6, "wait", 1), (9, "finish", 0),
        (9, "admit", 1), (9, "admit", 2), (14, "finish", 1), (18, "finish", 2),
    ]
    assert [e.tokens for e in log.events if e.kind == "admit" and e.seq == 1] == [4, 8], "prompt and all it generated"


def test_samples_fork_after_prefill_and_copy_the_tail_when_they_write():
    """vllm#3347: parallel samples share the prompt's partial tail until they write."""
    log = simulate([Request(0, 0, ((0, 6),), 2, samples=3)], blocks=8, block_size=4, scheme="shared")
    assert [(e.seq, e.other) for e in log.events if e.kind == "fork"] == [(1, 0), (2, 0)]
    assert [(e.t, e.seq, e.refs) for e in log.events if e.kind == "copy"] == [(1, 0, 2), (1, 1, 1)]
    assert usage(log) == [(0, 2, 0), (1, 4, 0), (3, 0, 1 + 3)]


def test_turns_wait_for_the_turn_before_and_reuse_it():
    requests = conversations(1, 32, 64, turns=3)
    log = simulate(requests, blocks=40, block_size=16, scheme="shared")
    admits = [(e.t, e.tokens, e.other) for e in log.events if e.kind == "admit"]
    assert admits == [(0, 64, 0), (37, 128, 96), (74, 192, 160)]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_pool_smaller_than_one_request_names_request_need_pool_and_fix(scheme):
    requests = [Request(0, 0, ((0, 8),), 8), Request(3, 0, ((0, 30),), 11)]
    with pytest.raises(ValueError, match=r"request \d needs 11 blocks of 4 .* pool has 10; use a pool of at least 11"):
        simulate(requests, blocks=10, block_size=4, scheme=scheme)
    assert simulate(requests, blocks=11, block_size=4, scheme=scheme).end > 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Request(0, 0, (), 1), "1 in all"),
        (lambda: Request(0, 0, ((0, -2), (1, 3)), 1), "0 or more tokens"),
        (lambda: Request(0, -1, ((0, 1),), 1), "arrival -1"),
        (lambda: Request(0, 0, ((0, 1),), 1, samples=0), "samples 0"),
        (lambda: simulate([], blocks=1, block_size=1, scheme="magic"), "'magic' is unknown; use one of preallocated"),
        (lambda: simulate([], blocks=1, block_size=0, scheme="paged"), "block size 0"),
        (lambda: simulate([Request(1, 0, ((0, 1),), 0)] * 2, blocks=9, block_size=1, scheme="paged"), "occurs twice"),
        (lambda: simulate([Request(1, 0, ((0, 1),), 0, after=7)], blocks=9, block_size=1, scheme="paged"), "listed"),
        (
            lambda: simulate([Request(1, 0, ((0, 9),), 0)], blocks=9, block_size=1, scheme="preallocated", max_len=8),
            "max_len of at least 9",
        ),
        (lambda: replay(simulate([], blocks=1, block_size=1, scheme="paged"), 1), "tick 1 is outside 0…0"),
    ],
)
def test_errors_name_the_value_and_the_fix(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 7)), max_size=6), st.integers(1, 5))
def test_block_contents_are_equal_exactly_if_tokens_are(segments, size):
    tokens = [(content, k) for content, length in segments for k in range(length)]
    blocks = [tuple(tokens[i : i + size]) for i in range(0, len(tokens) - size + 1, size)]
    contents = block_contents(segments, size)
    assert len(contents) == len(blocks)
    assert [[a == b for a in contents] for b in contents] == [[a == b for a in blocks] for b in blocks]


def test_cost_follows_blocks_and_not_tokens():
    short = simulate([Request(0, 0, ((0, 1),), 10**3)], blocks=10, block_size=128, scheme="paged")
    long = simulate([Request(0, 0, ((0, 1),), 10**9)], blocks=10, block_size=128 * 10**6, scheme="paged")
    assert len(long.events) == len(short.events)
