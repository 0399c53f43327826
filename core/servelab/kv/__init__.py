"""The memory room: blocks, block tables, prefix cache, eviction, and what they cost in bytes.

    from servelab.kv.pages import compare, conversations

    result = compare(conversations(8, prefix=512, private_mean=344), block_size=16)
    result.rows["shared"].blocks  # 204, where preallocation takes 504

    memory       blocks (the pool), prefix (the tree of cached blocks), tables (both tied to sequences), slots (naive
                 preallocation)
    simulation   request (what comes in), simulate (requests through memory), log (what happened), pages (three schemes
                 on one workload)
    traces       source (files as text), trace (reads them), convert (renames their columns), waste (empty slots),
                 reuse (prefix-cache hits), eviction (policies over a stream of references)
    bytes        models (models and cards), sizes (bytes of a context, conversations on a card)
    shell        command (`servelab kv`), plain (results as JSON), show (as tables), limits (how values are refused)
"""
