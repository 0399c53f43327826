"""The memory room's results as plain data: what --json prints and `show` draws."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from servelab.kv import pages as schemes
from servelab.kv import reuse, sizes, trace
from servelab.kv.models import Card, Model


def pages(result: schemes.Comparison) -> dict[str, Any]:
    return {
        "blocks": {name: row.blocks for name, row in result.rows.items()},
        "block_size": result.block_size,
        "pool_blocks": result.blocks,
        "max_len": result.max_len,
        "conversations": result.conversations,
        "prefix_blocks": result.prefix_blocks,
        "conversations_that_fit_shared": result.fits,
        "times_as_many": result.ratio,
        "schemes": {
            name: {
                "blocks": row.blocks,
                "used_tokens": row.used,
                "waste_percent": 100 * row.waste,
                "saved_percent": 100 * row.saved,
                "peak_blocks": row.peak,
                "preemptions": row.preemptions,
                "evictions": row.evictions,
            }
            for name, row in result.rows.items()
        },
    }


def about(requests: trace.Trace) -> dict[str, Any]:
    clock = requests.arrival_ns
    return {
        "name": requests.name,
        "sha256": requests.sha256,
        "requests": requests.requests,
        "prompt_tokens": sum(requests.prompt_tokens),
        "output_tokens": sum(requests.output_tokens),
        "duration_s": clock[-1] / 10**9 if clock else None,
        "reordered": requests.reordered,
    }


def reuse_hits(requests: trace.Trace, policy: str, capacity: int | None) -> dict[str, Any]:
    references, tokens = reuse.stream(requests), sum(requests.prompt_tokens)
    return {
        "policy": policy,
        "blocks": "inf" if capacity is None else capacity,
        "block_tokens": trace.HASH_BLOCK,
        "references": len(references),
        "distinct_blocks": len(set(references)),
        "prompt_tokens": tokens,
    } | reuse.replay(requests, policy, capacity).metrics(len(references), tokens)


def kv(m: Model, dtype: str, tokens: int, block_size: int) -> dict[str, Any]:
    each = sizes.layer_bytes(m, dtype)
    context, plain = sizes.kv_bytes(m, dtype, tokens), sizes.kv_bytes(m, "bf16", tokens)
    return {
        "scale": sizes.DTYPES[dtype].scale,
        "bytes_per_token_full_layers": each * (m.layers - m.window_layers),
        "bytes_per_token_window_layers": each * m.window_layers,
        "kv_bytes": context,
        "kv_bytes_paged": sizes.paged_bytes(m, dtype, tokens, block_size),
        "percent_against_bf16": 100 * (context - plain) / plain,
    }


def card(c: Card, fit: sizes.Fit) -> dict[str, Any]:
    return asdict(c) | {
        "budget_bytes": fit.budget,
        "weight_bytes": fit.weights,
        "room_bytes": fit.room,
        "fits": fit.room > 0,
        "schemes": {
            name: {"bytes_each": s.each, "bytes_once": s.once, "conversations": s.conversations}
            for name, s in fit.schemes.items()
        },
    }
