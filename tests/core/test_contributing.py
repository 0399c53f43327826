"""CONTRIBUTING's small studio is a studio: its code runs as printed and gives a whole Frame for every preset."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from servelab.view.control import controls

TEXT = (Path(__file__).resolve().parents[2] / "CONTRIBUTING.md").read_text()


def test_the_small_studio_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    module = ModuleType("small_studio")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(compile(code, "CONTRIBUTING.md", "exec"), vars(module))
    presets = list(vars(module)["PRESETS"].values())
    assert presets[0].state == vars(module)["State"]() and len(controls(vars(module)["State"])) == 2
    frames = [vars(module)["view"](preset.state, {}) for preset in presets]
    assert [[panel.value for panel in frame.panels] for frame in frames] == [[63, 8], [4, 24]]
    assert all(frame.to_bytes() for frame in frames)
