"""GGUF block types against the `gguf` package, bit for bit, on random bytes; and what each type's block is."""

from __future__ import annotations

import numpy as np
import pytest

from servelab.quant.gguf import TYPES, bpw, decode

gguf = pytest.importorskip("gguf", reason="pip install gguf: the oracle of GGUF's types")


@pytest.mark.parametrize("name", TYPES)
def test_random_blocks_decode_as_the_package_does(name: str) -> None:
    kind = TYPES[name]
    data = np.random.default_rng(0).integers(0, 256, (20_000, kind.bytes), dtype=np.uint8)
    with np.errstate(all="ignore"):
        wanted = gguf.quants.dequantize(data, gguf.GGMLQuantizationType[name]).reshape(-1)
    mine = decode(data.reshape(-1), name)
    numbers = ~np.isnan(wanted)
    assert np.array_equal(mine.view(np.uint32)[numbers], wanted.view(np.uint32)[numbers])
    assert np.isnan(mine[~numbers]).all()


@pytest.mark.parametrize("name", TYPES)
def test_blocks_are_as_large_as_the_package_says(name: str) -> None:
    assert (TYPES[name].weights, TYPES[name].bytes) == gguf.GGML_QUANT_SIZES[gguf.GGMLQuantizationType[name]]


def test_an_empty_tensor_and_a_cut_one() -> None:
    assert decode(np.zeros(0, np.uint8), "Q4_K").shape == (0,)
    with pytest.raises(ValueError, match="145 bytes are no whole blocks of Q4_K, which has 144"):
        decode(np.zeros(145, np.uint8), "Q4_K")
    with pytest.raises(ValueError, match="type='Q9_K'"):
        decode(np.zeros(18, np.uint8), "Q9_K")


def test_all_types_that_the_package_quantises_are_there() -> None:
    assert {kind.name for kind in gguf.quants._type_traits} == set(TYPES) and len(TYPES) == 24
    assert [bpw(name) for name in ("Q8_0", "Q4_0", "Q4_K", "TQ1_0", "IQ1_S")] == [8.5, 4.5, 4.5, 1.6875, 1.5625]


def test_one_block_by_hand() -> None:
    """Q4_0: a scale of 0.5 and nibbles 0 … 15, twice."""
    scale = np.frombuffer(np.float16(0.5).tobytes(), np.uint8)
    block = np.concatenate([scale, np.arange(16, dtype=np.uint8) * 17])
    assert decode(block, "Q4_0").tolist() == [(i - 8) / 2 for i in range(16)] * 2
