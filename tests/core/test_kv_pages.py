"""The three schemes side by side, against closed forms and published counts."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from servelab import kv
from servelab.kv.pages import EXAMPLES, PRIVATE, compare, conversations, private_lengths


def ceil(a, b):
    return -(-a // b)


def example():
    e = EXAMPLES["shared-prefix"]
    return compare(e.requests, block_size=e.block_size, max_len=e.max_len, blocks=e.blocks)


def test_the_shared_prefix_example_is_504_428_204():
    """8 conversations, 512 shared tokens, slots of 1,008: paging saves 15.1 %, sharing another 44.4 points."""
    rows = example().rows
    assert [rows[s].blocks for s in ("preallocated", "paged", "shared")] == [504, 428, 204]
    assert rows["paged"].saved == pytest.approx(0.1508, abs=5e-5)
    assert rows["shared"].saved - rows["paged"].saved == pytest.approx(0.444, abs=5e-4)
    assert rows["preallocated"].waste == 1 - (8 * 512 + sum(PRIVATE)) / (504 * 16)
    assert (rows["paged"].waste, rows["shared"].waste) == (0, 0)
    assert (rows["paged"].used, rows["shared"].used) == (8 * 512 + 2752, 512 + 2752)


def test_21_conversations_fit_where_8_did():
    """⌊(504 − 32) / 21.5⌋ = 21 at the mean private length, 2.6 times as many."""
    c = example()
    assert (c.conversations, c.prefix_blocks, c.fits, c.ratio) == (8, 32, (504 - 32) * 2 // 43, 2.625)
    assert c.fits == 21


def test_21_conversations_do_fit_and_22_do_not():
    """The promise kept by the simulator: equal private lengths of 344 tokens in the pool of 504 blocks."""
    for n, fits in ((21, True), (22, False)):
        requests = list(conversations(n, 512, 344, gap=0))
        equal = [type(r)(r.id, 0, ((0, 512), (r.id + 1, 172)), 172) for r in requests]
        blocks = compare(equal, block_size=16, blocks=504).rows["shared"].blocks
        assert (blocks <= 504) == fits


def test_the_block_map_shares_exactly_the_prefix():
    tables = example().tables["shared"]
    assert [len(table) for table in tables] == [ceil(512 + p, 16) for p in PRIVATE]
    assert all(table[:32] == tuple(range(32)) for table in tables)
    own = [cell for table in tables for cell in table[32:]]
    assert len(set(own)) == len(own) == 172
    assert set(own) == set(range(32, 204))


@given(st.integers(1, 12), st.integers(0, 60), st.integers(4, 90), st.integers(1, 9), st.integers(1, 3))
@settings(max_examples=80, deadline=None)
def test_blocks_at_completion_follow_the_closed_form(n, prefix, mean, size, tenants):
    requests = conversations(n, prefix, mean, tenants=tenants)
    lengths = [r.tokens + r.output for r in requests]
    c = compare(requests, block_size=size)
    assert c.rows["preallocated"].blocks == n * ceil(max(lengths), size)
    assert c.rows["paged"].blocks == sum(ceil(length, size) for length in lengths)
    whole = prefix // size
    groups = [sum(i % tenants == g for i in range(n)) for g in range(tenants)]
    saved = whole * sum(max(members - 1, 0) for members in groups)
    assert c.rows["shared"].blocks == c.rows["paged"].blocks - saved
    assert c.prefix_blocks == whole * sum(members > 1 for members in groups)
    for name in ("preallocated", "paged"):
        assert c.rows[name].used == sum(lengths)
    assert c.rows["shared"].used == sum(lengths) - saved * size


@given(st.integers(1, 6), st.integers(1, 3), st.integers(1, 3), st.integers(16, 64))
@settings(max_examples=30, deadline=None)
def test_completion_counts_do_not_depend_on_the_pool_when_nothing_is_shared(n, turns, samples, mean):
    """Waiting and preemption change when a conversation ends and not what it holds then."""
    requests = conversations(n, 32, mean, turns=turns, samples=samples)
    least = max(ceil(r.tokens + r.output, 8) for r in requests)
    tight, roomy = (compare(requests, block_size=8, blocks=b) for b in (least, 5000))
    for name in ("preallocated", "paged"):
        assert tight.rows[name].blocks == roomy.rows[name].blocks
        assert tight.rows[name].used == roomy.rows[name].used
        assert tight.rows[name].peak <= least
    assert roomy.rows["paged"].preemptions == roomy.rows["shared"].evictions == 0


def test_samples_share_the_prompt_and_copy_its_partial_tail():
    c = compare(conversations(1, 20, 20, samples=4), block_size=8)
    assert [c.rows[s].blocks for s in ("paged", "shared")] == [4 * 5, 3 + 4 * 2]


@given(st.integers(1, 70), st.integers(2, 5000))
def test_private_lengths_keep_the_mean_and_the_order(n, mean):
    lengths = private_lengths(n, mean)
    assert len(lengths) == n and min(lengths) >= 1
    assert sum(lengths) == pytest.approx(n * mean, abs=n / 2)
    assert lengths == sorted(lengths, reverse=True)


def test_private_lengths_are_the_examples_own():
    assert private_lengths(8, 344) == list(PRIVATE)
    assert private_lengths(8, 688) == [2 * p for p in PRIVATE]
    assert private_lengths(15, 344)[::2] == pytest.approx(list(PRIVATE), abs=6)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: conversations(0, 1, 9), "0 conversations"),
        (lambda: conversations(1, -1, 9), "prefix -1"),
        (lambda: conversations(1, 1, 1), "1 private tokens"),
        (lambda: conversations(1, 1, 9, turns=0), "turns 0"),
        (lambda: conversations(1, 1, 9, samples=0), "samples 0"),
        (lambda: conversations(8, 0, 2), "1 in all"),
        (lambda: compare([], block_size=16), "0 requests"),
        (lambda: compare(conversations(8, 512, 344), block_size=0), "block size 0"),
        (lambda: compare(conversations(8, 512, 344), block_size=16, blocks=62), "use a pool of at least 63 blocks"),
        (lambda: compare(conversations(8, 512, 344), block_size=16, blocks=0), "blocks 0"),
    ],
)
def test_errors_name_the_value_and_the_fix(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_the_room_lists_its_modules_and_its_example_runs():
    text = kv.__doc__ or ""
    example = text.split("\n\n    memory")[0].split("\n", 2)[2]
    names = {}
    exec("\n".join(line.strip() for line in example.splitlines()), names)
    blocks = {name: row.blocks for name, row in names["result"].rows.items()}
    assert (blocks["shared"], blocks["preallocated"]) == (204, 504) and "204, where preallocation takes 504" in text
    modules = {path.stem for path in Path(kv.__file__).parent.glob("*.py")} - {"__init__"}
    assert {name for name in modules if f"{name} (" not in text} == set()
