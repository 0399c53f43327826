"""Memory of plans: faults that users of other planners reported, sums done by hand, and what never may happen."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servelab.kv.models import CARDS, MODELS
from servelab.kv.sizes import kv_bytes, unwindowed
from servelab.plan.devices import GIB, Device, device
from servelab.plan.devices import table as devices
from servelab.plan.formats import FORMATS, named, weight_bytes
from servelab.plan.memory import Layout, memory, problem, rank_cache, rank_params, sequence_bytes
from servelab.plan.models import model, table
from servelab.sched.hardware import DEVICES, QUERY_HEADS

H200 = device("H200")


def test_windowed_layers_are_counted_and_an_engine_without_windows_is_told() -> None:
    """hf-mem#60: gpt-oss-120b's windowed layers were dropped; the engine kept 73,728 B a token, 5.38 GiB of 78,384."""
    shape = model("gpt-oss-120b")
    cache = rank_cache(shape, Layout())
    assert cache is not None and (cache.layers, cache.window_layers, cache.window) == (36, 18, 128)
    assert kv_bytes(unwindowed(cache), "bf16", 1) == 73_728
    assert round(kv_bytes(unwindowed(cache), "bf16", 78_384) / GIB, 2) == 5.38
    assert sequence_bytes(shape, Layout(), "bf16", 78_384) == 2048 * 18 * (78_384 + 128)


def test_a_latent_cache_is_sized_as_a_latent() -> None:
    """gguf-parser-go#8: DeepSeek-V3 at 64k context; (512 + 64) elements per token and layer, on every rank."""
    size = 65_536 * 61 * (512 + 64) * 2
    assert all(sequence_bytes(model("DeepSeek-V3"), Layout(tp), "bf16", 65_536) == size for tp in (1, 8, 16))


def test_tensor_parallelism_beyond_the_kv_heads_copies_them() -> None:
    """transformers#48307, gpustack#885: per-rank KV stops shrinking, and 28 heads do not split by 8."""
    qwen = model("Qwen2.5-7B")
    sizes = [sequence_bytes(qwen, Layout(tp), "bf16", 1000) for tp in (1, 2, 4, 28)]
    assert [sizes[0] // size for size in sizes] == [1, 2, 4, 4]
    assert "4 KV heads" in problem(qwen, Layout(7))
    assert "28 heads do not split by tp=8; use one of 1, 2, 4, 7, 14, 28" in problem(qwen, Layout(8))
    held = rank_params(model("Llama-3.1-8B"), Layout(32))["attention"]
    whole = model("Llama-3.1-8B").params["attention"] / 32
    assert held - whole == 32 * 4096 * 2 * 128 * (1 - 8 / 32)  # one KV head each, where a quarter would be its share


def test_a_measured_deployment_comes_out() -> None:
    """ollama#5136: deepseek-v2:16b at 32k held 8,376 MiB of weights and 8,640 MiB of keys and values, per head."""
    shape = model("DeepSeek-V2-Lite")
    cache = rank_cache(shape, Layout())
    assert cache is not None
    keys = 2 * cache.layers * cache.kv_heads * (cache.head_dim + cache.value_dim) * 32_768
    assert keys == 8_640 * 2**20
    on_card = {part: n for part, n in shape.params.items() if part != "embedding"}  # that one stays on the host
    assert weight_bytes(on_card, named("q4_0")) / 2**20 == pytest.approx(8_376, rel=0.01)


def test_a_bar_adds_up_and_says_what_is_missing() -> None:
    fits = memory(model("Llama-3.1-70B"), H200, Layout(2), named("fp8"), tokens=8192, batch=16)
    assert fits.fits and fits.budget == pytest.approx(
        fits.weights + fits.activations + fits.runtime + fits.kv + fits.free
    )
    small = memory(model("Llama-3.1-70B"), device("RTX 4090"), Layout(), named("bf16"))
    assert not small.fits and "weights take 131.4 GiB of 21.6" in small.reason
    long = memory(model("Llama-3.1-70B"), device("H100 SXM"), Layout(2), named("bf16"), tokens=131_072)
    assert not long.fits and "one sequence takes" in long.reason


def test_more_sequences_than_fit_wait_and_do_not_make_a_plan_impossible() -> None:
    full = memory(model("Llama-3.1-70B"), H200, Layout(), named("fp8"), tokens=9216, batch=512)
    assert full.fits and full.capacity < 512 and full.free >= 0


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: Device("x", 0, 1000, {"bf16": 1}), "memory_gib=0"),
        (lambda: Device("x", 24, -3, {"bf16": 1}), "bandwidth=-3"),
        (lambda: Device("x", 24, 1000, {"fp8": 1}), "tflops has no bf16"),
        (lambda: device("H1000"), "device='H1000' is unknown"),
        (lambda: named("int5"), "quant='int5' is unknown"),
        (lambda: Layout(0), "tp=0"),
        (lambda: memory(model("gpt2"), H200, Layout(), named("bf16"), tokens=0), "tokens=0"),
        (lambda: memory(model("gpt2"), H200, Layout(), named("bf16"), utilisation=1.5), "utilisation=1.5"),
        (lambda: model("Llama-9"), "model='Llama-9' is unknown"),
    ],
)
def test_a_bad_value_is_named(call: object, told: str) -> None:
    assert callable(call)
    with pytest.raises(ValueError, match=told):
        call()


names = st.sampled_from(sorted(table()))
tokens = st.integers(1, 200_000)


@given(names, tokens, tokens, st.sampled_from([1, 2, 4, 8]))
def test_memory_grows_with_context_and_never_below_one_kv_head(name: str, a: int, b: int, tp: int) -> None:
    shape, (low, high) = model(name), sorted((a, b))
    if problem(shape, Layout(tp)):
        return
    assert sequence_bytes(shape, Layout(tp), "bf16", low) <= sequence_bytes(shape, Layout(tp), "bf16", high)
    assert sequence_bytes(shape, Layout(tp), "fp8", high) <= sequence_bytes(shape, Layout(tp), "bf16", high)
    cache = rank_cache(shape, Layout(tp))
    assert cache is None or cache.kv_heads >= 1


@given(names, st.sampled_from([1, 2, 4, 8]), st.sampled_from([1, 2, 4]))
def test_ranks_hold_no_less_than_the_model_and_weights_grow_with_bits(name: str, tp: int, pp: int) -> None:
    shape, layout = model(name), Layout(tp, pp)
    if problem(shape, layout):
        return
    assert sum(rank_params(shape, layout).values()) * layout.ranks >= shape.total * 0.999
    by_bits = sorted(FORMATS.values(), key=lambda kind: kind.bits)
    every = [kind for kind in by_bits if kind.parts == FORMATS["int4"].parts] + [FORMATS["bf16"]]
    sizes = [weight_bytes(shape.params, kind) for kind in every]
    assert sizes == sorted(sizes)


def test_the_other_rooms_know_the_same_models_and_cards() -> None:
    """servelab.kv and servelab.sched keep the few that their pages offer; what they say of them is the same."""
    for name, small in MODELS.items():
        if name == "Mistral-7B-v0.1":  # of a paper, with the rolling window that later versions dropped
            continue
        shape = model({"Gemma-3-27B": "gemma-3-27b-it"}.get(name, name))
        assert (small.params, small.layers, small.window_layers, small.window) == (
            shape.total, shape.full + shape.windowed, shape.windowed, shape.window if shape.windowed else 0
        ), name  # fmt: skip
        assert small.latent == shape.latent and small.kv_heads == shape.kv_heads and small.head_dim == shape.head_dim
        assert QUERY_HEADS.get(name, shape.heads) == shape.heads
    for name, card in CARDS.items():
        full = device({"A100 80GB": "A100 SXM 80GB", "H100 80GB": "H100 SXM"}.get(name, name))
        assert card.mib == round(full.memory_gib * 1024), name
        assert DEVICES[name].bandwidth == full.bandwidth, name
        assert DEVICES[name].tflops == pytest.approx(full.tflops["bf16"], rel=0.001), name


def test_the_tables_are_large_and_every_row_has_a_source() -> None:
    assert len(devices()) >= 70 and len(table()) >= 60
    assert all(one.basis for one in devices().values()) and all(row.source for row in table().values())
    assert all(one.rate("bf16") > 0 and one.memory > 0 for one in devices().values())
