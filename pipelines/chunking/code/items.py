"""The statements and members of a source file in order, seen through what only stands around them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from tree_sitter import Node

from pipelines.chunking.code.definitions import definition_of, seen_through
from pipelines.chunking.code.tree import MAX_DEPTH, SyntaxTree
from pipelines.chunking.units.splitting import decoded


@dataclass(frozen=True, slots=True)
class Space:
    """What qualifies an item besides the type that it stands in.

    Attributes:
        names: Namespaces around it, from the outermost.
        owner: The type that it extends from outside, "" for none.
        context: The header of that extension.
    """

    names: tuple[str, ...] = ()
    owner: str = ""
    context: str = ""


@dataclass(frozen=True, slots=True)
class CodeItem:
    """A statement or member, or the header (`else:`, `namespace a {`) that introduces some: its node is None.

    Attributes:
        heads: Whether it is the header of its space.
    """

    start: int
    end: int
    node: Node | None
    space: Space
    heads: bool = False


def items_of(tree: SyntaxTree, nodes: Iterable[Node], fits: Callable[[int, int], bool]) -> Iterator[CodeItem]:
    """Statements in order; those that only hold others are opened into their headers and branches.

    Args:
        fits: Whether a span is short enough for a statement that wraps a whole file to stay closed.
    """
    return _Opener(tree, fits).items(nodes, Space(), MAX_DEPTH)


@dataclass(frozen=True, slots=True)
class _Opener:
    tree: SyntaxTree
    fits: Callable[[int, int], bool]

    def items(self, nodes: Iterable[Node], space: Space, depth: int) -> Iterator[CodeItem]:
        """What `nodes` come to; from `depth` levels on, nothing is opened."""
        grammar = self.tree.grammar
        for node in nodes:
            if not node.is_named or node.type in grammar.comments:
                continue
            start, end = node.start_byte, node.end_byte
            if node.type in grammar.prefixes:
                yield CodeItem(start, end, None, space)
            elif depth and (inner := self._inner_space(node, space)) is not None:
                yield from self._opened(inner[0], inner[1], depth - 1, start)
            elif depth and (
                node.type in grammar.guards
                or ((node.type in grammar.compounds or node.is_error) and self._opens(node, start, end))
            ):
                yield from self._opened(node, space, depth - 1, start)
            elif depth and (inner_block := self._wrapped(node, start, end)) is not None:
                yield CodeItem(start, _opening(inner_block), None, space)
                yield from self.items(inner_block.children, space, depth - 1)
            else:
                yield CodeItem(start, end, node, space)

    def _opens(self, node: Node, start: int, end: int) -> bool:
        return self.tree.holds_definitions(start, end) and definition_of(node, self.tree) is None

    def _opened(self, node: Node, space: Space, depth: int, start: int) -> Iterator[CodeItem]:
        grammar = self.tree.grammar
        bare = node.type in grammar.guards or node.is_error
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

    def _inner_space(self, node: Node, space: Space) -> tuple[Node, Space] | None:
        """The namespace or extension that an item is, and what it adds to what is inside."""
        grammar = self.tree.grammar
        for _ in range(4):
            if node.type in grammar.namespaces or node.type in grammar.extensions:
                break
            inner = seen_through(node, grammar) if node.type in grammar.wrappers else None
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


def _opening(block: Node) -> int:
    """Where what opens a block ends; 0 where nothing does."""
    first = block.children[0] if block.child_count else None
    return first.end_byte if first is not None and not first.is_named else 0
