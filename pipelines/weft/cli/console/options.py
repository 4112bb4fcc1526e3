"""How a function becomes a command: the options that all share, and the port that prints what it returns."""

from __future__ import annotations

import inspect
import json
import os
import pkgutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.console.exits import as_command, exit_code, interruptible
from weft.cli.console.logs import LogForm, log_as, log_progress
from weft.cli.console.output import JsonOutput, Output, Result, TextOutput
from weft.domain.errors import WeftError

if TYPE_CHECKING:
    from weft.catalog.catalog import Catalog
    from weft.client.http import Client
    from weft.settings import Settings


def named_path(text: str) -> Path:
    """A path that was given; an empty one, as a variable without a value leaves it, would be the working directory."""
    if not text.strip():
        raise typer.BadParameter("expected a path, found none; the working directory is '.'")
    return Path(text)


def named_store(text: str) -> Path:
    """The folder to work in for a path or a URL that was given."""
    if "://" not in text:
        return named_path(text)
    try:  # by its name: who names a folder waits for none of it
        place: Path = pkgutil.resolve_name("weft.runtime.storage.working_copy:place_of")(text)
    except WeftError as error:
        raise typer.BadParameter(str(error)) from error
    return place


def named_source(text: str) -> Path:
    """A path that was given, or the place that a URL is brought to."""
    try:
        place: Path = pkgutil.resolve_name("weft.runtime.storage.origins:source_place")(text)
    except WeftError as error:
        raise typer.BadParameter(str(error)) from error
    return named_path(str(place)) if text.strip() else named_path(text)


Store = Annotated[
    Path | None,
    typer.Option(
        "--store", parser=named_store, metavar="PATH|URL", help="Where weft keeps everything; default storage.root."
    ),
]
Conf = Annotated[list[Path], typer.Option("--conf", help="YAML file over conf/base; repeatable, later files win.")]
Assignments = Annotated[list[str], typer.Option("--set", help="section.key=value; repeatable, wins over files.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, one object a line.")]
Log = Annotated[LogForm | None, typer.Option("--log", help="What logs look like on stderr; also in WEFT_LOG.")]
Bootstrap = Annotated[str | None, typer.Option("--bootstrap", help="Broker, host:port; default kafka.bootstrap.")]

Principal = Annotated[
    str | None, typer.Option("--principal", help="Who says so; default the name you are logged in by.")
]
Limit = Annotated[int, typer.Option("--limit", min=1, help="Show at most so many.")]

Server = Annotated[
    str | None,
    typer.Option(
        "--server", metavar="URL", help="Service to ask, with WEFT_TOKEN; default the store's, `none` does without."
    ),
]

NO_SERVER = "none"
ANNOUNCEMENT = "serving.json"  # what a service writes into its store
DEFAULT_ROOT = "~/.weft"
"""Of `storage.root`: who asks a running service reads no settings."""

_ROOT_VARIABLE, _SETTINGS_VARIABLES = "WEFT__STORAGE__ROOT", "WEFT__"
_NO_SETTINGS: Mapping[str, object] = MappingProxyType({})
_JSON, _LOG = "as_json", "log"
_SHARED: dict[str, tuple[Any, Any]] = {
    "conf": (Conf, []),
    "assignments": (Assignments, []),
    "store": (Store, None),
    "server": (Server, None),
}
"""By the field of `CommonOptions` or `ServedOptions`: its annotation and its default."""


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
        from weft.settings import load_settings  # noqa: PLC0415  .4 s, which who asks a service does without

        chosen = {"storage.root": self.store and str(self.store), "kafka.bootstrap": bootstrap}
        short = [f"{key}={json.dumps(value)}" for key, value in chosen.items() if value is not None]
        return load_settings([*self.conf, *conf], [*self.assignments, *more, *short])

    def opened(self, *, bootstrap: str | None = None) -> tuple[Settings, Catalog]:
        """The settings, and the catalog of the store that they name."""
        from weft.catalog.catalog import Catalog  # noqa: PLC0415  as above
        from weft.settings import require_store  # noqa: PLC0415  as above

        settings = self.settings(bootstrap=bootstrap)
        return settings, Catalog(require_store(settings))


@dataclass(frozen=True, slots=True)
class ServedOptions(CommonOptions):
    """The same of a command that asks a running service where there is one."""

    server: str | None = None

    def service(
        self, settings: Mapping[str, object] = MappingProxyType({}), *, feedback: bool = False
    ) -> Client | None:
        """A client of the service that is to be asked; None where the command does without one.

        Args:
            settings: What further options say about settings, by option: a service has settings of its own.
            feedback: Whether it has to take feedback.
        """
        if self.server == NO_SERVER:
            return None
        stated = {"--conf": self.conf, "--set": self.assignments, **settings}
        own = [name for name, value in stated.items() if value]
        if self.server is not None and own:
            raise typer.BadParameter(
                f"expected no {' and '.join(own)} beside --server, whose settings are its own: leave out either; "
                "--server none goes without"
            )
        own += (name for name in os.environ if name.startswith(_SETTINGS_VARIABLES) and name != _ROOT_VARIABLE)
        root = (self.store or named_store(os.environ.get(_ROOT_VARIABLE) or DEFAULT_ROOT)).expanduser()
        if self.server is None and (own or not _is_announced(root)):
            return None
        from weft.client.announced import client_at, client_in  # noqa: PLC0415  .1 s: httpx

        return client_in(root, feedback=feedback) if self.server is None else client_at(self.server)


def _is_announced(store: Path) -> bool:
    try:
        return (store / ANNOUNCEMENT).is_file()
    except PermissionError:  # of the folder: what needs a file in it says so
        return False


def command(function: Callable[..., Result | None]) -> Callable[..., None]:
    """A command as typer sees it."""
    signature = inspect.signature(function, eval_str=True)
    answers = signature.return_annotation is Result
    kinds = (CommonOptions, ServedOptions)
    kind = next((each for each in kinds if any(each is one.annotation for one in signature.parameters.values())), None)
    shared = [] if kind is None else [name for name in _SHARED if name in kind.__dataclass_fields__]

    @wraps(function)
    def called(**arguments: Any) -> None:
        if (form := arguments.pop(_LOG, None)) is not None:
            log_as(form)
        output: Output = JsonOutput() if arguments.pop(_JSON, False) else TextOutput()
        if kind is not None:
            named = {name: arguments.pop(name) for name in shared}
            arguments["options"] = kind(**named)
        interruptible()
        if (result := function(**arguments)) is not None:
            output.show(result)
            sys.stdout.flush()
            result.then()

    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters: list[inspect.Parameter] = []
    for each in signature.parameters.values():
        if each.annotation is kind:
            parameters += (
                inspect.Parameter(name, keyword, default=_SHARED[name][1], annotation=_SHARED[name][0])
                for name in shared
            )
        else:
            parameters.append(each.replace(kind=keyword))
    parameters.append(inspect.Parameter(_LOG, keyword, default=None, annotation=Log))
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
