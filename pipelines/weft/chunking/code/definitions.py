"""Functions and types: how a statement defines one, what it is called, whose it is, and its signature."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tree_sitter import Node

from weft.chunking.code.grammar import LAST, ONLY, Grammar
from weft.chunking.code.tree import GENERIC, MAX_DEPTH, SyntaxTree
from weft.chunking.units.splitting import decoded

_WORD = re.compile(r"\w+")
_LONGEST_SIGNATURE = 2000
_DEFAULT = "default"  # the name of what a file exports without one
_FUNCTION = "function"
DECLARATION = "declaration"
"""The kind of a function that is declared here and defined elsewhere."""

_CAPITALS = re.compile(r"[A-Z][A-Z\d_]+")
_MOST_NAMED_BY_MACRO = 2  # words of a name: of a suite and of a test in it


@dataclass(frozen=True, slots=True)
class Definition:
    """A function or a type with its body, or a function that is declared without one."""

    node_chain: tuple[Node, ...]
    body: Node  # of what has none, the node itself
    name: str
    kind: str  # "function", "declaration", or the kind of type
    owner: str = ""  # whose member it says it is, where it stands outside its type
    receiver: str = ""  # what it calls that one

    @property
    def node(self) -> Node:
        """The definition without its dress."""
        return self.node_chain[-1]

    @property
    def is_type(self) -> bool:
        """Whether it may have members."""
        return self.kind not in {_FUNCTION, DECLARATION}


def definition_of(node: Node | None, tree: SyntaxTree) -> Definition | None:
    """The function or type that an item defines, seen through what it is dressed in."""
    grammar = tree.grammar
    node_chain: list[Node] = []
    while node is not None and len(node_chain) < MAX_DEPTH:
        node_chain.append(node)
        kind = _kind(node_chain, tree)
        if kind:
            body = _body(node, grammar)
            name = _name(node_chain, tree) if body is not None else ""
            if body is None or not name:
                return None
            owner, receiver, name = _owner(node_chain[-1], name, tree)
            return Definition(tuple(node_chain), body, name, kind, owner, receiver)
        node = unwrapped(node, grammar)
    return None


def _kind(node_chain: Sequence[Node], tree: SyntaxTree) -> str:
    """The kind of definition that the innermost node is; "" for none."""
    grammar, node = tree.grammar, node_chain[-1]
    if node.type in grammar.functions:
        return _FUNCTION
    if node.type in grammar.prototypes and _is_prototype(node_chain, grammar):
        return DECLARATION
    if node.type in grammar.exported and _is_exported(node_chain, tree):
        return grammar.exported[node.type] if tree.holds_functions(node.start_byte, node.end_byte) else ""
    kind = grammar.types.get(node.type, "")
    words = (child.type for child in node.children if child.type in grammar.kinds) if kind and grammar.kinds else ()
    return next(iter(words), kind)


def _is_prototype(node_chain: Sequence[Node], grammar: Grammar) -> bool:
    """Whether a declaration is a function's, outside of types: there it is a field like others."""
    around = node_chain[0].parent
    while around is not None and around.type in grammar.guards:
        around = around.parent
    declarator = node_chain[-1].child_by_field_name("declarator")
    while declarator is not None and declarator.type not in grammar.callables:
        if grammar.binders.get(declarator.type) != "declarator":
            return False
        declarator = declarator.child_by_field_name("declarator")
    named = declarator.child_by_field_name("declarator") if declarator is not None else None
    # Between brackets stands a pointer to a function, which is a variable.
    is_function = named is not None and named.type != "parenthesized_declarator"
    return is_function and (around is None or around.is_error or around.type in grammar.scopes)


def _is_exported(node_chain: Sequence[Node], tree: SyntaxTree) -> bool:
    """Whether it is what the file exports, and needs no name for that."""
    grammar = tree.grammar
    if not grammar.exports:
        return False
    targets = (node.child_by_field_name("left") for node in node_chain[:2])
    return any(child.type in grammar.exports for child in node_chain[0].children) or any(
        tree.text(target) in grammar.anonymous_owners for target in targets if target is not None
    )


def unwrapped(node: Node, grammar: Grammar) -> Node | None:
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
    if body is None and (node.type in grammar.exported or node.type in grammar.prototypes):
        return node
    if body is None:
        body = next((child for child in node.children if child.is_named and child.type in grammar.blocks), None)
    return node if body is None and node.type in grammar.bodiless else body


def _name(node_chain: Sequence[Node], tree: SyntaxTree) -> str:
    for node in reversed(node_chain):
        named = node.child_by_field_name(tree.grammar.name_fields.get(node.type, "name"))
        if named is None and tree.grammar.named_by:
            naming = [child for child in node.children if child.type in tree.grammar.named_by]
            if naming and tree.grammar.named_by_all:
                return ".".join(tree.text(child).strip("\"'") for child in naming)
            named = naming[0] if naming else None
        if named is not None:
            if macro_named := _named_by_macro(node, named, tree):
                return macro_named
            bound = tree.names_bound(named)
            name = bound[0][1] if bound else tree.name(named)
            return _DEFAULT if name in tree.grammar.anonymous_owners else name
    return _DEFAULT if _is_exported(node_chain, tree) else ""


def _named_by_macro(node: Node, declarator: Node, tree: SyntaxTree) -> str:
    """The name that a macro makes of its first arguments, `TEST_F(HeronTest, WadesDeep) {`; "" where none does."""
    parameters = declarator.child_by_field_name("parameters")
    called = declarator.child_by_field_name("declarator")
    if not tree.grammar.macros or parameters is None or called is None or node.child_by_field_name("type") is not None:
        return ""
    if not _CAPITALS.fullmatch(tree.text(called)):
        return ""
    words: list[str] = []
    for parameter in parameters.named_children[:_MOST_NAMED_BY_MACRO]:
        if parameter.named_child_count > 1 or not _WORD.fullmatch(tree.text(parameter)):
            break
        if parameter.named_child_count and parameter.named_children[0].type != "type_identifier":
            break
        words.append(tree.text(parameter))
    return ".".join(words)


def _owner(node: Node, name: str, tree: SyntaxTree) -> tuple[str, str, str]:
    """Whose member a definition is by its receiver or its qualified name, what it calls that, and its own name."""
    grammar = tree.grammar
    if grammar.receiver and (receiver := node.child_by_field_name(grammar.receiver)) is not None:
        words = _WORD.findall(GENERIC.sub("", tree.text(receiver)))
        return words[-1] if words else "", words[0] if len(words) > 1 else "", name
    owner, _, own = name.rpartition(".")
    owner = owner.removesuffix(".prototype")
    return "" if owner in grammar.anonymous_owners else owner, "", own


def signature_of(definition: Definition, tree: SyntaxTree) -> str:
    """The definition up to its body, on one line, without its annotations and comments."""
    hidden = tree.grammar.annotations | tree.grammar.comments
    bodiless = definition.body is definition.node and definition.node.type not in tree.grammar.exported
    opened = (child.start_byte for child in definition.node.children if tree.text(child) == "{")
    end = next(opened, definition.node.end_byte) if bodiless else definition.body.start_byte
    pieces: list[str] = []
    waiting = [definition.node_chain[0]]
    position = definition.node_chain[0].start_byte
    while waiting:
        node = waiting.pop()
        if node.start_byte >= end:
            continue
        if node.type in hidden:
            pieces.append(decoded(tree.source[position : node.start_byte]))
            position = max(position, node.end_byte)
        elif node in definition.node_chain or node.type == "modifiers":
            waiting.extend(reversed(node.children))
    pieces.append(decoded(tree.source[position:end]))
    text = " ".join(" ".join(pieces).split())
    return text.removesuffix(tree.grammar.opener.strip()).rstrip(" ;")[:_LONGEST_SIGNATURE]
