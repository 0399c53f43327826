"""What a snapshot remembers: every module that the page's core can import, and nothing else alive."""

import gc
import importlib
import pathlib
import sys

LATE = ("encodings.cp437", "importlib.readers", "importlib.resources.readers", "importlib.resources._adapters")
"""Standard modules that a room's wheel needs when it is unpacked and reads its tables."""


def warm(site: str, packages: str) -> str:
    """Import all modules of `packages` (comma-separated) under `site`, and the standard ones that they import late.

    Returns the names of the modules that are then loaded, one a line, sorted.
    """
    importlib.invalidate_caches()
    for package in packages.split(","):
        for file in sorted(pathlib.Path(site, package).rglob("*.pyc")):
            parts = file.relative_to(site).with_suffix("").parts
            importlib.import_module(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    for module in LATE:
        importlib.import_module(module)
    return "\n".join(sorted(sys.modules))


def settle() -> None:
    """Collect garbage until nothing is left to collect."""
    while gc.collect():
        pass
