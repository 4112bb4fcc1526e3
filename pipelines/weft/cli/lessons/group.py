"""`weft lessons`: its commands, each imported when it is called."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from typing import Any

import typer
from typer.core import TyperGroup

from weft.cli.console.exits import ImportedCommands, as_command

MODULES: Mapping[str, tuple[str, ...]] = {
    "listing": ("list", "review", "show", "prompt"),
    "upkeep": ("hook", "calibration", "export", "import"),
    "telling": ("add", "validate", "contradict", "retire", "restore", "merge", "apart", "forget", "apply"),
}
"""Names of commands by the module whose `COMMANDS` have them."""

PLACES: Mapping[str, str] = {name: module for module, names in MODULES.items() for name in names}


def load_lesson_command(name: str) -> Any:
    """The command of a name, imported."""
    return as_command(pkgutil.resolve_name(f"weft.cli.lessons.{PLACES[name]}:COMMANDS")[name], name)


class LessonCommands(TyperGroup):
    """The group of these commands."""

    def __init__(self, **stated: Any) -> None:
        super().__init__(**stated)
        self.commands = ImportedCommands(load_lesson_command, PLACES)  # type: ignore[assignment]  # as a mapping it does

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002  as the base class calls it
        """Their names, in the order of the help."""
        return list(PLACES)


lessons = typer.Typer(cls=LessonCommands, no_args_is_help=True)


@lessons.callback()
def _lessons() -> None:
    """Lessons for agents: how sure each is, and what came of it."""
