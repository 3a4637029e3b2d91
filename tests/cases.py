"""Where the shared cases are, when they are there."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2] / "shared" / "cases"


def path(name: str) -> Path:
    """The case of that name; a test that asks for an absent one is skipped and says which."""
    found = ROOT / name
    if not found.exists():
        pytest.skip(f"shared case {name} is not beside this checkout", allow_module_level=True)
    return found
