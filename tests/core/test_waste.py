"""The three definitions of waste, against their wording taken literally and against published numbers."""

import json
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servelab.kv.trace import Trace, read
from servelab.kv.waste import BLOCK_SIZES, DEFINITIONS, Lengths, histograms, lengths, waste, waste_table

requests = st.lists(st.tuples(st.integers(1, 90), st.integers(1, 60)), min_size=1, max_size=12)
sizes = st.integers(1, 70)


def trace(pairs: list[tuple[int, int]]) -> Trace:
    prompt, output = zip(*pairs, strict=True)
    return Trace("t", "", prompt, output)


@given(pairs=requests, b=sizes)
def test_each_definition_taken_literally(pairs, b):
    """Fill blocks token by token; a decode step samples a token while the cache holds all but the tokens to come."""
    held = {
        "at_completion": [p + o for p, o in pairs],
        "prompts_only": [p for p, _ in pairs],
        "over_decode_steps": [p + done for p, o in pairs for done in range(o)],
    }
    slots = waste(histograms(trace(pairs)), b)
    assert tuple(slots) == DEFINITIONS
    for name, lengths_held in held.items():
        allocated = sum(len({token // b for token in range(n)}) * b for n in lengths_held)
        row = slots[name]
        assert (row.allocated, row.used, row.n) == (allocated, sum(lengths_held), len(lengths_held))
        share = Fraction(allocated - sum(lengths_held), allocated)
        assert row.percent == pytest.approx(float(100 * share), rel=1e-12)


@given(b=sizes, first=st.integers(1, 500), repeats=st.integers(1, 4))
def test_the_expectation_is_exact_when_every_remainder_is_as_frequent(b, first, repeats):
    pairs = [(length, 1) for length in range(first, first + b * repeats)]
    row = waste(histograms(trace(pairs)), b)["prompts_only"]
    wasted = row.allocated - row.used
    assert 2 * wasted == (b - 1) * row.n
    assert row.expected_percent == pytest.approx(100 * wasted / row.used)


def test_long_requests_cost_no_more_than_short_ones():
    row = waste(histograms(trace([(10**8, 10**8)])), 16)["over_decode_steps"]
    assert row.n == 10**8 and 0 < row.percent < 1e-5


@given(pairs=requests)
def test_histograms_survive_json(pairs):
    hist = histograms(trace(pairs))
    assert lengths(json.loads(json.dumps(hist.plain()))) == hist
    assert hist.requests == len(pairs)


def test_the_table_is_flat_and_complete():
    table = waste_table(histograms(trace([(3, 4), (16, 1)])))
    assert len(table) == 2 + len(BLOCK_SIZES) * len(DEFINITIONS) * 4
    assert table["requests"] == 2 and table["decode_steps"] == 5
    assert table["b8_prompts_only_allocated_slots"] == 24 and table["b8_prompts_only_used_slots"] == 19
    assert table["b8_prompts_only_percent"] == pytest.approx(100 * 5 / 24)


@pytest.mark.parametrize("b", [0, -16, 65_537, True, 16.0])
def test_a_block_size_outside_its_range(b):
    with pytest.raises(ValueError, match=f"block_size={b!r} is outside 1 to 65,536; 16 is a common choice"):
        waste(histograms(trace([(1, 1)])), b)


@pytest.mark.parametrize(
    ("prompt", "total", "words"),
    [
        ([], [], "prompt lengths=0 is outside 1"),
        ([[0, 1]], [[5, 1]], "prompt length=0 is outside 1"),
        ([[3, 1]], [[5, 0]], "total count=0 is outside 1"),
        ([[3, 1]], [[5, 2]], "1 prompts and 2 totals; count every request once"),
        ([[3]], [[5, 1]], "no length histograms .*; give prompt and total, lists of"),
        (None, [[5, 1]], "no length histograms"),
    ],
)
def test_a_broken_statistic(prompt, total, words):
    with pytest.raises(ValueError, match=words):
        lengths({"prompt": prompt, "total": total})


def test_totals_below_prompts():
    with pytest.raises(ValueError, match="totals hold -1 tokens more than prompts; every request has at"):
        waste(Lengths(((5, 1),), ((4, 1),)), 16)


def test_azure_conversations_at_block_16(outside):
    slots = waste(histograms(read(outside("traces/azure_llm_2023_conv.csv.gz"))), 16)
    assert [round(row.percent, 3) for row in slots.values()] == [0.544, 0.662, 0.608]
    assert round(slots["at_completion"].expected_percent, 3) == 0.549
