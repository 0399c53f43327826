"""What every studio promises: states survive their URL, presets draw, frames are whole and keep their claims."""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import sys
from dataclasses import FrozenInstanceError, fields, replace
from pathlib import Path
from typing import Any, get_args

import pytest

from servelab.receipt import load_all
from servelab.view import bridge
from servelab.view.control import StateError, controls, from_query, to_query
from servelab.view.frame import Area, Basis, Column, Frame
from servelab.view.metric import Metric
from servelab.view.plot import Plot
from servelab.view.studio import Studio, studio
from servelab.view.words import Table

ROOT = Path(__file__).resolve().parents[2]
NAMES = sorted(path.parent.name for path in (ROOT / "studios").glob("*/view.py"))
RECEIPTS = load_all(ROOT / "receipts")
CASES = [(name, preset) for name in NAMES for preset in studio(name).PRESETS]
HASH = """
import hashlib, sys
from servelab.receipt import load_all
from servelab.view.studio import studio
room = studio(sys.argv[1])
for preset in room.PRESETS.values():
    print(hashlib.sha256(room.view(preset.state, load_all(sys.argv[2])).to_bytes()).hexdigest())
"""


@pytest.fixture(scope="module")
def drawn() -> dict[tuple[str, str], Frame]:
    """The Frame of every preset of every studio."""
    return {(name, preset): studio(name).view(studio(name).PRESETS[preset].state, RECEIPTS) for name, preset in CASES}


def anything(spec: dict[str, Any], rng: random.Random) -> str:
    """Any allowed value of a control as URL text."""
    if spec["form"] == "switch":
        return rng.choice("01")
    if spec["form"] == "menu":
        return str(rng.choice(spec["choices"])[0])
    value = rng.choice([spec["min"], spec["max"], rng.uniform(spec["min"], spec["max"])])
    return str(int(value) if spec["type"] == "int" else value)


@pytest.mark.parametrize("name", NAMES)
def test_a_state_is_frozen_and_survives_its_url(name: str) -> None:
    room = studio(name)
    with pytest.raises((FrozenInstanceError, TypeError)):
        setattr(room.State(), fields(room.State)[0].name, 1)
    assert to_query(room.State()) == {}
    rng = random.Random(3)
    tried = 0
    for _ in range(300):
        query = {spec["key"]: anything(spec, rng) for spec in controls(room.State)}
        try:
            state = from_query(room.State, query | {"utm": "x", "t": "7"})
        except StateError as error:
            assert set(error.problems) == {""}, "each value is allowed: only their combination may be refused"
            continue
        tried += 1
        again = to_query(state)
        assert from_query(room.State, again) == state and hash(from_query(room.State, again)) == hash(state)
        assert all(value != spec["default"] for spec in controls(room.State) for value in [again.get(spec["key"])])
    assert tried > 30


@pytest.mark.parametrize("name", NAMES)
def test_every_control_refuses_what_lies_outside_with_value_range_and_fix(name: str) -> None:
    room = studio(name)
    for spec in controls(room.State):
        key = spec["key"]
        assert spec["label"] and len(spec["label"]) <= 24 and spec["default"] is not None
        if spec["form"] == "slider":
            assert spec["min"] <= spec["default"] <= spec["max"]
            bad = [str(spec["min"] - 1), str(spec["max"] + 1), "banana", "", "nan", "inf", "1e999", "-0x1", "1;drop"]
            words = (f"{spec['min']:g} to {spec['max']:g}", "pick ")
        else:
            bad, words = ["banana", "", "2", "-1"], ("use ",)
        for text in bad:
            with pytest.raises(StateError) as caught:
                from_query(room.State, {key: text})
            assert set(caught.value.problems) == {key}
            sentence = caught.value.problems[key]
            assert repr(text) in sentence and all(word in sentence for word in words), sentence


@pytest.mark.parametrize("name", NAMES)
def test_the_words_of_a_studio(name: str) -> None:
    room = studio(name)
    assert room.TITLE and room.SENTENCE.endswith(".") and room.SUMMARY and isinstance(room.NEEDS, tuple)
    first = next(iter(room.PRESETS.values()))
    assert first.state == room.State(), "the first preset is what the page opens with: the defaults"
    states = [preset.state for preset in room.PRESETS.values()]
    assert len(set(states)) == len(states) and len({preset.label for preset in room.PRESETS.values()}) == len(states)
    for preset in room.PRESETS.values():
        assert from_query(room.State, to_query(preset.state)) == preset.state
        assert preset.note.endswith(".") and len(preset.label) <= 16


@pytest.mark.parametrize(("name", "preset"), CASES)
def test_a_frame_is_whole(drawn: dict[tuple[str, str], Frame], name: str, preset: str) -> None:
    frame = drawn[name, preset]
    assert frame.headline.endswith(".")
    ids = [panel.id for panel in frame.panels]
    assert len(set(ids)) == len(ids)
    clock = frame.clock
    if clock is not None:
        marks = list(clock.marks.data)
        assert marks == sorted(set(marks)) and set(marks) <= set(range(clock.end + 1))
        assert 0 <= clock.start <= clock.end
    for panel in frame.panels:
        assert panel.area in get_args(Area) and panel.title
        columns = {f.name: v for f in fields(panel) if isinstance(v := getattr(panel, f.name), Column)}
        if "t" in columns:
            times = list(columns["t"].data)
            assert times == sorted(times), f"{panel.id}: a column of ticks is sorted"
            assert clock is not None and (not times or 0 <= times[0] <= times[-1] <= clock.end)
            values = [getattr(panel, f.name) for f in fields(panel)]
            known = {len(times)} | {len(value) for value in values if isinstance(value, tuple)}
            lengths = {name: len(column.data) for name, column in columns.items()}
            assert set(lengths.values()) <= known, f"{panel.id}: {lengths}"
        if isinstance(panel, (Metric, Plot, Table)):
            assert panel.basis in get_args(Basis)
        if isinstance(panel, Table):
            assert {len(row) for row in panel.rows} == {len(panel.columns)} == {len(panel.digits)}
    header, _ = frame.encode()
    assert json.dumps(json.loads(header), sort_keys=True, separators=(",", ":"), ensure_ascii=False) == header
    assert "NaN" not in header and "Infinity" not in header


@pytest.mark.parametrize(("name", "preset"), CASES)
def test_a_tile_with_a_receipt_shows_the_number_in_the_receipt(
    drawn: dict[tuple[str, str], Frame], name: str, preset: str
) -> None:
    for panel in drawn[name, preset].panels:
        if isinstance(panel, Metric) and panel.claim:
            kind, metric = panel.claim.split(".")
            raw = json.loads(max((ROOT / "receipts" / kind).glob("*.json")).read_text())
            assert panel.claim in raw["claims"]
            assert panel.value == pytest.approx(raw["metrics"][metric]["value"], rel=1e-8), panel.claim
            assert panel.unit == raw["metrics"][metric]["unit"]


@pytest.mark.parametrize("name", NAMES)
def test_a_frame_depends_on_its_state_only(drawn: dict[tuple[str, str], Frame], name: str) -> None:
    """Another process with another hash seed, and this one a second time, make the same bytes."""
    here = [hashlib.sha256(frame.to_bytes()).hexdigest() for (room, _), frame in drawn.items() if room == name]
    path = os.pathsep.join([str(ROOT / "core"), str(ROOT)])
    for seed in ("1", "4242"):
        env = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": path}
        command = [sys.executable, "-c", HASH, name, str(ROOT / "receipts")]
        assert subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout.split() == here
    assert len(set(here)) == len(here), "presets differ"
    first = studio(name).PRESETS[next(iter(studio(name).PRESETS))].state
    assert hashlib.sha256(studio(name).view(first, RECEIPTS).to_bytes()).hexdigest() == here[0]


@pytest.mark.parametrize("name", NAMES)
def test_the_extremes_of_every_control_draw_or_say_why(name: str) -> None:
    """Each control alone at its two ends: a frame, or a sentence with a fix; never a bare exception."""
    bridge.load(json.dumps({kind: receipt.to_json() for kind, receipt in RECEIPTS.items()}))
    room: Studio = studio(name)
    base = room.State()
    for spec in controls(room.State):
        ends = [value for value, _ in spec["choices"]] or [spec["min"], spec["max"]]
        for end in ends if spec["form"] != "switch" else (False, True):
            query = to_query(replace(base, **{spec["key"]: end if spec["type"] != "int" else int(end)}))
            header = json.loads(bridge.call("view", json.dumps({"studio": name, "state": query}))[0])
            if "error" in header:
                assert header["error"]["name"] in ("StateError", "ValueError"), header
                sentences = [header["error"]["message"], *header["error"]["problems"].values()]
                assert any("; use" in s or "use a" in s or "pick" in s for s in sentences), sentences
            else:
                assert header["state"] == query
