"""Python by tree-sitter, tolerant of syntax errors (ING-5).

Level 0 is the preamble (module docstring, imports), 1 classes and constants, 2 functions and methods, 3 blocks of
functions that are too long. Units lie between lines: each runs up to the next, and its leading comments are its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256

from tree_sitter import Node

from pipelines.chunking.hierarchy import Unit, assemble, fitted
from pipelines.chunking.python_syntax import (
    Item,
    body_cuts,
    definition_of,
    docstring_of,
    facts_of,
    flattened,
    is_preamble,
    lead,
    next_line,
    parsed,
    signature_of,
    targets_of,
)
from pipelines.chunking.sizes import ChunkSizes, TokenCounter
from pipelines.chunking.splitting import Cuts, Meter, decoded, encoded
from pipelines.domain.chunks import Chunk
from pipelines.domain.documents import Document

_DEEPEST = 3


def chunk_python(document: Document, sizes: ChunkSizes, count_tokens: TokenCounter) -> list[Chunk]:
    """Units of a Python source file; one with syntax errors is cut as far as it could be understood."""
    source = encoded(document.text)
    root = parsed(source)
    outline = _Outline(source, sizes, Meter(source, count_tokens))
    units = outline.module(root)
    return assemble(document, source, units, facts=facts_of(root, source), sizes=sizes, count_tokens=count_tokens)


@dataclass(frozen=True, slots=True)
class _Scope:
    """Where members stand: the module, or a class.

    Attributes:
        path: Structural path of the owner, "" for the module.
        symbol: Qualified name of the owner, "" for the module.
        level: Level of the classes in it; functions are one deeper in the module, and on it in a class.
        context: The owner's signatures, one a line, as they stand in the source.
    """

    path: str
    symbol: str
    level: int
    context: str
    parents: tuple[str, ...] = ()

    def step(self, kind: str, name: str) -> str:
        """Path of a member."""
        return f"{self.path}/{kind}:{name}" if self.path else f"{kind}:{name}"

    def qualified(self, name: str) -> str:
        """Qualified name of a member."""
        return f"{self.symbol}.{name}" if self.symbol else name


@dataclass(frozen=True, slots=True)
class _Group:
    """Neighbouring items that make one unit: one definition, or a run of statements."""

    start: int
    items: tuple[Item, ...]

    @property
    def definition(self) -> Node | None:
        return definition_of(self.items[0].node)


@dataclass(frozen=True, slots=True)
class _Outline:
    source: bytes
    sizes: ChunkSizes
    meter: Meter

    def module(self, root: Node) -> list[Unit]:
        end = len(self.source)
        items = list(flattened(root.children))
        leading = 0
        while leading < len(items) and is_preamble(items[leading].node, self.source, first=leading == 0):
            leading += 1
        preamble, rest = items[:leading], items[leading:]
        groups = self._groups(rest, preamble[-1].end if preamble else 0)
        if not preamble:
            scope = _Scope("", "", 1, "")
            return self._members([_Group(0, groups[0].items), *groups[1:]], end, scope) if groups else self._bare(end)
        first_end = groups[0].start if groups else end
        unit = Unit(start=0, end=first_end, path="preamble", kind="preamble", level=0)
        head = self._fitted(unit, preamble, limit=self.sizes.max_tokens)
        return [*head, *self._members(groups, end, _Scope("", "", 1, "", ("preamble",)))]

    def _bare(self, end: int) -> list[Unit]:
        return [Unit(start=0, end=end, path="preamble", kind="preamble", level=0)]

    def _members(self, groups: list[_Group], end: int, scope: _Scope) -> list[Unit]:
        units: list[Unit] = []
        for group, stop in zip(groups, [*(group.start for group in groups[1:]), end], strict=False):
            node = group.definition
            if node is None:
                units += self._run(group, stop, scope)
            elif node.type == "class_definition" and scope.level < _DEEPEST:
                units += self._class(group, node, stop, scope)
            else:
                units += self._function(group, node, stop, scope)
        return units

    def _function(self, group: _Group, node: Node, stop: int, scope: _Scope) -> list[Unit]:
        name, signature = self._name(node), signature_of(node, self.source)
        kind = "class" if node.type == "class_definition" else "method" if scope.symbol else "function"
        unit = Unit(
            start=group.start,
            end=stop,
            path=scope.step(kind, name),
            kind=kind,
            level=scope.level if scope.symbol else scope.level + 1,
            parents=scope.parents,
            context=scope.context,
            part_context=_under(scope.context, self._indent(node) + signature + ":"),
            part_kind="block",
            symbol=scope.qualified(name),
            signature=signature,
        )
        return fitted(
            unit,
            lambda: Cuts.between(group.start, stop, body_cuts(node, self.source, self._fits)),
            limit=self.sizes.max_tokens,
            source=self.source,
            sizes=self.sizes,
            meter=self.meter,
        )

    def _class(self, group: _Group, node: Node, stop: int, scope: _Scope) -> list[Unit]:
        name, signature = self._name(node), signature_of(node, self.source)
        header = _under(scope.context, self._indent(node) + signature + ":")
        path = scope.step("class", name)
        body = node.child_by_field_name("body")
        items = list(flattened(body.children)) if body else []
        opening = (index for index, item in enumerate(items) if item.node is None or definition_of(item.node))
        fields = next(opening, len(items))
        groups = self._groups(items[fields:], items[fields - 1].end if fields else self._colon(node))
        groups = [member for member in groups if group.start < member.start < stop]
        unit = Unit(
            start=group.start,
            end=groups[0].start if groups else stop,
            path=path,
            kind="class",
            level=scope.level,
            parents=scope.parents,
            context=scope.context,
            part_context=header,
            part_kind="fields",
            symbol=scope.qualified(name),
            signature=signature,
        )
        inner = _Scope(path, scope.qualified(name), scope.level + 1, header, (path, *scope.parents))
        own = self._fitted(unit, items[:fields], limit=self.sizes.max_tokens)
        return [*own, *self._members(groups, stop, inner)]

    def _run(self, group: _Group, stop: int, scope: _Scope) -> list[Unit]:
        nodes = [item.node for item in group.items if item.node is not None]
        names = [name for node in nodes for _, name in targets_of(node, self.source)]
        if scope.symbol:
            kind = "fields"
        else:
            binding = all(targets_of(node, self.source) or docstring_of(node) is not None for node in nodes)
            kind = "constants" if names and binding else "code"
        unit = Unit(
            start=group.start,
            end=stop,
            path=scope.step(kind, names[0] if names else self._mark(group)),
            kind=kind,
            level=scope.level,
            parents=scope.parents,
            context=scope.context,
            part_context=scope.context,
            part_kind=kind,
        )
        return self._fitted(unit, list(group.items), limit=self.sizes.target_tokens)

    def _fitted(self, unit: Unit, items: list[Item], *, limit: int) -> list[Unit]:
        def cuts() -> Cuts:
            inner: list[int] = []
            floor = unit.start
            for item in items:
                if item.start >= floor:
                    inner.append(lead(self.source, floor, item.start))
                floor = next_line(self.source, item.end, floor)
                if item.node is not None and not self._fits(item.start, item.end):
                    inner += body_cuts(item.node, self.source, self._fits)
            return Cuts.between(unit.start, unit.end, inner)

        return fitted(unit, cuts, limit=limit, source=self.source, sizes=self.sizes, meter=self.meter)

    def _groups(self, items: list[Item], previous: int) -> list[_Group]:
        """Items as units: a header such as `else:` opens the unit of what follows it."""
        groups: list[tuple[int, list[Item]]] = []
        floor = next_line(self.source, previous, 0) if previous else 0
        header: int | None = None
        running = False
        for item in items:
            apart = header is not None or item.start >= floor  # else it begins on the line that the one before ends on
            start = lead(self.source, floor, item.start) if apart else floor
            if item.node is None:
                header = start if apart and header is None else header
                running = False
            else:
                single = definition_of(item.node) is not None
                if groups and (not apart or (running and not single)):
                    groups[-1][1].append(item)
                else:
                    groups.append((start if header is None else header, [item]))
                header, running = None, not single
            floor = next_line(self.source, item.end, floor)
        return [_Group(start, tuple(joined)) for start, joined in groups]

    def _fits(self, start: int, end: int) -> bool:
        return self.meter.fits(start, end, self.sizes.target_tokens)

    def _name(self, node: Node) -> str:
        name = node.child_by_field_name("name")
        return decoded(self.source[name.start_byte : name.end_byte]) if name else ""

    def _indent(self, node: Node) -> str:
        start = self.source.rfind(b"\n", 0, node.start_byte) + 1
        before = decoded(self.source[start : node.start_byte])
        return before if before.isspace() else ""

    def _colon(self, node: Node) -> int:
        return next((child.end_byte for child in node.children if child.type == ":"), node.start_byte)

    def _mark(self, group: _Group) -> str:
        """A name for statements that define none: from their first line, so that edits elsewhere do not move it."""
        first = group.items[0].start
        end = self.source.find(b"\n", first)
        return sha256(self.source[first : end if end >= 0 else len(self.source)].strip()).hexdigest()[:12]


def _under(context: str, line: str) -> str:
    return f"{context}\n{line}" if context else line
