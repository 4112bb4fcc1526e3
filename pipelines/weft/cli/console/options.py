"""How a function becomes a command: the options that all share, and the port that prints what it returns."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from weft.catalog.catalog import Catalog
from weft.cli.console.exits import as_command, exit_code, interruptible
from weft.cli.console.logs import log_progress
from weft.cli.console.output import JsonOutput, Output, Result, TextOutput
from weft.settings import Settings, load_settings, require_store


def named_path(text: str) -> Path:
    """A path that was given; an empty one, as a variable without a value leaves it, would be the working directory."""
    if not text.strip():
        raise typer.BadParameter("expected a path, found none; the working directory is '.'")
    return Path(text)


Store = Annotated[
    Path | None,
    typer.Option(
        "--store", parser=named_path, metavar="PATH", help="Where weft keeps everything; default storage.root."
    ),
]
Conf = Annotated[list[Path], typer.Option("--conf", help="YAML file over conf/base; repeatable, later files win.")]
Assignments = Annotated[list[str], typer.Option("--set", help="section.key=value; repeatable, wins over files.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, one object a line.")]
Bootstrap = Annotated[str | None, typer.Option("--bootstrap", help="Broker, host:port; default kafka.bootstrap.")]

Principal = Annotated[
    str | None, typer.Option("--principal", help="Who says so; default the name you are logged in by.")
]
Limit = Annotated[int, typer.Option("--limit", min=1, help="Show at most so many.")]

_JSON = "as_json"
_SHARED: dict[str, tuple[Any, Any]] = {"conf": (Conf, []), "assignments": (Assignments, []), "store": (Store, None)}
"""By the field of `CommonOptions`: its annotation and its default."""


MEASURED = "storage.settings=given"
"""The setting of what measures: it tries settings, and changes nothing of the store."""


@dataclass(frozen=True, slots=True)
class CommonOptions:
    """What every command line may say about settings."""

    conf: Sequence[Path] = ()
    assignments: Sequence[str] = ()
    store: Path | None = None

    def settings(self, *more: str, conf: Sequence[Path] = (), bootstrap: str | None = None) -> Settings:
        """The settings that the options ask for, with more files and assignments over them."""
        chosen = {"storage.root": self.store and str(self.store), "kafka.bootstrap": bootstrap}
        short = [f"{key}={json.dumps(value)}" for key, value in chosen.items() if value is not None]
        return load_settings([*self.conf, *conf], [*self.assignments, *more, *short])

    def opened(self, *, bootstrap: str | None = None) -> tuple[Settings, Catalog]:
        """The settings, and the catalog of the store that they name."""
        settings = self.settings(bootstrap=bootstrap)
        return settings, Catalog(require_store(settings))


def command(function: Callable[..., Result | None]) -> Callable[..., None]:
    """A command as typer sees it."""
    signature = inspect.signature(function, eval_str=True)
    answers = signature.return_annotation is Result

    @wraps(function)
    def called(**arguments: Any) -> None:
        output: Output = JsonOutput() if arguments.pop(_JSON, False) else TextOutput()
        if named := {name: arguments.pop(name) for name in _SHARED if name in arguments}:
            arguments["options"] = CommonOptions(**named)
        interruptible()
        if (result := function(**arguments)) is not None:
            output.show(result)
            sys.stdout.flush()
            result.then()

    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters: list[inspect.Parameter] = []
    for each in signature.parameters.values():
        if each.annotation is CommonOptions:
            shared = _SHARED.items()
            parameters += (
                inspect.Parameter(name, keyword, default=value, annotation=kind) for name, (kind, value) in shared
            )
        else:
            parameters.append(each.replace(kind=keyword))
    if answers:
        parameters.append(inspect.Parameter(_JSON, keyword, default=False, annotation=AsJson))
    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {each.name: each.annotation for each in parameters}
    return called


def run_job(job: Callable[..., Any], argv: Sequence[str] | None = None) -> int:
    """Run a command as a job, which says what it does while it runs; see `exit_code` for what is returned."""
    log_progress()
    arguments = None if argv is None else list(argv)
    return exit_code(f"jobs.{job.__name__}", lambda: as_command(job).main(args=arguments))
