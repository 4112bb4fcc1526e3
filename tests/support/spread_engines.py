"""Engines that other processes import: an encoder that does what the text of a query tells it to."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tests.support.small_store import DirectionEncoder
from weft.app.searching.engines import Engines
from weft.settings import Settings

WAITS, DIES = "waits for ", "dies unless "


class ObedientEncoder(DirectionEncoder):
    """An encoder of `tests.support.parts` that can be held up, and killed once."""

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        for text in texts:
            if text.startswith(WAITS):
                _wait_for(Path(text.removeprefix(WAITS)))
            elif text.startswith(DIES) and not (survived := Path(text.removeprefix(DIES))).exists():
                survived.touch()
                os._exit(1)
        return super().encode(texts)


def obedient(settings: Settings) -> Engines:
    """Loads no model."""
    return Engines([ObedientEncoder()])


def _wait_for(path: Path) -> None:
    path.with_suffix(".asked").touch()
    while not path.exists():
        time.sleep(0.01)
