"""Convert: a trace in renamed columns, byte for byte as the replayed receipts name it.

    lengths         CSV          arrival_s (seconds since the first arrival, six decimals), prompt_tokens, output_tokens
    block hashes    JSON lines   arrival_ms, prompt_tokens, output_tokens, hash_ids; no spaces

Requests in order of arrival, a line feed after each. As gzip: level 9, no time stamp, the name without ".gz" inside.
The text depends on the trace alone. The gzip's bytes also depend on the compressor: zlib's own gives the receipts'
digests, another one (zlib-ng, say) gives a file with the same text and another digest.
"""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Iterator
from pathlib import PurePath

from servelab.kv.trace import Trace


def renamed(trace: Trace) -> str:
    """The whole text of `trace`: JSON lines where it has block hashes, else CSV."""
    return "\n".join(_lines(trace)) + "\n"


def packed(trace: Trace, name: str) -> bytes:
    """The bytes of the file `name`: `renamed`, as gzip where the name ends in .gz."""
    text = renamed(trace).encode()
    if not name.endswith(".gz"):
        return text
    out = io.BytesIO()
    with gzip.GzipFile(PurePath(name).name, "wb", 9, out, mtime=0) as file:
        file.write(text)
    return out.getvalue()


def _lines(trace: Trace) -> Iterator[str]:
    clock, lengths = trace.arrival_ns, zip(trace.prompt_tokens, trace.output_tokens, strict=True)
    if trace.hash_ids is not None:
        for (prompt, output), ids, ns in zip(lengths, trace.hash_ids, clock or (0,) * trace.requests, strict=True):
            row = {"arrival_ms": ns // 10**6, "prompt_tokens": prompt, "output_tokens": output, "hash_ids": ids}
            yield json.dumps(row, separators=(",", ":"))
    elif clock is not None:
        yield "arrival_s,prompt_tokens,output_tokens"
        for (prompt, output), ns in zip(lengths, clock, strict=True):
            seconds, micros = divmod((ns + 500) // 1000, 10**6)
            yield f"{seconds}.{micros:06},{prompt},{output}"
    else:
        yield "prompt_tokens,output_tokens"
        yield from (f"{prompt},{output}" for prompt, output in lengths)
