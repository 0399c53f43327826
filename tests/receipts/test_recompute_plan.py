"""The plan kinds: a receipt from its generator's plan says the same when recomputed, a changed number shows, and what
the metrics mean."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from test_recompute import receipt as made
from test_recompute_sched import plan as generator

from servelab.receipt import plan
from servelab.receipt.recompute import recompute
from servelab.receipt.schema import Receipt

HEAD = "model_path,system,backend,precision,prompt_tokens,output_tokens,concurrency,tp_size,ttft_ms,tpot_ms,mode"
RUNS = "\n".join([
    HEAD,
    *(f"meta-llama/Llama-3.1-8B,h200_sxm,vllm,bf16,{prompt},{output},4,1,50,{ms},agg"
      for (prompt, output), ms in {(1000, 500): 4, (1024, 8192): 5, (2048, 128): 6}.items()),
    "Qwen/Qwen3-30B-A3B,h200_sxm,vllm,bf16,1000,500,4,1,60,5,agg",
    "Qwen/Qwen3-30B-A3B,h200_sxm,vllm,bf16,2048,128,4,1,60,5,agg",
    "Qwen/Qwen3-30B-A3B,h200_sxm,vllm,bf16,2048,128,8,1,60,5,disagg",
    "meta-llama/Llama-3.1-8B,h100_sxm,vllm,bf16,1000,500,4,1,50,4,agg",
]).encode()  # fmt: skip
CEILINGS = json.dumps({
    "ceilings": {"copy_gbs": [4000.0, 4200.0, 4100.0], "matmul_bf16_tflops": [700.0]},
    "decode": {"qwen2.5-7b": [
        {"streams": 1, "step_us": [4600, 4800, 4700], "context": 560},
        {"streams": 64, "step_us": [5500], "context": 560},
    ]},
}).encode()  # fmt: skip


@pytest.fixture(params=["plan_kv", "plan_speed", "plan_roofline"])
def whole(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Receipt:
    kind = request.param
    workload = dict(generator(kind, monkeypatch).PLAN.workload)
    if kind == "plan_kv":
        return made(kind, workload, plan.kv_result(workload), {})
    if kind == "plan_speed":
        return made(kind, workload, plan.speed_result(RUNS, "H200 SXM"), {"runs.csv": RUNS})
    return made(kind, workload, plan.roofline_result(CEILINGS, "H200 SXM"), {"ceilings.json": CEILINGS})


def test_it_says_the_same_again_with_and_without_its_file(whole: Receipt) -> None:
    files = {"plan_kv": (), "plan_speed": (RUNS,), "plan_roofline": (CEILINGS,)}[whole.kind]
    for given in ((), files):
        again = recompute(whole, given)
        assert again.rows and all(row.same for row in again.rows)
    assert whole.kind == "plan_kv" or any(row.statistic for row in again.rows)


def test_a_changed_number_shows(whole: Receipt) -> None:
    name = next(iter(recompute(whole).rows)).metric
    changed = replace(whole, metrics={**whole.metrics, name: replace(whole.metrics[name], value=-1)})
    assert [row.metric for row in recompute(changed).rows if not row.same] == [name]


def test_rows_are_split_by_device_workload_and_kind() -> None:
    done = plan.speed_result(RUNS, "H200 SXM")
    held, other = done.statistic["ratios_ppm"]["held_out_dense"], done.statistic["ratios_ppm"]["fitted_dense"]
    assert [len(held["tpot"]), len(other["tpot"])] == [2, 1]
    assert done.metrics["answered_rows"].value == 5 and done.metrics["unstated_rows"].value == 1
    assert done.metrics["held_out_tpot_error_percent_median"].n == 3


def test_errors_are_those_of_the_ratios() -> None:
    group = {"tpot": [900_000, 1_000_000, 1_200_000], "ttft": [500_000]}
    groups = {f"{split}_{kind}": group for split in ("held_out", "fitted") for kind in plan.KINDS}
    found = plan.speed_metrics({"ratios_ppm": groups, "unstated": 2, "refused": ["x"]})
    assert found["held_out_dense_tpot_error_percent_median"].value == 10
    assert found["held_out_ttft_error_percent_p90"].value == 50
    assert found["answered_percent"].value == pytest.approx(100 * 12 / 13)
    assert found["impossible_rows"].value == 1


def test_ceilings_are_shares_of_the_data_sheet_and_streams_add_up() -> None:
    found = plan.roofline_result(CEILINGS, "H200 SXM").metrics
    assert found["copy_gbs_percent_of_sheet"].value == pytest.approx(100 * 4100 / 4800)
    assert found["matmul_bf16_tflops_percent_of_sheet"].value == pytest.approx(100 * 700 / 989.4, rel=1e-3)
    assert found["qwen2_5_7b_total_ratio"].value == pytest.approx(64 * 4700 / 5500)
    assert found["qwen2_5_7b_s1_ms"].value == 4.7
