"""Source code by tree-sitter, tolerant of syntax errors (ING-5).

Level 0 is the preamble (header comment, package, imports), 1 types and constants, 2 functions, methods and interfaces,
3 blocks of functions that are too long. Units lie between lines: each runs up to the next, and its leading comments
are its own. What differs between languages is data: see `grammars`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise, takewhile

from tree_sitter import Node

from weft.chunking.code.definitions import Definition, definition_of, signature_of
from weft.chunking.code.grammars import GRAMMARS
from weft.chunking.code.items import CodeItem, ItemGroup, groups_of, header_end, items_of, mark_of, preamble_length
from weft.chunking.code.links import MemberSpan, facts_of, tested_by_name
from weft.chunking.code.tree import SyntaxTree
from weft.chunking.prose.text import chunk_text
from weft.chunking.units.hierarchy import assemble, fitted
from weft.chunking.units.parsed import ParsedUnit
from weft.chunking.units.splitting import ChunkSizes, Cuts, SizedText, TokenCounter, decoded
from weft.domain.chunks import Chunk
from weft.domain.documents import Document

_DEEPEST = 3
_SPARSE = 64  # bytes per token that no code has: what is longer is looked into without being counted
_INTERFACES = {"interface", "trait"}


def chunk_code(document: Document, sizes: ChunkSizes, count_tokens: TokenCounter) -> list[Chunk]:
    """Units of a source file, as far as it could be understood; windows of lines in a language without a profile."""
    grammar = GRAMMARS.get(document.language or "")
    if grammar is None:
        return chunk_text(document, sizes, count_tokens)
    text = SizedText(document.text, sizes, count_tokens)
    tree = SyntaxTree(text.source, grammar)
    outline = _Outline(tree, text)
    units = _bundled(outline.file())
    return assemble(document, text, units, facts_of(tree, outline.owned, outline.named, outline.tests))


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

    def file(self) -> list[ParsedUnit]:
        """Units of the whole file, which cover it."""
        end = len(self.tree.source)
        items = list(items_of(self.tree, self.tree.root.children, self._fits))
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

    def _members(self, groups: Sequence[ItemGroup], end: int, scope: _Scope) -> list[ParsedUnit]:
        units: list[ParsedUnit] = []
        for group, stop in zip(groups, [*(group.start for group in groups[1:]), end], strict=False):
            definition = group.definition
            if definition is None:
                units += self._run(group, stop, scope)
            elif definition.kind != "function" and self._opens(definition, scope):
                units += self._type(group, definition, stop, scope)
            else:
                units += self._whole(group, definition, stop, scope)
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
        member = bool(scope.symbol or space.owner or definition.owner)
        typed = definition.kind != "function"
        symbol = ".".join(filter(None, (owner, definition.name)))
        kind = definition.kind if typed else "method" if member else "function"
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
        if not typed and (tested or tree.is_test(group.start, definition.body.start_byte)):
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
            links=tested,
        )

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
        items = list(items_of(self.tree, definition.body.children, self._fits))
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
        member = bool(scope.symbol or group.space.owner)
        binding = all(pairs or tree.is_docstring(node) for pairs, node in zip(bound, nodes, strict=True))
        kind = "fields" if member else "constants" if names and binding else "code"
        shown = _under(scope.context, group.space.context)
        unit = ParsedUnit(
            start=group.start,
            end=stop,
            path=f"{kind}:{'.'.join(filter(None, (owner, names[0] if names else mark_of(tree, group))))}",
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
