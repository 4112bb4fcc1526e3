"""What applications import, and the ports between rooms, written from the code. As a program, this writes the pages."""

from __future__ import annotations

import ast
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
PORTS = ROOT / "docs" / "architecture.md"
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


def with_ports(page: str) -> str:
    """The page of the architecture with its list of ports written anew."""
    rows = [f"| {' | '.join(row)} |" for row in sorted(_ports())]
    table = ["| module | port | what it is | methods |", "| --- | --- | --- | --- |", *rows]
    return page[: page.index(BEGIN) + len(BEGIN)] + "\n\n" + "\n".join(table) + "\n"


def _ports() -> Iterator[tuple[str, str, str, str]]:
    """Module, name, first line and methods of every public Protocol of the package, read and not imported."""
    root = ROOT / "pipelines" / "weft"
    for file in sorted(root.rglob("*.py")):
        if "Protocol" not in (source := file.read_text("utf-8")):
            continue
        for node in ast.parse(source).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_") and _is_protocol(node):
                said = " ".join((ast.get_docstring(node) or "").partition("\n\n")[0].split())
                methods = ", ".join(_called(each) for each in node.body if isinstance(each, ast.FunctionDef))
                if methods:
                    yield f"`{file.relative_to(root).as_posix()}`", f"`{node.name}`", said.replace("|", "\\|"), methods


def _is_protocol(node: ast.ClassDef) -> bool:
    bases = (base.value if isinstance(base, ast.Subscript) else base for base in node.bases)
    return any(isinstance(base, ast.Name) and base.id == "Protocol" for base in bases)


def _called(method: ast.FunctionDef) -> str:
    """A method with the names of its arguments; a property and what a call does by their own signs."""
    if any(isinstance(each, ast.Name) and each.id == "property" for each in method.decorator_list):
        return f"`{method.name}`"
    names = [each.arg for each in (*method.args.args[1:], *method.args.kwonlyargs)]
    return f"`{'' if method.name == '__call__' else method.name}({', '.join(names)})`"


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
    PORTS.write_text(with_ports(PORTS.read_text("utf-8")), "utf-8")
