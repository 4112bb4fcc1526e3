"""Snapshots of what was measured, over time, in MLflow's experiment `evaluation` (EVA-8)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from weft.catalog.catalog import Catalog
from weft.runtime.clock import system_clock
from weft.runtime.mlflow.runs import tracking_of
from weft.settings import Settings

EXPERIMENT = "evaluation"

_STRANGE = re.compile(r"[^\w\-./:]")
TAGS = {"weft.job": "evaluate", "mlflow.source.name": "jobs.evaluate", "mlflow.source.type": "JOB"}


def record(name: str, summary: Mapping[str, Any], settings: Settings, *, measured: Path) -> str:
    """Keep every number of a summary as a metric, with the hash of the configuration and what was measured."""
    pointer = Catalog(measured).pointer()
    facts = {
        "settings": settings.fingerprint,
        "priors": settings.priors.fingerprint,
        "generation": pointer.generation,
        "learned": pointer.learned,
        **{key: value for key, value in summary.items() if isinstance(value, str)},
    }
    tracking = tracking_of(settings.tracking, Path(settings.storage.root))
    with tracking.run(EXPERIMENT, name, {**TAGS, "weft.settings": settings.fingerprint}) as run:
        run.parameters(facts)
        run.metrics(dict(numbers(summary)), now=system_clock())
        run.document("summary", summary)
    return run.run_id


def numbers(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, float]]:
    """Every finite number by the path of names that leads to it, in signs that MLflow takes."""
    for key, value in values.items():
        name = f"{prefix}{_STRANGE.sub('', key.replace(' ', '_'))}"
        if isinstance(value, Mapping):
            yield from numbers(value, f"{name}.")
        elif isinstance(value, bool | int | float) and math.isfinite(value):
            yield name, float(value)
        elif isinstance(value, list) and value and isinstance(value[0], Mapping):
            named = {str(item.get("name") or item.get("feature") or place): item for place, item in enumerate(value)}
            yield from numbers(named, f"{name}.")
