"""Drive a real engine and log every step: `generate/engine_steps.py MODEL OUT.json.gz [--overlap] [--rates FILE]`.

vLLM in this process, random weights in real shapes (speed does not depend on their values), one GPU. By default the
engine runs synchronously, so that schedule() calls and step ends line up: calibration sweeps (decode batches, prompts,
long contexts, prompts beside decodes), the capacity of each traffic, then the online runs. With `--overlap` it runs as
users run it (asynchronous scheduling): decode batches and the online runs, at the rates of another file with `--rates`.
What was recorded is written after every run, so that a stop loses one run at most.

A step is [time s, prefill requests, prefill tokens, decode requests, context tokens, prefill work, decode context,
begin s]: time when schedule() returned and when it was called; prefill work Σ n·(start + (n + 1) / 2) over chunks of n
tokens, the pairs that attention visits. `ends`: [time s, requests with output] when the engine's step returned.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import os
import platform
import random
import statistics
import subprocess
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
SHORT = Traffic(1, 300, Lengths("lognormal", 256, 0.8, 8, 2048), Lengths("lognormal", 64, 0.6, 4, 256))
LONG = Traffic(1, 120, Lengths("lognormal", 2048, 0.6, 64, 12000), Lengths("lognormal", 96, 0.6, 8, 384))
TRAFFICS = {"short": SHORT, "long": LONG}
BATCHES = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 160, 192, 224, 256)
PROMPTS = (16, 64, 128, 256, 384, 504, 520, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192)
CONTEXTS = ((8, 4096), (32, 4096), (64, 2048), (128, 1024), (32, 12000))
BESIDE = ((8, 512), (64, 512), (192, 256))  # decodes running, their context
SIZES = (32, 128, 256, 448, 640, 1024, 2048, 4096, 8000)  # prompts that come beside them

# name, traffic, load (share of the capacity), budget, requests, arrivals, cv, seed
ONLINE = (
    ("fit-short-60", "short", 0.6, 8192, 300, "poisson", 1.0, 21),
    ("fit-short-110", "short", 1.1, 2048, 500, "poisson", 1.0, 22),
    ("fit-long-60", "long", 0.6, 512, 120, "poisson", 1.0, 23),
    ("fit-long-100", "long", 1.0, 8192, 120, "poisson", 1.0, 24),
    ("short-30", "short", 0.3, 8192, 1000, "poisson", 1.0, 11),
    ("short-80", "short", 0.8, 2048, 1000, "poisson", 1.0, 12),
    ("long-60", "long", 0.6, 8192, 300, "poisson", 1.0, 13),
    ("short-120", "short", 1.2, 8192, 1000, "poisson", 1.0, 14),
    ("bursty-70", "short", 0.7, 2048, 1000, "gamma", 3.0, 15),
    ("long-90", "long", 0.9, 512, 300, "poisson", 1.0, 16),
)


class Engine:
    """vLLM with its scheduler in reach: every schedule() leaves a row in `steps`, every step() one in `ends`."""

    def __init__(self, model: str, overlap: bool) -> None:
        import torch
        import vllm

        folder = Path("/tmp/models") / model
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_text(json.dumps(COMMON | SHAPES[model]))
        began = time.time()
        llm = vllm.LLM(
            model=str(folder), load_format="dummy", skip_tokenizer_init=True, dtype="bfloat16", max_model_len=16384,
            gpu_memory_utilization=0.6, enable_prefix_caching=False, async_scheduling=overlap, max_num_seqs=SEQS,
            max_num_batched_tokens=BUDGET, seed=0,
        )  # fmt: skip
        self.params = vllm.SamplingParams
        self.engine = llm.llm_engine
        self.scheduler = self.engine.engine_core.engine_core.scheduler
        self.about = {
            "model": model, "gpu": torch.cuda.get_device_name(0), "vllm": vllm.__version__, "torch": torch.__version__,
            "budget": BUDGET, "seqs": SEQS, "async": overlap, "load_s": time.time() - began,
            "kv_blocks": self.scheduler.kv_cache_config.num_blocks, "python": platform.python_version(),
            "driver": _driver(),
        }  # fmt: skip
        self.steps: list[list[float]] = []
        self.ends: list[tuple[float, int]] = []
        self.outputs: dict[str, list[tuple[float, int]]] = {}
        self.rng = random.Random(0)
        self.count = 0
        self._schedule = self.scheduler.schedule
        self.scheduler.schedule = self._logged

    def _logged(self, *args: Any, **named: Any) -> Any:
        begin = time.perf_counter()
        out = self._schedule(*args, **named)
        row = [0, 0, 0, 0, 0.0, 0]
        for name, n in out.num_scheduled_tokens.items():
            request = self.scheduler.requests[name]
            start = request.num_computed_tokens - n  # schedule() has advanced it
            row[3] += start + n
            if start < request.num_prompt_tokens:
                row[0], row[1], row[4] = row[0] + 1, row[1] + n, row[4] + n * (start + (n + 1) / 2)
            else:
                row[2], row[5] = row[2] + 1, row[5] + start + n
        self.steps.append([time.perf_counter(), *row, begin])
        return out

    def tokens(self, n: int) -> list[int]:
        return self.rng.choices(range(100, 150_000), k=n)

    def add(self, prompt: list[int], output: int) -> str:
        self.count += 1
        name = f"r{self.count}"
        params = self.params(temperature=0.0, max_tokens=output, min_tokens=output, ignore_eos=True, detokenize=False)
        self.engine.add_request(name, {"prompt_token_ids": prompt}, params)
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
        steps = [[round(t - start, 6), *row, round(begin - start, 6)] for t, *row, begin in self.steps]
        return {"steps": steps, "ends": [[round(t - start, 6), n] for t, n in self.ends]}


def _driver() -> str:
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def offline(engine: Engine, requests: int, prompt: int, output: int) -> dict[str, Any]:
    """Requests that come together, until all are done."""
    texts = [engine.tokens(prompt) for _ in range(requests)]
    start = engine.clear()
    for text in texts:
        engine.add(text, output)
    engine.drain()
    took = time.perf_counter() - start
    log = engine.log(start)
    pure = sorted(b[0] - a[0] for a, b in zip(log["steps"], log["steps"][1:], strict=False) if a[3] == requests)
    median = 1e3 * pure[len(pure) // 2] if pure else None
    return {"c": requests, "n_in": prompt, "n_out": output, "elapsed_s": took, "decode_step_ms": median, **log}


def beside(engine: Engine, decodes: int, context: int) -> dict[str, Any]:
    """Prompts of several sizes, one after the other, while `decodes` sequences run."""
    running = [engine.tokens(context) for _ in range(decodes)]
    prompts = [engine.tokens(n) for n in SIZES for _ in range(3)]
    start = engine.clear()
    for text in running:
        engine.add(text, 24 + 6 * len(prompts))
    for _ in range(16):
        engine.step()
    for text in prompts:
        engine.add(text, 1)
        for _ in range(4):
            engine.step()
    engine.drain()
    return {"c": decodes, "ctx": context, "sizes": SIZES, **engine.log(start)}


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


def capacity(engine: Engine, traffic: Traffic) -> dict[str, Any]:
    """Requests per second when all of them come at once."""
    run = online(engine, generate(replace(traffic, arrivals="burst"), 1), BUDGET)
    return {"requests_per_s": run["n"] / run["makespan"], **run}


def calibrate(engine: Engine) -> dict[str, Any]:
    """The sweeps; each part is in-sample wherever it is used."""
    out: dict[str, Any] = {
        "offline": [offline(engine, c, 128, 64) for c in BATCHES],
        "prefill": [],
        "longctx": [offline(engine, c, n, 48) | {"ctx": n} for c, n in CONTEXTS],
        "beside": [beside(engine, c, n) for c, n in BESIDE],
    }
    for n in PROMPTS:
        runs = [offline(engine, 1, n, 1) for _ in range(5)]
        out["prefill"].append({"n_in": n, "ttft_ms": 1e3 * sorted(run["elapsed_s"] for run in runs)[2], "runs": runs})
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=SHAPES)
    parser.add_argument("out", type=Path)
    parser.add_argument("--overlap", action="store_true", help="asynchronous scheduling, as users run it")
    parser.add_argument("--rates", type=Path, metavar="FILE", help="a run file whose rates to repeat")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no further online run after this long")
    args = parser.parse_args()
    began = time.time()
    engine = Engine(args.model, args.overlap)
    for _ in range(2):
        offline(engine, 4, 256, 8)
    out = engine.about | {"online": [], "left_out": []}
    out |= {"offline": [offline(engine, c, 128, 64) for c in BATCHES]} if args.overlap else calibrate(engine)
    if args.rates:
        out["capacity"] = json.loads(gzip.decompress(args.rates.read_bytes()))["capacity"]
    else:
        out["capacity"] = {name: capacity(engine, traffic) for name, traffic in TRAFFICS.items()}
    for name, kind, load, budget, requests, arrivals, cv, seed in ONLINE:
        if time.time() - began > args.seconds:
            out["left_out"].append(name)
            continue
        rate = load * out["capacity"][kind]["requests_per_s"]
        traffic = replace(TRAFFICS[kind], rate=rate, requests=requests, arrivals=arrivals, cv=cv)
        run = online(engine, generate(traffic, seed), budget)
        about = {"name": name, "rate": rate, "load": load, "budget": budget, "seed": seed, "traffic": asdict(traffic)}
        out["online"].append(about | run)
        wait = statistics.median(row["first"] - row["arrival"] for row in run["requests"])
        print(f"{name}: {rate:.1f}/s, {run['makespan']:.1f} s, median TTFT {1e3 * wait:.1f} ms", flush=True)
        args.out.write_bytes(gzip.compress(json.dumps(out, separators=(",", ":")).encode(), 6, mtime=0))
    print(f"{args.out.name}: {args.out.stat().st_size:,} bytes in {time.time() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
