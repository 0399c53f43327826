"""Models: a `config.json` becomes a Shape, and a table of public ones by name.

The table (data/models.json) holds, for each model, the fields of its configuration that decide its shape, the published
number of parameters with what that is based on, and where the configuration was read.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.resources import files
from typing import Any

from servelab.kv.limits import beginning, short
from servelab.plan import config
from servelab.plan.architectures import READERS
from servelab.plan.config import Fields
from servelab.plan.shapes import Shape


def read(values: Mapping[str, Any], name: str = "") -> Shape:
    """The shape of a `config.json`. ValueError names the field that is missing, wrong or unknown."""
    outer = Fields(values)
    kind = outer.text("model_type")
    inner = outer.inner("text_config") if outer.has("text_config") else outer
    if kind not in READERS:
        kind = inner.text("model_type") or kind
    if kind not in READERS:
        known = ", ".join(sorted(READERS))
        raise ValueError(f"config.json: model_type={short(kind)} is an unknown architecture; known are {known}")
    shape = READERS[kind](inner)
    if outer.has("vision_config") and kind.startswith("gemma3"):
        shape = _with_siglip(shape, outer.inner("vision_config"))
    native = _native(outer if outer.has("quantization_config") else inner)
    title = name or outer.text("_name_or_path") or outer.text("name") or kind
    return replace(shape, name=title, native=native, used=_used(shape))


def _used(shape: Shape) -> dict[str, int]:
    out = dict(shape.params)
    if shape.experts:
        out["experts"] = out["experts"] * shape.active // shape.experts
    return out


def _native(fields: Fields) -> str:
    if not fields.has("quantization_config"):
        return "bf16"
    method = fields.inner("quantization_config").text("quant_method")
    names = {"fp8": "fp8-block", "mxfp4": "mxfp4", "awq": "int4", "gptq": "int4", "modelopt": "nvfp4"}
    if method not in names:
        raise ValueError(
            f"config.json: quantization_config.quant_method={short(method)} is unknown; use one of {', '.join(names)}, "
            "or leave quantization_config out and choose a format"
        )
    return names[method]


def _with_siglip(shape: Shape, vision: Fields) -> Shape:
    width = vision.whole("hidden_size")
    tower = config.siglip(
        width, vision.whole("num_hidden_layers"), vision.whole("intermediate_size"), vision.whole("patch_size"),
        vision.whole("image_size"),
    )  # fmt: skip
    return replace(shape, params=Counter(shape.params) + tower + Counter(vision=width * shape.hidden + width))


@dataclass(frozen=True, slots=True)
class Row:
    """One model of the table: `published` parameters as `basis` has them; `exact` where that counts tensors."""

    id: str
    config: Mapping[str, Any]
    published: int
    basis: str
    exact: bool
    licence: str
    source: str

    @property
    def short(self) -> str:
        """The name without its owner."""
        return self.id.split("/")[1]


@lru_cache(maxsize=1)
def table() -> dict[str, Row]:
    """The rows by short name."""
    found = json.loads((files("servelab.plan") / "data" / "models.json").read_text())
    return {row.short: row for row in (Row(**one) for one in found["rows"])}


@lru_cache(maxsize=256)
def model(name: str) -> Shape:
    """A model of the table, by its name or a beginning that no other has. ValueError with those on offer."""
    found = beginning("model", name.split("/")[-1], table())
    return read(table()[found].config, found)
