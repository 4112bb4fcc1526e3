"""What the syntax tree of a Python file says: items, signatures, names, errors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from tree_sitter import Language, Node, Parser, Query, QueryCursor
from tree_sitter_language_pack import get_language

from pipelines.chunking.hierarchy import Facts, Positions
from pipelines.chunking.splitting import decoded

_DEFINITIONS = {"function_definition", "class_definition"}
_COMPOUND = {
    "if_statement",
    "try_statement",
    "with_statement",
    "for_statement",
    "while_statement",
    "match_statement",
    "ERROR",
}
_CLAUSES = {
    "elif_clause",
    "else_clause",
    "except_clause",
    "except_group_clause",
    "finally_clause",
    "case_clause",
}
_IMPORTS = {"import_statement", "import_from_statement", "future_import_statement"}
_NAMES = """
(call function: [(identifier) (attribute)] @reference)
(decorator [(identifier) (attribute)] @reference)
(class_definition superclasses: (argument_list [(identifier) (attribute)] @reference))
(import_statement name: (dotted_name) @reference)
(import_statement name: (aliased_import name: (dotted_name) @reference))
(import_from_statement module_name: (_) @module)
(function_definition name: (identifier) @definition)
(class_definition name: (identifier) @definition)
"""


@dataclass(frozen=True, slots=True)
class Item:
    """A statement of a module or a class body, or the header (`else:`) that introduces some: its node is None."""

    start: int
    end: int
    node: Node | None


@cache
def _language() -> Language:
    language: Language = get_language("python")
    return language


@cache
def _names() -> Query:
    return Query(_language(), _NAMES)


def parsed(source: bytes) -> Node:
    """Root of the syntax tree; what cannot be understood is under ERROR nodes."""
    return Parser(_language()).parse(source).root_node


def definition_of(node: Node | None) -> Node | None:
    """The function or class that a statement defines, seen through its decorators."""
    if node is not None and node.type == "decorated_definition":
        node = node.child_by_field_name("definition")
    return node if node is not None and node.type in _DEFINITIONS else None


def flattened(nodes: Iterable[Node]) -> Iterator[Item]:
    """Statements in source order; those that hold definitions are opened into their headers and branches."""
    for node in nodes:
        if node.type == "comment":
            continue
        if node.type in _COMPOUND and _holds_definitions(node):
            yield from _opened(node)
        else:
            yield Item(node.start_byte, node.end_byte, node)


def _opened(node: Node) -> Iterator[Item]:
    header: tuple[int, int] | None = None
    for child in node.children:
        if child.type == "block" or child.type in _CLAUSES or node.type == "ERROR":
            if header is not None:
                yield Item(*header, None)
                header = None
            if child.type in _CLAUSES:
                yield from _opened(child)
            else:
                yield from flattened(child.children if child.type == "block" else [child])
        elif child.type != "comment":
            header = (header[0] if header else child.start_byte, child.end_byte)
    if header is not None:
        yield Item(*header, None)


def _holds_definitions(node: Node) -> bool:
    return any(
        definition_of(child) is not None
        or ((child.type == "block" or child.type in _COMPOUND or child.type in _CLAUSES) and _holds_definitions(child))
        for child in node.children
    )


def is_preamble(node: Node | None, source: bytes, *, first: bool) -> bool:
    """Whether a statement may stand in a file's preamble: its docstring, imports, guarded imports, dunder names."""
    if node is None:
        return False
    if node.type in _IMPORTS:
        return True
    if first and docstring_of(node) is not None:
        return True
    if node.type in _COMPOUND:
        return any(_imports_only(child) for child in node.children if child.type == "block")
    names = [name for _, name in targets_of(node, source)]
    return bool(names) and all(name.startswith("__") and name.endswith("__") for name in names)


def _imports_only(block: Node) -> bool:
    statements = [child for child in block.children if child.type != "comment"]
    return bool(statements) and all(child.type in _IMPORTS for child in statements)


def docstring_of(statement: Node) -> Node | None:
    """The string of a statement that is nothing but one plain string."""
    expression = _expression(statement)
    return expression if expression.type == "string" else None


def targets_of(node: Node, source: bytes) -> list[tuple[int, str]]:
    """Names that an assignment binds, with their places; none for other statements."""
    expression = _expression(node)
    if expression.type not in {"assignment", "type_alias_statement"}:
        return []
    left = expression.child_by_field_name("left")
    if left is None:
        return []
    parts = left.children if left.type in {"pattern_list", "tuple_pattern"} else [left]
    return [(part.start_byte, _text(part, source)) for part in parts if part.is_named]


def _expression(statement: Node) -> Node:
    # Grammars differ in whether an expression that is a statement has a node of its own around it.
    alone = statement.type == "expression_statement" and statement.child_count == 1
    return statement.children[0] if alone else statement


def signature_of(node: Node, source: bytes) -> str:
    """The definition up to its colon, on one line."""
    ends = [child.end_byte for child in node.children if child.type not in {"block", ":", "comment"}]
    return " ".join(decoded(source[node.start_byte : max(ends, default=node.start_byte)]).split())


def body_cuts(node: Node, source: bytes, fits: Callable[[int, int], bool]) -> Iterator[int]:
    """Where a compound statement may be cut: between the statements of its body, deeper where those do not fit."""
    for child in node.children:
        if child.type == "block":
            yield from _block_cuts(child, source, fits)
        elif child.type in _CLAUSES:
            yield lead(source, 0, child.start_byte)
            if not fits(child.start_byte, child.end_byte):
                yield from body_cuts(child, source, fits)
        elif child.type in _DEFINITIONS:  # of a decorated definition
            yield from body_cuts(child, source, fits)


def _block_cuts(block: Node, source: bytes, fits: Callable[[int, int], bool]) -> Iterator[int]:
    floor: int | None = None
    for statement in block.children:
        if statement.type == "comment":
            continue
        if floor is not None and statement.start_byte >= floor:
            yield lead(source, floor, statement.start_byte)
        if not fits(statement.start_byte, statement.end_byte):
            yield from body_cuts(statement, source, fits)
        floor = next_line(source, statement.end_byte, floor or 0)


def next_line(source: bytes, position: int, known: int) -> int:
    """Start of the first line after `position`, the end of the source if there is none.

    `known` is the answer for an earlier position, so that many units on one long line are not slow.
    """
    return known if position < known else source.find(b"\n", position) + 1 or len(source)


def lead(source: bytes, floor: int, position: int) -> int:
    """Where the unit at `position` begins: at its line, or at the first of its comments, not above the line `floor`.

    Comments that stand deeper than the unit close what is before them.
    """
    line = start = candidate = max(floor, source.rfind(b"\n", floor, position) + 1)
    while candidate > floor:
        above = source.rfind(b"\n", floor, candidate - 1) + 1 or floor
        text = source[above:candidate].strip()
        if text and not (text.startswith(b"#") and source.find(b"#", above, candidate) - above <= position - line):
            break
        candidate = above
        if text:
            start = above
    return start


def facts_of(root: Node, source: bytes) -> Facts:
    """Names defined and referenced, and syntax errors, by place."""
    captures: dict[str, list[Node]] = {}
    for node in _understood(root):
        for name, nodes in QueryCursor(_names()).captures(node).items():
            captures.setdefault(name, []).extend(nodes)
    defines = [(node.start_byte, _text(node, source)) for node in captures.get("definition", [])]
    references = [(node.start_byte, _dotted(node, source)) for node in captures.get("reference", [])]
    references += [found for node in captures.get("module", []) for found in _imported(node, source)]
    defines += [found for item in _assignments(root.children) for found in targets_of(item, source)]
    return Facts(
        defines=Positions.of(defines),
        references=Positions.of(sorted(references)),
        errors=sorted(_errors(root)) if root.has_error else (),
    )


def _understood(root: Node) -> Iterator[Node]:
    """The tree without the error nodes at its top: a query takes quadratic time in their many children."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.is_error or (node is root and node.has_error):
            waiting.extend(child for child in node.children if child.is_named)
        else:
            yield node


def _assignments(nodes: Sequence[Node]) -> Iterator[Node]:
    """Statements of the module and of its class bodies that may bind names."""
    for item in flattened(nodes):
        if item.node is None:
            continue
        definition = definition_of(item.node)
        if definition is None:
            yield item.node
        elif definition.type == "class_definition" and (body := definition.child_by_field_name("body")) is not None:
            yield from _assignments(body.children)


def _imported(module: Node, source: bytes) -> Iterator[tuple[int, str]]:
    """`from a import b, c as d` refers to a.b and a.c."""
    origin = _text(module, source)
    statement = module.parent
    names = statement.children_by_field_name("name") if statement is not None else []
    for node in names:
        name = node.child_by_field_name("name") if node.type == "aliased_import" else node
        if name is not None:
            yield node.start_byte, f"{origin}{'' if origin.endswith('.') else '.'}{_text(name, source)}"
    if not names:
        yield module.start_byte, origin


def _dotted(node: Node, source: bytes) -> str:
    """`a.b.c` as it is; of an attribute of anything but names, such as `f(x).c`, the attribute alone."""
    inner: Node | None = node
    while inner is not None and inner.type == "attribute":
        inner = inner.child_by_field_name("object")
    if inner is None or inner.type != "identifier":
        # Its text is not looked at: in a chain of calls every one of them holds all before it.
        node = node.child_by_field_name("attribute") or node
    return "".join(_text(node, source).split())


def _errors(root: Node) -> Iterator[tuple[int, int]]:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.is_error:
            yield node.start_byte, node.end_byte
        elif node.has_error:
            waiting.extend(node.children)


def _text(node: Node, source: bytes) -> str:
    return decoded(source[node.start_byte : node.end_byte])
