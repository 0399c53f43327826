"""Converted traces: the publishers' files become the files that receipts name, byte for byte."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from servelab.cli import app
from servelab.kv.convert import packed, renamed
from servelab.kv.trace import Trace, read
from servelab.receipt import load_all

AZURE = b"""TIMESTAMP,ContextTokens,GeneratedTokens\r
2023-11-16 18:15:46.6805900,374,44\r
2023-11-16 18:15:50.9951690,396,109\r
"""
MOONCAKE = b"""{"timestamp": 0, "input_length": 600, "output_length": 52, "hash_ids": [46, 47]}
{"timestamp": 3052, "input_length": 5, "output_length": 26, "hash_ids": [7]}
"""


def columns(trace: Trace) -> tuple[object, ...]:
    return trace.arrival_ns, trace.prompt_tokens, trace.output_tokens, trace.hash_ids


@pytest.mark.parametrize(
    ("publishers", "text"),
    [
        (AZURE, "arrival_s,prompt_tokens,output_tokens\n0.000000,374,44\n4.314579,396,109\n"),
        (b"prompt_tokens,output_tokens,x\n5,6,7\n", "prompt_tokens,output_tokens\n5,6\n"),
        (
            MOONCAKE,
            '{"arrival_ms":0,"prompt_tokens":600,"output_tokens":52,"hash_ids":[46,47]}\n'
            '{"arrival_ms":3052,"prompt_tokens":5,"output_tokens":26,"hash_ids":[7]}\n',
        ),
    ],
)
def test_columns_are_renamed_and_nothing_is_lost(publishers: bytes, text: str) -> None:
    trace = read(publishers)
    assert renamed(trace) == text
    assert columns(read(text.encode())) == columns(trace)
    assert renamed(read(text.encode())) == text
    zipped = packed(trace, "t.csv.gz")
    assert gzip.decompress(zipped).decode() == text and zipped == packed(trace, "t.csv.gz")
    assert packed(trace, "t.csv") == text.encode()


def azure(rows: list[dict[str, Any]]) -> bytes:
    """Rows as Azure publishes them."""
    began = datetime(2023, 11, 16, 18, 15, 46, 680590)
    out = ["TIMESTAMP,ContextTokens,GeneratedTokens"]
    for row in rows:
        at = began + timedelta(microseconds=int(row["arrival_s"].replace(".", "")))
        out.append(f"{at:%Y-%m-%d %H:%M:%S.%f}0,{row['prompt_tokens']},{row['output_tokens']}")
    return "\r\n".join(out).encode()


def mooncake(rows: list[dict[str, Any]]) -> bytes:
    """Rows as Mooncake publishes them."""
    names = ("timestamp", "input_length", "output_length", "hash_ids")
    return "\n".join(json.dumps(dict(zip(names, row.values(), strict=True))) for row in rows).encode()


@pytest.mark.parametrize("kind", ["kv_waste", "kv_prefix"])
def test_the_publishers_files_become_the_ones_that_receipts_name(
    kind: str, outside: Callable[[str], Path], tmp_path: Path
) -> None:
    for item in load_all(Path(__file__).parents[2] / "receipts")[kind].data:
        text = gzip.decompress(outside(f"traces/{item.name}").read_bytes()).decode()
        published = tmp_path / "published"
        lengths_alone = ".csv" in item.name
        rows = csv.DictReader(io.StringIO(text)) if lengths_alone else map(json.loads, text.splitlines())
        published.write_bytes((azure if lengths_alone else mooncake)([*rows]))
        done = CliRunner().invoke(app, ["kv", "convert", str(published), str(tmp_path / item.name), "--json"])
        assert json.loads(done.stdout)["sha256"] == item.sha256
        assert gzip.decompress((tmp_path / item.name).read_bytes()).decode() == text


def test_no_file_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "azure.csv").write_bytes(AZURE)
    command = ["kv", "convert", str(tmp_path / "azure.csv")]
    done = CliRunner().invoke(app, [*command, str(tmp_path / "new.csv")])
    assert done.exit_code == 0 and "2 requests, sha256 " in done.stdout
    again = CliRunner().invoke(app, [*command, str(tmp_path / "new.csv")])
    assert again.exit_code == 2 and "new.csv exists already; give a new path" in again.stderr
    nowhere = CliRunner().invoke(app, [*command, str(tmp_path / "no" / "new.csv")])
    assert nowhere.exit_code == 2 and "give a path in a folder" in nowhere.stderr
