"""KV bytes against published numbers, a brute-force block count and the configurations they came from."""

import csv
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servelab.kv.models import CARDS, MODELS, Card, Model
from servelab.kv.sizes import (
    DTYPES,
    blocks,
    conversations_that_fit,
    expanded,
    kv_bytes,
    layer_bytes,
    paged_bytes,
    unwindowed,
    weight_bytes,
)

TOY = Model("toy", (), 1, 128, 128, 1_008, "made up: one block of 16 tokens is 1 MiB")


def test_scale_groups_at_head_dim_64():
    assert [DTYPES[d].group_bytes(64) for d in ("fp16", "bf16", "fp8", "int8", "int4")] == [128, 128, 64, 66, 35]
    saved = [round(100 * (1 - DTYPES[d].group_bytes(64) / 128), 1) for d in ("int4", "int8")]
    assert saved == [72.7, 48.4]


def test_an_odd_vector_takes_whole_bytes():
    assert DTYPES["int4"].group_bytes(65) == 33 + 3


def test_gpt_oss_120b_window_layers_are_counted():
    """hf-mem#60: the engine showed 5.38 GiB for 78,384 tokens, 73,728 B a token in all 36 layers."""
    model = MODELS["gpt-oss-120b"]
    every = unwindowed(model)
    assert kv_bytes(every, "bf16", 1) == 73_728
    assert kv_bytes(every, "bf16", 78_384) / 2**30 == pytest.approx(5.38, abs=0.005)
    assert kv_bytes(model, "bf16", 78_384) == 18 * 2_048 * (78_384 + 128)
    assert kv_bytes(model, "bf16", 100) == kv_bytes(every, "bf16", 100)


def test_deepseek_v3_keeps_one_latent_per_token_and_layer():
    """gguf-parser-go#8: 64k tokens were sized as full KV; the cache is 512 + 64 elements per token and layer."""
    model = MODELS["DeepSeek-V3"]
    assert kv_bytes(model, "bf16", 65_536) == 61 * (512 + 64) * 2 * 65_536
    assert kv_bytes(expanded(model), "bf16", 65_536) > 70 * kv_bytes(model, "bf16", 65_536)
    assert layer_bytes(model, "int8") == 512 + 2 + 64 + 2


def test_deepseek_v2_lite_without_the_latent_cache():
    """ollama#5136: 8,640 MiB of KV at 32k, from an engine that stored per-head keys (192) and values (128)."""
    assert kv_bytes(expanded(MODELS["DeepSeek-V2-Lite"]), "fp16", 32_768) == 8_640 * 2**20


def test_mistral_never_keeps_more_than_its_window():
    model = MODELS["Mistral-7B-v0.1"]
    assert kv_bytes(model, "fp16", 4_096) == kv_bytes(model, "fp16", 32_768) == 131_072 * 4_096


@pytest.mark.parametrize(
    ("name", "hidden", "inner", "heads", "vocabulary", "tied", "bias"),
    [
        ("Qwen2.5-0.5B", 896, 4_864, 14, 151_936, True, True),
        ("Qwen2.5-7B", 3_584, 18_944, 28, 152_064, False, True),
        ("Llama-3.1-8B", 4_096, 14_336, 32, 128_256, False, False),
        ("Llama-3.1-70B", 8_192, 28_672, 64, 128_256, False, False),
        ("Mistral-7B-v0.1", 4_096, 14_336, 32, 32_000, False, False),
    ],
)
def test_dense_parameter_counts_follow_from_the_shapes(name, hidden, inner, heads, vocabulary, tied, bias):
    m = MODELS[name]
    q, kv = heads * m.head_dim, m.kv_heads * m.head_dim
    layer = hidden * (q + 2 * kv) + q * hidden + 3 * hidden * inner + 2 * hidden + (q + 2 * kv) * bias
    assert m.params == vocabulary * hidden * (1 if tied else 2) + m.layers * layer + hidden


def test_mixed_formats_follow_from_the_shapes():
    experts = 36 * 128 * 3 * 2_880 * 2_880
    assert dict(MODELS["gpt-oss-120b"].weights)["mxfp4"] == experts
    assert weight_bytes(MODELS["gpt-oss-120b"]) / 2**30 == pytest.approx(60.8, abs=0.05)  # its model card's checkpoint
    h, rank = 7_168, 1_536
    attention = h * rank + rank * 128 * 192 + h * 576 + 512 * 128 * 256 + 128 * 128 * h
    linears = 61 * attention + 3 * 3 * h * 18_432 + 58 * 257 * 3 * h * 2_048
    assert dict(MODELS["DeepSeek-V3"].weights)["fp8"] == linears


def test_weights_in_one_format():
    model = MODELS["Llama-3.1-8B"]
    assert weight_bytes(model) == weight_bytes(model, "fp16") == 2 * model.params
    assert weight_bytes(model, "int4") == math.ceil(model.params * 4.125 / 8)


@given(tokens=st.integers(1, 3_000), window=st.integers(1, 700), size=st.integers(1, 300))
def test_blocks_are_those_that_the_kept_tokens_touch(tokens, window, size):
    model = Model("w", (), 3, 2, 64, 4_096, "", window_layers=2, window=window)
    kept = range(max(0, tokens - window), tokens)
    expected = len({t // size for t in range(tokens)}), len({t // size for t in kept})
    assert blocks(model, tokens, size) == expected
    assert paged_bytes(model, "fp16", tokens, size) == 2 * 2 * 64 * 2 * size * (expected[0] + 2 * expected[1])
    assert paged_bytes(model, "fp16", tokens, size) >= kv_bytes(model, "fp16", tokens)


def test_the_eight_conversation_example_fits_21():
    fit = conversations_that_fit(TOY, Card("504 blocks", 504, ""), "fp16", 512 + 344, 512, 16, 1.0)
    assert {k: s.conversations for k, s in fit.schemes.items()} == {"preallocated": 8, "paged": 9, "shared": 21}
    assert fit.schemes["shared"].once == 32 * 2**20


@given(
    tokens=st.integers(1, 400),
    prefix=st.integers(0, 399),
    size=st.integers(1, 64),
    window=st.integers(1, 200),
    mib=st.integers(1, 60),
)
def test_shared_conversations_one_by_one(tokens, prefix, size, window, mib):
    prefix = min(prefix, tokens - 1)
    model = Model("w", (), 2, 128, 128, 4_096, "", window_layers=1, window=window)
    cell = layer_bytes(model, "bf16") * size
    fit = conversations_that_fit(model, Card("c", mib, ""), "bf16", tokens, prefix, size, 1.0)
    held: set[tuple[object, ...]] = set()
    count = -1
    while len(held) * cell <= mib * 2**20:
        count += 1
        for layer, first in (("full", 0), ("window", max(0, tokens - window))):
            for block in {t // size for t in range(first, tokens)}:
                common = (block + 1) * size <= prefix
                held.add((layer, block) if common else (layer, block, count))
    assert fit.schemes["shared"].conversations == count


def test_a_model_that_does_not_fit_holds_no_conversation():
    fit = conversations_that_fit(MODELS["Llama-3.1-70B"], CARDS["L4"], "fp8", 100)
    assert fit.room < 0 and all(s.conversations == 0 for s in fit.schemes.values())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"tokens_per_conversation": 0}, "tokens_per_conversation=0 is outside 1 to 100,000,000"),
        ({"tokens_per_conversation": True}, "tokens_per_conversation=True is outside"),
        ({"shared_prefix": -1}, "shared_prefix=-1 is outside 0 to 99"),
        ({"shared_prefix": 100}, "shared_prefix=100 is outside 0 to 99; a conversation must add"),
        ({"block_size": 0}, "block_size=0 is outside 1 to 65,536"),
        ({"utilisation": 0.0}, r"utilisation=0.0 is outside 0 to 1 \(0 excluded\); 0.9"),
        ({"utilisation": float("nan")}, "utilisation=nan is outside"),
        ({"max_len": 99}, "max_len=99 is outside 100 to"),
        ({"dtype": "int3"}, "dtype='int3' is unknown; use one of bf16, fp16, fp8, int8, int4"),
        ({"weights_dtype": "q4"}, "weights_dtype='q4' is unknown; use one of bf16"),
    ],
)
def test_a_refused_value_names_its_range_and_the_fix(change, words):
    with pytest.raises(ValueError, match=words):
        conversations_that_fit(TOY, CARDS["H200"], **{"dtype": "bf16", "tokens_per_conversation": 100} | change)


def test_a_model_needs_a_window_for_its_window_layers():
    with pytest.raises(ValueError, match="window=0 with window_layers=1"):
        Model("w", (), 2, 1, 64, 100, "", window_layers=1)


def test_models_equal_the_collected_configurations(outside):
    rows = json.loads(outside("models/model_configs.json").read_text())
    known = {row["id"].split("/")[1].removesuffix("-it").lower(): row for row in rows}
    for name, m in MODELS.items():
        if name == "Mistral-7B-v0.1":  # the collection has v0.3 only, which differs in vocabulary and window
            continue
        row = known[name.lower()]
        per_layer = sum(m.vectors)
        assert per_layer * (m.layers - m.window_layers) == row["kv_cache_elements_per_token_full"], name
        assert per_layer * m.window_layers == row["kv_cache_elements_per_token_sliding"], name
        assert (m.params, m.context) == (row["params_total_formula"], row["max_position_embeddings"]), name
        assert m.window == (row["sliding_window"] or {"window_tokens": 0})["window_tokens"], name


def test_cards_equal_the_collected_driver_reports(outside):
    with outside("hardware/accelerators.csv").open(newline="") as file:
        reported = {row["id"]: row["memory_reported_mib"] for row in csv.DictReader(file)}
    same = {"H100 80GB": "H100 SXM", "A100 80GB": "A100 SXM 80GB", "H200": "H200 SXM", "B200": "B200 SXM"}
    assert {name: str(card.mib) for name, card in CARDS.items()} == {n: reported[same.get(n, n)] for n in CARDS}
    assert [c.mib for c in CARDS.values()] == sorted(c.mib for c in CARDS.values())
