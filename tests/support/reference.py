"""The page of what applications import, written from signatures and docstrings. As a program, this writes it."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import weft
import weft.app.library
import weft.testing

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "python.md"
BEGIN = "<!-- From here on written by `make reference`. -->"
TESTING = (weft.testing.searcher_over, weft.testing.MemoryProducer)
FIELDS_ALONE = frozenset({"Answer", "Contribution", "Domain", "Query", "Result", "Settings", "WeftError"})
"""Classes that are values: what their docstrings say of the fields is all that there is."""


def rendered(page: str) -> str:
    """The page with everything behind its mark written anew."""
    head = page[: page.index(BEGIN) + len(BEGIN)]
    parts = [_section(name, getattr(weft, name)) for name in weft.__all__]
    parts += [_section(f"testing.{thing.__name__}", thing) for thing in TESTING]
    return head + "\n\n" + "\n".join(parts)


def _section(name: str, thing: Any) -> str:
    lines = [f"## `weft.{name}`", "", *_signature(name.rpartition(".")[2], thing), *_said(thing)]
    if inspect.isclass(thing) and name not in FIELDS_ALONE:
        for method, function in _methods(thing):
            lines += [*_signature(f"{name.rpartition('.')[2]}.{method}", function), *_said(function)]
    return "\n".join(lines)


def _methods(cls: type) -> Iterator[tuple[str, Any]]:
    for name, member in sorted(vars(cls).items()):
        function = getattr(member, "__func__", member)
        if not name.startswith("_") and inspect.isfunction(function):
            yield name, function


def _signature(name: str, thing: Any) -> list[str]:
    if inspect.isclass(thing):
        return []
    text = str(inspect.signature(inspect.unwrap(thing))).replace("'", "")
    parameters = text.removeprefix("(self, ").removeprefix("(self)").removeprefix("(cls, ")
    opened = text if parameters == text else f"({parameters}" if not parameters.startswith(" ->") else f"(){parameters}"
    return ["```python", f"{name}{opened}", "```", ""]


def _said(thing: Any) -> list[str]:
    """A docstring, in which indented parts stay as they are."""
    text = inspect.getdoc(thing) or ""
    first, _, rest = text.partition("\n\n")
    body = [" ".join(first.split()), ""]
    if rest:
        body += ["```text", *textwrap.dedent(rest).splitlines(), "```", ""]
    return body


if __name__ == "__main__":
    PAGE.write_text(rendered(PAGE.read_text("utf-8")), "utf-8")
