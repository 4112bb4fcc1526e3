"""`weft sessions`: who learns alone, who was merged and what the merge met, and taking a session out again (LRN-17)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any

import typer

from weft.app.producer import acknowledged_producer
from weft.catalog.catalog import Catalog
from weft.catalog.live import Reach
from weft.cli.console.options import Bootstrap, CommonOptions, Limit, command
from weft.cli.console.output import Result, indented, rows
from weft.cli.console.partitions import states
from weft.cli.console.terminal import moment
from weft.domain.errors import StoreError
from weft.domain.ids import VersionName
from weft.feedback.fold.sessions import Phase, SessionLifecycle
from weft.feedback.store.overlays import PENDING, SETTLED, merge_report_in, overlay_in, session_in, sessions_in
from weft.feedback.store.state import PartitionState
from weft.learning.evidence import MICRO, Evidence
from weft.runtime.process import speaker_of
from weft.settings import Settings

Session = Annotated[str, typer.Argument(help="Id of a session.")]
By = Annotated[str | None, typer.Option("--principal", help="Whose it is; default the name you are logged in by.")]
InPhase = Annotated[Phase | None, typer.Option("--phase", help="Only those in this phase.")]
InVersion = Annotated[str | None, typer.Option("--version", help="Only those in this learned version.")]

sessions = typer.Typer(no_args_is_help=True, help="Sessions that learn alone until they complete.")


@sessions.command("list")
@command
def list_sessions(
    options: CommonOptions, phase: InPhase = None, version: InVersion = None, limit: Limit = 100
) -> Result:
    """Sessions that the updaters remember, by partition, the one heard of longest ago first."""
    settings, catalog = options.opened()
    reach = None if version is None else _reach(catalog, VersionName(version))
    lives = [
        (state.partition, life)
        for state in states(settings)
        for life in state.read(sessions_in)
        if phase in {None, life.phase} and (reach is None or _reaches(reach, state.partition, life))
    ]
    return rows(
        lives[:limit],
        document=lambda row: {"partition": row[0], **row[1]._asdict()},
        columns=("session", "partition", "phase", "principal", "started", "heard", "pending", "settled"),
        texts=lambda row: _texts(*row),
        after=[f"{len(lives):,} sessions"],
    )


def _texts(partition: int, life: SessionLifecycle) -> tuple[str, ...]:
    times = (moment(life.started_ms), moment(life.heard_ms))
    return (life.session, str(partition), life.phase, life.principal, *times, f"{life.pending:,}", f"{life.settled:,}")


@sessions.command()
@command
def show(session: Session, options: CommonOptions) -> Result:
    """What a session has learned, what its merge met, and the learned versions that it is in."""
    settings, catalog = options.opened()
    return indented(*(_facts(catalog, state, life) for state, life in _states_of(settings, session)))


def _facts(catalog: Catalog, state: PartitionState, life: SessionLifecycle) -> dict[str, Any]:
    report = state.read(merge_report_in, life.session)
    return {
        "partition": state.partition,
        **life._asdict(),
        "observations_pending": _observations(state.read(overlay_in, life.session, PENDING)),
        "observations_settled": _observations(state.read(overlay_in, life.session, SETTLED)),
        "learned_versions": [
            version
            for version in catalog.learned.versions()
            if _reaches(_reach(catalog, version), state.partition, life)
        ],
        "merge": None if report is None else json.loads(report),
    }


def _phase_command(phase: str, help_: str) -> Callable[..., None]:
    """A command by which the principal of a session says what becomes of it."""

    def say(session: Session, options: CommonOptions, principal: By = None, bootstrap: Bootstrap = None) -> Result:
        with acknowledged_producer(options.settings(bootstrap=bootstrap)) as producer:
            event_id = producer.session(session, phase, principal=speaker_of(principal))
        return Result([{"session": session, "event_id": event_id}])

    say.__doc__ = help_
    return command(say)


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
@command
def unlearn(session: Session, options: CommonOptions, bootstrap: Bootstrap = None) -> Result:
    """Take out of the evidence exactly what a session brought in; the updaters do so when they read of it.

    The wish travels through the log like everything else, so that a store which is built anew from the log
    unlearns it, too.
    """
    settings, catalog = options.opened(bootstrap=bootstrap)
    for state, life in _states_of(settings, session):
        _require_in_force(catalog, state.partition, life)
        principal = life.principal
    with acknowledged_producer(settings) as producer:
        event_id = producer.session(session, "unlearn", principal=principal)
    return Result([{"session": session, "event_id": event_id}])


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
