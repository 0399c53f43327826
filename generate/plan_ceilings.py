"""What a GPU reaches: `generate/plan_ceilings.py MODEL OUT.json` for each model, on the machine that has it.

Copies, reads and matrix products by torch (best of many, as a ceiling is), then the decode steps of vLLM, run as users
run it, at 1 to 256 streams: prompts of PROMPT tokens, and the times between the steps that decode all streams and
nothing else. Random weights in real shapes; see engine_steps.py. A process per model, since an engine gives its memory
back at its end; what OUT.json holds already stays.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine_steps import SHAPES, Engine, warm

STREAMS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
PROMPT, OUTPUT, REPEATS = 512, 96, 30


def ceilings() -> dict[str, list[float]]:
    """GB/s of copying (bytes read and written) and of reading, TFLOP/s of square products; a sample per repeat."""
    import torch

    def timed(run: Callable[[], Any], work: float) -> list[float]:
        out = []
        for i in range(REPEATS + 3):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            run()
            end.record()
            torch.cuda.synchronize()
            if i >= 3:
                out.append(work / begin.elapsed_time(end) * 1e3)
        return out

    source = torch.empty(2**18, 2**13, dtype=torch.float32, device="cuda").normal_()
    target, vector = torch.empty_like(source), torch.randn(2**13, device="cuda")
    size = source.nbytes / 1e9
    found = {"copy_gbs": timed(lambda: target.copy_(source), 2 * size)}
    reads = (lambda: torch.mv(source, vector), lambda: torch.sum(source), lambda: torch.amax(source, 1))
    found["read_gbs"] = max((timed(read, size) for read in reads), key=statistics.median)
    n = 8192
    a, b = (torch.randn(n, n, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    found["matmul_bf16_tflops"] = timed(lambda: a @ b, 2 * n**3 / 1e12)
    x, y, one = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn).t(), torch.ones((), device="cuda")
    found["matmul_fp8_tflops"] = timed(
        lambda: torch._scaled_mm(x, y, scale_a=one, scale_b=one, out_dtype=torch.bfloat16), 2 * n**3 / 1e12
    )
    return {name: [round(value, 3) for value in values] for name, values in found.items()}


def ladder(engine: Engine) -> list[dict[str, Any]]:
    """For each number of streams: µs between decode steps, and the streams' mean context then."""
    out = []
    for n in STREAMS:
        for _ in range(n):
            engine.add(engine.tokens(PROMPT), OUTPUT)
        engine.clear()
        engine.drain()
        times = [t for t, _ in engine.ends]
        steps = [(row[1], row[3], row[6]) for row in engine.steps]  # prefills, decodes, decode context
        pure = [
            (times[i] - times[i - 1], context / n)
            for i, (prefills, decodes, context) in enumerate(steps[: len(times)])
            if i > 2 and not any(steps[i - k][0] for k in range(3)) and decodes == n and steps[i - 1][1] == n
        ]
        out.append({
            "streams": n, "step_us": [round(1e6 * t) for t, _ in pure],
            "context": round(statistics.fmean(context for _, context in pure)),
        })  # fmt: skip
        print(f"{n} streams: {statistics.median(t for t, _ in pure) * 1e3:.3f} ms, {len(pure)} steps", flush=True)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=SHAPES)
    parser.add_argument("out", type=Path)
    args = parser.parse_args()
    found: dict[str, Any] = json.loads(args.out.read_text()) if args.out.exists() else {"decode": {}}
    if "ceilings" not in found:
        found["ceilings"] = ceilings()
    engine = Engine(args.model, overlap=True, eager=True)
    warm(engine)
    found["decode"][args.model] = ladder(engine)
    found |= {key: engine.about[key] for key in ("gpu", "vllm", "torch", "driver")}
    args.out.write_text(json.dumps(found, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
