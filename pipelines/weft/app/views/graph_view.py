"""What has to do with what in the live generation: commands and the console show it (GRA-1, GRA-3)."""

from __future__ import annotations

import math
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from weft.app.views.beliefs import content_names
from weft.catalog.catalog import Catalog
from weft.domain.errors import StoreError
from weft.domain.ids import ContentHash
from weft.indexes.generation import Generation
from weft.indexes.graph.graph import RELATIONS, Direction, EdgeKind, Entity, Neighbour, unmet_relations
from weft.indexes.graph.paths import PathStep, shortest_path
from weft.learning.edges import NO_EDGES, LearnedEdges
from weft.retrieval.snapshot.places import ContentLocator, place_of
from weft.retrieval.snapshot.relations import ResolvedRelations, resolve_relations
from weft.settings import Settings

Facts = dict[str, Any]
_HASH = re.compile("[0-9a-f]{8,64}")
_OTHERS = [kind for kind in EdgeKind if kind not in RELATIONS]


def children_of(uris: Sequence[str], folder: str) -> tuple[list[str], list[str]]:
    """The folders and the documents that lie right in a folder; "" is where all sources lie."""
    prefix = f"{folder}/" if folder else ""
    within = [uri.removeprefix(prefix) for uri in uris if uri.startswith(prefix)]
    folders = sorted({rest.partition("/")[0] for rest in within if "/" in rest})
    return [f"{prefix}{name}" for name in folders], sorted(f"{prefix}{rest}" for rest in within if "/" not in rest)


def parent_of(name: str) -> str | None:
    """The folder that a document or folder lies in; None of what lies in none."""
    return posixpath.dirname(name) if name else None


@dataclass(frozen=True, slots=True)
class GraphView:
    """The live generation, what was declared and found in the store since, and how its places are called."""

    generation: Generation
    relations: ResolvedRelations
    settings: Settings

    @classmethod
    def of(cls, catalog: Catalog, settings: Settings) -> GraphView:
        """What is live now; it is to be closed.

        Raises:
            NothingPublishedError: Nothing is.
        """
        generation = catalog.open_live(searched=False)
        version = catalog.pointer().learned
        learned = None if version is None else catalog.learned.read(version).part(LearnedEdges)
        return cls(generation, resolve_relations(generation, catalog.relations(), learned or NO_EDGES), settings)

    def close(self) -> None:
        """Release the generation."""
        self.generation.close()

    def facts(self, name: str) -> Facts:
        """Everything about what a name means: a folder, a document or part of one, a content, an entity."""
        if (folder := self._folder(name)) is not None:
            folders, documents = children_of(self.generation.chunks.uris(), folder)
            return {"folder": folder, "parent": parent_of(folder), "folders": folders, "documents": documents}
        if entities := self._entities(name):
            return {"entities": [self._entity(each) for each in entities]}
        uri, rows = self._rows(name)
        return self._document(uri, rows) if uri else self._content(rows[0])

    def content_facts(self, content: str) -> Facts:
        """Everything about one content, by its hash or the first digits of it.

        Raises:
            StoreError: There is none, or several.
        """
        if not self._contents(content):
            raise StoreError(f"expected the hash of a content that is live, found {content[:64]!r}")
        return self._content(self._rows(content)[1][0])

    def steps(self, start: str, end: str) -> list[Facts]:
        """The steps from one thing to another."""
        edges = self.relations.extend_edges(self.generation.graph.arrays(), self.settings.retrieval.graph.strengths)
        numbers, _, documents = self.generation.chunks.occurrence_arrays(range(len(self.generation.chunks)))
        steps = shortest_path(edges, (numbers, documents), self._places(start), self._places(end))
        return [self._step(each) for each in steps]

    def _folder(self, name: str) -> str | None:
        folder = "" if name in {"", ".", "/"} else name.removeprefix("./").rstrip("/")
        lies = not folder or any(uri.startswith(f"{folder}/") for uri in self.generation.chunks.uris())
        return folder if lies else None

    def _entities(self, name: str) -> list[Entity]:
        uris = self.generation.chunks.uris()
        is_place = any(f"/{uri}".endswith(f"/{name.partition('#')[0].removeprefix('./')}") for uri in uris)
        return [] if is_place or self._contents(name) else self.generation.graph.find(name)

    def _contents(self, name: str) -> list[ContentHash]:
        return [one for one in self.generation.contents if one.startswith(name)] if _HASH.fullmatch(name) else []

    def _rows(self, name: str) -> tuple[str, list[int]]:
        """The URI that a name means, "" of a content, and its contents."""
        if contents := self._contents(name):
            if len(contents) > 1:
                raise StoreError(f"{name}: expected one content whose hash begins so, found {len(contents)}")
            return "", [row for row in [self.generation.chunks.row_of(contents[0])] if row is not None]
        places = ContentLocator(self.generation.chunks)
        uri = place_of(name, self.generation.chunks.uris(), places)
        return uri, list(places.rows_of_uri(uri))

    def _places(self, name: str) -> list[int]:
        if entities := self._entities(name):
            return [len(self.generation.contents) + each.node for each in entities]
        return self._rows(name)[1]

    def _document(self, uri: str, rows: Sequence[int]) -> Facts:
        document, mark, _ = uri.partition("#")
        chunks = [str(chunk.chunk_id) for chunk in self.generation.chunks.chunks_of_document(document)]
        contents = [self.generation.contents[row] for row in rows]
        related_to = self._related(uri, [document] if not mark else [], self._chunks_of(document, contents))
        unmet = [line for line in unmet_relations(self.generation.folder) if line.startswith(f"{document} ")]
        return {
            "uri": uri,
            "parent": parent_of(document),
            "contents": contents,
            "analytics": [self._analytics(row) for row in rows],
            "relations": related_to,
            "edges": [edge for one in contents for edge in self._edges(one, set(chunks))],
            "unmet_relations": unmet,
        }

    def _content(self, row: int) -> Facts:
        (content,) = self.generation.chunks.contents([row])
        chunks = {str(place.chunk.chunk_id) for place in content.occurrences}
        heads = [place.uri for place in content.occurrences if not place.chunk.sequence]
        return {
            "content_hash": content.content_hash,
            "uris": sorted({place.uri for place in content.occurrences}),
            "analytics": [self._analytics(row)],
            "relations": self._related(content.content_hash, heads, sorted(chunks)),
            "edges": list(self._edges(content.content_hash, chunks)),
        }

    def _entity(self, entity: Entity) -> Facts:
        contents = self.generation.graph.contents_of(entity.node)
        names = content_names(self.generation, contents)
        return {
            "node_id": entity.node_id,
            "name": entity.name,
            "label": entity.label,
            "aliases": list(entity.aliases),
            "mentions": entity.mentions,
            "analytics": [self._analytics(len(self.generation.contents) + entity.node)],
            "contents": [{"content_hash": one, "name": name} for one, name in zip(contents, names, strict=True)],
        }

    def _analytics(self, place: int) -> Facts:
        """What the graph says of a place; nothing where the generation was built without."""
        table = self.generation.graph.analytics
        if table is None:
            return {}
        facts: Facts = dict(table.slice(place, 1).to_pylist()[0])
        former = [one for one in facts.get("former_degrees", ()) if not math.isnan(one)]
        change = facts["degree"] - former[0] if former else None
        return {**facts, "former_degrees": former, "degree_change": change}

    def _chunks_of(self, uri: str, contents: Sequence[ContentHash]) -> list[str]:
        chunks = self.generation.chunks.chunks_of_document(uri)
        return [str(chunk.chunk_id) for chunk in chunks if chunk.content_hash in contents]

    def _related(self, name: str, uris: Sequence[str], chunks: Sequence[str]) -> list[Facts]:
        """Relations of documents and chunks that are shown under a name."""
        ends = [*uris, *chunks]
        every = {each for end in ends for each in self.relations.by_end.get(end, ())}
        ordered = sorted(every, key=lambda each: (each.inward, each.kind, each.uri))
        return [
            {
                "uri": each.uri if each.inward else name,
                "kind": each.kind.value,
                "target": name if each.inward else each.uri,
                "direction": (Direction.IN if each.inward else Direction.OUT).value,
                "source": each.source.value,
                "time": each.at,
                "weight": self.settings.retrieval.graph_weights.get(EdgeKind(each.kind.value), 0.0)
                * self.settings.retrieval.graph.strengths[each.source],
                "says": each.says,
            }
            for each in ordered
        ]

    def _edges(self, content: ContentHash, chunks: set[str]) -> Iterator[Facts]:
        """Edges of a content other than relations, as far as they are those of some chunks."""
        for direction in Direction:
            for near in self.generation.graph.neighbours(content, _OTHERS, direction):
                if near.here is None or near.here in chunks:
                    yield {"direction": direction.value, **self._edge(near)}
        yield from self._learned_edges(content)

    def _learned_edges(self, content: ContentHash) -> Iterator[Facts]:
        """What nights found a content to be similar to, and used together with."""
        row, strengths = self.generation.chunks.row_of(content), self.settings.retrieval.graph.strengths
        for each in self.relations.further:
            if each.kind not in RELATIONS and row in (each.source, each.target):
                direction, other = (Direction.OUT, each.target) if each.source == row else (Direction.IN, each.source)
                target = self.generation.contents[other]
                yield {
                    "direction": direction.value,
                    "kind": each.kind.value,
                    "content_hash": target,
                    "name": content_names(self.generation, [target])[0],
                    "confidence": each.share,
                    "strength": strengths[each.origin] * each.share,
                    "source": each.origin.value,
                }

    def _edge(self, near: Neighbour) -> Facts:
        other: Mapping[str, Any] = (
            {"content_hash": near.content, "name": content_names(self.generation, [near.content])[0]}
            if near.content is not None
            else {"name": self.generation.graph.entity(near.node or 0).name}
        )
        source = "declared" if near.declared else "auto"
        return {
            "kind": near.kind.value,
            **other,
            "confidence": near.confidence,
            "strength": near.strength,
            "source": source,
        }

    def _step(self, step: PathStep) -> Facts:
        kind = "part of" if step.kind is None else step.kind.value
        return {"here": self._name(step.here), "kind": kind, "forward": step.forward, "there": self._name(step.there)}

    def _name(self, place: int) -> str:
        contents = self.generation.contents
        if place < len(contents):
            return content_names(self.generation, [contents[place]])[0]
        entities = self.generation.graph.arrays().entities
        if place < len(contents) + entities:
            return self.generation.graph.entity(place - len(contents)).name
        return self.generation.chunks.documents()[place - len(contents) - entities].uri
