"""The Frame's wire form, and State text: what a page relies on."""

import json
import math
import struct
from dataclasses import dataclass
from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servelab import __version__
from servelab.view import Clock, Control, Frame, StateError, controls, f32, from_query, i32, round9, to_query
from servelab.view.export import story_lines, to_csv, to_json, to_perfetto
from servelab.view.metric import Metric
from servelab.view.words import Table, Text


@dataclass(frozen=True, slots=True)
class Toy:
    size: Annotated[int, Control("Size", unit="tokens", min=1, max=256)] = 16
    rate: Annotated[float, Control("Rate", unit="req/s", min=0.1, max=9.5, step=0.1)] = 1.5
    dtype: Annotated[str, Control("Type", choices=(("fp16", "FP16"), ("fp8", "FP8")))] = "fp16"
    share: Annotated[bool, Control("Share")] = True


def frame() -> Frame:
    metric = Metric("blocks", "Blocks", "tiles", 1 / 3, "blocks", "derived", t=i32([0, 5]), series=f32([1, 2.5]))
    table = Table("t", "Schemes", "below", (("scheme", ""), ("blocks", "blocks")), (0, 0), (("paged", 428),), "derived")
    arguments = [i32([n]) for n in range(4)]
    story = Text("s", "Story", "side", (), ("block {1} goes to {0}",), i32([3]), i32([0]), *arguments)
    return Frame("two blocks", Clock(5, "tokens", i32([0, 5])), (metric, table, story))


def test_header_and_buffers_are_a_plain_structure_of_arrays():
    header, buffers = frame().encode()
    parsed = json.loads(header)
    assert [p["kind"] for p in parsed["panels"]] == ["metric", "table", "text"]
    column = parsed["panels"][0]["series"]
    assert column["type"] == "f32" and struct.unpack("<2f", buffers[column["$"]]) == (1.0, 2.5)
    assert struct.unpack("<2i", buffers[parsed["clock"]["marks"]["$"]]) == (0, 5)
    assert parsed["panels"][0]["value"] == 0.333333333
    assert frame().to_bytes() == header.encode() + b"\0" + b"".join(buffers)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_round9_keeps_nine_digits_and_is_idempotent(x: float):
    assert math.isclose(round9(x), x, rel_tol=5e-9, abs_tol=1e-307)
    assert round9(round9(x)) == round9(x)


@pytest.mark.parametrize("x", [math.nan, math.inf, -math.inf])
def test_a_frame_refuses_numbers_that_json_cannot_carry(x: float):
    with pytest.raises(ValueError, match="finite"):
        round9(x)


def test_a_frame_refuses_objects():
    with pytest.raises(TypeError, match="plain data"):
        Frame("x", None, (Metric("a", "a", "tiles", {1, 2}, "", "derived"),)).encode()  # type: ignore[arg-type]


@given(
    st.builds(
        Toy,
        size=st.integers(1, 256),
        rate=st.floats(0.1, 9.5),
        dtype=st.sampled_from(["fp16", "fp8"]),
        share=st.booleans(),
    )
)
def test_every_state_survives_its_url(state: Toy):
    assert from_query(Toy, to_query(state)) == state


def test_defaults_are_left_out_and_unknown_keys_tolerated():
    assert to_query(Toy()) == {}
    assert from_query(Toy, {"t": "17", "utm": "x"}) == Toy()


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ({"size": "-3"}, ["size='-3'", "1 to 256 tokens", "pick"]),
        ({"size": "12.5"}, ["size='12.5' is no whole number", "1 to 256"]),
        ({"size": "16.0"}, ["size='16.0' is no whole number; pick one from 1 to 256 tokens"]),
        ({"size": "1e1"}, ["size='1e1' is no whole number"]),
        ({"size": "257"}, ["size='257' is outside 1 to 256 tokens; pick a value in it"]),
        ({"rate": "fast"}, ["rate='fast' is no number; pick one from 0.1 to 9.5 req/s"]),
        ({"rate": "nan"}, ["rate='nan'", "0.1 to 9.5 req/s"]),
        ({"rate": "inf"}, ["rate='inf'", "0.1 to 9.5"]),
        ({"dtype": "fp9"}, ["dtype='fp9'", "fp16, fp8"]),
        ({"share": "maybe"}, ["share='maybe'", "0 or 1"]),
    ],
)
def test_nonsense_names_the_value_the_range_and_the_fix(query: dict[str, str], says: list[str]):
    with pytest.raises(StateError) as caught:
        from_query(Toy, query)
    (key,) = query
    assert all(word in caught.value.problems[key] for word in says)


@pytest.mark.parametrize("key", ["size", "rate", "dtype", "share"])
def test_a_long_value_is_shortened(key: str):
    with pytest.raises(StateError) as caught:
        from_query(Toy, {key: "9<" * 5_000})
    assert caught.value.problems[key].startswith(f"{key}='9<9<") and len(caught.value.problems[key]) < 120


def test_all_bad_keys_are_named_at_once():
    with pytest.raises(StateError) as caught:
        from_query(Toy, {"size": "0", "dtype": "?", "rate": "2"})
    assert set(caught.value.problems) == {"size", "dtype"}


def test_controls_describe_every_field():
    assert [(c["key"], c["form"], c["default"]) for c in controls(Toy)] == [
        ("size", "slider", 16), ("rate", "slider", 1.5), ("dtype", "menu", "fp16"), ("share", "switch", True),
    ]


def test_exports_hold_the_frame_s_numbers():
    lines = to_csv(frame(), {"size": "8"}, "servelab 9.9").splitlines()
    assert lines[0] == "# servelab 9.9" and "size,8" in lines and "paged,428" in lines and "5,2.5" in lines
    assert json.loads(to_json(frame(), {}, ""))["tables"][0]["rows"] == [["paged", 428]]
    events = json.loads(to_perfetto(frame(), {}, ""))["traceEvents"]
    assert {"ph": "C", "pid": 1, "name": "Blocks", "ts": 5, "args": {"blocks": 2.5}} in events
    assert list(story_lines(frame().panels[2])) == [(3, "block 1 goes to 0")]  # type: ignore[arg-type]


def test_exports_round_as_the_page_does():
    """The toy's metric is a third, in the middle of the digits that a double has and the page shows."""
    assert json.loads(to_json(frame(), {}, ""))["metrics"][0]["value"] == 0.333333333
    assert "Blocks,0.333333333,blocks,derived" in to_csv(frame(), {}, "").splitlines()
    table = Table("t", "T", "below", (("x", ""),), (0,), ((2 / 3,),), "derived")
    assert json.loads(to_json(Frame("x", None, (table,)), {}, ""))["tables"][0]["rows"] == [[0.666666667]]


@pytest.mark.parametrize("suffix", ["csv", "json", "perfetto"])
def test_an_export_says_what_made_it_and_every_setting(suffix: str):
    """Enough to make it again: the state in the file gives the same file."""
    from servelab.view import bridge
    from servelab.view.studio import studio

    def export(state: dict[str, str]) -> bytes:
        params = {"studio": "kv_desk", "format": suffix, "state": state}
        (body,) = bridge.call("export", json.dumps(params), None)[1]
        return bytes(body)

    text = export({"conversations": "5"}).decode()
    made = f"studio kv_desk of servelab {__version__}"
    if suffix == "csv":
        lines = text.splitlines()
        assert lines[:2] == [f"# {made}", "# state"]
        state = dict(line.split(",") for line in lines[2 : lines.index("# metrics")])
    else:
        said = json.loads(text) if suffix == "json" else json.loads(text)["otherData"]
        assert said["made_by"] == made
        state = said["state"]
    assert set(state) == {spec["key"] for spec in controls(studio("kv_desk").State)} and state["conversations"] == "5"
    assert export(state).decode() == text


def test_a_refused_file_is_not_named_twice():
    """The page writes the file's name before the message."""
    from servelab.view import bridge

    params = json.dumps({"studio": "kv_desk", "name": "notes.md"})
    (error,) = json.loads(bridge.call("drop", params, b"# Notes\n")[0]).values()
    assert error["name"] == "ValueError" and error["message"].startswith("line 1: CSV columns '# Notes' are not known")
