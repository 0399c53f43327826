"""Packing orders against loops that say what a checkpoint's words are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from servelab.quant import orders


def codes(rows: int, columns: int, width: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 1 << width, (rows, columns), dtype=np.uint8)


def word(values: list[int], width: int) -> int:
    whole = sum(value << (width * i) for i, value in enumerate(values))
    return whole - (1 << 32) if whole >> 31 else whole


@pytest.mark.parametrize("width", [2, 4, 8])
def test_gptq_words_hold_rows_of_a_column(width: int) -> None:
    q, each = codes(64, 5, width), 32 // width
    words = orders.pack_gptq(q, width)
    assert words.shape == (64 // each, 5) and words.dtype == np.int32
    for i in range(len(words)):
        for j in range(5):
            assert words[i, j] == word([int(q[i * each + k, j]) for k in range(each)], width)
    assert np.array_equal(orders.unpack_gptq(words, width), q)


@pytest.mark.parametrize("version", [1, 2])
def test_gptq_zeros_hold_columns_and_version_1_is_one_less(version: int) -> None:
    z = codes(3, 16, 4, seed=1)
    z[0, 0] = 0
    words = orders.pack_zeros_gptq(z, version)
    for i in range(3):
        for j in range(2):
            stored = [(int(z[i, 8 * j + k]) - (version == 1)) % 16 for k in range(8)]
            assert words[i, j] == word(stored, 4)
    assert (words[0, 0] & 15) == (15 if version == 1 else 0)  # 0 − 1 wraps
    assert np.array_equal(orders.unpack_zeros_gptq(words, version), z)
    other = orders.unpack_zeros_gptq(words, 3 - version)
    assert np.array_equal((other.astype(int) - z) % 16, np.full(z.shape, 1 if version == 2 else 15))


def test_awq_words_hold_columns_in_its_own_order() -> None:
    q = codes(4, 24, 4)
    words = orders.pack_awq(q)
    for i in range(4):
        for j in range(3):
            assert words[i, j] == word([int(q[i, 8 * j + k]) for k in (0, 2, 4, 6, 1, 3, 5, 7)], 4)
    assert np.array_equal(orders.unpack_awq(words), q)


@pytest.mark.parametrize("rows", [1, 10, 37])
def test_hqq_keeps_ten_of_three_bits_the_first_highest(rows: int) -> None:
    q = codes(rows, 3, 3)
    words = orders.pack_hqq3(q)
    step = -(-rows // 10)
    assert words.shape == (step, 3)
    for i in range(step):
        for j in range(3):
            tenth = [int(q[i + step * k, j]) if i + step * k < rows else 0 for k in range(10)]
            assert words[i, j] == sum(value << (27 - 3 * k) for k, value in enumerate(tenth))
    assert np.array_equal(orders.unpack_hqq3(words, rows), q)


@pytest.mark.parametrize(("call", "told"), [
    (lambda: orders.pack_gptq(codes(7, 4, 4)), r"shape \(7, 4\) do not fill words of 8"),
    (lambda: orders.pack_awq(codes(2, 12, 4)), r"shape \(2, 12\) do not fill words of 8"),
    (lambda: orders.pack_gptq(np.full((8, 1), 16, np.uint8)), "code 16 needs more than 4 bits"),
    (lambda: orders.pack_zeros_gptq(codes(1, 8, 4), 3), "version=3"),
    (lambda: orders.pack_gptq(codes(8, 1, 1), 9), "width=9"),
])  # fmt: skip
def test_what_cannot_be_packed_is_named(call: Callable[[], Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        call()
