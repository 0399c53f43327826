"""Measured rows: how a CSV is read, what is predicted for it, and the bounds on rows that no fit has seen."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from servelab.plan import engines
from servelab.plan.plan import solve
from servelab.plan.rows import NEEDED, read
from servelab.plan.validate import held_out, line, scores, table

HEAD = (*NEEDED, "mode", "backend_version", "tp_size", "attention_dp_size", "moe_tp_size", "moe_ep_size")


def csv(*rows: dict[str, object], head: tuple[str, ...] = HEAD, tail: str = "") -> bytes:
    base = {
        "model_path": "meta-llama/Llama-3.1-70B", "system": "h200_sxm", "backend": "vllm", "precision": "fp8",
        "prompt_tokens": 1024, "output_tokens": 1024, "concurrency": 8, "ttft_ms": 100, "tpot_ms": 10, "mode": "agg",
        "tp_size": 4,
    }  # fmt: skip
    lines = [",".join(str((base | row).get(name, "")) for name in HEAD) for row in rows]
    return "\n".join([",".join(head), *(f"{line},{tail}".rstrip(",") if tail else line for line in lines)]).encode()


def test_rows_are_read_repeats_left_out_and_layouts_made_whole() -> None:
    rows = read(gzip.compress(csv(
        {}, {}, {"tpot_ms": 11}, {"concurrency": ""},
        {"model_path": "deepseek-ai/DeepSeek-V3", "tp_size": 64, "moe_tp_size": 8, "moe_ep_size": 8},
        {"model_path": "deepseek-ai/DeepSeek-V3", "tpot_ms": 12, "tp_size": 1, "attention_dp_size": 64,
         "moe_tp_size": 8, "moe_ep_size": 8},
        {"model_path": "deepseek-ai/DeepSeek-V3", "tpot_ms": 13, "tp_size": 4},
        {"model_path": "deepseek-ai/DeepSeek-R1", "tpot_ms": 13, "tp_size": 8},
        {"model_path": "Qwen/Qwen3-235B-A22B-FP8", "tp_size": 2, "moe_tp_size": 4},
        {"model_path": "MiniMaxAI/MiniMax-M2.5", "tp_size": 36, "moe_tp_size": 36},
    )))  # fmt: skip
    assert [str(row.layout) for row in rows] == ["TP4", "TP4", "TP8", "DP8", "TP4", "TP2·DP2", "DP36"]
    assert [row.quant for row in rows] == ["fp8", "fp8", *["fp8-block"] * 3, "fp8", "fp8-block"]


def test_throughput_s_interval_is_the_answer_s_time_turned_round() -> None:
    row = read(csv({}))[0]
    answer = solve(row.plan())
    low, high = answer.between("throughput")
    slow = engines.interval("latency", "dense")
    assert 0.4 < slow.low < 1 < slow.high < 2.5 and low < answer.throughput < high
    assert low * answer.between("latency")[1] == pytest.approx(row.clients * row.output)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"a,b\n1,2", "no column model_path, system"),
        (csv({"model_path": "x/Unknown-1B"}), "line 2: model_path='Unknown-1B'"),
        (csv({}, {"system": "tpu_v9"}), "line 3: system='tpu_v9'"),
        (csv({"backend": "llama.cpp"}), "line 2: backend='llama.cpp' is unknown"),
        (csv({"ttft_ms": 0}), "line 2: ttft_ms=0"),
        (csv({"tpot_ms": "fast"}), "line 2: could not convert"),
    ],
)
def test_a_bad_file_is_told_by_column_and_line(data: bytes, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        read(data)


def test_disaggregated_rows_need_their_workers() -> None:
    one = {"mode": "disagg", "tp_size": ""}
    [score] = scores(read(csv(one)))
    assert score.problem == "the row does not say how many workers share its clients"


def test_disaggregated_decodes_see_no_prompts_and_prompt_workers_keep_no_answers() -> None:
    more = ("prefill_tp_size", "decode_tp_size", "prefill_num_workers", "decode_num_workers")
    rows = [
        read(csv({"mode": "disagg", "concurrency": n, "output_tokens": 8192}, head=(*HEAD, *more), tail="1,4,1,2"))[0]
        for n in (16, 256)
    ]
    few, many = scores(rows, calibrate=False)
    alone = engines.family("vllm", "dense")
    assert few.tpot == solve(rows[0].plan(), replace(alone, mix=0.0)).tpot < solve(rows[0].plan(), alone).tpot
    assert (rows[0].plan(0).layout.tp, rows[0].plan().layout.tp, rows[0].plan().clients) == (1, 4, 8)
    assert solve(rows[1].plan(0)).work.waiting > 1 and many.ttft < 60 < solve(rows[1].plan(0)).ttft


def test_an_error_is_predicted_over_measured() -> None:
    [score] = scores(read(csv({})))
    assert score.tpot_error == pytest.approx(score.tpot / 0.010 - 1)
    found = line("x", [score])
    assert found.tpot == pytest.approx(100 * abs(score.tpot_error)) and found.coverage == 1


def test_unseen_workloads_of_the_h200_stay_within_the_bounds(outside: Callable[[str], Path]) -> None:
    rows = read(outside("e2e/silicon_sample.csv.gz").read_bytes())
    found = scores(row for row in rows if row.device.name == "H200 SXM")
    unseen = {part.name: part for part in table([s for s in found if held_out(s.row)], lambda row: row.shape.kind)}
    dense, experts = unseen["dense"], unseen["experts"]
    assert dense.rows + experts.rows > 100 and dense.coverage == experts.coverage == 1
    assert dense.tpot is not None and experts.tpot is not None and dense.ttft is not None and experts.ttft is not None
    assert dense.tpot <= 5 and experts.tpot <= 10 and max(dense.ttft, experts.ttft) <= 20
    assert all("does not say" in s.problem for s in scores(rows) if s.problem)  # nothing served is called impossible


def test_the_fit_names_what_it_has_seen_and_intervals_hold_their_predictions() -> None:
    fitted = engines.fitted()
    assert not {tuple(w) for w in fitted["fitted"]} & {tuple(w) for w in fitted["held_out"]}
    for side in ("calibrated", "families"):
        for kind in ("dense", "experts"):
            for what in ("ttft", "tpot"):
                found = engines.interval(what, kind, side == "calibrated")
                assert found.low < 1.3 and found.high > 0.9 and found.low < found.high and found.n >= 30
