"""What the KV desk says in words agrees with its own numbers, for every preset."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import pytest

from servelab.view.studio import studio
from studios.kv_desk import numbers

KV = studio("kv_desk")


def table(name: str) -> Any:
    frame = KV.view(KV.PRESETS[name].state, {})
    return next(panel for panel in frame.panels if panel.id == "schemes")


@pytest.mark.parametrize("name", KV.PRESETS)
def test_savings_are_claimed_only_where_preallocation_held_everybody(name: str) -> None:
    """Slots of the longest conversation, in blocks, times sequences: more than the pool means that some waited."""
    state = KV.PRESETS[name].state
    requests = KV.workload(state)  # type: ignore[attr-defined]
    slot = -(-max(r.tokens + r.output for r in requests) // state.block_size)
    fits = slot * state.conversations * state.samples <= state.pool
    panel = table(name)
    assert all((row[2] is not None) == fits for row in panel.rows)
    assert ("times as many" in panel.caption) == fits
    if not fits:
        held, want, need, pool = (int(n.replace(",", "")) for n in re.findall(r"[\d,]*\d", panel.caption))
        assert held == state.pool // slot and want == state.conversations * state.samples
        assert need == slot * want > pool == state.pool
    else:
        assert all(row[2] >= 0 for row in panel.rows)


def test_under_pressure_sharing_is_done_first_and_the_others_preempt() -> None:
    """The sentence under the preset's button."""
    preallocated, paged, shared = table("pressure").rows
    assert shared[-1] < paged[-1] < preallocated[-1]
    assert paged[4] > 0 and shared[4] > 0 == preallocated[4]


def test_coarse_blocks_leave_their_ends_empty() -> None:
    """Paged blocks waste only last blocks, so any emptiness there is theirs."""
    assert table("coarse").rows[1][3] > 5 > table("prefix").rows[1][3]


@pytest.mark.parametrize("n", [1, 3, 8, 20])
def test_a_slot_on_a_card_is_as_long_as_the_longest_conversation(n: int) -> None:
    """Against the requests that the page itself simulates: H100, bf16, 131,072 bytes a token."""
    state = dataclasses.replace(KV.PRESETS["prefix"].state, conversations=n)
    requests = KV.workload(state)  # type: ignore[attr-defined]
    fit = numbers.fit_on_card(state)
    slot = -(-max(r.tokens + r.output for r in requests) // state.block_size) * state.block_size * 131_072
    assert fit.schemes["preallocated"].each == slot and fit.schemes["preallocated"].conversations == fit.room // slot
