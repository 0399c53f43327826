"""Number formats of weights: bits with their scales, which parts they leave alone, and which units multiply them.

Bits per weight count the scales: int4 has an fp16 scale and a 4-bit zero point per 128 weights (AWQ, GPTQ), MXFP4 a
byte per 32 (OCP MX 1.0), NVFP4 a byte per 16, block FP8 a float32 per 128 × 128 (DeepSeek-V3), GGUF's Q8_0 and Q4_0 an
fp16 scale per 32, Q4_K_M about 4.85 bits over a model. Scales per tensor or channel are below 0.1 % and not counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple

from servelab.kv.limits import entry
from servelab.plan.config import PARTS

MATRICES = frozenset({"attention", "mlp", "experts", "shared", "recurrent"})
"""What checkpoints quantise; embedding, output matrix, router and norms stay at 16 bits."""


class Format(NamedTuple):
    """Bits of a quantised weight, the parts that are quantised, and the units used where a device has them.

    A device without those units dequantises and multiplies in bf16.
    """

    bits: Fraction
    parts: frozenset[str]
    units: str
    what: str


EVERY = frozenset(PARTS)

FORMATS: dict[str, Format] = {
    "bf16": Format(Fraction(16), EVERY, "bf16", "16 bits throughout; fp16 is as large"),
    "fp8": Format(Fraction(8), MATRICES, "fp8", "E4M3, a scale per tensor or channel; activations too"),
    "fp8-block": Format(8 + Fraction(32, 128 * 128), MATRICES, "fp8", "E4M3, a scale per 128 × 128; activations too"),
    "int8": Format(Fraction(8), MATRICES, "int8", "a scale per channel; activations too (W8A8)"),
    "int4": Format(4 + Fraction(20, 128), MATRICES, "bf16", "AWQ or GPTQ, groups of 128; weights only"),
    "mxfp4": Format(4 + Fraction(8, 32), frozenset({"experts"}), "fp4", "only the experts, as gpt-oss is published"),
    "nvfp4": Format(4 + Fraction(8, 16), MATRICES, "fp4", "E2M1, a scale per 16; activations too"),
    "q8_0": Format(Fraction(17, 2), EVERY - {"norms"}, "bf16", "GGUF, embeddings too"),
    "q4_k_m": Format(Fraction(485, 100), EVERY - {"norms"}, "bf16", "GGUF's usual mix, embeddings too"),
    "q4_0": Format(Fraction(9, 2), EVERY - {"norms"}, "bf16", "GGUF, embeddings too"),
}  # fmt: skip

ALIASES = {"fp16": "bf16", "awq": "int4", "gptq": "int4", "w8a8": "int8", "fp8_block": "fp8-block", "fp4": "nvfp4"}


def named(name: str) -> Format:
    """A format by its name or a common other one. ValueError with those on offer."""
    return entry("quant", ALIASES.get(name.lower(), name.lower()), FORMATS)


def part_bytes(part: str, elements: float, kind: Format) -> float:
    """Bytes of so many weights of a part."""
    return elements * float(kind.bits if part in kind.parts else 16) / 8


def weight_bytes(params: Mapping[str, int], kind: Format) -> int:
    """Bytes of a whole model."""
    return round(sum(part_bytes(part, n, kind) for part, n in params.items()))
