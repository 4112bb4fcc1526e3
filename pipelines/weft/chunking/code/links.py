"""What source code points to by name: calls, imports, base types, tested things (ING-14)."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tree_sitter import QueryCursor

from weft.chunking.code.tree import LONGEST_NAME, SyntaxTree, dotted, query_of
from weft.chunking.units.parsed import NamePositions, SourceFacts
from weft.domain.links import Link, LinkKind

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
_MODULE_SEPARATOR = re.compile(r"::|[/.]+")
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
        if capture == "invoked" and (parent := node.parent) is not None:
            start = parent.start_byte
        name = dotted(source[max(start, end - LONGEST_NAME) : end]).rstrip(".")  # `p.operator->` names `p.operator`
        if name and source[max(0, start - 2) : start].endswith((b"::", b".", b"->")):
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
        scoped = first[:1].isupper() or self._tree.source.startswith(b"::", position + len(first.encode()))
        return (name, _QUALIFIED) if scoped else (_last(rest), _MEMBER)


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _imports(tree: SyntaxTree) -> Iterator[tuple[int, _Import]]:
    query = query_of(tree.grammar.name, "modules")
    for statement in tree.captures.get("import", ()):
        for _, captured in QueryCursor(query).matches(statement):
            if "module" not in captured:
                continue
            module = tree.text(captured["module"][0]).strip("\"'`<>")
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
            if not last.endswith("::"):
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
