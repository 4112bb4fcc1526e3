"""Statements and members of a source file in order, and what becomes one unit: a definition, or a run of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256

from tree_sitter import Node

from weft.chunking.code.definitions import Definition, definition_of, unwrapped
from weft.chunking.code.grammar import Grammar
from weft.chunking.code.tree import MAX_DEPTH, SyntaxTree
from weft.chunking.units.splitting import decoded

Fits = Callable[[int, int], bool]


@dataclass(frozen=True, slots=True)
class Namespace:
    """What qualifies an item besides the type that it stands in."""

    names: tuple[str, ...] = ()  # namespaces around it, from the outermost
    owner: str = ""  # the type that it extends from outside, "" for none
    context: str = ""  # the header of that extension


@dataclass(frozen=True, slots=True)
class CodeItem:
    """A statement or member, or the header (`else:`, `namespace a {`) that introduces some: its node is None."""

    start: int
    end: int
    node: Node | None
    space: Namespace
    heads: bool = False  # whether it is the header of its space
    guard: int = -1  # where the statement around it begins that chooses between definitions and fits as a whole


def items_of(tree: SyntaxTree, nodes: Iterable[Node], fits: Fits, fits_whole: Fits) -> Iterator[CodeItem]:
    """Statements in order; those that only hold others are opened into their headers and branches."""
    return _Opener(tree, fits, fits_whole).items(nodes, Namespace(), MAX_DEPTH)


@dataclass(frozen=True, slots=True)
class _Opener:
    tree: SyntaxTree
    fits: Fits  # within the target
    fits_whole: Fits  # within the maximum

    def items(self, nodes: Iterable[Node], space: Namespace, depth: int) -> Iterator[CodeItem]:
        """What `nodes` come to; from `depth` levels on, nothing is opened."""
        grammar = self.tree.grammar
        nodes = [node for node in nodes if node.is_named and node.type not in grammar.comments]
        leading = self._leading(nodes)
        for node in nodes:
            start, end = node.start_byte, self.tree.end_of(node)
            if self.tree.leads(node) or node.id in leading:
                yield CodeItem(start, end, None, space)
            elif depth and (inner := self._inner_space(node, space)) is not None:
                yield from self._opened(inner[0], inner[1], depth - 1, start)
            elif depth and (
                node.type in grammar.guards
                or ((node.type in grammar.compounds or node.is_error) and self._opens(node, start, end))
            ):
                whole = not _is_bare(node, grammar) and self.fits_whole(start, end)
                opened = self._opened(node, space, depth - 1, start)
                yield from (replace(item, guard=start) for item in opened) if whole else opened
            elif depth and (inner_block := self._wrapped(node, start, end)) is not None:
                yield CodeItem(start, _opening(inner_block), None, space)
                yield from self.items(inner_block.children, space, depth - 1)
            else:
                yield CodeItem(start, end, node, space)

    def _leading(self, nodes: Sequence[Node]) -> set[int]:
        """What binds but the name of the definition after it, such as the overloads of a function."""
        leading: set[int] = set()
        name = ""
        for node in reversed(nodes):
            if (definition := definition_of(node, self.tree)) is not None:
                name = definition.name
            elif name and [name] == [each for _, each in self.tree.names_bound(node)]:
                leading.add(node.id)
            else:
                name = ""
        return leading

    def _opens(self, node: Node, start: int, end: int) -> bool:
        return self.tree.holds_definitions(start, end) and definition_of(node, self.tree) is None

    def _opened(self, node: Node, space: Namespace, depth: int, start: int) -> Iterator[CodeItem]:
        grammar = self.tree.grammar
        bare = _is_bare(node, grammar)
        header: tuple[int, int] | None = None
        shown = False
        for index, child in enumerate(node.children):
            block = child.type in grammar.blocks and child.type not in grammar.guards and child.is_named
            clause = child.type in grammar.clauses
            direct = bare and child.is_named and node.field_name_for_child(index) not in {"name", "condition", "value"}
            if not (block or clause or direct):
                if child.type not in grammar.comments:
                    header = (header[0] if header else min(start, child.start_byte), child.end_byte)
                    start = len(self.tree.source)
                continue
            if header is not None or block:
                first, last = header or (child.start_byte, child.start_byte)
                last = max(last, _opening(child)) if block else last
                if last > first:
                    yield CodeItem(first, last, None, space, heads=bool(space.context) and not shown)
            header, shown = None, True
            if clause:
                yield from self._opened(child, space, depth - 1, child.start_byte) if depth else ()
            else:
                inside = child.children if block else [child]
                yield from self.items(inside, space, depth - 1 if depth else 0)
        if header is not None and not shown:
            yield CodeItem(*header, None, space)

    def _inner_space(self, node: Node, space: Namespace) -> tuple[Node, Namespace] | None:
        """The namespace or extension that an item is, and what it adds to what is inside."""
        grammar = self.tree.grammar
        for _ in range(4):
            if node.type in grammar.namespaces or node.type in grammar.extensions:
                break
            inner = unwrapped(node, grammar) if node.type in grammar.wrappers else None
            if inner is None:
                return None
            node = inner
        else:
            return None
        body = node.child_by_field_name("body")
        if body is None:
            return None
        if node.type in grammar.namespaces:
            name = node.child_by_field_name("name")
            return node, replace(space, names=(*space.names, self.tree.name(name).strip("\"'") if name else ""))
        fields = grammar.extensions[node.type]
        of = node.child_by_field_name(fields[0])
        header = " ".join(decoded(self.tree.source[node.start_byte : body.start_byte]).split())
        return node, replace(space, owner=self.tree.name(of) if of else "", context=header + grammar.opener)

    def _wrapped(self, node: Node, start: int, end: int) -> Node | None:
        """The body of the function that a statement consists of, where it holds definitions and is long."""
        grammar = self.tree.grammar
        if node.type not in grammar.wraps or not self.tree.holds_functions(start, end) or self.fits(start, end):
            return None
        for _ in range(MAX_DEPTH):
            children = [child for child in node.children if child.is_named]
            if not children:
                return None
            node = max(children, key=lambda child: child.end_byte - child.start_byte)
            if node.type in grammar.blocks:
                return node if 2 * (node.end_byte - node.start_byte) > end - start else None
        return None


def _is_bare(node: Node, grammar: Grammar) -> bool:
    """Whether what a node holds stands in it directly."""
    return node.type in grammar.guards or node.type in grammar.blocks or node.is_error


def _opening(block: Node) -> int:
    """Where what opens a block ends; 0 where nothing does."""
    first = block.children[0] if block.child_count else None
    return first.end_byte if first is not None and not first.is_named else 0


@dataclass(frozen=True, slots=True)
class ItemGroup:
    """Neighbouring items that make one unit: one definition, or a run of statements."""

    start: int
    items: tuple[CodeItem, ...]
    definition: Definition | None
    headed: bool = False  # whether the header of the items' space opens it, which others are shown under

    @property
    def space(self) -> Namespace:
        """What qualifies all of them."""
        return self.items[0].space

    @property
    def guard(self) -> int:
        """Where the guard of all of them begins."""
        return self.items[0].guard


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
        if item.guard >= 0:
            break
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
            same = bool(groups) and _around(groups[-1][1][0]) == _around(item)
            if groups and (not apart or (running and definition is None and same)):
                groups[-1][1].append(item)
            else:
                groups.append((start if header is None else header, [item], definition, headed))
            # What a definition ends with, such as a semicolon, makes it no run that others could join.
            header, headed, running = None, False, definition is None and groups[-1][2] is None
        floor = tree.next_line(item.end, floor)
    return [ItemGroup(start, tuple(joined), definition, heads) for start, joined, definition, heads in groups]


def _around(item: CodeItem) -> tuple[Namespace, int]:
    return item.space, item.guard


def mark_of(source: bytes, first: int) -> str:
    """A name for statements that define none: from their first line, so that edits elsewhere do not move it."""
    end = source.find(b"\n", first)
    line = source[first : end if end >= 0 else len(source)]
    return sha256(line.strip()).hexdigest()[:12]


def _directive(node: Node) -> bool:
    """Whether a statement is nothing but a string, such as "use strict"."""
    children = node.named_children
    return node.type == "expression_statement" and len(children) == 1 and children[0].type == "string"
