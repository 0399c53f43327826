"""A State class is its own control panel: each field is a control, a URL key and a documented range.

    @dataclass(frozen=True, slots=True)
    class State:
        block_size: Annotated[int, Control("Block size", unit="tokens", min=1, max=256)] = 16

`from_query` reads URL text: unknown keys are ignored (an old link stays alive), bad values raise StateError with one
message per key, each naming the value, the allowed range and the fix. `to_query` leaves defaults out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cache
from typing import Any, Literal, Protocol, TypeVar, get_args, get_type_hints

from servelab.kv.limits import short


class State(Protocol):
    """Any frozen dataclass whose fields are annotated with a Control."""

    __dataclass_fields__: Any


S = TypeVar("S", bound=State)


@dataclass(frozen=True, slots=True)
class Control:
    """How one field is set: a slider (numbers with min and max), a menu (`choices`: value → label) or a switch (bool).

    `scale` "log2" puts powers of two at equal distances. `group` is the heading that the control stands under.
    """

    label: str
    unit: str = ""
    min: float | None = None
    max: float | None = None
    step: float = 1
    scale: Literal["linear", "log2"] = "linear"
    choices: tuple[tuple[str, str], ...] = ()
    help: str = ""
    group: str = ""


def names(table: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """A table's keys as menu choices."""
    return tuple((name, name) for name in table)


class StateError(ValueError):
    """Text that is no State: `problems` maps each key to a sentence with the value, the range and the fix."""

    def __init__(self, problems: dict[str, str]) -> None:
        super().__init__("; ".join(problems.values()))
        self.problems = problems


def controls(state: type[State]) -> list[dict[str, Any]]:
    """Plain descriptions of a State's controls, in field order, for templates and pages."""
    out = []
    for f, kind, control in _annotated(state):
        form = "switch" if kind is bool else "menu" if control.choices else "slider"
        default = f.default if f.default is not MISSING else None
        spec = {"key": f.name, "form": form, "type": kind.__name__, "default": default}
        out.append(spec | {name: getattr(control, name) for name in Control.__dataclass_fields__})
    return out


def from_query(state: type[S], query: Mapping[str, str]) -> S:
    """A State from URL text. Raises StateError naming every bad key."""
    values: dict[str, Any] = {}
    problems: dict[str, str] = {}
    for f, kind, control in _annotated(state):
        if f.name not in query:
            continue
        try:
            values[f.name] = _parse(f.name, kind, control, query[f.name])
        except ValueError as error:
            problems[f.name] = str(error)
    if problems:
        raise StateError(problems)
    try:
        return state(**values)
    except ValueError as error:  # __post_init__: two values that do not go together
        raise StateError({"": str(error)}) from error


def to_query(state: State, defaults: bool = False) -> dict[str, str]:
    """URL text of a State, defaults omitted unless asked for; `from_query(type(s), to_query(s)) == s`."""
    out = {}
    for f, kind, _ in _annotated(type(state)):
        value = getattr(state, f.name)
        if defaults or value != f.default:
            text = ("1" if value else "0") if kind is bool else str(value)
            out[f.name] = text.removesuffix(".0") if kind is float else text
    return out


@cache
def _annotated(state: type[Any]) -> list[tuple[Any, type, Control]]:
    hints = get_type_hints(state, include_extras=True)
    return [(f, *get_args(hints[f.name])[:2]) for f in fields(state)]


def _range(control: Control) -> str:
    if control.min is None or control.max is None:
        return "any range: this control has none"
    return f"{control.min:g} to {control.max:g} {control.unit}".rstrip()


def _parse(key: str, kind: type, control: Control, text: str) -> Any:
    told = f"{key}={short(text)}"
    if kind is bool:
        if text in ("0", "1"):
            return text == "1"
        raise ValueError(f"{told} is no switch; use 0 or 1")
    if control.choices:
        names = [value for value, _ in control.choices]
        if text in names:
            return text
        raise ValueError(f"{told} is not offered; use one of {', '.join(names)}")
    try:
        value = kind(text)
    except ValueError:
        what = "whole number" if kind is int else "number"
        raise ValueError(f"{told} is no {what}; pick one from {_range(control)}") from None
    low, high = control.min, control.max
    if low is None or high is None or not low <= value <= high:
        raise ValueError(f"{told} is outside {_range(control)}; pick a value in it")
    return value
