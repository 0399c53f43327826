"""The planner's receipts: from tables and measured runs to named metrics.

plan_kv        derived    parameters and KV bytes per token by model, from the tables' configurations
plan_speed     replayed   predicted over measured TTFT and TPOT of published runs; statistic: those ratios by group
plan_roofline  replayed   what an H200 reached, beside data sheet and planner; statistic: medians and predictions
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from servelab.kv.sizes import kv_bytes, unwindowed
from servelab.plan import devices, engines, models, rows
from servelab.plan.formats import named
from servelab.plan.memory import Layout, rank_cache
from servelab.plan.speed import parts, work
from servelab.plan.validate import Score, held_out, scores
from servelab.receipt.result import Files, Result
from servelab.receipt.samples import percentile
from servelab.receipt.schema import Metric, Receipt

KINDS = ("dense", "experts")
FIGURES = ("tpot", "ttft")
SHEET = {
    "copy_gbs": "bandwidth", "read_gbs": "bandwidth", "matmul_bf16_tflops": "bf16", "matmul_fp8_tflops": "fp8",
}  # fmt: skip
"""What was measured, and the rate of the data sheet that it is a share of."""


def slug(name: str) -> str:
    """A model's name as metrics write it: llama_3_1_8b."""
    return "".join(c if c.isalnum() else "_" for c in name.lower())


def kv_result(workload: Mapping[str, Any]) -> Result:
    """plan_kv: KV bytes per token in bf16 (windows not yet full) and parameters of the models that it lists; of the
    whole table, how many counts are those of the published tensors."""
    metrics = {}
    for name in workload["models"]:
        shape = models.model(name)
        cache = rank_cache(shape, Layout())
        each = kv_bytes(unwindowed(cache), "bf16", 1) if cache else 0
        metrics[f"{slug(name)}_kv_bytes"] = Metric(each, "B/token", 1)
        metrics[f"{slug(name)}_params"] = Metric(shape.total, "parameters", 1)
    table = models.table()
    off = [abs(models.model(name).total - row.published) / row.published for name, row in table.items()]
    return Result(metrics | {
        "models": Metric(len(off), "models", len(off)),
        "models_exact": Metric(off.count(0), "models", len(off)),
        "params_error_percent_most": Metric(100 * max(off), "%", len(off)),
    })  # fmt: skip


def recompute_kv(receipt: Receipt, files: Files) -> Result:
    """The whole receipt."""
    return kv_result(receipt.workload)


def speed_result(data: bytes, device: str) -> Result:
    """plan_speed from a CSV of measured runs: those of `device`."""
    wanted = devices.device(device)
    found = scores(row for row in rows.read(data) if row.device == wanted)
    groups = {f"{split}_{kind}": _ratios(found, split == "held_out", kind) for split in ("held_out", "fitted")
              for kind in KINDS}  # fmt: skip
    unstated = sum(not score.row.stated for score in found)
    refused = [score.row.id for score in found if score.problem and score.row.stated]
    statistic = {"ratios_ppm": groups, "unstated": unstated, "refused": refused}
    return Result(speed_metrics(statistic), statistic)


def _ratios(found: Iterable[Score], unseen: bool, kind: str) -> dict[str, list[int]]:
    """Predicted/measured by figure in millionths, sorted: whole numbers that two C libraries agree on."""
    mine = [s for s in found if not s.problem and held_out(s.row) == unseen and s.row.shape.kind == kind]
    return {what: sorted(round(1e6 * (1 + getattr(s, f"{what}_error"))) for s in mine) for what in FIGURES}


def speed_metrics(statistic: Mapping[str, Any]) -> dict[str, Metric]:
    """Medians and 90th percentiles of absolute errors by group, of both held-out groups together, and the coverage."""
    groups: dict[str, Mapping[str, Sequence[int]]] = dict(statistic["ratios_ppm"])
    held = [groups[f"held_out_{kind}"] for kind in KINDS]
    groups["held_out"] = {what: [r for group in held for r in group[what]] for what in FIGURES}
    out = {}
    for name, group in groups.items():
        for what in FIGURES:
            errors = [abs(ratio - 1_000_000) / 1e4 for ratio in group[what]]
            for word, q in (("median", 0.5), ("p90", 0.9)):
                out[f"{name}_{what}_error_percent_{word}"] = Metric(percentile(errors, q), "%", len(errors))
    answered = sum(len(groups[f"{split}_{kind}"]["tpot"]) for split in ("held_out", "fitted") for kind in KINDS)
    stated = answered + len(statistic["refused"])
    return out | {
        "answered_rows": Metric(answered, "rows", stated),
        "answered_percent": Metric(100 * answered / stated, "%", stated),
        "impossible_rows": Metric(len(statistic["refused"]), "rows", stated),
        "unstated_rows": Metric(statistic["unstated"], "rows", stated + statistic["unstated"]),
    }


def recompute_speed(receipt: Receipt, files: Files) -> Result:
    """From the committed ratios; from the runs where they are here."""
    if files:
        return speed_result(files[receipt.data[0].name], receipt.workload["device"])
    return Result(speed_metrics(receipt.statistic or {}))


def roofline_result(data: bytes, device: str) -> Result:
    """plan_roofline from what generate/plan_ceilings.py wrote."""
    found = json.loads(data)
    steps = {}
    for name, ladder in found["decode"].items():
        steps[name] = [
            [row["streams"], len(row["step_us"]), median(row["step_us"]),
             round(1e6 * decode_step(name, device, row["streams"], row["context"]), 3)]
            for row in ladder
        ]  # fmt: skip
    ceilings = {name: [len(values), median(values), max(values)] for name, values in found["ceilings"].items()}
    statistic = {"ceilings": ceilings, "steps": steps}
    return Result(roofline_metrics(statistic, device), statistic)


def decode_step(model: str, device: str, streams: int, context: int) -> float:
    """Seconds of a decode step in bf16 on one device under vLLM, as the planner has it."""
    shape, card = models.model(model), devices.device(device)
    made = work(shape, card, Layout(), named("bf16"), "bf16", context, 1, streams, streams)
    return float(sum(parts(made, engines.family("vllm", shape.kind)).values()))


def roofline_metrics(statistic: Mapping[str, Any], device: str) -> dict[str, Metric]:
    """Ceilings and their share of the data sheet; steps measured and predicted, and how far apart, by model."""
    card = devices.device(device)
    out: dict[str, Metric] = {}
    for name, (n, middle, best) in statistic["ceilings"].items():
        sheet = card.bandwidth if SHEET[name] == "bandwidth" else card.tflops[SHEET[name]]
        unit = "GB/s" if name.endswith("gbs") else "TFLOP/s"
        out |= {
            f"{name}_median": Metric(middle, unit, n), f"{name}_most": Metric(best, unit, n),
            f"{name}_percent_of_sheet": Metric(100 * middle / sheet, "%", n),
        }  # fmt: skip
    for model, ladder in statistic["steps"].items():
        errors = [abs(predicted / measured - 1) for _, _, measured, predicted in ladder]
        for streams, n, measured, predicted in ladder:
            out[f"{slug(model)}_s{streams}_ms"] = Metric(measured / 1e3, "ms", n)
            out[f"{slug(model)}_s{streams}_predicted_ms"] = Metric(predicted / 1e3, "ms", 1)
        out[f"{slug(model)}_step_error_percent_median"] = Metric(100 * median(errors), "%", len(errors))
        out[f"{slug(model)}_step_error_percent_most"] = Metric(100 * max(errors), "%", len(errors))
        first, last = ladder[0], ladder[-1]
        out[f"{slug(model)}_total_ratio"] = Metric(last[0] / last[2] / (first[0] / first[2]), "×", last[0])
    return out


def recompute_roofline(receipt: Receipt, files: Files) -> Result:
    """From the committed medians; from the samples where they are here."""
    device = receipt.workload["device"]
    if files:
        return roofline_result(files[receipt.data[0].name], device)
    return Result(roofline_metrics(receipt.statistic or {}, device))
