"""Outside data: present in some checkouts only; tests that need it skip with the reason."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parents[2]
settings.register_profile("shared cores", deadline=None)
settings.load_profile("shared cores")
DATA = Path(os.environ.get("SERVELAB_DATA") or ROOT / "../shared/data").resolve()


@pytest.fixture(scope="session")
def outside() -> Callable[[str], Path]:
    """The path of a file in SERVELAB_DATA (default ../shared/data)."""

    def find(name: str) -> Path:
        path = DATA / name
        if not path.is_file():
            pytest.skip(f"outside data {name} is not in SERVELAB_DATA (default ../shared/data)")
        return path

    return find
