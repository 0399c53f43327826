"""Measured runs of engines, read from a CSV: a row is a deployment, a workload, and what its users saw.

Columns as in AIConfigurator's regression data: model_path, system, backend, precision, mode, prompt_tokens,
output_tokens, concurrency, tp_size, pp_size, attention_dp_size, moe_tp_size, moe_ep_size, ttft_ms, tpot_ms; of
disaggregated rows the same sizes led by prefill_ and decode_, with *_num_workers. Others are kept out.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from servelab.kv.limits import entry, short
from servelab.plan import devices, engines, models
from servelab.plan.devices import Device
from servelab.plan.memory import Layout
from servelab.plan.plan import Plan
from servelab.plan.shapes import Shape

NEEDED = (
    "model_path", "system", "backend", "precision", "prompt_tokens", "output_tokens", "concurrency",
    "ttft_ms", "tpot_ms",
)  # fmt: skip

SYSTEMS = {
    "h100_sxm": "H100 SXM", "h100_pcie": "H100 PCIe", "h200_sxm": "H200 SXM", "b200_sxm": "B200 SXM",
    "b300_sxm": "B300 SXM", "gb200": "GB200 (per GPU)", "gb300": "GB300 (per GPU)", "a100_sxm": "A100 SXM 80GB",
    "a100_pcie": "A100 PCIe 80GB", "l40s": "L40S", "l4": "L4", "a30": "A30", "b60": "Arc Pro B60",
    "rtx_pro_6000_server": "RTX PRO 6000 Blackwell Server",
}  # fmt: skip

SAME_SHAPE = {"Kimi-K2.5": "Kimi-K2-Instruct", "DeepSeek-V3.1": "DeepSeek-V3"}
"""Checkpoints that are no rows of the table, by one of the same shape."""

SAME_RUNS = {"DeepSeek-R1": "DeepSeek-V3"}
"""Runs of the first are filed under the second's name too."""


@dataclass(frozen=True, slots=True, eq=False)
class Row:
    """One measurement. `workers` (prefill, decode) of a disaggregated one, 0 where not stated; seconds."""

    id: str
    model: str
    shape: Shape
    device: Device
    engine: str
    version: str
    precision: str
    layout: Layout
    experts_spread: bool
    prompt: int
    output: int
    clients: int
    ttft: float
    tpot: float
    prefill: Layout | None = None
    workers: tuple[int, int] = (1, 1)

    @property
    def workload(self) -> tuple[int, int]:
        return self.prompt, self.output

    @property
    def stated(self) -> bool:
        """Whether the row says how many workers share its clients."""
        return all(self.workers)

    @property
    def quant(self) -> str:
        """The weights' format by this project's names."""
        native = self.shape.native
        if self.precision == "bf16":
            return "bf16"
        if self.precision in ("fp4", "nvfp4"):
            return "mxfp4" if native == "mxfp4" else "nvfp4"
        return native if native == "fp8-block" else "fp8"

    def plan(self, side: int = 1) -> Plan:
        """The row as a plan; of a disaggregated one, its prompt workers' (`side` 0) or its decode workers' (1)."""
        layout = self.layout if side or self.prefill is None else self.prefill
        clients = max(1, round(self.clients / self.workers[side]))
        return Plan(
            self.shape, self.device, layout, self.quant, prompt=self.prompt, output=self.output, clients=clients,
            engine=self.engine,
        )  # fmt: skip

    @property
    def family(self) -> str:
        """The engine and kind of model that share coefficients."""
        return f"{self.engine}, {self.shape.kind}"

    @property
    def deployment(self) -> str:
        """What one calibration is for: all but the workload and the number of clients."""
        spread = " EP" if self.experts_spread else ""
        mode = f" <- {self.prefill}" if self.prefill else ""
        version = f" {self.version}" if self.version else ""
        return f"{self.model} {self.precision}, {self.engine}{version}, {self.device.name}, {self.layout}{spread}{mode}"


def read(data: bytes) -> list[Row]:
    """The rows of a CSV, gzip or not, exact repeats of a measurement left out. ValueError names column and line."""
    text = (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8-sig")
    lines = csv.DictReader(io.StringIO(text))
    missing = [name for name in NEEDED if name not in (lines.fieldnames or ())]
    if missing:
        raise ValueError(f"the file has no column {', '.join(missing)}; it needs {', '.join(NEEDED)}")
    found: dict[tuple[object, ...], Row] = {}
    for number, line in enumerate(lines, 2):
        try:
            row = _row(line)
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
        if row:
            name = SAME_RUNS.get(row.model, row.model)
            key = (name, row.engine, row.device.name, row.workload, row.clients, row.ttft, row.tpot)
            before = found.get(key)
            if before is None or row.stated > before.stated or row.layout.ranks < before.layout.ranks:
                found[key] = row
    return list(found.values())


def _row(line: Mapping[str, str]) -> Row | None:
    """None of a row that says not how many clients there were."""
    if not line["concurrency"]:
        return None
    name = line["model_path"].split("/")[-1]
    model = _model(name)
    engine, apart = line["backend"], line.get("mode") == "disagg"
    entry("backend", engine, engines.NAMES)
    shape = models.model(model)
    layout, spread = _layout(line, "decode_" if apart else "", shape)
    workers = (_int(line, "prefill_num_workers", 0), _int(line, "decode_num_workers", 0)) if apart else (1, 1)
    values = {key: float(line[key]) for key in ("ttft_ms", "tpot_ms")}
    if min(values.values()) <= 0:
        raise ValueError(f"ttft_ms={line['ttft_ms']} and tpot_ms={line['tpot_ms']} have to be above 0")
    if line["system"] not in SYSTEMS:
        raise ValueError(f"system={short(line['system'])} is unknown; use one of {', '.join(SYSTEMS)}")
    return Row(
        line.get("id", ""), model, shape, devices.table()[SYSTEMS[line["system"]]], engine,
        line.get("backend_version", ""), line["precision"], layout, spread, int(line["prompt_tokens"]),
        int(line["output_tokens"]), int(line["concurrency"]), values["ttft_ms"] / 1e3, values["tpot_ms"] / 1e3,
        _layout(line, "prefill_", shape)[0] if apart else None, workers,
    )  # fmt: skip


def _int(line: Mapping[str, str], name: str, default: int) -> int:
    return int(line.get(name) or default)


def _layout(line: Mapping[str, str], prefix: str, shape: Shape) -> tuple[Layout, bool]:
    """The layout, and whether experts are placed whole.

    A single host of 8 is also filed with tp_size or attention_dp_size 64 = moe_tp 8 × moe_ep 8, the same ranks counted
    twice; a missing attention_dp_size follows from the experts' ranks; and a tp_size that splits no heads can only be
    the number of ranks, each with an attention of its own.
    """
    tp, pp, dp = (_int(line, prefix + name, 1) for name in ("tp_size", "pp_size", "attention_dp_size"))
    wide, spread = _int(line, prefix + "moe_tp_size", 1), _int(line, prefix + "moe_ep_size", 1)
    if wide == spread == 8 and tp * dp == 64:
        tp, dp = min(tp, 8), min(dp, 8)
    elif not line.get(prefix + "attention_dp_size") and wide * spread > tp:
        dp = wide * spread // tp
    if shape.experts and shape.heads % tp:
        tp, dp = 1, tp * dp
    return Layout(tp, pp, dp), spread > 1


def _model(name: str) -> str:
    """The table's model whose shape a checkpoint has: the longest name that begins it."""
    for other, same in SAME_SHAPE.items():
        if name.startswith(other):
            return same
    found = [known for known in models.table() if name.lower().startswith(known.lower())]
    if not found:
        raise ValueError(f"model_path={short(name)} begins with no model of the table; see servelab plan models")
    return max(found, key=len)


def workloads(rows: Iterable[Row]) -> list[tuple[int, int]]:
    """The (prompt, output) pairs that occur, sorted."""
    return sorted({row.workload for row in rows})
