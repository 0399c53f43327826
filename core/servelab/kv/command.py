"""`servelab kv`: pages, replay, convert, bytes. Tables for people, sorted JSON for machines, one line for a mistake."""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from servelab.kv import convert, plain, reuse, show, sizes, trace, waste
from servelab.kv import pages as schemes
from servelab.kv.eviction import POLICIES
from servelab.kv.limits import MAX_BLOCK, MAX_TOKENS, beginning, entry, short, whole
from servelab.kv.models import CARDS, MODELS
from servelab.terminal import errors, print_json, progress

app = typer.Typer(help="KV-cache memory: block pools, traces, bytes.", no_args_is_help=True)

File = Annotated[str, typer.Argument(help="Azure CSV or Mooncake JSON lines, plain or gzip.", metavar="FILE")]
Example = Annotated[
    str | None,
    typer.Option(
        "--example", help=f"One of {', '.join(schemes.EXAMPLES)}.", metavar="NAME", show_default="shared-prefix"
    ),
]
Count = Annotated[str | None, typer.Option("--conversations", help="Your own workload: how many.", metavar="N")]
Common = Annotated[str | None, typer.Option("--prefix", help="Your own workload: shared tokens.", metavar="N")]
Private = Annotated[str | None, typer.Option("--private", help="Your own workload: mean private tokens.", metavar="N")]
ExampleBlock = Annotated[
    str | None, typer.Option("--block-size", help="Tokens per block.", metavar="N", show_default="the example's")
]
Slot = Annotated[
    str | None, typer.Option("--max-len", help="Tokens reserved per slot.", metavar="N", show_default="the longest")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
BlockSize = Annotated[str, typer.Option("--block-size", help="Tokens per block.", metavar="N")]
Blocks = Annotated[
    str | None, typer.Option("--blocks", help="Blocks in the prefix cache.", metavar="N|inf", show_default="inf")
]
Policy = Annotated[
    str | None, typer.Option("--policy", help=f"One of {', '.join(POLICIES)}.", metavar="NAME", show_default="lru")
]
ModelName = Annotated[str, typer.Option("--model", help=f"One of {', '.join(MODELS)}.", metavar="NAME")]
Dtype = Annotated[str, typer.Option("--dtype", help=f"KV format: {', '.join(sizes.DTYPES)}.", metavar="NAME")]
Tokens = Annotated[str, typer.Option("--tokens", help="Context of a conversation, prefix included.", metavar="N")]
CardName = Annotated[str | None, typer.Option("--card", help=f"One of {', '.join(CARDS)}.", metavar="NAME")]
Prefix = Annotated[str, typer.Option("--shared-prefix", help="Tokens common to all conversations.", metavar="N")]
MaxLen = Annotated[
    str | None,
    typer.Option("--max-len", help="Tokens that preallocation reserves.", metavar="N", show_default="model's context"),
]
Weights = Annotated[
    str | None,
    typer.Option("--weights", help=f"{', '.join(sizes.WEIGHT_BITS)}.", metavar="NAME", show_default="as published"),
]
Utilisation = Annotated[
    str | None, typer.Option("--utilisation", help="Share of the card's memory.", metavar="X", show_default="0.9")
]


@app.command()
def pages(
    example: Example = None,
    count: Count = None,
    prefix: Common = None,
    private: Private = None,
    block_size: ExampleBlock = None,
    max_len: Slot = None,
    as_json: Json = False,
) -> None:
    """Blocks of one workload when preallocated, paged and shared, every conversation complete."""
    with errors():
        name = example or "shared-prefix"
        chosen = entry("--example", name, schemes.EXAMPLES)
        requests, longest = chosen.requests, chosen.max_len
        if (count, prefix, private) != (None, None, None):
            if example is not None:
                own = "--conversations, --prefix and --private"
                raise ValueError(f"--example={example!r} has its own workload; leave it out, or leave out {own}")
            n = 8 if count is None else whole("--conversations", count, 1, 1_000)
            common = 512 if prefix is None else whole("--prefix", prefix, 0, 131_072)
            mean = 344 if private is None else whole("--private", private, 2, 131_072)
            requests = schemes.conversations(n, common, mean)
            longest = max(r.tokens + r.output for r in requests)
            name = "custom"
        b = chosen.block_size if block_size is None else whole("--block-size", block_size, 1, MAX_BLOCK)
        slot = longest if max_len is None else whole("--max-len", max_len, longest, MAX_TOKENS, "reserve the longest")
        schemes.within_reach(requests, b, slot)
        with progress("filling three pools"):
            result = schemes.compare(requests, block_size=b, max_len=slot)
    out = plain.pages(result) | {"example": name}
    if as_json:
        return print_json(out)
    return show.pages(out)


@app.command()
def replay(
    file: File, block_size: BlockSize = "16", blocks: Blocks = None, policy: Policy = None, as_json: Json = False
) -> None:
    """Waste of a trace's last blocks and, where it has block hashes, the hits of a prefix cache."""
    with errors():
        b = whole("--block-size", block_size, 1, MAX_BLOCK)
        capacity = _capacity(blocks)
        entry("--policy", policy or "lru", POLICIES)
        with progress(f"reading {file}", 1.0) as report:
            requests = trace.read(file, progress=report)
        if requests.hash_ids is None and (blocks is not None or policy is not None):
            raise ValueError(f"{requests.name} has 0 hash_ids; leave --blocks and --policy out or give a Mooncake file")
        slots = waste.waste(waste.histograms(requests), b)
        hits = None
        if requests.hash_ids is not None:
            with progress("replaying block hashes"):
                hits = plain.reuse_hits(requests, policy or "lru", capacity)
    about = plain.about(requests)
    if as_json:
        rows = {name: row.metrics() | {"n": row.n} for name, row in slots.items()}
        return print_json({"trace": about, "block_size": b, "waste": rows, "reuse": hits})
    show.waste(about, slots)
    if hits:
        show.reuse(hits)
    return None


@app.command("convert")
def convert_(
    file: File,
    out: Annotated[Path, typer.Argument(help="Where it goes; gzip where it ends in .gz.", metavar="OUT")],
    as_json: Json = False,
) -> None:
    """Write a publisher's trace in the renamed columns that receipts name, and say its sha256."""
    with errors():
        if out.exists():
            raise ValueError(f"{out} exists already; give a new path, or remove it first")
        with progress(f"reading {file}", 1.0) as report:
            requests = trace.read(file, progress=report)
        content = convert.packed(requests, out.name)
        try:
            out.write_bytes(content)
        except OSError as error:
            raise ValueError(f"{out}: {(error.strerror or 'unwritable').lower()}; give a path in a folder") from error
    digest = hashlib.sha256(content).hexdigest()
    if as_json:
        return print_json({"file": str(out), "requests": requests.requests, "sha256": digest})
    return show.converted(str(out), requests.requests, digest)


@app.command("bytes")
def bytes_(
    model: ModelName,
    dtype: Dtype = "bf16",
    tokens: Tokens = "4096",
    block_size: BlockSize = "16",
    card: CardName = None,
    shared_prefix: Prefix = "0",
    max_len: MaxLen = None,
    weights: Weights = None,
    utilisation: Utilisation = None,
    as_json: Json = False,
) -> None:
    """KV bytes of a model's context and, with --card, how many conversations fit in three schemes."""
    with errors():
        m = MODELS[beginning("--model", model, MODELS)]
        dtype = beginning("--dtype", dtype, sizes.DTYPES)
        b = whole("--block-size", block_size, 1, MAX_BLOCK)
        n = whole("--tokens", tokens, 1, MAX_TOKENS)
        prefix = whole("--shared-prefix", shared_prefix, 0, n - 1, "a conversation adds at least one token")
        longest = m.context if max_len is None else whole("--max-len", max_len, 1, MAX_TOKENS)
        rows = {name: plain.kv(m, name, n, b) for name in sizes.DTYPES}
        share = _share("0.9" if utilisation is None else utilisation)
        if weights is not None:
            entry("--weights", weights, sizes.WEIGHT_BITS)
        device = None
        if card is None and (max_len, weights, utilisation, prefix) != (None, None, None, 0):
            raise ValueError("--shared-prefix, --max-len, --weights, --utilisation are about a card; add --card NAME")
        if card is not None:
            c = CARDS[beginning("--card", card, CARDS)]
            fit = sizes.conversations_that_fit(m, c, dtype, n, prefix, b, share, weights, longest)
            device = plain.card(c, fit) | {"slot_tokens": longest}
    about = asdict(m) | {"params": m.params, "weights": dict(m.weights)}
    if as_json:
        asked = {"dtype": dtype, "tokens": n, "block_size": b, "shared_prefix": prefix}
        return print_json(asked | rows[dtype] | {"model": about, "card": device})
    show.kv_bytes(about, rows, dtype, f"{n:,} tokens, blocks of {b}")
    if device:
        show.card(device, m.name, m.context)
    return None


def _capacity(text: str | None) -> int | None:
    if text is None or text == "inf":
        return None
    return whole("--blocks", text, 1, reuse.MAX_BLOCKS, "give a whole number, or inf")


def _share(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"--utilisation={short(text)} is outside 0 to 1 (0 excluded); give 0.9, say") from None
