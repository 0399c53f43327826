# Eight conversations share a 512-token prefix.
# How many KV cache blocks do they hold when all have finished?
from servelab.kv.pages import EXAMPLES, compare

example = EXAMPLES["shared-prefix"]

for block_size in (16, 64, 256):  # tokens; change them and run again
    result = compare(example.requests, block_size=block_size, max_len=example.max_len)
    print(f"{block_size} tokens a block")
    for name, row in result.rows.items():
        print(f"  {name:<12} {row.blocks:>4} blocks, {row.waste:5.1%} of their slots unused")
    print(f"  {result.fits} conversations fit where {result.conversations} did")
