"""Integers, shared scales and codebooks: bytes by hand, bounds, oracles, and every awkward tensor."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from servelab.quant import affine, blocks, codebook
from servelab.quant.error import shannon, sqnr
from servelab.quant.packing import pack, packed_bytes, unpack
from servelab.quant.tensor import Quantised

Pair = tuple[Callable[[np.ndarray], Quantised], Callable[[Quantised], np.ndarray]]
WAYS: dict[str, Pair] = {
    **{f"int{b}{'' if s else '-asymmetric'}": (
        lambda x, b=b, s=s: affine.encode(x, b, 32, s), lambda q, b=b, s=s: affine.decode(q, b, 32, s)
    ) for b in (2, 3, 4, 8) for s in (True, False)},
    **{n: (lambda x, n=n: blocks.encode_mx(x, n), lambda q, n=n: blocks.decode_mx(q, n)) for n in blocks.ELEMENTS},
    "nvfp4": (blocks.encode_nv, blocks.decode_nv),
    "nvfp4-search": (lambda x: blocks.encode_nv(x, search=True), blocks.decode_nv),
    **{n: (lambda x, n=n: codebook.encode(x, n), lambda q, n=n: codebook.decode(q, n)) for n in codebook.LEVELS},
    "lloyd4-search": (lambda x: codebook.encode(x, "lloyd4", search=True), lambda q: codebook.decode(q, "lloyd4")),
}  # fmt: skip


def gaussian(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(n).astype(np.float32)


@given(st.integers(1, 8), st.lists(st.integers(0, 255), max_size=40))
def test_packed_codes_come_back_and_lie_lowest_first(bits: int, raw: list[int]) -> None:
    codes = np.array([value & ((1 << bits) - 1) for value in raw], np.uint8)
    data = pack(codes, bits)
    assert data.size == packed_bytes(len(codes), bits)
    assert np.array_equal(unpack(data, bits, len(codes)), codes)
    whole = int.from_bytes(data.tobytes(), "little")
    assert [(whole >> (bits * i)) & ((1 << bits) - 1) for i in range(len(codes))] == codes.tolist()


@pytest.mark.parametrize(("call", "told"), [
    (lambda: pack(np.array([4], np.uint8), 2), "code 4 needs more than 2 bits"),
    (lambda: unpack(np.zeros(2, np.uint8), 4, 9), "2 bytes do not hold 9 codes of 4 bits; that takes 5"),
    (lambda: affine.encode(gaussian(8), 9), "bits=9"),
    (lambda: affine.encode(gaussian(8), 4, 0), "group=0"),
    (lambda: affine.encode(np.array([1, np.nan], np.float32), 4), r"x\[1\]=nan is no finite number, and 1 in all"),
    (lambda: affine.encode(np.full(4, 3e38, np.float32), 8), "beyond fp16"),
    (lambda: blocks.encode_mx(gaussian(8), "mxfp5"), "format='mxfp5'"),
    (lambda: codebook.encode(gaussian(8), "nf5"), "codebook='nf5'"),
])  # fmt: skip
def test_what_cannot_be_is_named(call: Callable[[], Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        call()


@pytest.mark.parametrize("name", WAYS)
@pytest.mark.parametrize("shape", [(0,), (3, 0), (1,), (7, 5), (129,), (2, 3, 64)])
def test_any_shape_comes_back_and_the_ledger_counts_every_byte(name: str, shape: tuple[int, ...]) -> None:
    encode, decode = WAYS[name]
    x = gaussian(math.prod(shape)).reshape(shape)
    q = encode(x)
    assert decode(q).shape == shape and decode(q).dtype == np.float32
    assert q.bytes == sum(part.nbytes for part in q.parts.values()) == sum(q.ledger.values())
    assert q.bpw == (8 * q.bytes / x.size if x.size else 0)


@pytest.mark.parametrize("name", WAYS)
def test_zeros_equal_groups_and_tiny_numbers(name: str) -> None:
    encode, decode = WAYS[name]
    assert not decode(encode(np.zeros(100, np.float32))).any()
    assert not decode(encode(np.full(64, -0.0, np.float32))).any()
    equal = np.full(64, -1.5, np.float32)
    assert np.allclose(decode(encode(equal)), equal, rtol=0.07)
    assert np.isfinite(decode(encode(np.full(64, 1e-40, np.float32)))).all()


@pytest.mark.parametrize("name", WAYS)
def test_no_format_beats_shannon_and_errors_are_within_a_step(name: str) -> None:
    x = gaussian(1 << 16)
    encode, decode = WAYS[name]
    q = encode(x)
    assert 0 < sqnr(x, decode(q)) < shannon(q.bpw)


def test_integers_are_what_the_formula_says() -> None:
    x = np.array([0.0, 1.0, -7.0, 3.5, 0.49], np.float32)
    q = affine.encode(x, 4, 5)
    assert q.parts["scales"].tolist() == [1.0]
    assert unpack(q.parts["codes"], 4, 5).tolist() == [7, 8, 0, 11, 7]  # 3.5 goes to even
    y = affine.encode(np.array([0.0, 1.0, 15.0], np.float32), 4, 3, symmetric=False)
    assert affine.decode(y, 4, 3, symmetric=False).tolist() == [0, 1, 15]


@given(st.integers(2, 8), st.booleans(), st.integers(0, 99))
def test_integers_are_half_a_step_off_at_most(bits: int, symmetric: bool, seed: int) -> None:
    x = gaussian(96, seed)
    q = affine.encode(x, bits, 32, symmetric)
    step = q.parts["scales"].astype(np.float32).repeat(32)
    worst = 0.5 if symmetric else 1.0  # the zero point is rounded, too
    assert (np.abs(affine.decode(q, bits, 32, symmetric) - x) <= worst * step * 1.002).all()


def test_bytes_are_those_of_the_files() -> None:
    x = gaussian(4096)
    assert affine.encode(x, 4, 64).bytes == 2048 + 64 * 2
    assert affine.encode(x, 4, 64, symmetric=False).bytes == 2048 + 64 * 2 + 32
    assert blocks.encode_mx(x, "mxfp6").bytes == 4096 * 6 // 8 + 128
    assert blocks.encode_nv(x).bytes == 2048 + 256 + 4
    assert codebook.encode(x, "nf4").bytes == 2048 + 64 * 2


def test_mx_scales_are_the_specification_s_powers_of_two() -> None:
    x = np.zeros((3, 32), np.float32)
    x[0, 3], x[1, 4], x[2, 5] = 6.0, 7.9, -0.75
    q = blocks.encode_mx(x, "mxfp4")
    assert q.parts["scales"].tolist() == [127, 127, 127 - 3]  # floor(log2 6) − 2 = 0; floor(log2 0.75) − 2 = −3
    assert blocks.decode_mx(q, "mxfp4")[[0, 1, 2], [3, 4, 5]].tolist() == [6.0, 6.0, -0.75]


def test_a_search_never_does_worse() -> None:
    x = gaussian(1 << 15) ** 3
    plain, found = blocks.encode_nv(x), blocks.encode_nv(x, search=True)
    assert sqnr(x, blocks.decode_nv(found)) > sqnr(x, blocks.decode_nv(plain))
    for name in codebook.LEVELS:
        plain, found = codebook.encode(x, name), codebook.encode(x, name, search=True)
        assert sqnr(x, codebook.decode(found, name)) > sqnr(x, codebook.decode(plain, name))


def test_gaussian_sqnr_is_what_is_asked() -> None:
    """Means over ten seeds of 10^6 weights are a receipt; here one of 2^18, with its spread."""
    x = gaussian(1 << 18, 7)
    assert sqnr(x, codebook.decode(codebook.encode(x, "nf4"), "nf4")) == pytest.approx(20.73, abs=0.03)
    assert sqnr(x, codebook.decode(codebook.encode(x, "lloyd4"), "lloyd4")) == pytest.approx(21.345, abs=0.03)
    assert sqnr(x, blocks.decode_nv(blocks.encode_nv(x, search=True))) == pytest.approx(21.81, abs=0.03)


def test_the_codebook_is_the_one_that_training_finds() -> None:
    found = codebook.train(64, 2_000_000, seed=3, rounds=300)
    assert np.abs(found - codebook.LLOYD4).max() < 0.004 and found[-1] == 1
