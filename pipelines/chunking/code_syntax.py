"""What the syntax tree of a source file says: its items, definitions, signatures, comments, where it may be cut."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property

from tree_sitter import Language, Node, Parser, Query, QueryCursor
from tree_sitter_language_pack import get_language

from pipelines.chunking.code_grammar import LAST, ONLY, Grammar
from pipelines.chunking.code_grammars import GRAMMARS
from pipelines.chunking.splitting import decoded

# Deeper than any source that a person wrote; what lies deeper is not looked into, so that no input exhausts the stack.
_MAX_DEPTH = 48
_MAX_QUERY_DEPTH = 4000  # the query engine counts levels in 15 bits and takes quadratic time beyond
_LONGEST_NAME = 200
_LONGEST_MARK = 1000
_PLAIN = re.compile(r"[\w$.~@#]+")
_LAST_WORD = re.compile(r"([\w$]+)[^\w$]*$")
_WORD = re.compile(r"\w+")
_GENERIC = re.compile(r"<[^<>]*>|\[[^\[\]]*\]")


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
class Item:
    """A statement or member, or the header (`else:`, `namespace a {`) that introduces some: its node is None.

    Attributes:
        heads: Whether it is the header of its space.
    """

    start: int
    end: int
    node: Node | None
    space: Space
    heads: bool = False


@dataclass(frozen=True, slots=True)
class Definition:
    """A function or a type with its body.

    Attributes:
        dress: From the item's node to the definition's own.
        kind: "function", or the kind of type.
        owner: Whose member it says it is, where it stands outside its type.
        receiver: What it calls that one.
    """

    dress: tuple[Node, ...]
    body: Node
    name: str
    kind: str
    owner: str = ""
    receiver: str = ""

    @property
    def node(self) -> Node:
        """The definition without its dress."""
        return self.dress[-1]


@cache
def language_of(name: str) -> Language:
    """A grammar of the language pack."""
    language: Language = get_language(name)
    return language


@cache
def query_of(name: str, part: str) -> Query:
    """One of the queries of a profile."""
    return Query(language_of(name), getattr(GRAMMARS[name], part))


class Tree:
    """A parsed source file and what stands where in it."""

    def __init__(self, source: bytes, grammar: Grammar) -> None:
        self.source = source
        self.grammar = grammar
        self.root = Parser(language_of(grammar.name)).parse(source).root_node
        self.found: dict[str, list[Node]] = {}
        cursor = QueryCursor(query_of(grammar.name, "facts"))
        cursor.set_max_start_depth(_MAX_QUERY_DEPTH)
        for node in _understood(self.root):
            for name, nodes in cursor.captures(node).items():
                self.found.setdefault(name, []).extend(nodes)
        comments = [node for node in self.found.get("comment", ()) if node.end_byte > node.start_byte]
        self._comments = sorted((node.start_byte, node.end_byte) for node in comments)
        self._functions = sorted(node.start_byte for node in self.found.get("function", ()))
        self._imports = sorted(node.start_byte for node in self.found.get("import", ()))
        self._types = sorted(node.start_byte for node in self.found.get("type", ()))

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

    def next_line(self, position: int, known: int) -> int:
        """Start of the first line after `position`, the end of the source if there is none.

        `known` is the answer for an earlier position, so that many units on one long line are not slow.
        """
        if position < known:
            return known
        if self.source[position - 1 : position] == b"\n":  # some directives hold the end of their line
            return position
        return self.source.find(b"\n", position) + 1 or len(self.source)

    def imports(self, node: Node) -> bool:
        """Whether a statement imports something and defines no function."""
        start, end = node.start_byte, node.end_byte
        return _any_within(self._imports, start, end) and not self.holds_functions(start, end)

    def is_test(self, start: int, end: int) -> bool:
        """Whether a span is marked as a test."""
        marks = self.grammar.test_marks
        return (
            bool(marks) and re.search(marks.encode(), self.source[start : min(end, start + _LONGEST_MARK)]) is not None
        )

    def is_comment(self, node: Node) -> bool:
        """Whether a node says nothing to the machine."""
        return node.type in self.grammar.comments

    def first_comment(self) -> tuple[int, int] | None:
        """The first comment where nothing but blanks is before it."""
        if self._comments and not self.source[: self._comments[0][0]].strip():
            return self._comments[0]
        return None

    def flattened(self, nodes: Iterable[Node], space: Space, fits: Callable[[int, int], bool]) -> Iterator[Item]:
        """Statements in order; those that only hold others are opened into their headers and branches."""
        return self._flattened(nodes, space, fits, _MAX_DEPTH)

    def _flattened(
        self, nodes: Iterable[Node], space: Space, fits: Callable[[int, int], bool], depth: int
    ) -> Iterator[Item]:
        grammar = self.grammar
        for node in nodes:
            if not node.is_named or node.type in grammar.comments:
                continue
            start, end = node.start_byte, node.end_byte
            if node.type in grammar.prefixes:
                yield Item(start, end, None, space)
            elif depth and (inner := self._inner_space(node, space)) is not None:
                yield from self._opened(inner[0], inner[1], fits, depth - 1, start)
            elif depth and (
                node.type in grammar.guards
                or ((node.type in grammar.compounds or node.is_error) and self._opens(node, start, end))
            ):
                yield from self._opened(node, space, fits, depth - 1, start)
            elif depth and (inner_block := self._wrapped(node, start, end, fits)) is not None:
                yield Item(start, _opening(inner_block), None, space)
                yield from self._flattened(inner_block.children, space, fits, depth - 1)
            else:
                yield Item(start, end, node, space)

    def _opens(self, node: Node, start: int, end: int) -> bool:
        return self.holds_definitions(start, end) and definition_of(node, self) is None

    def _opened(
        self, node: Node, space: Space, fits: Callable[[int, int], bool], depth: int, start: int
    ) -> Iterator[Item]:
        grammar = self.grammar
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
                    start = len(self.source)
                continue
            if header is not None or block:
                first, last = header or (child.start_byte, child.start_byte)
                last = max(last, _opening(child)) if block else last
                if last > first:
                    yield Item(first, last, None, space, heads=bool(space.context) and not shown)
            header, shown = None, True
            if clause:
                yield from self._opened(child, space, fits, depth, child.start_byte) if depth else ()
            else:
                inside = child.children if block else [child]
                yield from self._flattened(inside, space, fits, depth - 1 if depth else 0)
        if header is not None and not shown:
            yield Item(*header, None, space)

    def _inner_space(self, node: Node, space: Space) -> tuple[Node, Space] | None:
        """The namespace or extension that an item is, and what it adds to what is inside."""
        grammar = self.grammar
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
            return node, replace(space, names=(*space.names, self.name(name).strip("\"'") if name else ""))
        fields = grammar.extensions[node.type]
        of = node.child_by_field_name(fields[0])
        header = " ".join(decoded(self.source[node.start_byte : body.start_byte]).split())
        return node, replace(space, owner=self.name(of) if of else "", context=header + grammar.opener)

    def _wrapped(self, node: Node, start: int, end: int, fits: Callable[[int, int], bool]) -> Node | None:
        """The body of the function that a statement consists of, where it holds definitions and is long."""
        grammar = self.grammar
        if node.type not in grammar.wraps or not self.holds_functions(start, end) or fits(start, end):
            return None
        for _ in range(_MAX_DEPTH):
            children = [child for child in node.children if child.is_named]
            if not children:
                return None
            node = max(children, key=lambda child: child.end_byte - child.start_byte)
            if node.type in grammar.blocks:
                return node if 2 * (node.end_byte - node.start_byte) > end - start else None
        return None

    def name(self, node: Node) -> str:
        """A name as dotted words, whatever its language puts between them; generics are left out."""
        name = dotted(self.source[max(node.start_byte, node.end_byte - _LONGEST_NAME) : node.end_byte])
        return name.removeprefix(".")

    def names_bound(self, node: Node | None) -> list[tuple[int, str]]:
        """Names that a statement binds, with their places."""
        names: list[tuple[int, str]] = []
        waiting = [node] if node is not None else []
        while waiting and len(names) < _LONGEST_NAME:
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
        found: list[int] = []
        for parent, children in self._long(nodes, fits):
            block = parent.type in self.grammar.blocks
            floor: int | None = None
            for child in children:
                start = child.start_byte
                if child.type in self.grammar.clauses:
                    line = self.source.rfind(b"\n", 0, start) + 1
                    if self.source[line:start].strip() in {b"", b"}"}:
                        found.append(self.lead(line if floor is None else min(floor, line), start))
                elif block and floor is not None and start >= floor:
                    found.append(self.lead(floor, start))
                if block:
                    floor = self.next_line(child.end_byte, floor or 0)
        return found

    def statement_starts(self, nodes: Iterable[Node], fits: Callable[[Node], bool]) -> list[int]:
        """The same wherever a statement begins, also in the middle of a line."""
        grammar = self.grammar
        return sorted(
            child.start_byte
            for parent, children in self._long(nodes, fits)
            for child in children
            if parent.type in grammar.blocks or child.type in grammar.clauses
        )

    def _long(self, nodes: Iterable[Node], fits: Callable[[Node], bool]) -> Iterator[tuple[Node, list[Node]]]:
        """The nodes, and what is in them that does not fit, each with its children."""
        waiting = [(node, _MAX_DEPTH) for node in nodes]
        while waiting:
            node, depth = waiting.pop()
            children = [child for child in node.children if child.is_named and child.type not in self.grammar.comments]
            yield node, children
            if depth:
                waiting.extend((child, depth - 1) for child in children if not fits(child))


def definition_of(node: Node | None, tree: Tree) -> Definition | None:
    """The function or type that an item defines, seen through what it is dressed in."""
    grammar = tree.grammar
    dress: list[Node] = []
    while node is not None and len(dress) < _MAX_DEPTH:
        dress.append(node)
        if node.type in grammar.functions or node.type in grammar.types:
            body = _body(node, grammar)
            name = _name(dress, tree) if body is not None else ""
            if body is None or not name:
                return None
            owner, receiver, name = _owner(dress[-1], name, tree)
            return Definition(tuple(dress), body, name, grammar.types.get(node.type, "function"), owner, receiver)
        node = seen_through(node, grammar)
    return None


def seen_through(node: Node, grammar: Grammar) -> Node | None:
    """What a node dresses."""
    for step in grammar.wrappers.get(node.type, ()):
        if step in {ONLY, LAST}:
            children = [child for child in node.named_children if child.type not in grammar.comments]
            if children and (step == LAST or len(children) == 1):
                return children[-1]
        elif (inner := node.child_by_field_name(step)) is not None:
            return inner
    return None


def _body(node: Node, grammar: Grammar) -> Node | None:
    body = node.child_by_field_name("body")
    if body is None:
        body = next((child for child in node.children if child.is_named and child.type in grammar.blocks), None)
    return node if body is None and node.type in grammar.bodiless else body


def _name(dress: Sequence[Node], tree: Tree) -> str:
    for node in reversed(dress):
        named = node.child_by_field_name(tree.grammar.name_fields.get(node.type, "name"))
        if named is not None:
            bound = tree.names_bound(named)
            return bound[0][1] if bound else tree.name(named)
    return ""


def _owner(node: Node, name: str, tree: Tree) -> tuple[str, str, str]:
    """Whose member a definition is by its receiver or its qualified name, what it calls that, and its own name."""
    grammar = tree.grammar
    if grammar.receiver and (receiver := node.child_by_field_name(grammar.receiver)) is not None:
        words = _WORD.findall(_GENERIC.sub("", tree.text(receiver)))
        return words[-1] if words else "", words[0] if len(words) > 1 else "", name
    owner, _, own = name.rpartition(".")
    owner = owner.removesuffix(".prototype")
    return "" if owner in grammar.anonymous_owners else owner, "", own


def docstring_of(statement: Node) -> Node | None:
    """The string of a statement that is nothing but one plain string."""
    # Grammars differ in whether an expression that is a statement has a node of its own around it.
    alone = statement.type == "expression_statement" and statement.child_count == 1
    expression = statement.children[0] if alone else statement
    return expression if expression.type == "string" else None


def signature_of(definition: Definition, tree: Tree) -> str:
    """The definition up to its body, on one line, without its annotations and comments."""
    hidden = tree.grammar.annotations | tree.grammar.comments
    end = definition.body.start_byte if definition.body is not definition.node else definition.node.end_byte
    pieces: list[str] = []
    waiting = [definition.dress[0]]
    position = definition.dress[0].start_byte
    while waiting:
        node = waiting.pop()
        if node.start_byte >= end:
            continue
        if node.type in hidden:
            pieces.append(decoded(tree.source[position : node.start_byte]))
            position = max(position, node.end_byte)
        elif node in definition.dress or node.type == "modifiers":
            waiting.extend(reversed(node.children))
    pieces.append(decoded(tree.source[position:end]))
    text = " ".join(" ".join(pieces).split())
    return text.removesuffix(tree.grammar.opener.strip()).rstrip()[:_LONGEST_SIGNATURE]


_LONGEST_SIGNATURE = 2000


def dotted(name: bytes) -> str:
    """A qualified name with dots between its words; of a member of what is no plain name, that after a dot.

    Examples:
        >>> dotted(b"std::vec::Vec<u8>"), dotted(b"self->x"), dotted(b"f(a).c"), dotted(b"a?.b")
        ('std.vec.Vec', 'self.x', '.c', 'a.b')
    """
    text = name.decode("utf-8", "ignore")
    if text.isidentifier():
        return text
    text = text.replace("->", ".").replace("::", ".").replace("?.", ".")
    if "operator" in text:
        return "".join(text.split())
    for _ in range(3):
        text = _GENERIC.sub("", text)
    text = "".join(text.split()).replace("..", ".").strip(".*&()")
    if _PLAIN.fullmatch(text):
        return text
    last = _LAST_WORD.search(text)
    return f".{last[1]}" if last else ""


def _opening(block: Node) -> int:
    """Where what opens a block ends; 0 where nothing does."""
    first = block.children[0] if block.child_count else None
    return first.end_byte if first is not None and not first.is_named else 0


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
