"""A parsed source file: what stands where in it, and where it may be cut."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, cached_property

from tree_sitter import Node, Parser, Query, QueryCursor
from tree_sitter_language_pack import get_language

from weft.chunking.code.grammar import Grammar
from weft.chunking.code.grammars import grammar_of
from weft.chunking.code.macros import without_macros
from weft.chunking.units.splitting import decoded

# Deeper than any source that a person wrote; what lies deeper is not looked into, so that no input exhausts the stack.
MAX_DEPTH = 48
_MAX_QUERY_DEPTH = 4000  # the query engine counts levels in 15 bits and takes quadratic time beyond
_MOST_NAMES = 200  # of one statement
_LONGEST_MARK = 1000
LONGEST_NAME = 200  # bytes that are looked at: in a chain of calls, every callee holds all before it
GENERIC = re.compile(r"<[^<>]*>|\[[^\[\]]*\]")
_PLAIN_NAME = re.compile(r"[\w$.~@#]+[!?]?")
_LAST_WORD = re.compile(r"([\w$]+(?:(?<=\w)[!?]$)?)[^\w$]*$")
_SIGNS = re.compile(r"[^\w\s.;\"']{1,3}")  # the name of an operator


@cache
def query_of(name: str, part: str) -> Query:
    """One of the queries of a profile."""
    grammar = grammar_of(name)
    if grammar is None:
        raise LookupError(f"expected a language with a grammar, found {name}")
    return Query(get_language(name), grammar.query(part))


class SyntaxTree:
    """A parsed source file and what stands where in it."""

    def __init__(self, source: bytes, grammar: Grammar) -> None:
        self.source = source
        self.grammar = grammar
        parsed, above = without_macros(source, heads=grammar.name == "c") if grammar.macros else (source, [])
        self.root = Parser(get_language(grammar.name)).parse(parsed).root_node
        self.captures: dict[str, list[Node]] = {}  # of the query of facts, by name, in source order
        cursor = QueryCursor(query_of(grammar.name, "facts"))
        cursor.set_max_start_depth(_MAX_QUERY_DEPTH)
        for node in _understood(self.root):
            for name, nodes in cursor.captures(node).items():
                self.captures.setdefault(name, []).extend(nodes)
        for nodes in self.captures.values():
            nodes.sort(key=lambda node: (node.start_byte, -node.end_byte, node.type))  # they come in any order
        comments = [node for node in self.captures.get("comment", ()) if node.end_byte > node.start_byte]
        spoken = sorted((node.start_byte, node.end_byte) for node in comments)
        self._first_comment = spoken[0] if spoken else None
        self._comments = sorted([*spoken, *(span for span in above if not _inside(spoken, span[0]))])
        self._functions, self._imports, self._types = (
            sorted(node.start_byte for node in self.captures.get(name, ())) for name in ("function", "import", "type")
        )

    @cached_property
    def errors(self) -> Sequence[tuple[int, int]]:
        """Spans of syntax errors, in order."""
        return sorted(_errors(self.root)) if self.root.has_error else ()

    def text(self, node: Node) -> str:
        """What a node says, as it is."""
        return decoded(self.source[node.start_byte : node.end_byte])

    def holds_functions(self, start: int, end: int) -> bool:
        """Whether a function is defined in a span."""
        return _any_within(self._functions, start, end)

    def holds_definitions(self, start: int, end: int) -> bool:
        """Whether a function or a type is defined in a span."""
        return self.holds_functions(start, end) or _any_within(self._types, start, end)

    def lead(self, floor: int, position: int) -> int:
        """Where the unit at `position` begins: at its line, or at the first of its comments, not above `floor`."""
        line = start = max(floor, self.source.rfind(b"\n", floor, position) + 1)
        index = bisect_left(self._comments, (position,)) - 1
        while index >= 0 and self._comments[index][0] >= floor:
            first, last = self._comments[index]
            above = max(floor, self.source.rfind(b"\n", floor, first) + 1)
            if self.source[min(last, start) : start].strip() or self.source[above:first].strip():
                break
            if self.grammar.offside and first - above > position - line:
                break  # it closes what is before it
            start = min(start, above)
            index -= 1
        return start

    def next_line(self, position: int, earlier: int) -> int:
        """Start of the first line after `position`, the end of the source if there is none."""
        if position < earlier:
            return earlier
        if self.source[position - 1 : position] == b"\n":  # some directives hold the end of their line
            return position
        return self.source.find(b"\n", position) + 1 or len(self.source)

    def imports(self, node: Node) -> bool:
        """Whether a statement imports something and defines no function."""
        start, end = node.start_byte, node.end_byte
        return _any_within(self._imports, start, end) and not self.holds_functions(start, end)

    def is_test(self, start: int, end: int) -> bool:
        """Whether a span is marked as a test."""
        marks = self.grammar.test_marks.encode()
        return bool(marks and re.search(marks, self.source[start : min(end, start + _LONGEST_MARK)]))

    def is_comment(self, node: Node) -> bool:
        """Whether a node says nothing to the machine."""
        return node.type in self.grammar.comments

    def leads(self, node: Node) -> bool:
        """Whether a node belongs to what follows it; of operators those that write an attribute: `@doc "Does."`."""
        operator = node.type == "unary_operator" and self.source[node.start_byte] != ord("@")
        return node.type in self.grammar.prefixes and not operator

    def end_of(self, node: Node) -> int:
        """Where a node ends without the comments at its end, which are of what follows it."""
        children = node.children
        if not children or not self.is_comment(children[-1]):
            return node.end_byte
        return next((child.end_byte for child in reversed(children) if not self.is_comment(child)), node.end_byte)

    def first_comment(self) -> tuple[int, int] | None:
        """The first comment where nothing but blanks is before it."""
        first = self._first_comment
        return first if first is not None and not self.source[: first[0]].strip() else None

    def name(self, node: Node) -> str:
        """A name as dotted words, whatever its language puts between them; generics are left out."""
        text = self.source[max(node.start_byte, node.end_byte - LONGEST_NAME) : node.end_byte]
        name = dotted(text).removeprefix(".")
        return name or (decoded(text) if len(text) <= 3 and _SIGNS.fullmatch(decoded(text)) else "")

    def names_bound(self, node: Node | None) -> list[tuple[int, str]]:
        """Names that a statement binds, with their places."""
        names: list[tuple[int, str]] = []
        waiting = [node] if node is not None else []
        while waiting and len(names) < _MOST_NAMES:
            current = waiting.pop()
            if current.type in self.grammar.bound:
                names.append((current.start_byte, self.name(current)))
            elif (step := self.grammar.binders.get(current.type)) is not None:
                children = current.children_by_field_name(step) if step else current.children
                waiting.extend(child for child in reversed(children) if child.is_named)
        return names

    def is_docstring(self, node: Node | None) -> bool:
        """Whether a statement is nothing but one plain string, in a language where that documents."""
        return self.grammar.docstrings and node is not None and docstring_of(node) is not None

    def statement_cuts(self, nodes: Iterable[Node], fits: Callable[[Node], bool]) -> list[int]:
        """Lines at which long statements may be cut: between those in their blocks, deeper where these do not fit."""
        cuts: list[int] = []
        for parent, children in self._long(nodes, fits):
            block = parent.type in self.grammar.blocks
            floor: int | None = None
            leads = False
            for child in children:
                start = child.start_byte
                if child.type in self.grammar.clauses:
                    line = self.source.rfind(b"\n", 0, start) + 1
                    if self.source[line:start].strip() in {b"", b"}"}:
                        cuts.append(self.lead(line if floor is None else min(floor, line), start))
                elif block and floor is not None and start >= floor:
                    cut = self.lead(floor, start)
                    cuts += [] if leads and cut == floor else [cut]
                if block:
                    floor, leads = self.next_line(self.end_of(child), floor or 0), self.leads(child)
        return cuts

    def statement_starts(self, nodes: Iterable[Node], fits: Callable[[Node], bool]) -> list[int]:
        """The same wherever a statement begins: the first of a block, too, and in the middle of a line."""
        grammar = self.grammar
        return sorted(
            self._line_start(child.start_byte)
            for parent, children in self._long(nodes, fits)
            for child in children
            if parent.type in grammar.blocks or child.type in grammar.clauses
        )

    def _line_start(self, position: int) -> int:
        """Where the line begins on which there are but blanks before a position, else the position."""
        line = self.source.rfind(b"\n", 0, position) + 1
        return position if self.source[line:position].strip() else line

    def _long(self, nodes: Iterable[Node], fits: Callable[[Node], bool]) -> Iterator[tuple[Node, list[Node]]]:
        """The nodes, and what is in them that does not fit, each with its children."""
        waiting = [(node, MAX_DEPTH) for node in nodes]
        while waiting:
            node, depth = waiting.pop()
            children = [child for child in node.children if child.is_named and child.type not in self.grammar.comments]
            yield node, children
            if depth:
                waiting.extend((child, depth - 1) for child in children if not fits(child))


def docstring_of(statement: Node) -> Node | None:
    """The string of a statement that is nothing but one plain string."""
    # Grammars differ in whether an expression that is a statement has a node of its own around it.
    alone = statement.type == "expression_statement" and statement.child_count == 1
    expression = statement.children[0] if alone else statement
    return expression if expression.type == "string" else None


def _inside(spans: Sequence[tuple[int, int]], position: int) -> bool:
    """Whether one of some disjoint spans, in order, holds a position."""
    index = bisect_right(spans, position, key=lambda span: span[0]) - 1
    return index >= 0 and position < spans[index][1]


def _any_within(positions: Sequence[int], start: int, end: int) -> bool:
    index = bisect_right(positions, start - 1)
    return index < len(positions) and positions[index] < end


def _understood(root: Node) -> Iterator[Node]:
    """The tree without the error nodes at its top: a query takes quadratic time in their many children."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.is_error or (node is root and node.has_error):
            waiting.extend(child for child in node.children if child.is_named)
        else:
            yield node


def _errors(root: Node) -> Iterator[tuple[int, int]]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.is_error:
            yield node.start_byte, node.end_byte
        elif node.has_error:
            waiting.extend(node.children)


def dotted(name: bytes) -> str:
    """A qualified name with dots between its words; of a member of what is no plain name, that after a dot."""
    text = name.decode("utf-8", "ignore")
    if text.isidentifier():
        return text
    text = text.replace("->", ".").replace("::", ".").replace("?.", ".").replace(":", ".")
    if "operator" in text:
        return "".join(text.split())
    for _ in range(3):
        text = GENERIC.sub("", text)
    text = "".join(text.split()).replace('"', "").replace("..", ".").strip(".*&()`")
    if _PLAIN_NAME.fullmatch(text):
        return text
    last = _LAST_WORD.search(text)
    return f".{last[1]}" if last else ""
