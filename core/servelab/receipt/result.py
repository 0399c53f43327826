"""What a recomputation, or the generator that it repeats, comes to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from servelab.receipt.schema import Metric

Files = Mapping[str, bytes]
"""Outside data at hand: file name → its bytes."""


@dataclass(frozen=True, slots=True)
class Result:
    """`metrics` and `statistic` entries that were computed; `missing`: metric → why not."""

    metrics: Mapping[str, Metric]
    statistic: Mapping[str, Any] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)
