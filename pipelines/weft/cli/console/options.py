"""The options that commands and jobs share: which files, which assignments, which store, which broker."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial, wraps
from pathlib import Path
from typing import Annotated, Any

import typer

from weft.domain.errors import StoreError
from weft.settings import Settings, load_settings


def named_path(text: str) -> Path:
    """A path that was given; an empty one, as a variable without a value leaves it, would be the working directory.

    Raises:
        typer.BadParameter: It is empty.
    """
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
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, one object per line.")]
Bootstrap = Annotated[str | None, typer.Option("--bootstrap", help="Broker, host:port; default kafka.bootstrap.")]

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
        """The settings that the options ask for, with more files and assignments over them.

        `--store` is short for `--set storage.root=`, `--bootstrap` for `--set kafka.bootstrap=`.
        """
        chosen = {"storage.root": self.store and str(self.store), "kafka.bootstrap": bootstrap}
        short = [f"{key}={json.dumps(value)}" for key, value in chosen.items() if value is not None]
        return load_settings([*self.conf, *conf], [*self.assignments, *more, *short])


def _with_options(names: Sequence[str], command: Callable[..., None]) -> Callable[..., None]:
    """The command as typer sees it: the named options in the place of its parameter `options`."""

    @wraps(command)
    def called(**arguments: Any) -> None:
        common = CommonOptions(**{name: arguments.pop(name) for name in names})
        command(options=common, **arguments)

    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters: list[inspect.Parameter] = []
    for each in inspect.signature(command, eval_str=True).parameters.values():
        if each.annotation is not CommonOptions:
            parameters.append(each.replace(kind=keyword))
            continue
        for name in names:
            annotation, default = _SHARED[name]
            parameters.append(inspect.Parameter(name, keyword, default=default, annotation=annotation))
    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {each.name: each.annotation for each in parameters}
    return called


store_command = partial(_with_options, ("store", "conf"))
"""Gives a command of `weft` the options `--store` and `--conf`."""

job_command = partial(_with_options, ("conf", "assignments", "store"))
"""Gives a job the options `--conf`, `--set` and `--store`."""


def require_store(settings: Settings) -> Path:
    """The folder of the store.

    Raises:
        StoreError: There is none: a name mistyped would look like a store in which nothing was ever done.
    """
    root = Path(settings.storage.root)
    if not root.is_dir():
        raise StoreError(f"expected a store in {root}, found no such folder: name it with --store or storage.root")
    return root
