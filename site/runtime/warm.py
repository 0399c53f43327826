"""What a snapshot remembers: every module that the page's core can import, and nothing else alive."""

import gc
import importlib
import pathlib
import sys


def warm(site: str, packages: str) -> str:
    """Import all modules of `packages` (comma-separated) under `site`, and the standard ones that they import late.

    Returns the names of the modules that are then loaded, one a line, sorted.
    """
    importlib.invalidate_caches()
    for package in packages.split(","):
        for file in sorted(pathlib.Path(site, package).rglob("*.pyc")):
            parts = file.relative_to(site).with_suffix("").parts
            importlib.import_module(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
    return "\n".join(sorted(sys.modules))


def settle() -> None:
    """Collect garbage until nothing is left to collect."""
    while gc.collect():
        pass
