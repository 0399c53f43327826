"""The receipts of this repository: attested, canonical, recomputed; from the outside data too where it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from servelab.receipt import attest, load_all, resolve
from servelab.receipt.recompute import recompute
from servelab.receipt.verify import data_directory, verify

ROOT = Path(__file__).parent.parent.parent
RECEIPTS = ROOT / "receipts"
DATA = ROOT / data_directory()
RUNS = ROOT / "generate" / "runs"
KINDS = (
    "kv_pages", "kv_prefix", "kv_waste", "sched_admission", "sched_routing", "sched_chunk", "sched_cplan",
    "sched_validation", "plan_kv", "plan_speed", "plan_roofline",
)  # fmt: skip
MEASURED = ("kv_pool", "site_speed", "sched_speed", "plan_bench")
LATER = {"sched_admission": {"gcra_differences"}}
"""What takes longer than a test."""


def test_the_folder_is_sound() -> None:
    report = verify(RECEIPTS, DATA)
    assert [str(p) for p in report.problems] == []
    assert report.signed_by
    assert {r.kind for r in report.receipts} >= {*KINDS, *MEASURED}


def test_it_is_sound_without_the_outside_data(tmp_path: Path) -> None:
    report = verify(RECEIPTS, tmp_path)
    assert report.problems == ()
    left = {
        (s.receipt.split("/")[0], s.part) for s in report.skipped if "_belady_" not in s.part and s.part != "commit"
    }
    assert left == {
        *((kind, part) for kind, parts in LATER.items() for part in parts),
        ("kv_waste", "statistic from azure_llm_2023_conv.csv.gz"),
        ("kv_prefix", "statistic from mooncake_fast25_conversation.jsonl.gz"),
        ("kv_prefix", "statistic from mooncake_fast25_synthetic.jsonl.gz"),
        ("sched_cplan", "statistic from cplan_requests.json"),
        ("plan_speed", "statistic from silicon_sample.csv.gz"),
        ("plan_roofline", "statistic from h200-ceilings.json"),
        *(("sched_validation", f"statistic from {path.name}") for path in RUNS.glob("*.json.gz")),
    }


@pytest.mark.parametrize("kind", (*KINDS, *MEASURED))
def test_every_claim_resolves(kind: str) -> None:
    receipts, attested = load_all(RECEIPTS), attest.subjects(RECEIPTS)
    for claim in receipts[kind].claims:
        assert resolve(claim, receipts, attested).text()


@pytest.mark.parametrize("kind", KINDS)
def test_recomputed_in_full_where_the_data_is(kind: str) -> None:
    receipt = load_all(RECEIPTS)[kind]
    files = [next((path for place in (RUNS, DATA) for path in place.rglob(d.name)), None) for d in receipt.data]
    present = [f.read_bytes() for f in files if f is not None]
    if len(present) < len(files):
        pytest.skip(f"no outside data under {DATA}; set SERVELAB_DATA to recompute {kind} from it")
    again = recompute(receipt, present)
    assert [row for row in again.rows if not row.same] == []
    assert set(again.missing) == LATER.get(kind, set()) and again.absent == ()


def test_the_numbers_that_the_pages_tell() -> None:
    """Figures that the sources fix: counts in the published traces, and the arithmetic of the example."""
    receipts = load_all(RECEIPTS)
    value = {f"{kind}.{name}": m.value for kind, r in receipts.items() for name, m in r.metrics.items()}
    assert [value[f"kv_pages.{s}_blocks"] for s in ("preallocated", "paged", "shared")] == [504, 428, 204]
    assert round(value["kv_waste.b16_at_completion_percent"], 3) == 0.544
    assert round(value["kv_waste.b16_prompts_only_percent"], 3) == 0.662
    assert round(value["kv_waste.b16_over_decode_steps_percent"], 3) == 0.608
    assert (value["kv_prefix.conversation_infinite_hits"], value["kv_prefix.conversation_references"]) == (
        105_710,
        288_500,
    )
    assert round(value["kv_prefix.conversation_infinite_hit_token_percent"], 2) == 37.36
    assert round(value["kv_prefix.synthetic_infinite_hit_percent"], 2) == 63.96
