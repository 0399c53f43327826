"""Eviction policies against naive second implementations, brute force, and published counts."""

import gzip
import json
import random
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servelab.kv.eviction import POLICIES, belady, belady_hits, infinite_hits, lru, lru_hits, next_use

STREAMS = st.lists(st.integers(0, 8), max_size=60)


def naive(refs, capacity, victim):
    """One list scan per reference: `victim(resident, i)` names who leaves."""
    resident, hits = [], 0
    for i, block in enumerate(refs):
        if block in resident:
            hits += 1
        else:
            if len(resident) == capacity:
                resident.remove(victim(resident, i))
            resident.append(block)
    return hits


def last_use(refs, block, i):
    return max(j for j in range(i) if refs[j] == block)


def future_use(refs, block, i):
    return next((j for j in range(i, len(refs)) if refs[j] == block), len(refs))


def naive_lfu(refs, capacity):
    resident, hits = {}, 0
    for i, block in enumerate(refs):
        if block in resident:
            hits += 1
            resident[block] = resident[block][0] + 1, i
        else:
            if len(resident) == capacity:
                del resident[min(resident, key=lambda b: resident[b])]
            resident[block] = 1, i
    return hits


@given(STREAMS, st.integers(1, 9))
@settings(max_examples=300, deadline=None)
def test_policies_equal_their_definitions(refs, capacity):
    expected = {
        "lru": naive(refs, capacity, lambda resident, i: min(resident, key=lambda b: last_use(refs, b, i))),
        "fifo": naive(refs, capacity, lambda resident, i: resident[0]),
        "lfu": naive_lfu(refs, capacity),
        "belady": naive(refs, capacity, lambda resident, i: max(resident, key=lambda b: future_use(refs, b, i))),
    }
    assert {name: policy(refs, capacity).count(1) for name, policy in POLICIES.items()} == expected


@given(st.lists(st.integers(0, 4), max_size=11), st.integers(1, 3))
@settings(max_examples=200, deadline=None)
def test_belady_equals_the_best_of_all_eviction_choices(refs, capacity):
    """Exhaustive search over who leaves at every miss, every miss inserting."""
    refs = tuple(refs)

    @cache
    def best(i, resident):
        if i == len(refs):
            return 0
        if refs[i] in resident:
            return 1 + best(i + 1, resident)
        if len(resident) < capacity:
            return best(i + 1, resident | {refs[i]})
        return max(best(i + 1, resident - {gone} | {refs[i]}) for gone in resident)

    assert belady_hits(refs, capacity) == best(0, frozenset())


@given(STREAMS, st.integers(1, 9))
@settings(max_examples=200, deadline=None)
def test_lru_keeps_inclusion_and_no_policy_beats_belady(refs, capacity):
    assert lru_hits(refs, capacity) <= lru_hits(refs, capacity + 1) <= infinite_hits(refs)
    best = belady_hits(refs, capacity)
    assert all(policy(refs, capacity).count(1) <= best for policy in POLICIES.values())
    assert belady_hits(refs, 9) == lru_hits(refs, 9) == infinite_hits(refs)


def test_flags_point_at_the_hits():
    assert list(lru([1, 2, 1, 3, 2, 3], 2)) == [0, 0, 1, 0, 0, 1]
    assert list(belady([1, 2, 1, 3, 2, 3], 2)) == [0, 0, 1, 0, 1, 1]
    assert next_use([5, 6, 5, 5]) == [2, 5, 3, 7]


def test_a_cyclic_scan_is_the_worst_case_of_lru():
    """A loop over capacity + 1 blocks: LRU never hits, the optimum hits all but one in `capacity`."""
    capacity, rounds = 10, 30
    refs = list(range(capacity + 1)) * rounds
    assert lru_hits(refs, capacity) == 0
    assert belady_hits(refs, capacity) == pytest.approx(len(refs) * (1 - 1 / capacity), rel=0.05)


def test_capacity_below_one_is_refused():
    for policy in POLICIES.values():
        with pytest.raises(ValueError, match="capacity 0 is outside 1"):
            policy([1], 0)


@pytest.mark.parametrize(
    ("name", "references", "infinite", "shares"),
    [
        ("conversation", 288_500, 105_710, {1000: 0.04536, 10_000: 0.21531, 30_000: 0.33211}),
        ("synthetic", 121_877, 77_953, {1000: 0.08403, 10_000: 0.4313, 30_000: 0.6356}),
    ],
)
def test_mooncake_counts(outside, name, references, infinite, shares):
    """Reference counts of the FAST'25 traces, and the LRU curve of an independent replay (share of prompt tokens)."""
    with gzip.open(outside(f"traces/mooncake_fast25_{name}.jsonl.gz"), "rt") as lines:
        rows = [json.loads(line) for line in lines]
    refs = [block for row in rows for block in row["hash_ids"]]
    assert (len(refs), infinite_hits(refs)) == (references, infinite)
    sizes = [min(512, row["prompt_tokens"] - 512 * i) for row in rows for i in range(len(row["hash_ids"]))]
    prompt = sum(row["prompt_tokens"] for row in rows)
    for capacity, share in shares.items():
        hit_tokens = sum(size for size, hit in zip(sizes, lru(refs, capacity), strict=True) if hit)
        assert hit_tokens / prompt == pytest.approx(share, abs=5e-6)
        assert lru_hits(refs, capacity) <= belady_hits(refs, capacity) <= infinite


def test_policies_do_not_depend_on_block_names():
    rng = random.Random(1)
    refs = [rng.randrange(200) ** 2 for _ in range(3000)]
    names = {block: -7 * i for i, block in enumerate(dict.fromkeys(refs))}
    for policy in POLICIES.values():
        assert policy(refs, 40) == policy([names[block] for block in refs], 40)
