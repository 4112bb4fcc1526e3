"""`weft learned`: what weft believes, in any learned version or live; what changed between two; how it came about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Column

from weft.app.tracking import tracking_of
from weft.app.views.beliefs import LIVE, PRIORS, FamilyName, beliefs_of, change_as_json, readings_of
from weft.app.views.learned_page import version_page
from weft.catalog.catalog import Catalog
from weft.cli.console.options import CommonOptions, command
from weft.cli.console.output import Result, rows
from weft.consolidation import champion
from weft.domain.errors import StoreError
from weft.domain.ids import PRIORS_VERSION, VersionName
from weft.learning.priors import Priors
from weft.learning.reading import BeliefChange, Reading, moves
from weft.runtime.clock import stamp, system_clock
from weft.runtime.pages import number
from weft.runtime.process import login

Version = Annotated[str, typer.Argument(help="A learned version, `live`, or `priors`.")]
Family = Annotated[FamilyName | None, typer.Option("--family", help="Only beliefs of this kind.")]
Where = Annotated[str | None, typer.Option("--scope", help="Only what begins with it, such as code or code/model.")]
Why = Annotated[str, typer.Option("--why", help="Kept with the version, as is when.")]
By = Annotated[str | None, typer.Option("--by", help="Who says so; default the name you are logged in by.")]

learned = typer.Typer(no_args_is_help=True, help="What was learned: versions, beliefs, and how they changed.")

_FIGURES = ("mean", "interval", "observations", "confidence")
_REPORT = "report.html"  # among the artifacts of a night's run


@learned.command("list")
@command
def list_learned(options: CommonOptions) -> Result:
    """Every learned version, oldest first; the first is the priors."""
    _, catalog = options.opened()
    live = catalog.pointer().learned or PRIORS_VERSION
    return rows(
        [catalog.learned.manifest(version) for version in (PRIORS_VERSION, *catalog.learned.versions())],
        document=lambda one: {**one.model_dump(mode="json", exclude={"files"}), "live": one.version == live},
        columns=("", "version", "made", "built on", "evidence", "MLflow run"),
        texts=lambda one: (
            LIVE if one.version == live else "",
            one.version,
            "" if one.version == PRIORS_VERSION else stamp(one.created_at),
            "" if one.version == PRIORS_VERSION else one.parent or PRIORS,
            one.digest[:12],
            one.mlflow_run_id or "",
        ),
    )


@learned.command()
@command
def show(
    version: Version = LIVE,
    *,
    family: Family = None,
    scope: Where = None,
    options: CommonOptions,
) -> Result:
    """Every belief, with its interval, the observations behind it, and the level it comes from."""
    settings, catalog = options.opened()
    return rows(
        readings_of(catalog, settings.priors, version, family, scope),
        document=asdict,
        columns=_columns("family", "scope", "parameter", *_FIGURES, "level"),
        texts=lambda reading: (*reading.key, *_figures(reading), reading.level),
    )


@learned.command()
@command
def diff(
    before: Version = PRIORS,
    after: Version = LIVE,
    *,
    family: Family = None,
    scope: Where = None,
    options: CommonOptions,
) -> Result:
    """What is believed differently, the surest change first: `sure` is the probability that it moved that way."""
    settings, catalog = options.opened()
    old, new = (readings_of(catalog, settings.priors, version, family, scope) for version in (before, after))
    changes = moves(old, new, level=settings.priors.interval.level)
    shown = rows(
        sorted(changes, key=_is_unseen),
        before=[_beyond_chance(changes)],
        document=change_as_json,
        columns=_columns("family", "scope", "parameter", before, after, "change", "sure"),
        texts=lambda move: (
            *move.key,
            *(number(None if each is None else each.mean) for each in (move.before, move.after)),
            number(move.change, sign=True),
            f"{move.certainty:.0%}",
        ),
    )
    return replace(shown, records=map(change_as_json, changes))


@learned.command()
@command
def page(
    version: Version = LIVE,
    *,
    since: Annotated[
        str, typer.Option("--since", help="A learned version, or `priors`: what it is set beside.")
    ] = PRIORS,
    out: Annotated[Path, typer.Option("--out", help="The file that is written.")] = Path("learned.html"),
    options: CommonOptions,
) -> Result:
    """One page for a browser: what feedback changed, how sure that is, and which contents it speaks for."""
    settings, catalog = options.opened()
    write_page(catalog, settings.priors, out, version=version, since=since)
    return Result([{"page": str(out)}], [str(out)])


def write_page(catalog: Catalog, priors: Priors, out: Path, *, version: str = LIVE, since: str = PRIORS) -> None:
    """Write the page of one learned version, or of what is live, beside another, or the priors."""
    read = beliefs_of(catalog, priors, version)
    shown = version_page(catalog, priors, read, version=version, since=since)
    out.write_text(shown.html(), encoding="utf-8")


@learned.command()
@command
def report(
    version: Version = LIVE,
    *,
    out: Annotated[Path, typer.Option("--out", help="The file that is written.")] = Path("report.html"),
    options: CommonOptions,
) -> Result:
    """The report of the night that published a version, as MLflow keeps it: what it changed, why, and what to do."""
    settings, catalog = options.opened()
    name = catalog.pointer().learned or PRIORS_VERSION if version == LIVE else VersionName(version)
    if (run_id := catalog.learned.manifest(name).mlflow_run_id) is None:
        raise StoreError(
            f"expected a version that a night published, found {name}, which has no report; `weft learned list` names "
            "the run of each"
        )
    tracking_of(settings.tracking, catalog.root).fetch(run_id, _REPORT, out)
    return Result([{"version": name, "run": run_id, "report": str(out)}], [str(out)])


@learned.command()
@command
def promote(
    version: Annotated[
        str, typer.Argument(help="The learned version that is to be live; `weft learned list` names them.")
    ],
    *,
    why: Why = "",
    by: By = None,
    options: CommonOptions,
) -> Result:
    """Move the alias `champion` to a version, after verifying it: to one that waits, or back to an older one.

    v000000 is the beginning: the priors alone.
    """
    settings, catalog = options.opened()
    tracking, who, now = tracking_of(settings.tracking, catalog.root), by or login() or "somebody", system_clock()
    former = champion.promote(catalog, tracking, VersionName(version), by=who, why=why, now=now)
    outcome = "as it was" if former == version else f"instead of {former or 'none'}"
    return Result([{"live": version, "former": former}], [f"{version} is live, {outcome}"])


@learned.command()
@command
def refuse(
    version: Annotated[str, typer.Argument(help="The learned version that waits for its verdict.")],
    *,
    why: Why = "",
    by: By = None,
    options: CommonOptions,
) -> Result:
    """Leave out what a version that waits holds: it will not go live, and nothing of it counts."""
    settings, catalog = options.opened()
    champion.refuse(
        catalog,
        tracking_of(settings.tracking, catalog.root),
        VersionName(version),
        by=by or login() or "somebody",
        why=why,
        now=system_clock(),
    )
    live = catalog.pointer().learned or PRIORS
    return Result([{"refused": version, "live": live}], [f"{version} is refused; {live} is live"])


@learned.command()
@command
def history(
    parameter: Annotated[str, typer.Argument(help="Such as `vector`, or `half-life in hours`.")],
    *,
    family: Family = None,
    scope: Where = None,
    options: CommonOptions,
) -> Result:
    """One parameter in every learned version, and live."""
    settings, catalog = options.opened()
    readings: list[tuple[str, Reading]] = [
        (version, reading)
        for version in (*catalog.learned.versions(), LIVE)
        for reading in readings_of(catalog, settings.priors, version, family, scope)
        if reading.parameter == parameter
    ]
    if not readings:
        raise StoreError(f"expected a parameter, found no {parameter!r}; list them with `weft learned show`")
    return rows(
        sorted(readings, key=lambda row: row[1].key),
        document=lambda row: {"version": row[0], **asdict(row[1])},
        columns=_columns("family", "scope", "version", *_FIGURES),
        texts=lambda row: (row[1].family, row[1].scope, row[0], *_figures(row[1])),
    )


def _is_unseen(change: BeliefChange) -> bool:
    """Whether the numbers that are shown are the same."""
    return (
        change.before is not None
        and change.after is not None
        and number(change.before.mean) == number(change.after.mean)
    )


def _beyond_chance(changes: Sequence[BeliefChange]) -> str:
    """How many changes are more than chance makes, in a sentence."""
    sure = sum(change.beyond_chance for change in changes)
    if not changes:
        return "nothing is believed differently"
    if not sure:
        return f"nothing moved beyond chance; {len(changes)} beliefs moved within it, the surest first"
    return f"{sure} of {len(changes)} changes are beyond chance, the surest first"


def _columns(*names: str) -> list[Column]:
    text = {"family", "scope", "parameter", "version", "level"}
    return [Column(name, justify="left" if name in text else "right", no_wrap=True) for name in names]


def _figures(reading: Reading) -> tuple[str, ...]:
    interval = "" if reading.low is None else f"{number(reading.low)} … {number(reading.high)}"
    return (number(reading.mean), interval, f"{reading.observations:,.1f}", f"{reading.confidence:.2f}")
