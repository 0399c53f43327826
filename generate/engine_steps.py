"""Drive a real engine and log every step: `generate/engine_steps.py MODEL OUT.json.gz`.

vLLM in this process, random weights in real shapes (speed does not depend on their values), one GPU. By default the
engine runs synchronously, so that schedule() calls and step ends line up; with `--overlap` it runs as users run it
(asynchronous scheduling). A graph is captured for every step up to the budget; `--eager` leaves those above 512 tokens
to be launched kernel by kernel, which makes them as fast as the CPU of the moment. `--blocks` takes a small KV pool, so
that sequences are preempted. First come runs that a fit may see ("fit-…"); two of them are bursts, whose pace is the
engine's capacity. The rest is held out. What was recorded is written after every run: a stop loses one run at most.

A step is [time s, prefill requests, prefill tokens, decode requests, context tokens, prefill work, decode context,
begin s, admitted, sampled, woken s]: time when schedule() returned and when it was called; prefill work
Σ n·(start + (n + 1) / 2) over chunks of n tokens, the pairs that attention visits; `admitted` chunks begin a request,
`sampled` sequences get a token; when the request came that woke an idle engine, −1 if it was not idle. `ends`:
[time s, requests with output] when the engine's step returned.
"""

from __future__ import annotations

import argparse
import gc
import gzip
import itertools
import json
import math
import os
import platform
import random
import statistics
import subprocess
import tempfile
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from servelab.sched.arrivals import Lengths, Traffic, generate
from servelab.sched.request import PS, Workload

os.environ |= {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",  # the scheduler is in reach
    "VLLM_USE_FLASHINFER_SAMPLER": "0",
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "WARNING",
}

SHAPES: dict[str, dict[str, Any]] = {
    "qwen2.5-0.5b": {
        "hidden_size": 896, "intermediate_size": 4864, "num_hidden_layers": 24, "num_attention_heads": 14,
        "num_key_value_heads": 2, "vocab_size": 151936, "tie_word_embeddings": True,
    },
    "qwen2.5-1.5b": {
        "hidden_size": 1536, "intermediate_size": 8960, "num_hidden_layers": 28, "num_attention_heads": 12,
        "num_key_value_heads": 2, "vocab_size": 151936, "tie_word_embeddings": True,
    },
    "qwen2.5-7b": {
        "hidden_size": 3584, "intermediate_size": 18944, "num_hidden_layers": 28, "num_attention_heads": 28,
        "num_key_value_heads": 4, "vocab_size": 152064, "tie_word_embeddings": False,
    },
}  # fmt: skip
COMMON = {
    "architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_act": "silu", "initializer_range": 0.02,
    "max_position_embeddings": 32768, "rms_norm_eps": 1e-6, "rope_theta": 1e6, "use_sliding_window": False,
    "torch_dtype": "bfloat16", "bos_token_id": 151643, "eos_token_id": 151645,
}  # fmt: skip

SEQS, BUDGET = 256, 8192
GRAPHS = [1, 2, 4, *range(8, 257, 8), *range(320, BUDGET + 1, 64)]
"""Tokens for which a graph is captured; a step is padded to the next."""
EAGER = 512
"""What vLLM captures by itself."""
TRAFFICS = {
    "short": Traffic(1, 300, Lengths("lognormal", 256, 0.8, 8, 2048), Lengths("lognormal", 64, 0.6, 4, 256)),
    "long": Traffic(1, 300, Lengths("lognormal", 2048, 0.6, 64, 12000), Lengths("lognormal", 96, 0.6, 8, 384)),
}
BURST = math.inf
# name, traffic, load (share of the capacity), budget, requests, cv of the times between arrivals, seed
ONLINE = (
    ("fit-burst-short", "short", BURST, 8192, 1000, 1.0, 1),
    ("fit-burst-long", "long", BURST, 512, 300, 1.0, 2),
    ("fit-short-60", "short", 0.6, 8192, 300, 1.0, 21),
    ("fit-long-60", "long", 0.6, 2048, 120, 1.0, 23),
    ("short-80", "short", 0.8, 2048, 1000, 1.0, 12),
    ("long-60", "long", 0.6, 8192, 300, 1.0, 13),
    ("short-120", "short", 1.2, 8192, 1000, 1.0, 14),
    ("short-30", "short", 0.3, 8192, 1000, 1.0, 11),
    ("bursty-70", "short", 0.7, 2048, 1000, 3.0, 15),
    ("long-90", "long", 0.9, 512, 300, 1.0, 16),
)


class Engine:
    """vLLM with its scheduler in reach: every schedule() leaves a row in `steps`, every step() one in `ends`."""

    def __init__(self, model: str, overlap: bool, eager: bool, blocks: int | None) -> None:
        import torch
        import vllm

        folder = Path(tempfile.mkdtemp(prefix=model))
        (folder / "config.json").write_text(json.dumps(COMMON | SHAPES[model]))
        began = time.time()
        graphs = {} if eager else {"cudagraph_capture_sizes": GRAPHS, "max_cudagraph_capture_size": BUDGET}
        llm = vllm.LLM(
            model=str(folder), load_format="dummy", skip_tokenizer_init=True, dtype="bfloat16", max_model_len=16384,
            gpu_memory_utilization=0.6, enable_prefix_caching=False, async_scheduling=overlap, max_num_seqs=SEQS,
            max_num_batched_tokens=BUDGET, seed=0, num_gpu_blocks_override=blocks, compilation_config=graphs,
        )  # fmt: skip
        self.params = vllm.SamplingParams
        self.engine = llm.llm_engine
        self.scheduler = self.engine.engine_core.engine_core.scheduler
        self.about = {
            "model": model, "gpu": torch.cuda.get_device_name(0), "vllm": vllm.__version__, "torch": torch.__version__,
            "budget": BUDGET, "seqs": SEQS, "async": overlap,
            "graph_tokens": EAGER if eager else BUDGET, "load_s": time.time() - began,
            "kv_blocks": self.scheduler.kv_cache_config.num_blocks, "python": platform.python_version(),
            "driver": _driver(),
        }  # fmt: skip
        self.steps: list[list[float]] = []
        self.ends: list[tuple[float, int]] = []
        self.outputs: dict[str, list[tuple[float, int]]] = {}
        self.goal: dict[str, int] = {}  # tokens to compute before a request decodes (again)
        self.woken = -1.0
        self.rng = random.Random(0)
        self.count = 0
        gc.collect()
        gc.freeze()  # as vLLM's own engine process does
        self._schedule = self.scheduler.schedule
        self.scheduler.schedule = self._logged

    def _logged(self, *args: Any, **named: Any) -> Any:
        begin = time.perf_counter()
        out = self._schedule(*args, **named)
        row = [0, 0, 0, 0, 0.0, 0]
        admitted = sampled = 0
        for name, n in out.num_scheduled_tokens.items():
            request = self.scheduler.requests[name]
            start = request.num_computed_tokens - n  # schedule() has advanced it
            if not start:
                self.goal[name], admitted = request.num_tokens, admitted + 1
            row[3] += start + n
            sampled += start + n >= self.goal[name]
            if start < self.goal[name]:
                row[0], row[1], row[4] = row[0] + 1, row[1] + n, row[4] + n * (start + (n + 1) / 2)
            else:
                row[2], row[5] = row[2] + 1, row[5] + start + n
        self.steps.append([time.perf_counter(), *row, begin, admitted, sampled, self.woken])
        self.woken = -1.0
        return out

    def tokens(self, n: int) -> list[int]:
        return self.rng.choices(range(100, 150_000), k=n)

    def add(self, prompt: list[int], output: int) -> str:
        self.count += 1
        name = f"r{self.count}"
        idle = not self.busy()
        params = self.params(temperature=0.0, max_tokens=output, min_tokens=output, ignore_eos=True, detokenize=False)
        self.engine.add_request(name, {"prompt_token_ids": prompt}, params)
        self.woken = time.perf_counter() if idle else self.woken
        return name

    def step(self) -> None:
        outs = self.engine.step()
        now = time.perf_counter()
        self.ends.append((now, len(outs)))
        for out in outs:
            self.outputs.setdefault(out.request_id, []).append((now, len(out.outputs[0].token_ids)))

    def busy(self) -> bool:
        return bool(self.engine.has_unfinished_requests())

    def drain(self) -> None:
        while self.busy():
            self.step()

    def clear(self) -> float:
        self.steps.clear()
        self.ends.clear()
        self.outputs.clear()
        return time.perf_counter()

    def log(self, start: float) -> dict[str, Any]:
        """Steps and ends since `start`, in seconds."""
        steps = []
        for t, *row, begin, admitted, sampled, woken in self.steps:
            woken = woken if woken < 0 else round(woken - start, 6)
            steps.append([round(t - start, 6), *row, round(begin - start, 6), admitted, sampled, woken])
        return {"steps": steps, "ends": [[round(t - start, 6), n] for t, n in self.ends]}


def _driver() -> str:
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def warm(engine: Engine) -> None:
    """A few requests that nobody measures."""
    for _ in range(8):
        engine.add(engine.tokens(256), 8)
    engine.drain()


def online(engine: Engine, work: Workload, budget: int) -> dict[str, Any]:
    """A workload at its own times; waiting is a busy loop, so that no arrival is late by a sleep."""
    engine.scheduler.max_num_scheduled_tokens = budget
    texts = [engine.tokens(n) for n in work.prompt]
    due = [t / PS for t in work.arrival]
    names: list[str] = []
    added: list[float] = []
    start = engine.clear() + 0.01
    while len(names) < len(due) or engine.busy():
        now = time.perf_counter() - start
        while len(names) < len(due) and due[len(names)] <= now:
            names.append(engine.add(texts[len(names)], work.output[len(names)]))
            now = time.perf_counter() - start
            added.append(now)
        if engine.busy():
            engine.step()
    engine.scheduler.max_num_scheduled_tokens = BUDGET
    rows = []
    for i, name in enumerate(names):
        times = [round(1e6 * (t - start)) for t, _ in engine.outputs[name]]
        rows.append({
            "arrival": round(due[i], 9), "n_in": work.prompt[i], "n_out": work.output[i], "added": round(added[i], 6),
            "first": times[0] / 1e6, "last": times[-1] / 1e6, "got": engine.outputs[name][-1][1],
            "gaps_us": [later - before for before, later in itertools.pairwise(times)],
        })  # fmt: skip
    return {"n": len(rows), "makespan": max(row["last"] for row in rows), "requests": rows, **engine.log(start)}


def pace(run: dict[str, Any]) -> float:
    """Requests per second in the middle half of a burst, when the engine was full all the time."""
    last = sorted(row["last"] for row in run["requests"])
    n = len(last)
    return (3 * n // 4 - n // 4) / (last[3 * n // 4] - last[n // 4])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=SHAPES)
    parser.add_argument("out", type=Path)
    parser.add_argument("--overlap", action="store_true", help="asynchronous scheduling, as users run it")
    parser.add_argument("--eager", action="store_true", help="graphs up to 512 tokens only, as vLLM has by itself")
    parser.add_argument("--blocks", type=int, metavar="N", help="KV blocks (all that fit if not given)")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no further run after this long")
    args = parser.parse_args()
    began = time.time()
    engine = Engine(args.model, args.overlap, args.eager, args.blocks)
    warm(engine)
    out = engine.about | {"capacity": {}, "online": [], "left_out": []}
    for name, kind, load, budget, requests, cv, seed in ONLINE:
        if time.time() - began > args.seconds:
            out["left_out"].append(name)
            continue
        arrivals = "burst" if load == BURST else "poisson" if cv == 1 else "gamma"
        rate = 1.0 if load == BURST else load * out["capacity"][kind]
        traffic = replace(TRAFFICS[kind], rate=rate, requests=requests, arrivals=arrivals, cv=cv)
        run = online(engine, generate(traffic, seed), budget)
        if load == BURST:
            out["capacity"][kind] = pace(run)
        about = {"name": name, "rate": rate, "load": None if load == BURST else load, "budget": budget, "seed": seed}
        out["online"].append(about | {"traffic": asdict(traffic)} | run)
        wait = statistics.median(row["first"] - row["arrival"] for row in run["requests"])
        print(f"{name}: {rate:.1f}/s, {run['makespan']:.1f} s, median TTFT {1e3 * wait:.1f} ms", flush=True)
        args.out.write_bytes(gzip.compress(json.dumps(out, separators=(",", ":")).encode(), 6, mtime=0))
    print(f"{args.out.name}: {args.out.stat().st_size:,} bytes in {time.time() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
