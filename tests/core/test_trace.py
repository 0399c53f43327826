"""Trace files as the publishers write them, as derived data sets rename them, and as they break."""

import gzip
import hashlib
import json
import time
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from servelab.kv.trace import CSV_LAYOUTS, JSON_LAYOUTS, iso_ns, read, seconds_ns

AZURE = b"""TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:15:46.6805900,374,44
2023-11-16 18:15:50.9951690,396,109
2023-11-17 00:00:00.0000001,879,55
"""
AZURE_RENAMED = b"""arrival_s,prompt_tokens,output_tokens
0.000000,374,44
4.314579,396,109
20653.3194101,879,55
"""
MOONCAKE = b"""{"timestamp": 0, "input_length": 1000, "output_length": 5, "hash_ids": [0, 1]}
{"timestamp": 27482, "input_length": 1536, "output_length": 52, "hash_ids": [0, 1, 2]}
"""
MOONCAKE_RENAMED = MOONCAKE.replace(b"timestamp", b"arrival_ms").replace(b"input_length", b"prompt_tokens").replace(
    b"output_length", b"output_tokens"
)


def columns(data: bytes) -> tuple[object, ...]:
    t = read(data)
    return t.arrival_ns, t.prompt_tokens, t.output_tokens, t.hash_ids


def test_azure_as_published_and_renamed():
    arrivals = (0, 4_314_579_000, 20_653_319_410_100)
    assert columns(AZURE) == columns(AZURE_RENAMED) == (arrivals, (374, 396, 879), (44, 109, 55), None)


def test_mooncake_as_published_and_renamed():
    expected = ((0, 27_482_000_000), (1000, 1536), (5, 52), ((0, 1), (0, 1, 2)))
    assert columns(MOONCAKE) == columns(MOONCAKE_RENAMED) == expected


@pytest.mark.parametrize("data", [AZURE, MOONCAKE])
def test_gzip_path_bytes_and_line_ends_are_the_same(data, tmp_path):
    packed = gzip.compress(data)
    path = tmp_path / "t.gz"
    path.write_bytes(packed)
    windows = b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n") + b"\r\n"
    two_members = gzip.compress(data[:50]) + gzip.compress(data[50:])
    assert columns(packed) == columns(data) == columns(windows) == columns(two_members) == columns(data.rstrip())
    trace = read(path)
    assert trace.name == "t.gz" and trace.sha256 == hashlib.sha256(packed).hexdigest() and trace.requests == len(
        read(data, "x").prompt_tokens
    )


def test_lengths_alone_have_no_clock_and_extra_columns_are_ignored():
    assert columns(b"id,output_tokens,prompt_tokens\n7,2,30\n") == (None, (30,), (2,), None)


def test_time_stamps_are_exact():
    assert iso_ns("1970-01-01 00:00:01.0000001") == 1_000_000_100
    assert iso_ns("2024-05-10T02:00:00.5+02:00") == iso_ns("2024-05-10 00:00:00.500Z") == 1_715_299_200_500_000_000
    assert seconds_ns("1e-05") == 10_000 and seconds_ns("0.3") == 300_000_000


def test_rows_out_of_order_are_put_back_and_counted():
    lines = AZURE.splitlines(keepends=True)
    shuffled = read(b"".join([lines[0], lines[2], lines[3], lines[1]]))
    assert shuffled.reordered == 1
    assert shuffled.arrival_ns == read(AZURE).arrival_ns and shuffled.prompt_tokens == (374, 396, 879)


def test_progress_ends_at_or_below_one():
    seen: list[float] = []
    read(b"prompt_tokens,output_tokens\n" + b"5,5\n" * 10_000, progress=seen.append)
    assert len(seen) >= 2 and seen == sorted(seen) and seen[0] > 0 and seen[-1] <= 1


HEAD = b"arrival_s,prompt_tokens,output_tokens\n"
JSON = b'{"timestamp": 0, "input_length": 5, "output_length": 5, "hash_ids": [1]}\n'


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (HEAD + b"0,5,5\n1,-3,5\n", "line 3: prompt_tokens='-3' is outside 1 to 100,000,000 whole tokens; repair"),
        (HEAD + b"0,0,5\n", "line 2: prompt_tokens=0 is outside 1"),
        (HEAD + b"0,5,\n", "line 2: output_tokens='' is outside 1"),
        (HEAD + b"0,5,1.5\n", "line 2: output_tokens='1.5' is outside 1"),
        (HEAD + b"0,1_0,5\n", "line 2: prompt_tokens='1_0' is outside 1"),
        (HEAD + b"0,\xc2\xb2,5\n", "line 2: prompt_tokens='²' is outside 1"),
        (HEAD + b"0," + b"9" * 5_000 + b",5\n", r"line 2: prompt_tokens='9{37}…' is outside 1"),
        (HEAD + b"-1,5,5\n", r"line 2: arrival_s='-1' is outside 0 to [\d,]+ seconds; write seconds"),
        (HEAD + b"nan,5,5\n", "line 2: arrival_s='nan' is outside"),
        (HEAD + b"1e999999999,5,5\n", "line 2: arrival_s='1e999999999' is outside"),
        (HEAD + b"0,5\n", "line 2: 2 fields, the header has 3; complete"),
        (HEAD, "the file holds 0 requests below its header; give a trace of at least 1"),
        (b"", "the file holds 0 requests; give a trace of at least 1"),
        (b" \n\n", "the file holds 0 requests; give"),
        (AZURE.replace(b"18:15:50.", b"soon"), "line 3: TIMESTAMP='2023-11-16 soon.*' is no time stamp; write 2023"),
        (AZURE.replace(b"11-16 18:15:50", b"13-16 18:15:50"), "line 3: TIMESTAMP='2023-13-16.*is no time stamp"),
        (b"a,b,c\n1,2,3\n", r"line 1: CSV columns 'a, b, c' are not known; rename .*TIMESTAMP, ContextTokens, "),
        (JSON + b'{"timestamp": 0, "input_length": 5}\n', "line 2: output_length is missing; every line needs"),
        (JSON + b'{"timestamp"', "line 2: .* is no JSON .*; write one object per line"),
        (b"[" + JSON + b"]", r"line 1: .*is no JSON"),
        (b"[1]", r"line 1: '\[1\]' is no JSON object; write one object per line"),
        (b'{"a": ' + b"[" * 100_000, "line 1: JSON nested deeper than 64 levels; write one flat object"),
        (b'{"a": ' + b"[" * 3_000 + b"]" * 3_000 + b"}", "line 1: JSON nested deeper than 64 levels"),
        (b'{"a": 1}\n', "line 1: JSON keys 'a' are not known; rename them to one of: timestamp, input_length"),
        (JSON.replace(b"[1]", b"[1.5]"), r"line 1: hash_ids=\[1.5\] is no list of whole numbers; give one"),
        (JSON.replace(b"[1]", b"[true]"), "line 1: hash_ids=.* is no list of whole numbers"),
        (JSON.replace(b"[1]", b"7"), "line 1: hash_ids=7 is no list"),
        (JSON.replace(b"[1]", b"[1, 2]"), "line 1: hash_ids has 2 ids for 5 prompt tokens, allowed 0 to 1; give"),
        (JSON.replace(b"[1]", b"[-1]"), r"line 1: hash_ids has -1 … -1, allowed are 0 to 2\^63"),
        (JSON.replace(b": 5,", b": true,"), "line 1: input_length=True is outside 1"),
        (JSON.replace(b": 5,", b": 1" + b"0" * 3_000 + b",", 1), r"line 1: input_length=10\^3000 \(about\) is out"),
        (JSON.replace(b": 5,", b": 1" + b"0" * 5_000 + b",", 1), "line 1: .* a number of over 4,000 digits; repair"),
        (JSON.replace(b": 0,", b": true,"), "line 1: timestamp=True is outside 0 to"),
        (JSON.replace(b": 0,", b": 0.5,"), r"line 1: timestamp=0.5 is outside 0 to [\d,]+; write whole milliseconds"),
        (b"\x89PNG\r\n\x1a\n\0\0", "line 1: byte 0x89 is no UTF-8 text; give CSV or JSON lines"),
        (b"PK\x03\x04rest", "this is a zip archive; unpack it; plain text and gzip are read"),
        (gzip.compress(AZURE)[:-20], "the gzip is cut short or damaged .*; download it again"),
        (gzip.compress(AZURE)[:30] + b"x" * 60, "the gzip is cut short or damaged"),
        (b"\x1f\x8b", "the gzip is cut short or damaged"),
    ],
)
def test_a_broken_file_is_named_with_line_value_range_and_fix(data, words):
    with pytest.raises(ValueError, match="^bad.csv: " + words):
        read(data, "bad.csv")


@pytest.mark.parametrize("note", ["[" * 500, "{" * 500 + '"', "\\" * 3 + "[" * 500, '\\"' * 99 + "[" * 500])
def test_brackets_in_strings_are_no_nesting(note):
    line = json.dumps({"note": note} | json.loads(JSON))
    assert read(line.encode()).requests == 1


@pytest.mark.parametrize("levels", [63, 64])
def test_nesting_is_counted_to_its_limit_across_strings(levels):
    """The line's own object is one level; the nest beside it decides."""
    nest = b'["]", ' * levels + b'"[["' + b"]" * levels
    line = JSON.replace(b"{", b'{"nest": ' + nest + b", ", 1)
    if levels < 64:
        assert read(line).requests == 1
    else:
        with pytest.raises(ValueError, match="line 1: JSON nested deeper than 64 levels"):
            read(line)


def test_a_line_of_quotes_that_never_end_is_judged_at_once():
    """Looking for the end of a string from every quote would take minutes."""
    began = time.perf_counter()
    with pytest.raises(ValueError, match="line 1: JSON nested deeper"):
        read(b"{" + b"[" * 80 + b'\\"' * 200_000)
    assert time.perf_counter() - began < 5


def test_a_path_that_is_no_file(tmp_path):
    with pytest.raises(ValueError, match="nope.csv: no such file or directory; give the path of a trace file"):
        read(tmp_path / "nope.csv")
    with pytest.raises(ValueError, match="is a directory; give"):
        read(tmp_path)


def test_too_large_a_file_is_refused_before_it_fills_memory(monkeypatch):
    monkeypatch.setattr("servelab.kv.source.MAX_BYTES", 1_000)
    packed = gzip.compress(b"0" * 10_000_000)
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="over 1,000 bytes unpacked, allowed are 1 to 1,000; cut the trace into"):
            read(packed)
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


@given(data=st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_any_bytes_give_a_trace_or_a_value_error(data):
    for candidate in (data, HEAD + data, JSON + data, b"\x1f\x8b\x08\0" + data, gzip.compress(HEAD + data)):
        try:
            trace = read(candidate)
        except ValueError as error:
            assert str(error).startswith("trace: ")
        else:
            assert trace.requests >= 1


plain = (st.integers(-2, 600), st.booleans(), st.none(), st.floats(), st.text(max_size=3))
cells = st.one_of(*plain, st.lists(st.integers(-1, 9)))


@given(record=st.fixed_dictionaries(dict.fromkeys(JSON_LAYOUTS[0].columns, cells)))
def test_any_json_values_give_a_trace_or_a_value_error(record):
    try:
        trace = read(json.dumps(record).encode())
    except ValueError:
        return
    assert trace.prompt_tokens[0] >= 1 and type(record["timestamp"]) is int and type(record["input_length"]) is int


def test_accepted_columns_are_the_publishers():
    assert CSV_LAYOUTS[0].columns == ("TIMESTAMP", "ContextTokens", "GeneratedTokens")
    assert JSON_LAYOUTS[0].columns == ("timestamp", "input_length", "output_length", "hash_ids")


@pytest.mark.parametrize(
    ("name", "requests", "prompt_mean", "seconds"),
    [
        ("azure_llm_2023_conv.csv.gz", 19_366, 1154.697, 3501.722),
        ("azure_llm_2023_code.csv.gz", 8_819, 2047.848, 3435.948),
        ("mooncake_fast25_conversation.jsonl.gz", 12_031, 12035.061, 3536.999),
        ("mooncake_fast25_synthetic.jsonl.gz", 3_993, 15325.477, 1022.025),
    ],
)
def test_collected_traces(outside, name, requests, prompt_mean, seconds):
    trace = read(outside(f"traces/{name}"))
    assert trace.requests == requests and trace.reordered == 0
    assert sum(trace.prompt_tokens) / requests == pytest.approx(prompt_mean, abs=5e-4)
    assert trace.arrival_ns is not None and trace.arrival_ns[-1] / 1e9 == pytest.approx(seconds, abs=5e-4)
