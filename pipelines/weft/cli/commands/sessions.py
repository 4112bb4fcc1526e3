"""`weft sessions`: who learns alone, who was merged and what the merge met, and taking a session out again (LRN-17)."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from typing import Annotated, Any

import typer

from weft.catalog.catalog import Catalog
from weft.catalog.live import Reach
from weft.cli.commands.partitions import states
from weft.cli.console.options import AsJson, Bootstrap, CommonOptions, require_store, store_command
from weft.cli.console.terminal import login, moment, print_rows
from weft.domain.errors import StoreError
from weft.domain.ids import VersionName
from weft.domain.ranking import ANONYMOUS
from weft.feedback.events.producer import FeedbackProducer
from weft.feedback.fold.sessions import Phase, SessionLifecycle
from weft.feedback.store.overlays import PENDING, SETTLED, merge_report_in, overlay_in, session_in, sessions_in
from weft.feedback.store.state import PartitionState
from weft.learning.evidence import MICRO, Evidence
from weft.settings import Settings

Session = Annotated[str, typer.Argument(help="Id of a session.")]
By = Annotated[str | None, typer.Option("--principal", help="Whose it is; default the name you are logged in by.")]
InPhase = Annotated[Phase | None, typer.Option("--phase", help="Only those in this phase.")]
InVersion = Annotated[str | None, typer.Option("--version", help="Only those in this learned version.")]

sessions = typer.Typer(no_args_is_help=True, help="Sessions that learn alone until they complete.")


@sessions.command("list")
@store_command
def list_sessions(
    options: CommonOptions,
    phase: InPhase = None,
    version: InVersion = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Show at most so many.")] = 100,
    as_json: AsJson = False,
) -> None:
    """Sessions that the updaters remember, by partition, the one heard of longest ago first."""
    settings = options.settings()
    reach = None if version is None else _reach(Catalog(require_store(settings)), VersionName(version))
    rows = [
        (state.partition, life)
        for state in states(settings)
        for life in state.read(sessions_in)
        if phase in {None, life.phase} and (reach is None or _reaches(reach, state.partition, life))
    ]
    print_rows(
        rows[:limit],
        as_json=as_json,
        document=lambda row: {"partition": row[0], **row[1]._asdict()},
        columns=("session", "partition", "phase", "principal", "started", "heard", "pending", "settled"),
        texts=lambda row: _texts(*row),
    )
    if not as_json:
        sys.stdout.write(f"{len(rows):,} sessions\n")


def _texts(partition: int, life: SessionLifecycle) -> tuple[str, ...]:
    times = (moment(life.started_ms), moment(life.heard_ms))
    return (life.session, str(partition), life.phase, life.principal, *times, f"{life.pending:,}", f"{life.settled:,}")


@sessions.command()
@store_command
def show(session: Session, options: CommonOptions) -> None:
    """What a session has learned, what its merge met, and the learned versions that it is in."""
    settings = options.settings()
    catalog = Catalog(require_store(settings))
    for state, life in _states_of(settings, session):
        report = state.read(merge_report_in, session)
        facts = {
            "partition": state.partition,
            **life._asdict(),
            "observations_pending": _observations(state.read(overlay_in, session, PENDING)),
            "observations_settled": _observations(state.read(overlay_in, session, SETTLED)),
            "learned_versions": [
                version
                for version in catalog.learned.versions()
                if _reaches(_reach(catalog, version), state.partition, life)
            ],
            "merge": None if report is None else json.loads(report),
        }
        sys.stdout.write(json.dumps(facts, indent=1) + "\n")


def _phase_command(phase: str, help_: str) -> Callable[..., None]:
    """A command by which the principal of a session says what becomes of it."""

    def command(session: Session, options: CommonOptions, principal: By = None, bootstrap: Bootstrap = None) -> None:
        settings = options.settings(bootstrap=bootstrap)
        with closing(FeedbackProducer.connect_now(settings.kafka, settings.feedback)) as producer:
            event_id = producer.session(session, phase, principal=principal or login() or ANONYMOUS)
            producer.flush()
        sys.stdout.write(json.dumps({"session": session, "event_id": event_id}) + "\n")

    command.__doc__ = help_
    wrapped: Callable[..., None] = store_command(command)
    return wrapped


_PHASES = {
    "start": "From here on the session learns alone: nobody else reads what is said in it.",
    "suspend": "The session sleeps: it is remembered for longer.",
    "resume": "The session goes on; one that has ended, or never began, starts.",
    "complete": "What the session learned becomes everybody's at once, and so does what is said in it later.",
    "abandon": "What the session learned is dropped, and what is said in it later.",
}
for _phase, _help in _PHASES.items():
    sessions.command(_phase)(_phase_command(_phase, _help))


@sessions.command()
@store_command
def unlearn(session: Session, options: CommonOptions, bootstrap: Bootstrap = None) -> None:
    """Take out of the evidence exactly what a session brought in; the updaters do so when they read of it.

    The wish travels through the log like everything else, so that a store which is built anew from the log
    unlearns it, too.
    """
    settings = options.settings(bootstrap=bootstrap)
    catalog = Catalog(require_store(settings))
    for state, life in _states_of(settings, session):
        _require_in_force(catalog, state.partition, life)
        principal = life.principal
    with closing(FeedbackProducer.connect_now(settings.kafka, settings.feedback)) as producer:
        event_id = producer.session(session, "unlearn", principal=principal)
        producer.flush()
    sys.stdout.write(json.dumps({"session": session, "event_id": event_id}) + "\n")


def _states_of(settings: Settings, session: str) -> Iterator[tuple[PartitionState, SessionLifecycle]]:
    """The partitions that remember a session: one, where producers choose keys as they should."""
    count = 0
    for state in states(settings):
        if (life := state.read(session_in, session)) is not None:
            count += 1
            yield state, life
    if not count:
        raise StoreError(
            f"expected a session that was started, found no {session!r}; list them with `weft sessions list`: "
            "what was said without a start, or too long ago, cannot be told apart. `weft sessions start` and "
            "`complete` it before anything is said in it: all read that at once, and it can be"
        )


def _reach(catalog: Catalog, version: VersionName | None) -> Reach:
    provenance: Mapping[str, Any] = {} if version is None else catalog.learned.manifest(version).provenance
    reach: Reach = provenance.get("reach", {})
    return reach


def _reaches(reach: Reach, partition: int, life: SessionLifecycle) -> bool:
    return life.merged is not None and life.merged < reach.get(str(partition), 0)


def _require_in_force(catalog: Catalog, partition: int, life: SessionLifecycle) -> None:
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
    return sum(micro for key, micro in evidence.usage.items() if key.content_hash) / MICRO
