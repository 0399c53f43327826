"""Drive a real engine and log every step: `generate/engine_steps.py MODEL OUT.json.gz`.

vLLM in this process, random weights in real shapes (speed does not depend on their values), one GPU. By default the
engine runs synchronously, so that schedule() calls and step ends line up; with `--overlap` it runs as users run it
(asynchronous scheduling). A graph is captured for every step up to the budget; `--eager` leaves those above 512 tokens
to be launched kernel by kernel, which makes them as fast as the CPU of the moment. First come runs that a fit may see
("fit-…"); two of them are bursts, whose pace is the engine's capacity. Those under `held` show what the GPU takes alone
(`engine_clock`). The rest is held out; the last has a small KV pool, so that sequences are preempted. What was recorded
is written after every run: a stop loses one run at most.

A step is [time s, prefill requests, prefill tokens, decode requests, context tokens, prefill work, decode context,
begin s, admitted, sampled, woken s, forward s, launched s, GPU begin s, GPU end s]: time when schedule() returned and
when it was called; prefill work Σ n·(start + (n + 1) / 2) over chunks of n tokens, the pairs that attention visits;
`admitted` chunks begin a request, `sampled` sequences get a token; when the request came that woke an idle engine, −1
if it was not idle; when the CPU began to launch the model's kernels and was done with it, when the GPU began and ended.
`ends`: [time s, requests with output] when the engine's step returned.
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

from engine_clock import Clock

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
HELD = (
    ("short-burst", "short", BURST, 8192, 400, 1.0, 31),
    ("long-burst", "long", BURST, 2048, 100, 1.0, 32),
    ("short-thin", "short", 15.0, 2048, 150, 1.0, 33),
    ("long-thin", "long", 2.0, 512, 40, 1.0, 34),
)
"""As below, but with a rate in requests per second."""
TIGHT = 2500  # KV blocks of the last run
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
    ("tight-80", "short", 0.8, 2048, 1000, 1.0, 17),
)


class Engine:
    """vLLM with its scheduler in reach: every schedule() leaves a row in `steps`, every step() one in `ends`."""

    def __init__(self, model: str, overlap: bool, eager: bool) -> None:
        import torch
        import vllm

        folder = Path(tempfile.mkdtemp(prefix=model))
        (folder / "config.json").write_text(json.dumps(COMMON | SHAPES[model]))
        began = time.time()
        graphs = {} if eager else {"cudagraph_capture_sizes": GRAPHS, "max_cudagraph_capture_size": BUDGET}
        llm = vllm.LLM(
            model=str(folder), load_format="dummy", skip_tokenizer_init=True, dtype="bfloat16", max_model_len=16384,
            gpu_memory_utilization=0.6, enable_prefix_caching=False, async_scheduling=overlap, max_num_seqs=SEQS,
            max_num_batched_tokens=BUDGET, seed=0, compilation_config=graphs,
        )  # fmt: skip
        self.params = vllm.SamplingParams
        self.engine = llm.llm_engine
        core = self.engine.engine_core.engine_core
        self.scheduler = core.scheduler
        self.clock = Clock(core.model_executor.driver_worker.worker.model_runner)
        self.about = {
            "model": model, "gpu": torch.cuda.get_device_name(0), "vllm": vllm.__version__, "torch": torch.__version__,
            "budget": BUDGET, "seqs": SEQS, "async": overlap,
            "graph_tokens": EAGER if eager else BUDGET, "load_s": time.time() - began,
            "kv_blocks": self.scheduler.kv_cache_config.num_blocks, "python": platform.python_version(),
            "driver": _driver(),
        }  # fmt: skip
        self.steps: list[list[Any]] = []
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
        self.clock.marks = []
        self.steps.append([time.perf_counter(), *row, begin, admitted, sampled, self.woken, self.clock.marks])
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
        self.clock.start()
        return time.perf_counter()

    def log(self, start: float) -> dict[str, Any]:
        """Steps and ends since `start`, in seconds."""
        steps = []
        for t, *row, begin, admitted, sampled, woken, marks in self.steps:
            woken = woken if woken < 0 else round(woken - start, 6)
            parts = self.clock.read(marks, start)
            steps.append([round(t - start, 6), *row, round(begin - start, 6), admitted, sampled, woken, *parts])
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


def online(engine: Engine, work: Workload, budget: int, blocks: int | None = None) -> dict[str, Any]:
    """A workload at its own times; waiting is a busy loop, so that no arrival is late by a sleep."""
    pool = engine.scheduler.kv_cache_manager.block_pool
    taken = pool.get_new_blocks(pool.get_num_free_blocks() + 1 - blocks) if blocks else []  # one is vLLM's null block
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
    pool.free_blocks(taken)
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
    parser.add_argument("--only", nargs="+", metavar="RUN", help="these runs, and those that a fit may see")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no further run after this long")
    args = parser.parse_args()
    began = time.time()
    engine = Engine(args.model, args.overlap, args.eager)
    warm(engine)
    out = engine.about | {"capacity": {}, "held": [], "online": [], "left_out": []}
    for row in (*ONLINE[:4], *HELD, *ONLINE[4:]):
        (name, kind, load, budget, requests, cv, seed), held = row, row in HELD
        fits = held or name.startswith("fit")
        if time.time() - began > args.seconds or args.only and name not in args.only and not fits:
            out["left_out"].append(name)
            continue
        arrivals = "burst" if load == BURST else "poisson" if cv == 1 else "gamma"
        rate = 1.0 if load == BURST else load if held else load * out["capacity"][kind]
        traffic = replace(TRAFFICS[kind], rate=rate, requests=requests, arrivals=arrivals, cv=cv)
        blocks = TIGHT if name.startswith("tight") else None
        engine.clock.hold = held
        run = online(engine, generate(traffic, seed), budget, blocks)
        if load == BURST and not held:
            out["capacity"][kind] = pace(run)
        share = None if held or load == BURST else load
        about = {"name": name, "rate": rate, "load": share, "budget": budget, "seed": seed}
        about |= {"traffic": asdict(traffic)} | ({"kv_blocks": blocks} if blocks else {})
        out["held" if held else "online"].append(about | run)
        wait = statistics.median(row["first"] - row["arrival"] for row in run["requests"])
        print(f"{name}: {rate:.1f}/s, {run['makespan']:.1f} s, median TTFT {1e3 * wait:.1f} ms", flush=True)
        args.out.write_bytes(gzip.compress(json.dumps(out, separators=(",", ":")).encode(), 6, mtime=0))
    print(f"{args.out.name}: {args.out.stat().st_size:,} bytes in {time.time() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
