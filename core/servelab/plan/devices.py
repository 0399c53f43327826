"""Devices: what an accelerator has, from a table (data/devices.json) with the sources of each row.

Rates of data sheets, dense: memory in GB/s, units in TFLOP/s with 32-bit accumulation, links in GB/s of both
directions together. Memory is what the driver reports where that is known, else what is sold.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files

from servelab.kv.limits import beginning, short

GIB = 2**30


@dataclass(frozen=True, slots=True)
class Device:
    """One accelerator. `link` of 0 means that several talk over the bus. Every rate and the memory are above 0."""

    name: str
    memory_gib: float
    bandwidth: float
    tflops: Mapping[str, float]
    watts: float = 0.0
    link: float = 0.0
    bus: float = 16.0
    kind: str = "custom"
    basis: str = "given by hand"
    checked: tuple[str, ...] = ()
    note: str = ""
    driver: bool = False
    """Whether the memory is the driver's report."""
    year: int = 0
    vendor: str = ""
    conflicts: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        for name in ("memory_gib", "bandwidth"):
            value = getattr(self, name)
            if not 0 < value < 1e7:
                raise ValueError(f"{self.name}: {name}={short(value)} is outside 0 to 10 million (0 excluded)")
        if not self.tflops.get("bf16", 0) > 0:
            raise ValueError(f"{self.name}: tflops has no bf16 above 0; give its dense bf16 or fp16 rate")
        for name in ("watts", "link", "bus"):
            if not 0 <= getattr(self, name) < 1e7:
                raise ValueError(f"{self.name}: {name}={short(getattr(self, name))} is outside 0 to 10,000,000")

    @property
    def memory(self) -> float:
        """Bytes."""
        return self.memory_gib * GIB

    def rate(self, units: str) -> float:
        """FLOP/s of these units, of bf16 where the device has none."""
        return self.tflops.get(units, self.tflops["bf16"]) * 1e12

    @property
    def one_way(self) -> float:
        """Bytes/s that a device sends to the others of its host."""
        return (self.link / 2 or self.bus) * 1e9


@lru_cache(maxsize=1)
def table() -> dict[str, Device]:
    """All devices by name, in the order of the table."""
    found = json.loads((files("servelab.plan") / "data" / "devices.json").read_text())
    return {
        row["id"]: Device(
            row["id"], row["driver_mib"] / 1024 if "driver_mib" in row else row["memory_gib"], row["bandwidth_gbs"],
            row["tflops"], row.get("watts", 0), row.get("link_gbs", 0), row.get("bus_gbs", 16), row["kind"],
            row["basis"], tuple(row["checked"]), row.get("note", ""), "driver_mib" in row, row["year"], row["vendor"],
            row.get("conflicts", ""),
        )
        for row in found["rows"]
    }  # fmt: skip


def device(name: str) -> Device:
    """A device of the table by its name or the beginning of one. ValueError with those on offer."""
    if name not in table() and (sxm := f"{name} SXM") in table():
        return table()[sxm]  # the board that is meant where only the chip is named
    return table()[beginning("device", name, table())]
