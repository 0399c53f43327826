"""Prefix reuse against a list that is searched, against replays, and against published counts."""

import json
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servelab.kv.eviction import belady_hits, lru, lru_hits
from servelab.kv.reuse import Hits, distances, from_plain, lru_table, replay, reuse_table, stack_distances, stream
from servelab.kv.trace import Trace, read

blocks = st.lists(st.integers(0, 12), max_size=80)


def trace(prompts: list[list[int]], short: int = 0) -> Trace:
    """One request per list of block ids; each prompt ends `short` tokens before its last block does."""
    tokens = tuple(512 * len(ids) - short if ids else 1 for ids in prompts)
    return Trace("t", "", tokens, (1,) * len(prompts), hash_ids=tuple(map(tuple, prompts)))


def chained(prompts: list[list[int]]) -> list[list[int]]:
    """Block ids as a prefix hash gives them: equal ids mean equal blocks after equal prefixes."""
    seen: dict[tuple[int, ...], int] = {}
    return [[seen.setdefault(tuple(ids[: i + 1]), len(seen)) for i in range(len(ids))] for ids in prompts]


@given(references=blocks)
def test_stack_distance_is_the_place_in_a_move_to_front_list(references):
    front: list[int] = []
    expected = []
    for block in references:
        expected.append(front.index(block) + 1 if block in front else 0)
        front = [block, *(other for other in front if other != block)]
    assert stack_distances(references) == expected


def test_a_run_after_a_new_block_is_counted_from_its_start():
    assert stack_distances([7, 8, 9, 1, 8, 9, 7, 7]) == [0, 0, 0, 0, 3, 3, 4, 1]


@given(references=blocks.filter(bool), capacity=st.integers(1, 14))
def test_the_curve_is_what_an_lru_replay_gives(references, capacity):
    prompts = [references[:5], references[5:11], references[11:]]
    t = trace(prompts, 100)
    flags = lru(references, capacity)
    counted = distances(t, [capacity, 3]).at(capacity)
    assert counted == replay(t, "lru", capacity)
    assert counted.blocks == sum(flags) == lru_hits(references, capacity)


@given(prompts=st.lists(st.lists(st.integers(0, 3), max_size=5), min_size=1, max_size=15), capacity=st.integers(1, 9))
def test_usable_hits_are_the_leading_run(prompts, capacity):
    t = trace(prompts, 12)
    if not any(prompts):
        return
    flags = iter(lru(stream(t), capacity))
    usable = tokens = 0
    for ids in prompts:
        leading = list(accumulate((next(flags) for _ in ids), min))
        usable += sum(leading)
        tokens += sum(512 - 12 * (i == len(ids) - 1) for i, hit in enumerate(leading) if hit)
    assert replay(t, "lru", capacity)[2:] == distances(t, [capacity]).at(capacity)[2:] == (usable, tokens)


@given(prompts=st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=6), min_size=1, max_size=20))
def test_prefix_hashes_make_every_lru_hit_usable(prompts):
    counted = distances(trace(chained(prompts)), range(1, 30))
    for capacity in (None, *counted.edges):
        hits = counted.at(capacity)
        assert (hits.blocks, hits.tokens) == (hits.usable_blocks, hits.usable_tokens)


def test_without_prefix_hashes_a_later_hit_is_no_use():
    assert replay(trace([[1, 2], [3, 2]], 412)) == Hits(1, 100, 0, 0)


@given(references=blocks.filter(bool), capacity=st.integers(1, 14))
def test_belady_lies_between_lru_and_an_infinite_cache(references, capacity):
    table = reuse_table(trace([references]), [capacity])
    assert table[f"lru_{capacity}_hits"] <= table[f"belady_{capacity}_hits"] <= table["infinite_hits"]
    assert table[f"belady_{capacity}_hits"] == belady_hits(references, capacity)
    assert table["infinite_hits"] == len(references) - len(set(references))


@given(references=blocks.filter(bool))
def test_the_histogram_survives_json(references):
    counted = distances(trace([references]), [2, 5])
    assert from_plain(json.loads(json.dumps(counted.plain()))) == counted


def test_metrics_are_shares_of_references_and_of_prompt_tokens():
    table = lru_table(distances(trace([[1, 2], [1, 2, 3]], 12), [1]))
    assert table["references"] == 5 and table["prompt_tokens"] == 5 * 512 - 24 and table["distinct_blocks"] == 3
    assert table["infinite_hit_percent"] == 40.0 and table["lru_1_hits"] == 0
    assert table["infinite_hit_token_percent"] == pytest.approx(100 * 1_024 / 2_536)


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda t: replay(t, "lru", 0), "blocks=0 is outside 1 to .*; or inf for no limit"),
        (lambda t: replay(t, "mru", 5), "policy='mru' is unknown; use one of lru, .*belady"),
        (lambda t: distances(t, [-3]), "blocks=-3 is outside 1 to"),
        (lambda t: distances(t, [3]).at(4), r"blocks=4 is not counted; use one of \(3,\) or None"),
        (lambda t: stream(Trace("lengths.csv", "", (5,), (5,))), "lengths.csv has 0 block hashes.*give a trace"),
        (lambda t: replay(trace([[]])), "t has 0 block hashes"),
        (lambda t: from_plain({}), "no distance histogram .*; give what Distances.plain wrote"),
        (lambda t: from_plain(distances(t, [3]).plain() | {"edges": [3, 3]}), r"2 bins at edges \(3, 3\); give rising"),
        (lambda t: from_plain(distances(t, [3]).plain() | {"references": 0}), "references=0 is outside 1"),
    ],
)
def test_a_refused_value_names_its_range_and_the_fix(act, words):
    with pytest.raises(ValueError, match=words):
        act(trace([[1, 2], [1]]))


COLLECTED = [
    ("mooncake_fast25_conversation", 288_500, 105_710, 36.641, 37.362),
    ("mooncake_fast25_synthetic", 121_877, 77_953, 63.960, 65.124),
]


@pytest.mark.parametrize(("name", "references", "hits", "percent", "tokens"), COLLECTED)
def test_mooncake_in_an_infinite_cache(outside, name, references, hits, percent, tokens):
    table = lru_table(distances(read(outside(f"traces/{name}.jsonl.gz")), []))
    assert (table["references"], table["infinite_hits"]) == (references, hits)
    assert round(table["infinite_hit_percent"], 3) == percent
    assert round(table["infinite_hit_token_percent"], 3) == tokens


@pytest.mark.parametrize("name", [row[0] for row in COLLECTED])
def test_mooncake_lru_curve_equals_the_collected_one(outside, name):
    curve = json.loads(outside("traces/trace_summary.json").read_text())[name]["lru_capacity_curve"]
    requests = read(outside(f"traces/{name}.jsonl.gz"))
    counted = distances(requests, [point["capacity_blocks"] for point in curve if point["capacity_blocks"]])
    for point in curve:
        share = counted.at(point["capacity_blocks"]).tokens / counted.prompt_tokens
        assert share == pytest.approx(point["hit_token_share"], abs=5.1e-6)
    assert counted.at(10_000).blocks == lru_hits(stream(requests), 10_000)
