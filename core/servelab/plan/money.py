"""Money: what a million tokens cost, rented or owned, beside what an API asks.

    rent   $/1M = 10^6 · devices · $/hour / (3600 · tokens/s · utilisation)
    own    $/hour of a device = capital / (years · 8766 h) + watts · overhead · $/kWh / 1000

Utilisation is the share of the time in which the load is there: an idle device is paid for too. Prices are listed
prices of the day in their row (data/rents.json, data/apis.json).
"""

from __future__ import annotations

import json
import statistics
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

from servelab.kv.limits import short

TERMS = ("on demand", "spot", "reserved", "lowest")
HOURS = 8766
"""Of a year."""


@dataclass(frozen=True, slots=True)
class Rent:
    """A listed price of one device. `least` of them are rented together."""

    provider: str
    device: str
    terms: str
    usd_per_hour: float
    least: int
    date: str
    source: str
    region: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Api:
    """Dollars per million input, output and cached input tokens."""

    provider: str
    model: str
    input: float
    output: float
    cached: float | None = None


@dataclass(frozen=True, slots=True)
class Own:
    """A device bought: dollars for it and its share of the host, and what running it costs."""

    capital: float = 30_000.0
    years: float = 4.0
    usd_per_kwh: float = 0.12
    overhead: float = 1.4
    """Power of the room per power of the device (host, cooling)."""

    def __post_init__(self) -> None:
        for name in ("capital", "years", "usd_per_kwh", "overhead"):
            price(name, getattr(self, name), above=name == "years")

    def hourly(self, watts: float) -> float:
        """Dollars per hour of one device."""
        return self.capital / (self.years * HOURS) + watts * self.overhead * self.usd_per_kwh / 1000


def price(name: str, value: float, above: bool = False) -> float:
    """A price that is no less than 0, or above it. ValueError otherwise."""
    if not 0 <= value < 1e12 or (above and value == 0):
        raise ValueError(f"{name}={short(value)} is outside 0 to 10^12{' (0 excluded)' if above else ''}; correct it")
    return value


def _rows(name: str) -> Any:
    return json.loads((files("servelab.plan") / "data" / name).read_text())["rows"]


@lru_cache(maxsize=1)
def rents() -> tuple[Rent, ...]:
    return tuple(Rent(**row) for row in _rows("rents.json"))


@lru_cache(maxsize=1)
def apis() -> tuple[Api, ...]:
    return tuple(Api(**row) for row in _rows("apis.json"))


@lru_cache(maxsize=512)
def rent(device: str, terms: str = "on demand") -> float | None:
    """The median listed price of a device on these terms, dollars an hour; None where none is listed.

    A price whose terms are only "lowest observed" stands in where there is no other.
    """
    if terms not in TERMS:
        raise ValueError(f"terms={short(terms)} is unknown; use one of {', '.join(TERMS)}")
    for wanted in (terms, "lowest"):
        found = [row.usd_per_hour for row in rents() if row.device == device and row.terms == wanted]
        if found:
            return statistics.median(found)
    return None


def per_million(hourly: float, throughput: float, utilisation: float = 1.0) -> float:
    """Dollars per million tokens of a replica that costs `hourly` and yields `throughput` tokens/s."""
    price("hourly", hourly)
    if not 0 < utilisation <= 1:
        raise ValueError(f"utilisation={short(utilisation)} is outside 0 to 1 (0 excluded); give the busy share")
    if throughput <= 0:
        raise ValueError(f"throughput={short(throughput)} has to be above 0; the plan does not fit")
    return 1e6 * hourly / 3600 / throughput / utilisation


def api_price(row: Api, prompt: int, output: int) -> float:
    """Dollars per million output tokens of an API, its share of the prompts included."""
    return row.output + row.input * prompt / output


def break_even(hourly: float, own: Own, watts: float) -> float | None:
    """Share of the time above which owning a device is cheaper than renting it; None where it never is."""
    running = watts * own.overhead * own.usd_per_kwh / 1000
    if hourly <= running:
        return None
    share = own.capital / (own.years * HOURS) / (hourly - running)
    return share if share <= 1 else None
