"""A config.json that the visitor dropped: kept in this tab, and nowhere else."""

from __future__ import annotations

import json
from collections.abc import Mapping

from servelab.kv.sizes import kv_bytes, unwindowed
from servelab.plan import models
from servelab.plan.devices import GIB
from servelab.plan.formats import FORMATS, weight_bytes
from servelab.plan.memory import Layout, rank_cache
from servelab.plan.shapes import Shape
from servelab.receipt.schema import Receipt
from servelab.view import Frame
from servelab.view.metric import Metric
from servelab.view.words import Table

NAME = "yours"
_given: dict[str, Shape] = {}


def shape(name: str) -> Shape:
    """A model of the table, or the dropped one. ValueError where none was dropped."""
    if name != NAME:
        return models.model(name)
    if NAME not in _given:
        raise ValueError("this tab has no config.json of yours; drop one on the page, or choose a model of the table")
    return _given[NAME]


def drop(name: str, data: bytes, receipts: Mapping[str, Receipt]) -> Frame:
    """Read a Hugging Face config.json. ValueError names the field that is missing or wrong."""
    try:
        values = json.loads(data)
    except ValueError as error:
        raise ValueError(f"no JSON: {error}; drop a model's config.json") from None
    found = models.read(values, name)
    _given[NAME] = found
    cache = rank_cache(found, Layout())
    each = kv_bytes(unwindowed(cache), "bf16", 1) if cache else 0
    tiles = (
        Metric("params", "Parameters", "tiles", found.total / 1e9, "billion", "derived", digits=2),
        Metric("active", "Used by a token", "tiles", found.active_params / 1e9, "billion", "derived", digits=2),
        Metric("each", "KV cache", "tiles", each / 1024, "KiB a token", "derived", digits=1),
        Metric("layers", "Layers", "tiles", found.layers, "", "derived"),
    )
    rows = tuple((part, n, 100 * n / found.total) for part, n in found.params.items() if n)
    parts = Table("parts", "Parameters by part", "below", (("Part", ""), ("Parameters", ""), ("Share", "%")),
                  (0, 0, 1), rows, "derived")  # fmt: skip
    sizes = tuple((quant, weight_bytes(found.params, kind) / GIB) for quant, kind in FORMATS.items())
    columns = (("Format", ""), ("Weights", "GiB"))
    formats = Table("sizes", "Weights by format", "below", columns, (0, 1), sizes, "derived")
    told = f"{name}: {found.total / 1e9:,.2f} billion parameters; the settings above plan this model now."
    return Frame(told, None, (*tiles, parts, formats))
