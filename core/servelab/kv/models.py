"""Models and cards: the facts that decide memory, as published, each with the source it was read from.

A model is its layers and the vectors they keep per token; a card is the memory that its driver reports, not as sold.
"""

from __future__ import annotations

from dataclasses import dataclass

from servelab.kv.limits import MAX_TOKENS, within


@dataclass(frozen=True, slots=True)
class Model:
    """What of a model decides its memory. `weights` counts parameters per stored format; `value_dim` 0 means head_dim.

    `latent` (elements of the latent, elements of the rotary key) replaces per-head keys and values where it is given.
    `window_layers` of the `layers` keep at most `window` tokens. `context` is the longest context in tokens.
    """

    name: str
    weights: tuple[tuple[str, int], ...]
    layers: int
    kv_heads: int
    head_dim: int
    context: int
    source: str
    value_dim: int = 0
    latent: tuple[int, int] | None = None
    window_layers: int = 0
    window: int = 0

    def __post_init__(self) -> None:
        for field in ("layers", "kv_heads", "head_dim", "context"):
            within(field, getattr(self, field), 1, MAX_TOKENS, f"give {self.name} its published {field}")
        within("window_layers", self.window_layers, 0, self.layers, "count only this model's own layers")
        if (self.window_layers > 0) != (self.window > 0):
            raise ValueError(
                f"window={self.window} with window_layers={self.window_layers}; give both above 0, or neither"
            )

    @property
    def params(self) -> int:
        return sum(count for _, count in self.weights)

    @property
    def vectors(self) -> tuple[int, ...]:
        """Lengths of the vectors that one layer stores for one token: the scale groups."""
        if self.latent:
            return self.latent
        return (self.head_dim,) * self.kv_heads + (self.value_dim or self.head_dim,) * self.kv_heads


@dataclass(frozen=True, slots=True)
class Card:
    """A device and the memory its driver reports, MiB."""

    name: str
    mib: int
    source: str


def bf16(params: int) -> tuple[tuple[str, int], ...]:
    return (("bf16", params),)


_AIC = "ai-dynamo/aiconfigurator model_configs"
_LITGPT = "litgpt 0.5.13 config.py"
_MLC = "mlc-ai/mlc-llm model_preset.py"

MODELS = {
    m.name: m
    for m in (
        Model("Qwen2.5-0.5B", bf16(494_032_768), 24, 2, 64, 32_768, _LITGPT),
        Model("Qwen2.5-7B", bf16(7_615_616_512), 28, 4, 128, 131_072, _LITGPT),
        Model("Qwen3-8B", bf16(8_190_735_360), 36, 8, 128, 40_960, _AIC),
        Model("Llama-3.1-8B", bf16(8_030_261_248), 32, 8, 128, 131_072, _AIC),
        Model("Llama-3.1-70B", bf16(70_553_706_496), 80, 8, 128, 131_072, _AIC),
        Model(
            "Mistral-7B-v0.1", bf16(7_241_732_096), 32, 8, 128, 32_768, "Mistral 7B (2023), table 1",
            window_layers=32, window=4_096,
        ),
        Model(
            "Gemma-3-27B", bf16(27_432_406_640), 62, 16, 128, 131_072, _LITGPT, window_layers=52, window=1_024,
        ),
        Model(
            "gpt-oss-120b", (("mxfp4", 114_661_785_600), ("bf16", 2_167_371_072)), 36, 8, 64, 131_072, _AIC,
            window_layers=18, window=128,
        ),
        Model(
            "DeepSeek-V3", (("fp8", 669_065_609_216), ("bf16", 1_960_809_984)), 61, 128, 192, 163_840, _AIC,
            value_dim=128, latent=(512, 64),
        ),
        Model(
            "DeepSeek-V2-Lite", bf16(15_706_484_224), 27, 16, 192, 163_840, _MLC, value_dim=128, latent=(512, 64),
        ),
    )
}
"""Ten public models by name. Gemma counts its vision tower; DeepSeek-V3 leaves out the extra prediction layer."""

_SMI = "driver's report (nvidia-smi, rocm-smi), recalled, not re-read"
_YAML = "driver's report, ai-dynamo/aiconfigurator systems"

CARDS = {
    c.name: c
    for c in (
        Card("T4", 15_360, _SMI),
        Card("A10G", 23_028, _SMI),
        Card("L4", 23_034, _SMI),
        Card("RTX 4090", 24_564, _SMI),
        Card("RTX 5090", 32_607, _SMI),
        Card("L40S", 46_068, _YAML),
        Card("H100 80GB", 81_559, _SMI),
        Card("A100 80GB", 81_920, _SMI),
        Card("H200", 143_771, _SMI),
        Card("B200", 183_359, _SMI),
        Card("MI300X", 196_592, _SMI),
    )
}
"""Cards by name, smallest first. The SXM boards where a name has several."""
