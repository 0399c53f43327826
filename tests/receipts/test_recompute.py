"""The three kv kinds on small traces made here: the receipt from data, from its statistic alone, and with a number
changed."""

from __future__ import annotations

import dataclasses
import gzip
import json
import random
import subprocess
import sys
from collections.abc import Callable

import pytest
from small_receipts import DERIVED

from servelab.kv import reuse, trace, waste
from servelab.receipt import Receipt, kv
from servelab.receipt.canonical import canonical, sha256
from servelab.receipt.recompute import RECOMPUTE, Row, recompute
from servelab.receipt.result import Result
from servelab.receipt.schema import Data, Metric
from servelab.receipt.store import load

CSV = b"arrival_s,prompt_tokens,output_tokens\n0.0,16,1\n0.5,17,15\n2.0,40,8\n"

WASTE = {"block_sizes": [8, 16]}
PREFIX = {"traces": {"first": "first.jsonl", "second": "second.jsonl.gz"}, "capacities": [3, 6], "curve": [1, 3, 20]}
PAGES = {
    "conversations": 8,
    "prefix_tokens": 512,
    "private_mean_tokens": 344,
    "block_size": 16,
    "max_len": 1008,
    "blocks": 504,
}


def jsonl(seed: int) -> bytes:
    """40 prompts of 1 to 6 blocks, each a walk down a small tree, so that prefixes repeat at many distances."""
    rng = random.Random(seed)
    lines = []
    for i in range(40):
        ids = [(1 + rng.randrange(3)) * 10**k + 7 * k for k in range(1 + rng.randrange(6))]
        row = {
            "arrival_ms": i,
            "prompt_tokens": 512 * len(ids) - rng.randrange(512),
            "output_tokens": 5,
            "hash_ids": ids,
        }
        lines.append(json.dumps(row))
    return "\n".join(lines).encode()


FILES = {"first.jsonl": jsonl(1), "second.jsonl.gz": gzip.compress(jsonl(2), mtime=0)}


def receipt(kind: str, workload: dict[str, object], result: Result, files: dict[str, bytes]) -> Receipt:
    """A receipt as the generator writes it, through canonical JSON and back."""
    value = DERIVED | {
        "kind": kind,
        "evidence": "replayed" if files else "derived",
        "claims": [],
        "workload": workload,
        "data": [{"name": name, "sha256": sha256(data)} for name, data in files.items()],
        "metrics": {name: dataclasses.asdict(m) for name, m in result.metrics.items()},
        "statistic": result.statistic,
        "tolerance": {},
    }
    return load(canonical(value))


@pytest.fixture
def waste_receipt() -> Receipt:
    lengths = waste.histograms(trace.read(CSV, "t.csv"))
    return receipt("kv_waste", WASTE, kv.waste_result(lengths, WASTE["block_sizes"]), {"t.csv": CSV})


@pytest.fixture
def prefix_receipt() -> Receipt:
    traces = {name: trace.read(FILES[file], file) for name, file in PREFIX["traces"].items()}  # type: ignore[attr-defined]
    return receipt("kv_prefix", PREFIX, kv.prefix_result(traces, [3, 6], [1, 3, 20]), FILES)


def wrong(rows: tuple[Row, ...]) -> list[str]:
    return [row.metric for row in rows if not row.same]


def changed(found: Receipt, metric: str, value: float) -> Receipt:
    return dataclasses.replace(
        found, metrics={**found.metrics, metric: dataclasses.replace(found.metrics[metric], value=value)}
    )


def test_pages() -> None:
    """The example's figures, by hand: 504 → 428 → 204 blocks, 15.1 %, 44.4 points, ⌊(504−32)/21.5⌋ = 21."""
    found = receipt("kv_pages", PAGES, kv.pages_result(PAGES), {})
    values = {name: m.value for name, m in found.metrics.items()}
    assert [values[f"{scheme}_blocks"] for scheme in ("preallocated", "paged", "shared")] == [504, 428, 204]
    assert values["paged_saved_percent"] == pytest.approx(100 * 76 / 504)
    assert values["sharing_saved_points"] == pytest.approx(100 * 224 / 504)
    assert (values["fitting_conversations"], values["fitting_ratio"]) == ((504 - 32) * 8 // 172, 21 / 8)
    assert found.statistic is not None
    assert {name: len({b for t in tables for b in t}) for name, tables in found.statistic["tables"].items()} == {
        "preallocated": 504,
        "paged": 428,
        "shared": 204,
    }
    again = recompute(found)
    assert wrong(again.rows) == [] and again.missing == {} and len(again.rows) == len(found.metrics) + 1
    assert wrong(recompute(changed(found, "shared_blocks", 205)).rows) == ["shared_blocks"]


def test_pages_block_map_is_recomputed() -> None:
    found = receipt("kv_pages", PAGES, kv.pages_result(PAGES), {})
    assert found.statistic is not None
    found.statistic["tables"]["shared"][7][0] = 1
    assert wrong(recompute(found).rows) == ["statistic.tables"]


def test_waste_by_hand(waste_receipt: Receipt) -> None:
    """Totals 17, 32, 48 in blocks of 16: 32 + 32 + 48 slots for 97 tokens."""
    m = waste_receipt.metrics
    assert (m["b16_at_completion_allocated_slots"].value, m["b16_at_completion_used_slots"].value) == (112, 97)
    assert m["b16_at_completion_percent"].value == pytest.approx(100 * 15 / 112)
    assert m["b16_prompts_only_allocated_slots"].value == 16 + 32 + 48
    assert (m["requests"], m["decode_steps"]) == (Metric(3, "requests", 3), Metric(24, "steps", 24))
    assert m["b16_over_decode_steps_percent"].n == 24 and m["b8_prompts_only_percent"].n == 3


@pytest.mark.parametrize("files", [[], [CSV]])
def test_waste_from_the_statistic_and_from_the_trace(waste_receipt: Receipt, files: list[bytes]) -> None:
    again = recompute(waste_receipt, files)
    assert wrong(again.rows) == [] and again.missing == {}
    assert len(again.rows) == len(waste_receipt.metrics) + 2 * len(files)
    assert again.absent == (() if files else ("t.csv",))
    for metric in ("b16_at_completion_percent", "b8_over_decode_steps_used_slots", "decode_steps"):
        value = waste_receipt.metrics[metric].value
        assert wrong(recompute(changed(waste_receipt, metric, value + 1), files).rows) == [metric]


def test_statistic_that_the_trace_does_not_give(waste_receipt: Receipt) -> None:
    """Histograms and metrics changed together agree with each other; the data tells."""
    forged = waste.lengths({"prompt": [[16, 2], [40, 1]], "total": [[17, 1], [32, 1], [48, 1]]})
    found = receipt("kv_waste", WASTE, kv.waste_result(forged, WASTE["block_sizes"]), {"t.csv": CSV})
    assert wrong(recompute(found).rows) == []
    assert "statistic.prompt" in wrong(recompute(found, [CSV]).rows)


def test_prefix_without_data_leaves_belady_out(prefix_receipt: Receipt) -> None:
    again = recompute(prefix_receipt)
    belady = {name for name in prefix_receipt.metrics if "_belady_" in name}
    assert len(belady) == 8 and set(again.missing) == belady
    assert {row.metric for row in again.rows} == set(prefix_receipt.metrics) - belady
    assert wrong(again.rows) == [] and again.absent == ("first.jsonl", "second.jsonl.gz")
    assert again.note.endswith("; 8 more metrics and the statistic would need first.jsonl and second.jsonl.gz.")
    assert "needs second.jsonl.gz" in again.missing["second_belady_3_hits"]


def test_prefix_with_one_file_and_with_both(prefix_receipt: Receipt) -> None:
    one = recompute(prefix_receipt, [FILES["second.jsonl.gz"]])
    assert {name.split("_")[0] for name in one.missing} == {"first"} and one.absent == ("first.jsonl",)
    assert "statistic.second" in {row.metric for row in one.rows}
    both = recompute(prefix_receipt, list(FILES.values()))
    assert both.missing == {} and both.absent == () and wrong((*one.rows, *both.rows)) == []
    assert len(both.rows) == len(prefix_receipt.metrics) + 2
    forged = changed(prefix_receipt, "first_belady_3_hits", prefix_receipt.metrics["first_belady_3_hits"].value + 1)
    assert wrong(recompute(forged, [FILES["first.jsonl"]]).rows) == ["first_belady_3_hits"]


def test_belady_s_hits_stay_between_lru_and_infinity_without_data(prefix_receipt: Receipt) -> None:
    value = {name: metric.value for name, metric in prefix_receipt.metrics.items()}
    low, high = value["first_lru_3_hits"], value["first_infinite_hits"]
    for hits in (low - 1, high + 1):
        with pytest.raises(ValueError, match=rf"first_belady_3_hits={hits} is outside {low} \(LRU\) to {high} \(inf"):
            recompute(changed(prefix_receipt, "first_belady_3_hits", hits))
    for metric in ("first_belady_3_hits", "second_belady_6_hit_percent"):
        other = value[metric] + (1 if value[metric] < high else -1)
        with pytest.raises(ValueError, match="_hit_percent=.* is not the share of .* hits"):
            recompute(changed(prefix_receipt, metric, other))


def test_curve_agrees_with_replays(prefix_receipt: Receipt) -> None:
    """The LRU metrics come from stack distances; a cache that is run step by step is the second implementation."""
    for name, file in PREFIX["traces"].items():  # type: ignore[attr-defined]
        requests = trace.read(FILES[file], file)
        for capacity in (3, 6):
            hits = reuse.replay(requests, "lru", capacity)
            assert prefix_receipt.metrics[f"{name}_lru_{capacity}_hits"].value == hits.blocks
            assert prefix_receipt.metrics[f"{name}_lru_{capacity}_usable_hit_tokens"].value == hits.usable_tokens


def test_a_file_that_the_receipt_does_not_name(waste_receipt: Receipt) -> None:
    with pytest.raises(
        ValueError, match=r"kv_waste: this file has sha256 [0-9a-f]{16}…; the receipt was made from t\.csv \(sha256"
    ):
        recompute(waste_receipt, [CSV + b"\n"])


def test_derived_takes_no_file() -> None:
    with pytest.raises(ValueError, match="made from no file at all"):
        recompute(receipt("kv_pages", PAGES, kv.pages_result(PAGES), {}), [CSV])


def test_other_n_or_unit_is_not_the_same(waste_receipt: Receipt) -> None:
    metric = dataclasses.replace(waste_receipt.metrics["requests"], n=4)
    found = dataclasses.replace(waste_receipt, metrics={**waste_receipt.metrics, "requests": metric})
    (row,) = [row for row in recompute(found).rows if not row.same]
    assert (row.committed, row.recomputed) == ("3 requests, n = 4", "3 requests, n = 3")


def test_measured_and_model(example: Callable[[str], dict[str, object]]) -> None:
    rows = recompute(load(canonical(example("measured")))).rows
    assert [(row.metric, row.recomputed, row.same) for row in rows] == [
        ("alloc_ns_median", 205, True),
        ("alloc_ns_p90", 238, True),
    ]
    forecast = recompute(load(canonical(example("model"))))
    assert forecast.rows == () and set(forecast.missing) == {"speed"} and forecast.note.startswith("Nothing recomputed")


def test_data_names_are_unique_by_hash(waste_receipt: Receipt) -> None:
    twice = dataclasses.replace(waste_receipt, data=(*waste_receipt.data, Data("other.csv", "0" * 64)))
    assert recompute(twice, [CSV]).absent == ("other.csv",)


def test_the_read_side_needs_the_standard_library_alone() -> None:
    """A browser tab has no rfc8785, no cryptography and no typer: load, resolve and recompute go without."""
    program = (
        "import sys\n"
        "for name in ('rfc8785', 'cryptography', 'securesystemslib', 'typer', 'rich', 'subprocess'):\n"
        "    sys.modules[name] = None\n"
        "from servelab.receipt import load, resolve\n"
        "from servelab.receipt.recompute import recompute\n"
        "found = load(sys.stdin.buffer.read(), path='kv_pages/core-2026-11-30.json')\n"
        "assert all(row.same for row in recompute(found).rows)\n"
        "print(resolve('kv_pages.shared_blocks', {found.kind: found}).text())\n"
    )
    found = dataclasses.replace(
        receipt("kv_pages", PAGES, kv.pages_result(PAGES), {}), claims=("kv_pages.shared_blocks",)
    )
    done = subprocess.run([sys.executable, "-c", program], input=canonical(found.to_json()), capture_output=True)
    assert (done.stdout.decode().strip(), done.stderr.decode()) == ("204 blocks", "")


def test_a_whole_number_is_the_same_with_and_without_a_decimal_point(monkeypatch: pytest.MonkeyPatch) -> None:
    """Canonical JSON writes 2.0 as 2, and Python reads that as another type."""
    result = Result({"n": Metric(1, "requests", 1)}, {"lengths": [2.0, 2.5, 10]})
    monkeypatch.setitem(RECOMPUTE, "kv_waste", lambda receipt, files: result)
    again = recompute(receipt("kv_waste", WASTE, result, {"one.csv": CSV}), [CSV])
    assert [row.metric for row in again.rows] == ["n", "statistic.lengths"] and wrong(again.rows) == []
