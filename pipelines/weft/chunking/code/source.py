"""Source code by tree-sitter, tolerant of syntax errors (ING-5).

Level 0 is the preamble (header comment, package, imports), 1 types and constants, 2 functions, methods and interfaces,
3 blocks of functions that are too long. Units lie between lines: each runs up to the next, and its leading comments
are its own. What differs between languages is data: see `grammars`.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, dropwhile, pairwise, takewhile

from tree_sitter import Node, QueryCursor

from weft.chunking.code.definitions import Definition, definition_of, signature_of
from weft.chunking.code.grammars import grammar_of
from weft.chunking.code.items import CodeItem, ItemGroup, groups_of, header_end, items_of, mark_of, preamble_length
from weft.chunking.code.sql import SqlStatement, statements_of
from weft.chunking.code.tree import LONGEST_NAME, SyntaxTree, dotted, query_of
from weft.chunking.prose.text import chunk_text
from weft.chunking.units.hierarchy import assemble, fitted
from weft.chunking.units.joining import MARKUP, as_one, joined
from weft.chunking.units.parsed import NamePositions, ParsedUnit, SourceFacts
from weft.chunking.units.splitting import ChunkSizes, Cuts, SizedText, TokenCounter, decoded
from weft.domain.chunks import Chunk
from weft.domain.documents import Document
from weft.domain.links import Link, LinkKind

# What source code points to by name: calls, imports, base types, tested things (ING-14).

# How sure a name is to mean what bears it, by its form.
_RESOLVED = 0.9  # through an import, through `self`, or defined in the same file
_QUALIFIED = 0.7  # by a type or a namespace that is known elsewhere
_BARE = 0.6  # what is not in the file may be built in
_MEMBER = 0.3  # of an object whose type is not known: the last name alone
_NAMED = 0.5  # a test that is called after a thing
_TEST_NAME = re.compile(
    r"^[tT]est_(?P<snake>\w+)$|^[tT]est(?P<camel>[A-Z]\w*)$|^(?P<named>\w+?)(?:_tests?|Tests?|TestCase)$"
)
_ASSERTION = re.compile(r"(?:^|\.)(?:assert|expect|fail|to[A-Z]|describe$|it$|test$|EXPECT|ASSERT)")
_MODULE_SEPARATOR = re.compile(r"::|[/.\\]+")
_SUFFIX = re.compile(r"\.(?:jsx?|tsx?|mjs|cjs|h|hpp|hh|hxx)$")
_USED = re.compile(r"\{|\}|,|[^{},]+")


@dataclass(frozen=True, slots=True)
class MemberSpan:
    """A member of a type: where it stands, of which, and what it calls that."""

    start: int
    end: int
    owner: str
    receiver: str = ""


@dataclass(frozen=True, slots=True)
class _Import:
    """A module, and what a file takes from it."""

    module: str  # as the file names it
    name: str  # what is taken from it, "" for the module itself
    alias: str  # what the file calls that

    @property
    def full(self) -> str:
        """Dotted name: of the module's last parts and of what is taken."""
        parts = [part for part in _MODULE_SEPARATOR.split(_SUFFIX.sub("", self.module)) if part]
        return ".".join([*parts, *filter(None, [self.name])])


def facts_of(
    tree: SyntaxTree, owned: Sequence[MemberSpan], named: Sequence[tuple[int, str]], tests: Sequence[tuple[int, int]]
) -> SourceFacts:
    """Names defined and referenced, links, and syntax errors, by place."""
    imports = list(_imports(tree))
    resolver = _Resolver(tree, owned, {each.alias: each.full for _, each in imports if each.alias}, named)
    types = dict(reversed([(name, position) for position, name in named]))
    defines = {(node.start_byte, tree.name(node)) for node in tree.captures.get("defines", ())} | set(named)
    references: list[tuple[int, str]] = []
    links: list[tuple[int, Link]] = []
    for position, imported in imports:
        references.append((position, imported.full if imported.name else imported.module))
        links.append((position, Link(LinkKind.IMPORTS, imported.module)))
        if imported.name:
            links.append((position, Link(LinkKind.REFERENCES, imported.full, _RESOLVED)))
    taken = {position for position, _ in defines}
    for capture, kind in _CAPTURES.items():
        for position, name in _captured(tree, capture):
            if capture == "mention" and (position in taken or name in tree.grammar.selves):
                continue
            taken.add(position)
            plain = name.removeprefix(".")
            if capture != "mention":
                references.append((position, plain))
            target, confidence = resolver(name, position)
            links.append((position, Link(kind, target, confidence)))
            if kind is LinkKind.CALLS and _within(tests, position) and not _ASSERTION.search(plain):
                links.append((position, Link(LinkKind.TESTS, target, min(_NAMED, confidence))))
    links += [(types[owner], link) for owner, link in _implemented(tree, resolver) if owner in types]
    return SourceFacts(
        defines=NamePositions.of(sorted(defines)),
        references=NamePositions.of(sorted(references)),
        links=NamePositions.of(sorted(links, key=lambda link: (link[0], link[1].kind, link[1].target))),
        errors=tree.errors,
    )


_CAPTURES = {
    "call": LinkKind.CALLS,
    "invoked": LinkKind.CALLS,
    "used": LinkKind.REFERENCES,
    "reference": LinkKind.REFERENCES,
    "extends": LinkKind.EXTENDS,
    "implements": LinkKind.IMPLEMENTS,
    "mention": LinkKind.REFERENCES,  # last: what is said of a type besides that it is mentioned says more
}


def _captured(tree: SyntaxTree, capture: str) -> Iterator[tuple[int, str]]:
    """Names of one kind by place; of a member of what bears no name, that member's after a dot."""
    source, covered = tree.source, 0
    nodes = tree.captures.get(capture, [])
    if capture == "mention":
        nodes = sorted(nodes, key=lambda node: (node.start_byte, -node.end_byte))
    for node in nodes:
        start, end = node.start_byte, node.end_byte
        if capture == "mention" and start < covered:
            continue  # a part of the qualified name before it
        covered = end
        if capture in {"invoked", "used"} and (parent := node.parent) is not None:
            start = parent.start_byte
        name = dotted(source[max(start, end - LONGEST_NAME) : end]).rstrip(".")  # `p.operator->` names `p.operator`
        before = source[max(0, start - 3) : start]
        if name and before.endswith((b"::", b".", b"->")) and before != b"...":
            name = f".{name.removeprefix('.')}"
        if name:
            yield start, name


def _implemented(tree: SyntaxTree, resolver: _Resolver) -> Iterator[tuple[str, Link]]:
    """What types implement by extensions that stand outside them."""
    for node in tree.captures.get("implements", ()):
        extension = node.parent
        fields = tree.grammar.extensions.get(extension.type) if extension is not None else None
        extended = extension.child_by_field_name(fields[0]) if extension is not None and fields else None
        if extended is not None:
            target, confidence = resolver(tree.name(node), node.start_byte)
            yield tree.name(extended), Link(LinkKind.IMPLEMENTS, target, confidence)


class _Resolver:
    """Names as the file uses them, to names as others may know them."""

    def __init__(
        self,
        tree: SyntaxTree,
        owned: Sequence[MemberSpan],
        imported: Mapping[str, str],
        named: Sequence[tuple[int, str]],
    ) -> None:
        self._tree = tree
        self._owned = sorted(owned, key=lambda member: member.start)
        self._starts = [member.start for member in self._owned]
        self._imported = imported
        self._local = {name for _, name in named}

    def __call__(self, name: str, position: int) -> tuple[str, float]:
        """What a name at a place points to, and how surely."""
        name = self._as_defined(name)
        first, _, rest = name.partition(".")
        if not first:
            return rest, _MEMBER
        index = bisect_right(self._starts, position) - 1
        member = self._owned[index] if index >= 0 and position < self._owned[index].end else None
        if rest and (first in self._tree.grammar.selves or (member is not None and first == member.receiver)):
            owner = member.owner if member is not None else ""
            return (f"{owner}.{rest}", _RESOLVED) if owner and "." not in rest else (_last(rest), _MEMBER)
        if first in self._imported:
            return ".".join(filter(None, (self._imported[first], rest))), _RESOLVED
        if first in self._local:
            return name, _RESOLVED
        if not rest:
            return first, _BARE
        scoped = (
            self._tree.grammar.spaces
            or first[:1].isupper()
            or self._tree.source.startswith(b"::", position + len(first.encode()))
        )
        return (name, _QUALIFIED) if scoped else (_last(rest), _MEMBER)

    def _as_defined(self, name: str) -> str:
        """A name as its definition has it."""
        grammar, (first, dot, rest) = self._tree.grammar, name.partition(".")
        if grammar.packaged:
            return ".".join(dropwhile(str.islower, name.split("."))) or name
        if not (dot and grammar.beginnings):
            return name
        return ".".join((grammar.beginnings.get(first) or f"{grammar.beginnings['']}.{first}", rest))


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _imports(tree: SyntaxTree) -> Iterator[tuple[int, _Import]]:
    query = query_of(tree.grammar.name, "modules")
    for statement in tree.captures.get("import", ()):
        for _, captured in QueryCursor(query).matches(statement):
            if "module" not in captured:
                continue
            # Scala's whole statement is captured: its path is in many nodes.
            module = tree.text(captured["module"][0]).removeprefix("import ").replace(" => ", " as ").strip("\"'`<> ")
            name = tree.text(captured["name"][0]) if "name" in captured else ""
            alias = tree.text(captured["alias"][0]) if "alias" in captured else ""
            place = captured.get("name", captured["module"])[0].start_byte
            if "{" in module or " as " in module:
                yield from ((place, used) for used in _used(module))
            else:
                yield place, _Import(module, name, alias or name or _own_name(module))


def _own_name(module: str) -> str:
    parts = [part for part in _MODULE_SEPARATOR.split(module) if part]
    return parts[-1] if parts and parts[-1] != "*" else ""


def _used(tree: str) -> Iterator[_Import]:
    """The paths in `a::{b, c as d, e::{f}}`."""
    prefixes = [""]
    last = ""
    for piece in map(str.strip, _USED.findall(tree)):
        if piece == "{":
            prefixes.append(last)
        elif piece == "}":
            prefixes.pop()
        elif piece and piece != ",":
            path, _, alias = piece.partition(" as ")
            last = prefixes[-1] + path.strip()
            if not last.endswith(("::", ".")):
                last = last.removesuffix("::self")
                yield _Import(last, "", alias.strip() or _own_name(last))


def _within(spans: Sequence[tuple[int, int]], position: int) -> bool:
    index = bisect_right(spans, position, key=lambda span: span[0]) - 1
    return index >= 0 and position < spans[index][1]


def tested_by_name(symbol: str) -> tuple[Link, ...]:
    """What a test is called after; nothing where its name is no test's.

    Examples:
        >>> [link.target for link in tested_by_name("ShelfTest.test_add_book")]
        ['add_book', 'Shelf']
        >>> [link.target for link in tested_by_name("TestShelf_Add")]
        ['Shelf.Add', 'shelf.Add']
    """
    targets: list[str] = []
    for name in reversed(symbol.split(".")):
        if (match := _TEST_NAME.match(name)) is None:
            continue
        if match["snake"] or match["named"]:
            targets.append(match["snake"] or match["named"])
        else:
            camel = match["camel"].replace("_", ".")
            targets += [camel, camel[0].lower() + camel[1:]]
    return tuple(Link(LinkKind.TESTS, target, _NAMED) for target in dict.fromkeys(targets))


_DEEPEST = 3
_ROUTINES = {"function", "procedure"}
_HEADER = re.compile(rb"\s*(?:(?:--[^\n]*\n)+|/\*(?!!)(?:[^*]|\*(?!/))*+\*/[ \t\r]*\n)[ \t\r]*\n")  # of a file of SQL
_ENDED = re.compile(rb";[ \t]*(?:--[^\n]*)?\r?\n")
_LISTED = re.compile(rb",[ \t]*(?:--[^\n]*)?\r?\n")
_SPARSE = 64  # bytes per token that no code has: what is longer is looked into without being counted
_INTERFACES = {"interface", "trait"}
METHOD_SET = "method_set"
"""The attribute of an interface that names its methods, with blanks between."""


def chunk_code(document: Document, sizes: ChunkSizes, count_tokens: TokenCounter) -> list[Chunk]:
    """Units of a source file, as far as it could be understood; windows by its layout where there is no grammar."""
    grammar = grammar_of(document.language or "")
    if grammar is None:
        return chunk_text(document, sizes, count_tokens)
    text = SizedText(document.text, sizes, count_tokens)
    tree = SyntaxTree(text.source, grammar)
    outline = _Outline(tree, text, errors=[*tree.errors])
    units = joined(text, outline.statements() if grammar.name == "sql" else _bundled(outline.file()))
    facts = facts_of(tree, outline.owned, outline.named, outline.tests)
    return assemble(document, text, units, replace(facts, errors=outline.errors))


def _bundled(units: Sequence[ParsedUnit]) -> list[ParsedUnit]:
    """Members of what is no type in this file belong to the function of that name, as before there were classes."""
    paths = {unit.path for unit in units}
    return [
        replace(unit, bundle_path=f"function:{unit.bundle_path.removeprefix('type:')}")
        if unit.bundle_path is not None and unit.bundle_path not in paths
        else unit
        for unit in units
    ]


@dataclass(frozen=True, slots=True)
class _Scope:
    """Where members stand: the file, or a type."""

    path: str = ""  # structural path of the type, "" for the file
    symbol: str = ""  # qualified name of the type, "" for the file
    level: int = 1  # level of the types in it; functions are one deeper in the file, and on it in a type
    context: str = ""  # the signatures around, one a line, as they stand in the source
    parents: tuple[str, ...] = ()

    def qualified(self, *names: str) -> str:
        """Qualified name of a member."""
        return ".".join(filter(None, (self.symbol, *names)))


@dataclass(slots=True)
class _Outline:
    """Units of one file, and what was learned on the way."""

    tree: SyntaxTree
    text: SizedText
    owned: list[MemberSpan] = field(default_factory=list)  # spans of the members of types, in order
    named: list[tuple[int, str]] = field(default_factory=list)  # places of the names that the file defines
    tests: list[tuple[int, int]] = field(default_factory=list)  # spans of tests, in order
    errors: list[tuple[int, int]] = field(default_factory=list)  # spans of what could not be understood

    def file(self) -> list[ParsedUnit]:
        """Units of the whole file, which cover it."""
        end = len(self.tree.source)
        items = list(items_of(self.tree, self.tree.root.children, self._fits, self._fits_whole))
        leading = preamble_length(self.tree, items)
        below = self.tree.next_line(items[leading - 1].end, 0) if leading else 0
        while leading < len(items) and items[leading].start < below:
            leading += 1  # it stands on the last line of the preamble
        preamble, rest = items[:leading], items[leading:]
        groups = groups_of(self.tree, rest, preamble[-1].end if preamble else header_end(self.tree, rest))
        if groups and not preamble and (groups[0].start == 0 or not header_end(self.tree, rest)):
            return self._members([replace(groups[0], start=0), *groups[1:]], end, _Scope())
        unit = ParsedUnit(start=0, end=groups[0].start if groups else end, path="preamble", kind="preamble", level=0)
        head = self._fitted(unit, preamble, limit=self.text.sizes.max_tokens)
        return [*head, *self._members(groups, end, _Scope(parents=("preamble",)))]

    def statements(self) -> list[ParsedUnit]:
        """Units of a whole file of SQL: its statements, those of one line together."""
        source, end = self.tree.source, len(self.tree.source)
        header = _HEADER.match(source)
        floor = header.end() if header is not None else 0
        groups: list[tuple[int, list[SqlStatement]]] = []
        statements = list(statements_of(source))
        # They are found without the tree, whose errors would be those of dialects.
        self.errors[:] = [(each.start, each.end) for each in statements if not each.paired]
        for statement in statements:
            if groups and statement.start < floor:
                groups[-1][1].append(statement)
            else:
                groups.append((floor, [statement]))
            floor = self.tree.next_line(statement.end, floor)
        starts = [*(start for start, _ in groups), end]
        head = ParsedUnit(start=0, end=starts[0], path="preamble", kind="preamble", level=0)
        units = self._fitted(head, (), limit=self.text.sizes.max_tokens) if starts[0] else []
        for (start, group), stop in zip(groups, starts[1:], strict=True):
            units += self._statement(group, start, stop, ("preamble",) if starts[0] else ())
        return units

    def _statement(
        self, group: Sequence[SqlStatement], start: int, stop: int, parents: tuple[str, ...]
    ) -> list[ParsedUnit]:
        source, main = self.tree.source, next((each for each in group if each.name), group[0])
        self.named += [(each.place, each.name.rpartition(".")[2]) for each in group if each.name]
        routine, tested = main.kind in _ROUTINES, tested_by_name(main.name)
        if routine and tested:
            self.tests.append((start, stop))
        of = main.kind if routine or not main.signature else "type"
        unit = ParsedUnit(
            start=start,
            end=stop,
            path=f"{of}:{main.name or mark_of(source, main.start)}",
            kind=main.kind,
            level=2 if routine else 1,
            parents=parents,
            part_context=main.signature,
            part_kind="fields" if of == "type" else "block" if routine else main.kind,
            symbol=main.name or None,
            signature=main.signature or None,
            bundle_path=f"type:{main.table}" if main.table else f"type:{main.name}" if of == "type" else None,
            links=tested if routine else (),
            further_symbols=tuple(each.name for each in group if each.name and each is not main),
        )

        def cuts() -> Cuts:
            lines = [match.end() for match in _ENDED.finditer(source, start, stop)]
            listed = [match.end() for match in _LISTED.finditer(source, start, stop)]
            return self._cuts(unit, lines, (), [*listed, *(each.start for each in group)])

        return fitted(self.text, unit, cuts, limit=self.text.sizes.max_tokens)

    def _members(self, groups: Sequence[ItemGroup], end: int, scope: _Scope) -> list[ParsedUnit]:
        units: list[ParsedUnit] = []
        guard, first = -1, 0
        for group, stop in zip(groups, [*(group.start for group in groups[1:]), end], strict=False):
            definition = group.definition
            if group.guard < 0 or group.guard != guard:
                guard, first = group.guard, len(units)
            if definition is None:
                units += self._run(group, stop, scope)
            elif definition.is_type and self._opens(definition, scope):
                units += self._type(group, definition, stop, scope)
                guard = -1  # members stay units of their own
            else:
                units += self._whole(group, definition, stop, scope)
            if guard >= 0:
                units[first:] = as_one(self.text, units[first:])
        return units

    def _opens(self, definition: Definition, scope: _Scope) -> bool:
        """Whether the members of a type are units of their own: functions, and types in one that is too long."""
        if scope.level >= _DEEPEST:
            return False
        start, end = definition.body.start_byte, definition.body.end_byte
        if self.tree.holds_functions(start, end):
            return True
        return self.tree.holds_definitions(start, end) and not self._fits_whole(start, end)

    def _unit(self, group: ItemGroup, definition: Definition, stop: int, scope: _Scope) -> ParsedUnit:
        """The unit of a definition, whole."""
        space, tree = group.space, self.tree
        owner = scope.qualified(*space.names, space.owner or definition.owner)
        member = bool(scope.symbol or space.owner or (definition.owner and not tree.grammar.spaces))
        typed = definition.is_type
        symbol = ".".join(filter(None, (owner, definition.name)))
        kind = "method" if member and definition.kind == "function" else definition.kind
        level = scope.level if typed or scope.symbol else scope.level + 1
        signature = signature_of(definition, tree)
        context = scope.context if group.headed else _under(scope.context, space.context)
        shown = _under(scope.context, space.context)
        self.named.append((definition.node.start_byte, definition.name))
        if typed:
            self.named += chain.from_iterable(tree.names_bound(item.node) for item in group.items)
        if member:
            self.owned.append(MemberSpan(definition.node.start_byte, stop, owner, definition.receiver))
        tested = tested_by_name(symbol)
        if definition.kind == "function" and (tested or tree.is_test(group.start, definition.body.start_byte)):
            self.tests.append((group.start, stop))
        path = f"type:{symbol}" if typed else f"{kind}:{symbol}"
        return ParsedUnit(
            start=group.start,
            end=stop,
            path=path,
            kind=kind,
            level=min(_DEEPEST, level + 1) if kind in _INTERFACES and not scope.symbol else level,
            parents=(f"type:{owner}", *scope.parents) if member and not scope.symbol else scope.parents,
            context=context,
            part_context=_under(shown, self._indent(group.items[-1].start) + signature + tree.grammar.opener),
            part_kind="fields" if typed else "block",
            symbol=symbol,
            signature=signature,
            bundle_path=f"type:{owner}" if member else path if typed else None,
            links=tested if definition.kind == "function" else (),
            attributes=self._method_set(definition),
        )

    def _method_set(self, definition: Definition) -> dict[str, str]:
        """Names of the methods that a type must have to be of an interface, where no type says of which it is."""
        asked = self.tree.grammar.asked_methods
        members = definition.node.named_children if asked else ()
        names = [member.child_by_field_name("name") for member in members if member.type in asked]
        spoken = " ".join(sorted({self.tree.name(name) for name in names if name is not None}))
        return {METHOD_SET: spoken} if spoken else {}

    def _whole(self, group: ItemGroup, definition: Definition, stop: int, scope: _Scope) -> list[ParsedUnit]:
        unit = self._roomy(self._unit(group, definition, stop, scope))
        node = definition.node

        def cuts() -> Cuts:
            long = [] if self._fits_whole(node.start_byte, node.end_byte) else [node]
            return self._cuts(unit, [self.tree.lead(group.start, node.start_byte)], long)

        return fitted(self.text, unit, cuts, limit=self.text.sizes.max_tokens)

    def _type(self, group: ItemGroup, definition: Definition, stop: int, scope: _Scope) -> list[ParsedUnit]:
        """A type's head with its leading fields, then its members."""
        whole = self._unit(group, definition, stop, scope)
        items = list(items_of(self.tree, definition.body.children, self._fits, self._fits_whole))
        # Leading fields stay with the head of their type: that is what a reader needs to know what the type is.
        fields = sum(1 for _ in takewhile(lambda item: item.node and not definition_of(item.node, self.tree), items))
        groups = groups_of(self.tree, items[fields:], items[fields - 1].end if fields else self._start(definition))
        groups = [member for member in groups if group.start < member.start < stop]
        unit = replace(whole, end=groups[0].start if groups else stop)
        level, parents = min(_DEEPEST, whole.level + 1), (whole.path, *whole.parents)
        inner = _Scope(whole.path, whole.symbol or "", level, whole.part_context, parents)
        self.named += chain.from_iterable(self.tree.names_bound(item.node) for item in items[:fields])
        own = self._fitted(self._roomy(unit), items[:fields], limit=self.text.sizes.max_tokens)
        return [*own, *self._members(groups, stop, inner)]

    def _run(self, group: ItemGroup, stop: int, scope: _Scope) -> list[ParsedUnit]:
        tree = self.tree
        nodes = [item.node for item in group.items if item.node is not None]
        bound = [tree.names_bound(node) for node in nodes]
        names = [name for pairs in bound for _, name in pairs]
        self.named += chain.from_iterable(bound)
        spans = ((node.start_byte, node.end_byte) for node in nodes)
        self.tests += [span for span in spans if tree.is_test(*span)]
        owner = scope.qualified(*group.space.names, group.space.owner)
        own = names[0] if names else mark_of(tree.source, group.items[0].start)
        member = bool(scope.symbol or group.space.owner)
        binding = all(pairs or tree.is_docstring(node) for pairs, node in zip(bound, nodes, strict=True))
        kind = "fields" if member else "constants" if names and binding else "code"
        kind = MARKUP if any(node.type in tree.grammar.markup for node in nodes) else kind
        shown = _under(scope.context, group.space.context)
        unit = ParsedUnit(
            start=group.start,
            end=stop,
            path=f"{kind}:{'.'.join(filter(None, (owner, own)))}",
            kind=kind,
            level=scope.level,
            parents=scope.parents,
            context=scope.context if group.headed else shown,
            part_context=shown,
            part_kind=kind,
            bundle_path=f"type:{owner}" if member else None,
        )
        return self._fitted(self._roomy(unit), list(group.items), limit=self.text.sizes.target_tokens)

    def _fitted(self, unit: ParsedUnit, items: Sequence[CodeItem], *, limit: int) -> list[ParsedUnit]:
        def cuts() -> Cuts:
            inner: list[int] = []
            floor = unit.start
            for item in items:
                if item.start >= floor:
                    inner.append(self.tree.lead(floor, item.start))
                floor = self.tree.next_line(item.end, floor)
            long = [item.node for item in items if item.node is not None and not self._fits_node(item.node)]
            return self._cuts(unit, inner, long, [item.start for item in items])

        return fitted(self.text, unit, cuts, limit=limit)

    def _cuts(self, unit: ParsedUnit, lines: Sequence[int], long: Sequence[Node], starts: Sequence[int] = ()) -> Cuts:
        """Cuts at lines; where they leave too much, inside blocks that fit, and between the statements of a line."""
        tree = self.tree
        cuts = Cuts.between(unit.start, unit.end, [*lines, *tree.statement_cuts(long, self._fits_node)])
        # Each step only where the one before left too much: what can be cut between blocks is never cut inside one.
        if not self._all_fit(cuts):
            cuts = self._finer(cuts, tree.statement_cuts(long, self._fits_inside))
        if not self._all_fit(cuts):
            cuts = self._finer(cuts, [*starts, *tree.statement_starts(long, self._fits_inside)])
        return cuts

    def _all_fit(self, cuts: Cuts) -> bool:
        return all(self.text.fits(start, end, self.text.sizes.max_tokens) for start, end in pairwise(cuts.positions))

    def _finer(self, cuts: Cuts, inner: Iterable[int]) -> Cuts:
        """More cuts in what is too long; a statement ends at each, so that nothing need be repeated there."""
        places = sorted(inner)

        def within(_: bytes, start: int, end: int) -> Sequence[int]:
            return places[bisect_right(places, start) : bisect_left(places, end)]

        finest = cuts.refined(self.text, within, self.text.sizes.max_tokens).positions
        return Cuts.between(finest[0], finest[-1], finest)

    def _roomy(self, unit: ParsedUnit) -> ParsedUnit:
        """The unit under as much of its context as leaves it whole, where it can be whole."""
        limit = self.text.sizes.max_tokens
        if not unit.context or not self._fits_whole(unit.start, unit.end):
            return unit
        body = self.text.tokens(unit.start, unit.end)
        for context in (unit.context, unit.context.rpartition("\n")[2]):
            if body + self.text.of_context(context) <= limit:
                return replace(unit, context=context)
        return replace(unit, context="")

    def _fits(self, start: int, end: int) -> bool:
        return self.text.fits(start, end, self.text.sizes.target_tokens)

    def _fits_whole(self, start: int, end: int) -> bool:
        return self.text.fits(start, end, self.text.sizes.max_tokens)

    def _fits_node(self, node: Node) -> bool:
        """Whether a statement need not be cut: those that hold others are filled up to the target only."""
        grammar, start, end = self.tree.grammar, node.start_byte, node.end_byte
        opened = any(node.type in types for types in (grammar.compounds, grammar.clauses, grammar.blocks))
        limit = self.text.sizes.target_tokens if opened else self.text.sizes.max_tokens
        return end - start <= _SPARSE * limit and self.text.fits(start, end, limit)

    def _fits_inside(self, node: Node) -> bool:
        """The same, where a block is looked into even if it fits: what it belongs to does not."""
        return node.type not in self.tree.grammar.blocks and self._fits_node(node)

    def _indent(self, position: int) -> str:
        start = self.tree.source.rfind(b"\n", 0, position) + 1
        before = self.tree.source[start:position]
        return decoded(before) if before.isspace() else ""

    def _start(self, definition: Definition) -> int:
        """Where the body of a type opens."""
        body = definition.body
        if body.child_count and not body.children[0].is_named:
            return body.children[0].end_byte
        before = body.prev_sibling
        return before.end_byte if before is not None else body.start_byte


def _under(context: str, line: str) -> str:
    return f"{context}\n{line}" if context and line else context or line
