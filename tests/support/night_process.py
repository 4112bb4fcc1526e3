"""Nights in processes of their own, which die where they are told to."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path

from weft.app import night as nights
from weft.consolidation.night import NightStep
from weft.consolidation.pipeline import consolidate
from weft.settings import load_settings

ASSIGNMENTS = (
    "extraction.enabled=false",
    "embedding.tokens.enabled=false",
    "consolidation.calibration.probes=''",
    "consolidation.thinning.enabled=true",
    "consolidation.thinning.least_cosine=0.5",
)


@dataclass(frozen=True)
class Death:
    """Where to kill: so long after a night said for the n-th time what it does next."""

    step: int
    delay_s: float


def run_night(store: Path, now: float, death: Death | None = None, times: Path | None = None) -> None:
    """A night at a given time in this process, which is killed at a point unless it is done before.

    Args:
        times: Where to say when each step began, and when all was done: seconds since the first one.
    """
    nights.system_clock = lambda: now  # type: ignore[attr-defined]  # this process is the night's alone
    settings = load_settings(assignments=[f"storage.root={store}", *ASSIGNMENTS], environment={})
    begun: list[float] = []

    def announce(_step: NightStep) -> None:
        begun.append(time.perf_counter())
        if death is not None and len(begun) == death.step:
            threading.Timer(death.delay_s, os.kill, [os.getpid(), signal.SIGKILL]).start()

    with nights.asking_night(settings) as night:
        consolidate(replace(night, announce=announce))
    if times is not None:
        times.write_text(json.dumps([each - begun[0] for each in (*begun, time.perf_counter())]), encoding="utf-8")
