"""RET-16: what is handed over with a result, in code, prose, papers and conversations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from msgspec import structs

from tests.support.answers import an_answer
from tests.support.memory_graph import MemoryGraph
from tests.support.retrieval_fakes import MemoryGeneration, a_place, a_query, a_searcher, settings
from weft.domain.chunks import Chunk, Reach, Role
from weft.domain.ids import ChunkId
from weft.domain.ranking import RankedResult
from weft.domain.understanding import QueryType
from weft.indexes.graph.graph import EdgeKind
from weft.retrieval.answer.trace import context_lines
from weft.retrieval.context import MOST, Neighbours, reach_of, surroundings, with_contexts
from weft.retrieval.settings import ContextSettings

TUNED = settings().context


def tree(uri: str, *units: tuple[str, str | None], tokens: int = 10, **bundles: str) -> dict[str, Chunk]:
    """Chunks of a document by name: each with the name of its parent, in source order."""
    made = {name: a_place(uri, f"{uri} {name}", sequence=at).chunk for at, (name, _) in enumerate(units)}
    ids = {name: chunk.chunk_id for name, chunk in made.items()}
    return {
        name: replace(
            made[name],
            tokens=tokens,
            parent_id=None if parent is None else ids[parent],
            bundle=ids[bundles[name]] if name in bundles else None,
        )
        for name, parent in units
    }


CODE = tree(
    "store.py",
    ("imports", None),
    ("Store", None),
    ("get", None),
    ("put", None),
    ("helper", None),
    get="Store",
    put="Store",
)
PAPER = tree(
    "paper.tex",
    ("abstract", None),
    ("method", "abstract"),
    ("training", "method"),
    ("loss", "training"),
    ("data", "training"),
)
SESSION = tree("chat.md", ("session", None), *((f"turn {number}", "session") for number in range(6)))
OTHER = tree("disk.py", ("flush", None), ("sync", None))


def relations_of(reach: Reach, chunk: Chunk, document: Mapping[str, Chunk]) -> list[tuple[Role, str]]:
    found = surroundings(
        reach,
        chunk,
        list(document.values()),
        points_to=[OTHER["flush"]],
        used_by=[OTHER["sync"]],
        most=MOST,
    )
    return [(role, each.text.split(" ", 1)[1]) for role, each in found]


@pytest.mark.parametrize(
    ("kind", "confidence", "expected"),
    [
        (QueryType.SPECIFIC, 0.9, Reach.CHUNK),
        (QueryType.EXPLORATORY, 0.9, Reach.SIBLINGS),
        (QueryType.SPECIFIC, 0.85, Reach.PARENT),
        (QueryType.EXPLORATORY, 0.6, Reach.PARENT),
        (QueryType.SPECIFIC, 0.59, Reach.LEVEL_UP),
        (QueryType.HOW, 0.9, Reach.REFERENCES),
        (QueryType.DEBUG, 0.1, Reach.HIERARCHY),
    ],
)
def test_the_reach_is_the_specified_one(kind: QueryType, confidence: float, expected: Reach) -> None:
    """RET-16."""
    assert reach_of(kind, confidence, moved=0.0, settings=TUNED) is expected


def test_the_bounds_move_with_the_learned_threshold() -> None:
    """RET-16, LRN-7: where decisions need more confidence, more is shown around a result of the same confidence."""
    assert reach_of(QueryType.SPECIFIC, 0.9, moved=0.06, settings=TUNED) is Reach.PARENT
    assert reach_of(QueryType.SPECIFIC, 0.55, moved=-0.1, settings=TUNED) is Reach.PARENT


def test_code_is_shown_in_its_type_and_with_what_it_calls() -> None:
    """RET-16: a method belongs to the type that it is bundled with."""
    assert relations_of(Reach.CHUNK, CODE["get"], CODE) == []
    assert relations_of(Reach.PARENT, CODE["get"], CODE) == [(Role.TYPE, "Store")]
    assert relations_of(Reach.REFERENCES, CODE["get"], CODE) == [
        (Role.HEADER, "imports"),
        (Role.TYPE, "Store"),
        (Role.DEPENDENCY, "flush"),
        (Role.USER, "sync"),
    ]
    assert relations_of(Reach.HIERARCHY, CODE["get"], CODE)[:3] == [
        (Role.TYPE, "Store"),
        (Role.HEADER, "imports"),
        (Role.DEPENDENCY, "flush"),
    ]


def test_how_a_method_works_is_shown_with_the_fields_of_its_type_and_its_test() -> None:
    """RET-16, ING-39: a type in another file is told by its name; what tests it is no mere user."""
    fields = replace(CODE["put"], kind="fields")
    own = replace(CODE["get"], symbol="Store.get")
    document = [CODE["imports"], CODE["Store"], own, fields]
    around = surroundings(
        Reach.REFERENCES, own, document, points_to=[], used_by=[OTHER["sync"]], tested_by=[OTHER["sync"]], most=MOST
    )
    assert [role for role, _ in around] == [Role.HEADER, Role.TYPE, Role.TYPE, Role.TEST]
    apart = replace(own, bundle=None, parent_id=None)
    named = replace(OTHER["flush"], symbol="Store")
    elsewhere = surroundings(Reach.REFERENCES, apart, [apart], points_to=[named], used_by=[], most=MOST)
    assert elsewhere == [(Role.TYPE, named)]


def test_a_paper_is_gone_up_section_by_section() -> None:
    """RET-16: its parent, the level above it, and all of them up to the abstract, each once."""
    assert relations_of(Reach.PARENT, PAPER["loss"], PAPER) == [(Role.TYPE, "training")]
    up = relations_of(Reach.LEVEL_UP, PAPER["loss"], PAPER)
    assert up == [(Role.TYPE, "training"), (Role.TYPE, "method"), (Role.HEADER, "abstract")]
    whole = relations_of(Reach.HIERARCHY, PAPER["loss"], PAPER)
    assert [name for role, name in whole if role is Role.TYPE] == ["training", "method", "abstract"]
    assert (Role.SIBLING, "data") in whole


def test_a_turn_is_shown_among_its_nearest() -> None:
    """RET-16: siblings, the nearest first and the earlier of two, as many as configured."""
    names = [name for _, name in relations_of(Reach.SIBLINGS, SESSION["turn 3"], SESSION)]
    assert names == ["turn 2", "turn 4", "turn 1", "turn 5"]


def results(*chunks: Chunk, relevance: float) -> tuple[RankedResult, ...]:
    (model, *_) = an_answer(a_query("q")).results
    return tuple(
        structs.replace(
            model,
            rank=rank,
            chunk_id=chunk.chunk_id,
            uris=(chunk.uri,),
            content_hash=chunk.content_hash,
            relevance=relevance,
        )
        for rank, chunk in enumerate(chunks, start=1)
    )


def _flushing(result: RankedResult) -> list[Chunk]:
    return [OTHER["flush"]] if result.uris == ("store.py",) else []


def assembled(shown: Sequence[RankedResult], kind: QueryType, tuned: ContextSettings) -> tuple[RankedResult, ...]:
    documents = {"store.py": CODE, "paper.tex": PAPER, "chat.md": SESSION}
    neighbours = Neighbours(
        document=lambda uri: list(documents[uri].values()), points_to=_flushing, used_by=lambda _: []
    )
    return with_contexts(shown, kind, neighbours, lambda _: 0.0, tuned)


def test_parts_are_read_from_the_header_to_the_dependencies() -> None:
    """RET-16: file header, type, chunk, dependencies."""
    (result,) = assembled(results(CODE["get"], relevance=0.1), QueryType.DEBUG, TUNED)
    assert result.context is not None
    roles = [part.role for part in result.context.parts]
    assert roles == sorted(roles, key=list(Role).index)
    assert roles[:3] == [Role.HEADER, Role.TYPE, Role.CHUNK]
    assert Role.DEPENDENCY in roles
    assert result.context.text.index("Store") < result.context.text.index("get") < result.context.text.index("flush")


@pytest.mark.parametrize("budget", [5, 10, 25, 30, 70, 4096])
def test_the_budget_is_kept_and_results_come_before_what_surrounds_them(budget: int) -> None:
    """RET-16: all results together; what had no room is counted."""
    tuned = TUNED.model_copy(update={"max_context_tokens": budget})
    shown = assembled(results(CODE["get"], PAPER["loss"], SESSION["turn 3"], relevance=0.1), QueryType.DEBUG, tuned)
    contexts = [result.context for result in shown if result.context is not None]
    assert len(contexts) == 3
    assert sum(context.tokens for context in contexts) <= budget
    own = sum(part.role is Role.CHUNK for context in contexts for part in context.parts)
    assert own == min(3, budget // 10)
    assert (sum(context.left_out for context in contexts) == 0) == (budget == 4096)


def test_a_chunk_stands_in_one_context_alone() -> None:
    """RET-16: tokens are not spent twice."""
    shown = assembled(results(CODE["get"], CODE["put"], relevance=0.7), QueryType.SPECIFIC, TUNED)
    told: list[ChunkId] = [part.chunk_id for result in shown if result.context for part in result.context.parts]
    assert len(told) == len(set(told)) == 3  # both methods and their type


def test_a_search_hands_over_contexts_where_they_are_asked_for() -> None:
    """RET-16: through the whole search, in JSON and for people; otherwise nothing is read."""
    generation = MemoryGeneration({"guide": ["intro to pages", "how pages are written", "how pages are read"]})
    searcher = a_searcher(generation, unit="chunk")
    answer = searcher.search(a_query("traceback: pages written fails", context=True))
    context = answer.results[0].context
    assert context is not None
    assert context.reach is Reach.HIERARCHY
    assert {part.role for part in context.parts} >= {Role.CHUNK}
    told = answer.to_dict()["results"][0]["context"]
    assert [part["text"] for part in told["parts"]] == [part.text for part in context.parts]
    assert any("guide:1-1" in line for line in context_lines(context))
    assert all(result.context is None for result in searcher.search(a_query("pages")).results)


def test_a_search_reads_what_a_result_points_to_and_what_points_to_it() -> None:
    """RET-16: along the edges of the generation's graph, from whichever document."""
    texts = ["how pages are written", "flush the disk", "sync calls pages"]
    generation = MemoryGeneration({f"d{number}": [text] for number, text in enumerate(texts)})
    rows = [generation.row_of(text) for text in texts]
    edges = ((EdgeKind.CALLS, rows[0], rows[1]), (EdgeKind.CALLS, rows[2], rows[0]))
    generation.graph = MemoryGraph(3, *edges, hashes=generation.contents)
    answer = a_searcher(generation, depth=1).search(a_query("how does it work: pages written", k=1, context=True))
    context = answer.results[0].context
    assert context is not None
    assert [(part.role, part.text) for part in context.parts] == [
        (Role.CHUNK, texts[0]),
        (Role.DEPENDENCY, texts[1]),
        (Role.USER, texts[2]),
    ]
