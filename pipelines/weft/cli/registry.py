"""What `weft` can do: index, search, and look at what is published and change what is live.

A command's module is imported when the command is called: `weft --help` imports none of them.
"""

from __future__ import annotations

import os
import pkgutil
import shlex
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import typer
from typer.core import TyperGroup

from weft import __version__
from weft.cli.console.exits import ImportedCommands, as_command, exit_code
from weft.runtime.extras import require


class Command(NamedTuple):
    """A command that is not imported yet."""

    place: str  # where its function or its group of commands lies below `weft.cli`, as "module:name"
    summary: str  # the first sentence of its help
    narrates: bool = False  # whether it runs for a while, and says what it does
    needs: str | None = None  # a package without which nothing of it works: `weft.runtime.extras` knows what brings it


COMMANDS: Mapping[str, Command] = {
    "index": Command(
        "commands.reindex:reindex", "Index sources and make the result live.", narrates=True, needs="tree_sitter"
    ),
    "search": Command("searches.search:search", "Search what is live in the store."),
    "ask": Command("searches.ask:ask", "Ask one question after the other, and say what the results are worth."),
    "tell": Command("searches.tell:tell", "Name the right answer to a question, or a wrong one."),
    "serve": Command(
        "commands.serve:serve", "Serve a store over HTTP, with a console for browsers; Ctrl-C ends it.", narrates=True
    ),
    "mcp": Command("commands.mcp:mcp", "Give agents the tools of a store over MCP, on stdin and stdout.", needs="mcp"),
    "update": Command(
        "commands.update:update",
        "Keep the evidence of every partition up with the feedback topic; while it runs on, follow the champion alias.",
        narrates=True,
    ),
    "consolidate": Command(
        "commands.consolidate:consolidate",
        "Fold the day's evidence into a learned version, calibrate, judge, publish and report it.",
        narrates=True,
        needs="mlflow",
    ),
    "evaluate": Command(
        "reports.evaluate:evaluate",
        "Measure retrieval on one split of a data set, on the query log, or what is heard of lessons.",
        narrates=True,
        needs="mlflow",
    ),
    "broker": Command("commands.broker:broker", "Run a broker until it is stopped.", narrates=True),
    "mlflow": Command(
        "commands.mlflow:mlflow", "Open the MLflow UI on what a store learned; Ctrl-C ends it.", needs="mlflow"
    ),
    "status": Command("commands.status:status", "What is live in a store, and what became of feedback."),
    "store": Command("commands.store:store", "Move a store to another folder, or remove what is old of it."),
    "generations": Command(
        "commands.generations:generations", "Immutable, complete sets of indexes; exactly one is live."
    ),
    "learned": Command("commands.learned:learned", "What was learned: versions, beliefs, and how they changed."),
    "feedback": Command("commands.feedback_status:feedback", "What became of feedback."),
    "sessions": Command("commands.sessions:sessions", "Sessions that learn alone until they complete."),
    "principals": Command("commands.principals:principals", "Who said what, what it moved, and taking it out again."),
    "triggers": Command("commands.triggers:triggers", "Words that contents are found by since people picked them."),
    "graph": Command("commands.graph:graph", "What has to do with what: relations, links, folders and entities."),
    "queries": Command("searches.queries:queries", "What was asked and answered, from the query log."),
    "dlq": Command("commands.dlq:dlq", "Records that could not become events."),
    "lessons": Command("lessons.group:lessons", "Lessons for agents: how sure each is, and what came of it."),
    "models": Command("commands.models:models", "Encoders that can be had by name, without a hub."),
    "ubi": Command("commands.ubi:send_ubi", "Send feedback collected by OpenSearch User Behavior Insights."),
}


class Commands(TyperGroup):
    """The group of all commands, whose help needs none of them."""

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002  as the base class calls it
        """Their names, in the order of the help."""
        return list(COMMANDS)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that is named first; a path there is taken for what somebody wants indexed."""
        if args and args[0] not in COMMANDS and os.path.exists(args[0]):  # noqa: PTH110  pathlib is not imported yet
            ctx.fail(f"expected a command, found the path {args[0]!r}: `weft index {shlex.quote(args[0])}` indexes it")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002  as above
        """Write their names and summaries."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in COMMANDS.items()])


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments == ["--version"]:
        sys.stdout.write(f"weft {__version__}\n")
        return 0
    return exit_code("weft", lambda: all_commands().main(arguments, prog_name="weft"))


def all_commands() -> Commands:
    """The group of all commands."""
    group = Commands(
        name="weft",
        help="Index what you have, search it, see what it learned, and change what is live. `weft --version` tells its "
        "version.",
        no_args_is_help=True,
        rich_markup_mode=None,
    )
    group.commands = ImportedCommands(load_command, COMMANDS)  # type: ignore[assignment]  # a mapping that imports is enough for looking up
    return group


def load_command(name: str) -> Any:
    """The command of a name, imported, and logging set up for it."""
    from weft.cli.console.logs import log_progress, log_warnings  # noqa: PLC0415  .04 s: rich, which the help does without
    from weft.runtime.process import uncollected  # noqa: PLC0415  .1 s: NumPy, likewise

    if (package := COMMANDS[name].needs) is not None:
        require(package)
    log_progress() if COMMANDS[name].narrates else log_warnings()
    with uncollected():
        loaded = pkgutil.resolve_name(f"weft.cli.{COMMANDS[name].place}")
    return typer.main.get_command(loaded) if isinstance(loaded, typer.Typer) else as_command(loaded, name)
