"""Shapes against published parameter counts and KV sizes, and what a bad configuration is told."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from servelab.plan.models import model, read, table


def test_parameters_are_exact_where_the_publisher_counts_tensors_and_close_elsewhere() -> None:
    exact = [name for name, row in table().items() if model(name).total == row.published]
    assert len(table()) >= 60 and len(exact) >= 49
    assert {name for name, row in table().items() if row.exact} <= set(exact)
    assert all(abs(model(name).total / row.published - 1) < 0.01 for name, row in table().items())


def test_kv_elements_and_active_parameters_are_those_of_an_independent_table(outside: Callable[[str], Path]) -> None:
    """An outside collection of configurations counted the same models with its own formulas."""
    rows = {row["id"]: row for row in json.loads(outside("models/model_configs.json").read_text())}
    for row in table().values():
        shape, other = model(row.short), rows[row.id]
        token = sum(shape.latent or ()) or shape.kv_heads * (shape.head_dim + (shape.value_dim or shape.head_dim))
        assert token * shape.full == other["kv_cache_elements_per_token_full"], row.id
        assert token * shape.windowed == other["kv_cache_elements_per_token_sliding"], row.id
        assert shape.active_params == other["params_active_formula"], row.id
        state = (other["hybrid"] or {}).get("state_elements_per_sequence", 0)
        assert shape.state * shape.recurrent == state, row.id


LLAMA = {
    "model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 100,
    "num_key_value_heads": 2, "intermediate_size": 128,
}  # fmt: skip


def test_a_small_llama_is_what_pencil_and_paper_say() -> None:
    shape = read(LLAMA, "tiny")
    layer = 64 * 64 * 2 + 64 * 32 * 2 + 3 * 64 * 128 + 2 * 64
    assert shape.total == 2 * layer + 2 * 100 * 64 + 64
    assert (shape.head_dim, shape.full, shape.native) == (16, 2, "bf16")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"hidden_size": None}, "no hidden_size"),
        ({"vocab_size": -5}, "vocab_size=-5"),
        ({"num_hidden_layers": "32"}, "num_hidden_layers='32'"),
        ({"model_type": "perceiver"}, "model_type='perceiver' is an unknown architecture"),
        ({"num_key_value_heads": 3}, "num_key_value_heads=3 does not divide"),
        ({"num_attention_heads": 5, "num_key_value_heads": 5}, "add head_dim"),
        ({"quantization_config": {"quant_method": "bitnet"}}, "quant_method='bitnet'"),
        ({"tie_word_embeddings": "yes"}, "neither true nor false"),
    ],
)
def test_a_configuration_that_cannot_be_read_names_its_field(change: dict[str, object], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        read(LLAMA | change)
