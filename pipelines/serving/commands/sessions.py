"""`weft sessions`: who learns alone, who was merged and what the merge met, and taking a session out again (LRN-17)."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from pipelines.catalog.catalog import Catalog
from pipelines.catalog.live import Reach
from pipelines.domain.errors import StoreError
from pipelines.domain.ids import LearnedVersion
from pipelines.feedback.events.producer import FeedbackProducer
from pipelines.feedback.fold.sessions import Life, Phase
from pipelines.feedback.store.overlays import PENDING, SETTLED, merge_report_in, overlay_in, session_in, sessions_in
from pipelines.feedback.store.state import PartitionState
from pipelines.learning.evidence import MICRO, Evidence
from pipelines.serving.commands.partitions import states
from pipelines.serving.terminal import AsJson, Bootstrap, Conf, Store, broker, cells, moment, print_lines, root_of, tell
from pipelines.settings import Settings, load_settings

Session = Annotated[str, typer.Argument(help="Id of a session.")]
InPhase = Annotated[Phase | None, typer.Option("--phase", help="Only those in this phase.")]
InVersion = Annotated[str | None, typer.Option("--version", help="Only those in this learned version.")]

sessions = typer.Typer(no_args_is_help=True, help="Sessions that learn alone until they complete.")


@sessions.command("list")
def list_sessions(  # noqa: PLR0917  typer names options after parameters
    store: Store = None,
    conf: Conf = [],  # noqa: B006
    phase: InPhase = None,
    version: InVersion = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Show at most so many.")] = 100,
    as_json: AsJson = False,
) -> None:
    """Sessions that the updaters remember, by partition, the one heard of longest ago first."""
    settings = load_settings(conf)
    reach = None if version is None else _reach(_catalog(settings, store), LearnedVersion(version))
    rows = [
        (state.partition, life)
        for state in states(settings, store)
        for life in state.read(sessions_in)
        if phase in {None, life.phase} and (reach is None or _reaches(reach, state.partition, life))
    ]
    if as_json:
        print_lines({"partition": partition, **life._asdict()} for partition, life in rows[:limit])
        return
    table = Table("session", "partition", "phase", "principal", "started", "heard", "pending", "settled", box=None)
    for partition, life in rows[:limit]:
        times = (moment(life.started_ms), moment(life.heard_ms))
        facts = (life.session, str(partition), life.phase, life.principal)
        table.add_row(*cells(*facts, *times, f"{life.pending:,}", f"{life.settled:,}"))
    tell(table)
    sys.stdout.write(f"{len(rows):,} sessions\n")


@sessions.command()
def show(session: Session, store: Store = None, conf: Conf = []) -> None:  # noqa: B006
    """What a session has learned, what its merge met, and the learned versions that it is in."""
    settings = load_settings(conf)
    catalog = _catalog(settings, store)
    for state, life in _states_of(settings, store, session):
        report = state.read(merge_report_in, session)
        facts = {
            "partition": state.partition,
            **life._asdict(),
            "observations_pending": _observations(state.read(overlay_in, session, PENDING)),
            "observations_settled": _observations(state.read(overlay_in, session, SETTLED)),
            "learned_versions": [
                version
                for version in catalog.learned_versions()
                if _reaches(_reach(catalog, version), state.partition, life)
            ],
            "merge": None if report is None else json.loads(report),
        }
        sys.stdout.write(json.dumps(facts, indent=1) + "\n")


@sessions.command()
def unlearn(
    session: Session,
    store: Store = None,
    conf: Conf = [],  # noqa: B006
    bootstrap: Bootstrap = None,
) -> None:
    """Take out of the evidence exactly what a session brought in; the updaters do so when they read of it.

    The wish travels through the log like everything else, so that a store which is built anew from the log
    unlearns it, too.
    """
    settings = load_settings(conf, broker(bootstrap))
    catalog = _catalog(settings, store)
    for state, life in _states_of(settings, store, session):
        _require_in_force(catalog, state.partition, life)
        principal = life.principal
    with closing(FeedbackProducer.connect_now(settings.kafka, settings.feedback)) as producer:
        event_id = producer.session(session, "unlearn", principal=principal)
        producer.flush()
    sys.stdout.write(json.dumps({"session": session, "event_id": event_id}) + "\n")


def _catalog(settings: Settings, store: Path | None) -> Catalog:
    return Catalog(root_of(store, settings))


def _states_of(settings: Settings, store: Path | None, session: str) -> Iterator[tuple[PartitionState, Life]]:
    """The partitions that remember a session: one, where producers choose keys as they should."""
    count = 0
    for state in states(settings, store):
        if (life := state.read(session_in, session)) is not None:
            count += 1
            yield state, life
    if not count:
        raise StoreError(
            f"expected a session that was started, found no {session!r}; list them with `weft sessions list`: what was "
            "said without a start, or too long ago, cannot be told apart"
        )


def _reach(catalog: Catalog, version: LearnedVersion | None) -> Reach:
    provenance: Mapping[str, Any] = {} if version is None else catalog.learned_manifest(version).provenance
    reach: Reach = provenance.get("reach", {})
    return reach


def _reaches(reach: Reach, partition: int, life: Life) -> bool:
    return life.merged is not None and life.merged < reach.get(str(partition), 0)


def _require_in_force(catalog: Catalog, partition: int, life: Life) -> None:
    """Refuse where a night that was rolled back has taken the session out already: it would be taken out twice."""
    pointer = catalog.pointer()
    settled, live = _reach(catalog, pointer.decided), _reach(catalog, pointer.learned)
    if _reaches(settled, partition, life) and not _reaches(live, partition, life):
        raise StoreError(
            f"expected {life.session!r} to be in force, found it out with learned version {pointer.decided}, which was "
            "rolled back; nothing is left to unlearn"
        )


def _observations(evidence: Evidence) -> float:
    """Mass of use of all contents, in observations: each verdict or choice once."""
    return sum(evidence.usage.values()) / MICRO
