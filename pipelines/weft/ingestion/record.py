"""A run of ingestion in MLflow: what went in, what came out, and how fast."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from weft.indexes.manifest import Manifest
from weft.ingestion.plan import IndexPlan
from weft.ingestion.report import IndexOutcome
from weft.ingestion.sources.items import escaped

if TYPE_CHECKING:
    from weft.runtime.mlflow.tracking import Tracking  # seconds to import

EXPERIMENT = "indexing"
_RATES = ("documents", "chunks", "entities", "embedded")
_GROUPS = ("rejected", "left_out", "by_type", "by_domain", "by_language")
_SECTIONS = ("ingest", "chunking", "extraction", "embedding", "index")


def record(tracking: Tracking, plan: IndexPlan, outcome: IndexOutcome, manifest: Manifest, *, now: float) -> None:
    """Record a run in the experiment `indexing`, named by its generation."""
    tags = {"weft.generation": outcome.generation, "weft.published": str(outcome.published).lower()}
    with tracking.run(EXPERIMENT, outcome.generation, tags) as run:
        run.parameters(parameters_of(plan))
        run.metrics(metrics_of(outcome, manifest), now=now)
        run.document("outcome", asdict(outcome))


def parameters_of(plan: IndexPlan) -> dict[str, object]:
    """Everything that a run was asked for, with dotted names."""
    sections = {name: getattr(plan, name).model_dump(mode="json") for name in _SECTIONS}
    arguments = {
        "sources": [escaped(str(source)) for source in plan.places],
        "domain": plan.domain,
        "full": plan.full,
        "fingerprint": plan.fingerprint,
    }
    return {**arguments, **dict(_flat(sections, ""))}


def metrics_of(outcome: IndexOutcome, manifest: Manifest) -> dict[str, float]:
    """Counts, rates per second, counts by reason, type, domain and language, and the recall of each encoder's index."""
    facts = asdict(outcome)
    counts = {name: float(value) for name, value in facts.items() if type(value) in {int, float}}
    rates = {f"{name}_per_second": counts[name] / max(outcome.seconds, 1e-9) for name in _RATES}
    groups = {
        f"{group.removeprefix('by_')}.{_plain(name)}": float(count)
        for group in _GROUPS
        for name, count in facts[group].items()
    }
    recalls = {f"recall.{_plain(encoder)}": facts.recall for encoder, facts in manifest.dense.items()}
    return {**counts, **rates, **groups, **recalls}


def _flat(values: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, object]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{_plain(name)}", value


def _plain(name: str) -> str:
    """A name as MLflow takes it.

    Examples:
        >>> _plain("c++")
        'c__'
    """
    return "".join(letter if letter.isalnum() or letter in "_-. /" else "_" for letter in name)
