"""Small floats against ml_dtypes: every code, every upper half of a float32 with each kind of lower half, and a million
random bit patterns; all 2^32 are a command (generate/fp8_exact.py)."""

from __future__ import annotations

import numpy as np
import pytest

from servelab.quant.minifloat import FORMATS, decode, encode, table, values

ml_dtypes = pytest.importorskip("ml_dtypes", reason="pip install ml_dtypes: the oracle of small floats")
NAMES = {name: f"float{kind.bits}_{name}" for name, kind in FORMATS.items()}


def patterns() -> np.ndarray:
    upper = np.arange(1 << 16, dtype=np.uint32) << 16
    edges = np.concatenate([upper | low for low in (0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF)])
    random = np.random.default_rng(0).integers(0, 1 << 32, 1_000_000, dtype=np.uint64).astype(np.uint32)
    return np.concatenate([edges, random]).view(np.float32)


@pytest.fixture(scope="module")
def floats() -> np.ndarray:
    return patterns()


@pytest.mark.parametrize("name", FORMATS)
def test_every_float32_tried_encodes_as_ml_dtypes_does(name: str, floats: np.ndarray) -> None:
    with np.errstate(all="ignore"):
        wanted = floats.astype(getattr(ml_dtypes, NAMES[name])).view(np.uint8)
    assert np.array_equal(encode(floats, name), wanted)


@pytest.mark.parametrize("name", FORMATS)
def test_every_code_decodes_as_ml_dtypes_does_and_comes_back(name: str) -> None:
    codes = np.arange(1 << FORMATS[name].bits, dtype=np.uint8)
    mine, wanted = decode(codes, name), codes.view(getattr(ml_dtypes, NAMES[name])).astype(np.float32)
    numbers = ~np.isnan(wanted)
    assert np.array_equal(mine.view(np.uint32)[numbers], wanted.view(np.uint32)[numbers])
    assert np.isnan(mine[~numbers]).all()
    assert np.array_equal(encode(mine[numbers], name), codes[numbers])


@pytest.mark.parametrize(("name", "largest", "nan"), [
    ("e4m3fn", 448, 127), ("e4m3fnuz", 240, 128), ("e5m2", 57344, 126), ("e5m2fnuz", 57344, 128),
    ("e8m0fnu", 2.0**127, 255), ("e2m3fn", 7.5, None), ("e3m2fn", 28, None), ("e2m1fn", 6, None),
])  # fmt: skip
def test_largest_numbers_and_nans_are_the_specification_s(name: str, largest: float, nan: int | None) -> None:
    kind = FORMATS[name]
    assert values(name)[kind.largest] == largest and kind.nan == nan
    too_large = np.array([largest * 4 if largest < 1e30 else np.inf, np.inf], np.float32)
    assert (encode(too_large, name, saturate=True) == kind.largest)[0]


def test_saturation_keeps_signs_and_nans() -> None:
    x = np.array([1e9, -1e9, np.inf, -np.inf, np.nan, 464.0, 465.0], np.float32)
    assert decode(encode(x, "e4m3fn", saturate=True), "e4m3fn").tolist()[:4] == [448, -448, 448, -448]
    assert np.isnan(decode(encode(x, "e4m3fn", saturate=True), "e4m3fn")[4])
    assert encode(x, "e4m3fn").tolist()[:2] == [127, 255]
    assert encode(x, "e4m3fn")[5] == 126 and encode(x, "e4m3fn")[6] == 127  # 464 is halfway to 480, and even is down


def test_minus_zero_subnormals_and_shapes() -> None:
    x = np.array([[-0.0, 0.0, 2.0**-9], [2.0**-10, 2.0**-10 * 1.0001, -(2.0**-9)]], np.float32)
    assert encode(x, "e4m3fn").tolist() == [[128, 0, 1], [0, 1, 129]]
    assert encode(x, "e4m3fnuz")[0].tolist() == [0, 0, 2]
    assert encode(np.zeros((0, 5), np.float32), "e5m2").shape == (0, 5)


def test_what_cannot_be_encoded_or_decoded_is_named() -> None:
    with pytest.raises(ValueError, match="dtype=float64 is not float32"):
        encode(np.zeros(3), "e4m3fn")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="code 16 is outside 0…15 of e2m1fn"):
        decode(np.array([16], np.uint8), "e2m1fn")
    with pytest.raises(ValueError, match="format='e9m9'"):
        table("e9m9")


def test_the_error_of_gaussian_e4m3_is_2_65_percent() -> None:
    """√(Σe²/Σx²) with the tensor scaled clear of subnormals; 4.87 % is twice that."""
    x = (np.random.default_rng(1).standard_normal(1_000_000) * 16).astype(np.float32)
    error = decode(encode(x, "e4m3fn"), "e4m3fn") - x
    assert 100 * np.sqrt(np.square(error).sum() / np.square(x).sum()) == pytest.approx(2.65, abs=0.01)
