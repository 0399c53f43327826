"""`servelab kv` as people and scripts meet it: what it prints, and how it refuses."""

import gzip
import json

import pytest
from typer.testing import CliRunner

from servelab.kv.command import app

MOONCAKE = "".join(
    json.dumps({"timestamp": 3_000 * i, "input_length": 512 * len(ids), "output_length": 7, "hash_ids": ids}) + "\n"
    for i, ids in enumerate([[0, 1], [0, 1, 2], [3], [0, 1, 2, 4], [3]])
)
AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens\n" + "".join(
    f"2023-11-16 18:15:{i:02}.0000000,{100 + i},{1 + i}\n" for i in range(50)
)


def run(*arguments: str, code: int = 0, **env: str) -> tuple[str, str]:
    result = CliRunner().invoke(app, arguments, env={"COLUMNS": "100", **env})
    assert result.exit_code == code, result.output
    return result.stdout, result.stderr


@pytest.fixture
def mooncake(tmp_path):
    path = tmp_path / "chat.jsonl.gz"
    path.write_bytes(gzip.compress(MOONCAKE.encode()))
    return str(path)


@pytest.fixture
def azure(tmp_path):
    path = tmp_path / "azure.csv"
    path.write_text(AZURE)
    return str(path)


def test_pages_of_the_example():
    out = json.loads(run("pages", "--example", "shared-prefix", "--json")[0])
    assert out["blocks"] == {"preallocated": 504, "paged": 428, "shared": 204}
    assert out["conversations_that_fit_shared"] == 21 and out["prefix_blocks"] == 32
    assert round(out["schemes"]["paged"]["saved_percent"], 1) == 15.1
    assert round(out["schemes"]["shared"]["saved_percent"] - out["schemes"]["paged"]["saved_percent"], 1) == 44.4
    table = run("pages")[0]
    assert all(number in table for number in ("504", "428", "204", "21 conversations fit", "2.6 times"))


def test_pages_of_another_workload():
    out = json.loads(run("pages", "--conversations", "3", "--prefix", "64", "--private", "32", "--json")[0])
    assert out["example"] == "custom" and out["conversations"] == 3 and out["prefix_blocks"] == 4


def test_replay_of_lengths(azure):
    out = json.loads(run("replay", azure, "--block-size", "16", "--json")[0])
    totals = [101 + 2 * i for i in range(50)]
    allocated = sum(-(-t // 16) * 16 for t in totals)
    assert out["reuse"] is None and out["trace"]["requests"] == 50 and out["trace"]["duration_s"] == 49
    assert out["waste"]["at_completion"]["allocated_slots"] == allocated
    assert out["waste"]["at_completion"]["percent"] == pytest.approx(100 * (1 - sum(totals) / allocated))
    assert set(out["waste"]) == {"at_completion", "prompts_only", "over_decode_steps"}
    table = run("replay", azure)[0]
    assert "at completion" in table and "expected %" in table and "Prefix reuse" not in table


def test_replay_of_block_hashes(mooncake):
    out = json.loads(run("replay", mooncake, "--blocks", "inf", "--json")[0])["reuse"]
    assert (out["references"], out["hits"], out["blocks"]) == (11, 6, "inf")
    assert out["hit_percent"] == pytest.approx(100 * 6 / 11)
    small = json.loads(run("replay", mooncake, "--blocks", "2", "--policy", "belady", "--json")[0])["reuse"]
    assert (small["policy"], small["blocks"]) == ("belady", 2) and small["hits"] < 6
    assert "an infinite cache" in run("replay", mooncake)[0]
    assert "lru, 2 blocks" in run("replay", mooncake, "--blocks", "2")[0]


def test_rows_out_of_order_are_told(tmp_path):
    head, *rows = AZURE.splitlines(keepends=True)
    path = tmp_path / "shuffled.csv"
    path.write_text(head + "".join(reversed(rows)))
    assert "49 put back in order of arrival" in run("replay", str(path))[0]


def test_bytes_of_a_context():
    out = json.loads(run("bytes", "--model", "Qwen2.5-0.5B", "--dtype", "int4", "--tokens", "1000", "--json")[0])
    assert out["kv_bytes"] == 24 * 2 * 2 * 35 * 1000 and out["card"] is None
    assert round(out["percent_against_bf16"], 1) == -72.7


def test_bytes_on_a_card():
    arguments = ("bytes", "--model", "Llama-3.1-8B", "--tokens", "2048", "--shared-prefix", "512")
    arguments += ("--card", "H100 80GB")
    card = json.loads(run(*arguments, "--json")[0])["card"]
    room = int(81_559 * 2**20 * 0.9) - 2 * 8_030_261_248
    per_token = 32 * 8 * 128 * 2 * 2
    expected = {
        "preallocated": room // (131_072 * per_token),
        "paged": room // (2_048 * per_token),
        "shared": (room - 512 * per_token) // (1_536 * per_token),
    }
    assert card["room_bytes"] == room and card["fits"]
    assert {name: row["conversations"] for name, row in card["schemes"].items()} == expected
    assert f"{expected['shared']:,}" in run(*arguments)[0]
    assert "A preallocated slot holds 131,072 tokens, the model's whole context" in run(*arguments)[0]
    assert "holds 4,096 tokens, as asked with --max-len" in run(*arguments, "--max-len", "4096")[0]
    assert "does not fit on L4" in run("bytes", "--model", "Llama-3.1-70B", "--card", "L4")[0]


@pytest.mark.parametrize(
    ("typed", "card", "model", "dtype"),
    [
        (("H100", "Llama-3.1-8", "FP8"), "H100 80GB", "Llama-3.1-8B", "fp8"),
        (("l4", "qwen3", "b"), "L4", "Qwen3-8B", "bf16"),
        (("l40", "MISTRAL", "int4"), "L40S", "Mistral-7B-v0.1", "int4"),
    ],
)
def test_the_beginning_of_a_name_is_enough(typed, card, model, dtype):
    options = ("--card", typed[0], "--model", typed[1], "--dtype", typed[2])
    out = json.loads(run("bytes", *options, "--json")[0])
    assert (out["card"]["name"], out["model"]["name"], out["dtype"]) == (card, model, dtype)


@pytest.mark.parametrize("arguments", [("pages",), ("bytes", "--model", "DeepSeek-V3"), ("replay", "{azure}")])
def test_json_is_sorted_and_alone_on_stdout(arguments, azure):
    out, err = run(*(a.format(azure=azure) for a in arguments), "--json")
    assert err == "" and out == json.dumps(json.loads(out), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("pages", "--example", "x"), "--example='x' is unknown; use one of shared-prefix"),
        (
            ("pages", "--example", "shared-prefix", "--conversations", "3"),
            "--example='shared-prefix' has its own workload; leave it out, or leave out --conversations",
        ),
        (
            ("bytes", "--model", "Qwen3-8B", "--card", "rtx"),
            "--card='rtx' begins more than one name; write one of RTX 4090, RTX 5090",
        ),
        (("bytes", "--model", ""), "--model='' is unknown; use one of Qwen2.5-0.5B"),
        (("pages", "--conversations", "0"), "--conversations=0 is outside 1 to 1,000; give"),
        (("pages", "--max-len", "100"), "--max-len=100 is outside 1,008 to 100,000,000; reserve"),
        (("replay", "nope.csv"), "nope.csv: no such file or directory; give the path of a trace file"),
        (("replay", "{azure}", "--block-size", "0"), "--block-size=0 is outside 1 to 65,536; give a whole number"),
        (("replay", "{azure}", "--block-size", "two"), "--block-size='two' is no whole number from 1 to 65,536"),
        (("replay", "{azure}", "--blocks", "5"), "azure.csv has 0 hash_ids; leave --blocks and --policy out or give"),
        (("replay", "{mooncake}", "--blocks", "-1"), "--blocks=-1 is outside 1 to 1,099,511,627,776; give"),
        (("replay", "{mooncake}", "--blocks", "many"), "--blocks='many' is no whole number"),
        (("replay", "{mooncake}", "--policy", "mru"), "--policy='mru' is unknown; use one of lru"),
        (("bytes", "--model", "GPT-9"), "--model='GPT-9' is unknown; use one of Qwen2.5-0.5B"),
        (("bytes", "--model", "Qwen3-8B", "--dtype", "int3"), "--dtype='int3' is unknown; use one of bf16"),
        (("bytes", "--model", "Qwen3-8B", "--tokens", "0"), "--tokens=0 is outside 1 to 100,000,000"),
        (("bytes", "--model", "Qwen3-8B", "--card", "H9"), "--card='H9' is unknown; use one of T4"),
        (("bytes", "--model", "Qwen3-8B", "--card", "L4", "--utilisation", "2"), "utilisation=2.0 is outside 0 to 1"),
        (("bytes", "--model", "Qwen3-8B", "--card", "L4", "--utilisation", "x"), "--utilisation='x' is outside 0 to 1"),
        (("bytes", "--model", "Qwen3-8B", "--shared-prefix", "4096"), "--shared-prefix=4096 is outside 0 to 4,095"),
        (("bytes", "--model", "Qwen3-8B", "--shared-prefix", "96"), "are about a card; add --card NAME"),
        (("bytes", "--model", "Qwen3-8B", "--utilisation", "0.9"), "are about a card; add --card NAME"),
        (("bytes", "--model", "Qwen3-8B", "--max-len", "9"), "are about a card; add --card NAME"),
        (("bytes", "--model", "Qwen3-8B", "--weights", "int4"), "are about a card; add --card NAME"),
        (("bytes", "--model", "Qwen3-8B", "--utilisation", "banana"), "--utilisation='banana' is outside 0 to 1"),
        (("bytes", "--model", "Qwen3-8B", "--weights", "int3"), "--weights='int3' is unknown; use one of"),
        (
            ("pages", "--conversations", "1000", "--prefix", "20000", "--private", "20000"),
            "block-table entries, allowed are 1 to 200,000; use fewer or shorter conversations, shorter slots",
        ),
        (
            ("pages", "--max-len", "100000000"),
            "8 slots of 100,000,000 tokens are 50,000,000 block-table entries, allowed are 1 to 200,000; use fewer",
        ),
    ],
)
def test_a_mistake_is_one_line_with_value_range_and_fix(arguments, words, azure, mooncake):
    out, err = run(*(a.format(azure=azure, mooncake=mooncake) for a in arguments), code=2)
    assert out == "" and err.startswith("error: ") and words in err and err.count("\n") == 1


def test_the_line_is_red_on_a_terminal():
    assert "\x1b[31m" in run("pages", "--example", "x", code=2, FORCE_COLOR="1")[1]
