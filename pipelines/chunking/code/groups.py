"""From the items of a file or a type to what becomes one unit: a definition, or a run of statements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

from tree_sitter import Node

from pipelines.chunking.code.definitions import Definition, definition_of
from pipelines.chunking.code.items import CodeItem, Space
from pipelines.chunking.code.tree import SyntaxTree


@dataclass(frozen=True, slots=True)
class ItemGroup:
    """Neighbouring items that make one unit: one definition, or a run of statements.

    Attributes:
        headed: Whether the header of the items' space opens it, which others are shown under.
    """

    start: int
    items: tuple[CodeItem, ...]
    definition: Definition | None
    headed: bool = False

    @property
    def space(self) -> Space:
        """What qualifies all of them."""
        return self.items[0].space


def header_end(tree: SyntaxTree, items: Sequence[CodeItem]) -> int:
    """End of a comment on the whole file: one at its top that a blank line parts from what follows; else 0."""
    comment = tree.first_comment()
    if comment is None or not items or items[0].start < comment[1]:
        return 0
    after = tree.source[comment[1] : comment[1] + 3].replace(b"\r", b"")
    ended = tree.source[comment[1] - 1 : comment[1]] == b"\n"
    return comment[1] if after.startswith(b"\n\n") or (ended and after.startswith(b"\n")) else 0


def preamble_length(tree: SyntaxTree, items: Sequence[CodeItem]) -> int:
    """How many items the preamble has: up to the last that imports, names the package or documents the file."""
    grammar, leading = tree.grammar, 0
    for index, item in enumerate(items):
        node = item.node
        if node is None or (node.type in grammar.between and definition_of(node, tree) is None):
            continue
        if _introduces(tree, node, first=index == 0) or (index == leading and _directive(node)):
            leading = index + 1
        else:
            break
    return leading


def _introduces(tree: SyntaxTree, node: Node, *, first: bool) -> bool:
    grammar = tree.grammar
    if node.type in grammar.imports or node.type in grammar.packages:
        return True
    if first and tree.is_docstring(node):
        return True
    if node.type in grammar.importing and tree.imports(node):
        return True
    names = [name for _, name in tree.names_bound(node)]
    return grammar.docstrings and bool(names) and all(name[:2] == name[-2:] == "__" for name in names)


def groups_of(tree: SyntaxTree, items: Sequence[CodeItem], previous: int) -> list[ItemGroup]:
    """Items as units: a header such as `else:` opens the unit of what follows it."""
    groups: list[tuple[int, list[CodeItem], Definition | None, bool]] = []
    floor = tree.next_line(previous, 0) if previous else 0
    header: int | None = None
    headed = running = False
    for item in items:
        apart = header is not None or item.start >= floor  # else it begins on the line that the one before ends on
        start = tree.lead(floor, item.start) if apart else floor
        if item.node is None:
            if apart and header is None:
                header = start
            headed = headed or item.heads
            running = False
        else:
            definition = definition_of(item.node, tree)
            same = bool(groups) and groups[-1][1][0].space == item.space
            if groups and (not apart or (running and definition is None and same)):
                groups[-1][1].append(item)
            else:
                groups.append((start if header is None else header, [item], definition, headed))
            # What a definition ends with, such as a semicolon, makes it no run that others could join.
            header, headed, running = None, False, definition is None and groups[-1][2] is None
        floor = tree.next_line(item.end, floor)
    return [ItemGroup(start, tuple(joined), definition, heads) for start, joined, definition, heads in groups]


def mark_of(tree: SyntaxTree, group: ItemGroup) -> str:
    """A name for statements that define none: from their first line, so that edits elsewhere do not move it."""
    first = group.items[0].start
    end = tree.source.find(b"\n", first)
    line = tree.source[first : end if end >= 0 else len(tree.source)]
    return sha256(line.strip()).hexdigest()[:12]


def _directive(node: Node) -> bool:
    """Whether a statement is nothing but a string, such as "use strict"."""
    return (
        node.type == "expression_statement" and node.named_child_count == 1 and node.named_children[0].type == "string"
    )
