"""Servelab: LLM inference studios that show their receipts.

The core is pure Python and runs unchanged in CPython and in a browser tab (Pyodide). Each sub-package is a room of the
field: `kv` (memory), `sched` (scheduling), `receipt` (evidence), `view` (what a page draws), `build` (the static site).
"""

__version__ = "0.1.0"
