"""`servelab sched` as its users call it: the same numbers as the core, JSON for machines, one line for a mistake."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_call import Room
from engine_run import run_file

from servelab.sched import hardware
from servelab.sched.arrivals import Lengths, Traffic, generate
from servelab.sched.engine import Engine
from servelab.sched.metrics import Limits, summary
from servelab.sched.policies import POLICIES
from servelab.sched.search import max_goodput
from servelab.sched.simulate import simulate
from servelab.sched.sweep import Point, executor, grid, sweep
from servelab.sched.traffic import NAMED, Sessions, sessions

AZURE = "arrival_s,prompt_tokens,output_tokens\n0.0,100,10\n0.5,2000,5\n0.5,300,1\n9.0,50,1\n"
MOONCAKE = "\n".join(
    json.dumps({"timestamp": 1000 * k, "input_length": 1100, "output_length": 5, "hash_ids": [1, 2, 10 + k]})
    for k in range(5)
)


room = Room("sched")
call, out = room.call, room.out


def test_run_says_what_the_core_says() -> None:
    cost, source = hardware.cost("H200", "Qwen2.5-7B")
    work = generate(NAMED["short"], 3)
    expected = summary(simulate(work, Engine(cost, "chunked", 512, 256, hardware.pool("H200", "Qwen2.5-7B"))))
    for option in ("--chunk-budget", "--token-budget"):
        found = out("run", "--scheduler", "chunked", option, "512", "--traffic", "short", "--seed", "3")
        assert {key: found[key] for key in expected} == json.loads(json.dumps(expected))
        assert (found["basis"], found["step_costs"]) == ("model", source)
    assert "TTFT" in call("run", "--requests", "20")[0]


def test_compare_puts_schedulers_side_by_side() -> None:
    rows = out("compare", "--rate", "20", "--requests", "200", "--slots", "32", "--slo", "8B, server")["schedulers"]
    assert list(rows) == sorted(POLICIES)
    assert rows["static"]["ttft"]["mean_ms"] > 5 * rows["chunked"]["ttft"]["mean_ms"]
    assert all(0 <= row["goodput_percent"] <= 100 for row in rows.values())
    table = call("compare", "--schedulers", "static,chunked", "--requests", "50")[0]
    assert "static" in table and "chunked" in table and "sjf" not in table


def test_replay_reads_both_publishers(tmp_path: Path) -> None:
    (tmp_path / "azure.csv").write_text(AZURE)
    (tmp_path / "mooncake.jsonl").write_text(MOONCAKE)
    found = out("replay", str(tmp_path / "azure.csv"))
    assert (found["requests"], found["finished"], found["tpot"]["n"], found["prefix_cache"]) == (4, 4, 2, False)
    found = out("replay", str(tmp_path / "mooncake.jsonl"), "--replicas", "2", "--router", "affinity")
    assert found["cached_percent"] == pytest.approx(100 * 4 * 1024 / (5 * 1100))
    assert out("replay", str(tmp_path / "mooncake.jsonl"), "--no-cache")["cached_percent"] == 0


def test_a_sweep_is_the_same_wherever_it_runs() -> None:
    traffic = Traffic(1, 40, Lengths("fixed", 200), Lengths("fixed", 20))
    engine = Engine(hardware.cost("H200", "Qwen2.5-7B")[0])
    points = grid(Point(traffic, engine, limits=Limits(ttft=2000)), [1.0, 50.0], ["continuous", "chunked"], [512])
    with executor("process", None) as pool:
        here = list(sweep(points, pool))
    assert [(row["scheduler"], row["rate"]) for row in here] == [
        ("continuous", 1.0), ("continuous", 50.0), ("chunked", 1.0), ("chunked", 50.0)
    ]  # fmt: skip
    assert here[0]["goodput_percent"] == 100
    distributed = pytest.importorskip("distributed", reason="the extra 'dask' is not installed")
    with (
        distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=None) as cluster,
        executor("dask", cluster.scheduler_address) as pool,
    ):
        assert list(sweep(points, pool)) == here


def test_the_most_goodput_lies_between_a_rate_that_meets_the_level_and_one_that_does_not() -> None:
    """One request at a time of 1 s each (a prompt step, nine decodes): no rate above 1/s can hold a TTFT of 2 s."""
    second = 10**12
    from servelab.sched.cost import Cost

    engine = Engine(Cost(graph=second // 10, mixed=second // 10, eager=second // 10), seqs=1)
    traffic = Traffic(1, 300, Lengths("fixed", 10), Lengths("fixed", 10), "constant")
    found = max_goodput(traffic, engine, Limits(ttft=2000))
    assert 0.98 < found.rate <= 1.0 + 0.02 and found.rate < found.above <= 1.02 * found.rate and found.share >= 0.99
    assert max_goodput(traffic, engine, Limits(ttft=1)).rate == 0
    assert max_goodput(traffic, engine, Limits(), high=4.0).above == float("inf")
    assert "requests/s" in call("capacity", "--traffic", "short", "--requests", "50")[0]


def test_a_real_engines_file_is_fitted_and_judged(tmp_path: Path) -> None:
    path = tmp_path / "run.json.gz"
    path.write_bytes(run_file())
    found = out("validate", "--runs", str(path))["run.json.gz"]
    assert [(one["name"], one["seen"], one["same_percent"]) for one in found] == [
        ("fit-a", True, 100), ("held-short", False, 100), ("held-long", False, 100)
    ]  # fmt: skip
    assert "held out" in call("validate", "--runs", str(path))[0]
    assert "µs per step" in call("calibrate", "--runs", str(path))[0]


def test_a_trace_for_perfetto_is_written_once(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    assert call("trace", str(path), "--requests", "20")[2] == 0
    assert {event["ph"] for event in json.loads(path.read_text())["traceEvents"]} >= {"X", "C", "M"}
    _, error, code = call("trace", str(path))
    assert code == 2 and "exists already" in error


def test_shared_prompts_share_their_first_blocks() -> None:
    work = sessions(Sessions(count=20, turns=3, systems=2, system=640, block=64), 1)
    assert work.hashes is not None and {names[:10] for names in work.hashes} == {tuple(range(10)), tuple(range(11, 21))}
    assert all(len(names) == prompt // 64 for names, prompt in zip(work.hashes, work.prompt, strict=True))


def test_named_traffic_has_the_means_of_its_trace() -> None:
    """Published means: Azure conversation 1,155 and 211 tokens, code 2,048 and 28; Mooncake 12,035 and 343."""
    means = {"azure-conversation": (1155, 211), "azure-code": (2048, 28), "mooncake-conversation": (12035, 343)}
    for name, (prompt, answer) in means.items():
        work = generate(NAMED[name], 0)
        n = len(work)
        assert sum(work.prompt) / n == pytest.approx(prompt, rel=0.12)
        assert sum(work.output) / n == pytest.approx(answer, rel=0.25)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("run", "--rate", "-3"), "--rate='-3' is outside"),
        (("run", "--rate", "1e99"), "outside 1e-06 to 1e+09"),
        (("run", "--slots", "600", "--chunk-budget", "512"), "--slots=600 is above"),
        (("run", "--scheduler", "best"), "use one of static"),
        (("run", "--slo", "fast"), "as 2000/100"),
        (("run", "--hardware", "L4", "--model", "Llama-3.1-70B"), "does not fit on L4"),
        (("replay", "nowhere.csv"), "nowhere.csv"),
        (("validate", "--runs", "pyproject.toml"), "is no run file"),
        (("validate", "--runs", "nowhere.gz"), "is no file"),
        (("sweep", "--executor", "moon"), "use process or dask"),
        (("capacity", "--share", "0"), "--share"),
    ],
)
def test_a_mistake_is_one_line_that_names_the_fix(arguments: tuple[str, ...], says: str) -> None:
    _, error, code = call(*arguments)
    assert code == 2 and says in error.replace("\n", " ") and "Traceback" not in error


def test_what_cannot_be_held_is_refused_and_counted() -> None:
    found = out("run", "--prompt", "5000", "--kv-blocks", "100", "--requests", "5")
    assert (found["refused"], found["finished"], found["ttft"]["n"], found["ttft"]["mean_ms"]) == (5, 0, 0, None)
    found = out("run", "--output", "0", "--requests", "5", "--arrivals", "burst")
    assert (found["finished"], found["ttft"]["n"], found["e2e"]["n"]) == (5, 0, 5)


def test_run_speculates_loops_and_splits() -> None:
    base = ["run", "--requests", "60", "--traffic", "sharegpt", "--rate", "4"]
    alone, guessed = out(*base), out(*base, "--guesses", "0.9,0.9,0.9")
    assert guessed["iterations"] < alone["iterations"] and guessed["tpot"]["mean_ms"] < alone["tpot"]["mean_ms"]
    looped = out(*base, "--clients", "1", "--think", "0.5")
    assert looped["makespan_s"] == pytest.approx(60 * looped["e2e"]["mean_ms"] / 1e3 + 59 * 0.5, rel=1e-3)
    split = out(*base, "--prefills", "1", "--link", "50")
    assert split["finished"] == 60 and split["itl"]["p99_ms"] < alone["itl"]["p99_ms"]


@pytest.mark.parametrize(("more", "said"), [
    (["--guesses", "1.5"], "--guesses='1.5' is outside 0 to 1"),
    (["--clients", "0"], "--clients=0"),
    (["--prefills", "-1"], "--prefills=-1"),
    (["--link", "0"], "--link='0' is outside"),
    (["--prefills", "1", "--clients", "2"], "use one of the two"),
    (["--guesses", "0.5", "--token-budget", "256"], "seqs=256"),
])  # fmt: skip
def test_run_says_what_cannot_be(more: list[str], said: str) -> None:
    _, error, code = call("run", "--requests", "5", *more)
    assert code and said in error
