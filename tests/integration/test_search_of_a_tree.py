"""RET-2, RET-4, RET-7, RET-13, RET-16, RET-21: a small tree of files, searched by the real engines, everything on."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from weft.app.searching.engines import opened
from weft.cli.commands import reindex
from weft.cli.reports.evaluate import measuring
from weft.domain.chunks import Role
from weft.domain.ids import QueryId
from weft.domain.ranking import Channel, Query, Repeats, Signal
from weft.domain.understanding import SessionMemory
from weft.retrieval.searcher import Searcher
from weft.runtime.stages import HERE
from weft.settings import load_settings

ROOT = Path(__file__).resolve().parents[2]
NOTES = """---
trigger_phrases: [disk full, no space left]
tier: core
intent: decision
---
# Space

When the disk is full the updater stops, see `Searcher.search`.
"""
ORDINARY = ["how is a search answered", "where are channels opened", "what does the graph channel do", "disk full"]
SOUP = [
    "AND",
    "OR",
    "NOT",
    "(",
    ")",
    "[",
    "]",
    "*:*",
    "contents:",
    '"',
    "~",
    "^9",
    "\\",
    "/",
    "?",
    "&&",
    "||",
    "+",
    "-",
]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="module")
def searcher(store: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Searcher]:
    source = tmp_path_factory.mktemp("source")
    for path in sorted((ROOT / "pipelines" / "weft" / "retrieval" / "channels").glob("*.py")):
        (source / path.name).write_bytes(path.read_bytes())
    (source / "space.md").write_text(NOTES)
    changes = [f"storage.root={store}", "embedding.tokens.enabled=true"]
    made = measuring(load_settings([], changes, environment={}))  # a busy machine loses no channel
    reindex.run(reindex.plan_of(made, [source]), watch=lambda _: None, executor=HERE)
    with opened(made) as searching:
        yield searching


def asked(text: str, **more: object) -> Query:
    return Query(text=text, query_id=QueryId("q"), k=10, **more)  # type: ignore[arg-type]


def test_the_documented_program_searches(searcher: Searcher, store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """OPS-1: the example of docs/retrieval.md as it stands, but for the store; what it prints adds up."""
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "docs/retrieval.md").read_text(), re.DOTALL)
    exec(compile(example.replace("storage.root=.weft", f"storage.root={store}"), "docs/retrieval.md", "exec"), {})
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    results = [line for line in lines if line[0].isdecimal()]
    assert [line[0] for line in results] == ["1", "2", "3", "4", "5"]
    added = math.fsum(float(line[1]) for line in itertools.takewhile(lambda line: line[0] != "2", lines[1:]))
    assert added == pytest.approx(float(results[0][1]))


def test_a_declared_phrase_finds_its_document_and_what_it_declares_is_told(searcher: Searcher) -> None:
    """RET-7, RET-13: from front matter, through the store, to the result."""
    answer = searcher.search(asked("there is no space left", intent="decision"))
    best = next(result for result in answer.results[:2] if result.uris[0].endswith("space.md"))
    assert best.channels[Channel.TRIGGERS].score == pytest.approx(3 / 5)
    assert best.signals[Signal.TRIGGER] == pytest.approx(3 / 5)
    assert best.signals[Signal.CONGRUENCE] == 1.0
    assert best.signals[Signal.TIER] == load_settings(environment={}).priors.declared.tiers["core"]


def test_calls_between_files_are_followed(searcher: Searcher) -> None:
    """RET-7: the graph of a real parse leads from what is named to what it has to do with."""
    answer = searcher.search(asked("how are degree_scores used"))
    assert answer.failed_channels == {}
    linked = [result for result in answer.results if Channel.GRAPH in result.channels]
    assert any(result.symbol is not None and "DegreeChannel" in result.symbol for result in linked)
    assert any(Channel.DEGREE in result.channels for result in answer.results)


def test_an_exact_name_is_answered_by_what_defines_it(searcher: Searcher) -> None:
    """RET-2, RET-22: what bears a name stands first, found by the name; what speaks of it comes by all channels."""
    answer = searcher.search(asked("degree_scores", adaptive=True))
    best = answer.results[0]
    assert best.uris[0].endswith("/following.py")
    assert Channel.NAMES in best.channels
    assert answer.gap is None
    assert answer.understanding.named == ("degree_scores",)
    assert len({channel for result in answer.results for channel in result.channels}) > 2


def test_a_filter_in_the_text_leaves_other_documents_out(searcher: Searcher) -> None:
    """RET-4: what documents of the store have is a filter, anything else a word."""
    found = searcher.search(asked("channels type:markdown"))
    assert {uri.rpartition("/")[2] for result in found.results for uri in result.uris} == {"space.md"}
    assert len(searcher.search(asked("channels type:poetry")).results) > 1


def test_a_result_comes_with_what_it_depends_on(searcher: Searcher) -> None:
    """RET-16: read out of the store, within the budget."""
    answer = searcher.search(asked("how does DegreeChannel rank by degree", context=True))
    contexts = [result.context for result in answer.results if result.context is not None]
    assert len(contexts) == len(answer.results)
    assert (
        sum(context.tokens for context in contexts)
        <= load_settings(environment={}).retrieval.context.max_context_tokens
    )
    roles = {part.role for context in contexts for part in context.parts}
    assert Role.CHUNK in roles
    assert roles & {Role.DEPENDENCY, Role.USER}


def test_parts_of_a_real_parse_are_below_their_wholes(searcher: Searcher) -> None:
    """RET-13: the places of parents that signals rest on are those of the chunks themselves."""
    chunks = searcher.snapshot.generation.chunks
    parents, structure = chunks.parents(), chunks.structure()
    standings = {
        standing.place: standing.chunk
        for content in chunks.contents(range(len(searcher.snapshot.generation.contents)))
        for standing in content.occurrences
    }
    assert len(parents) == len(structure) == len(standings)
    assert (parents >= 0).any()
    for place, chunk in standings.items():
        above = int(parents[place])
        assert chunk.parent_id == (standings[above].chunk_id if above >= 0 else None)
        assert structure[place] == pytest.approx(chunk.parse_quality * chunk.completeness)


anything = st.text(max_size=300)
hostile = st.one_of(
    anything,
    st.lists(st.sampled_from(SOUP), max_size=300).map(" ".join),
    st.lists(st.sampled_from(SOUP), max_size=300).map("".join),
    st.text(st.characters(categories=["Cc", "Cs", "Cf", "Co", "Mn", "Zs"]), max_size=200),
    st.tuples(st.text(min_size=1, max_size=6), st.integers(1, 8192)).map(lambda pair: pair[0] * pair[1]),
    st.lists(anything, max_size=300).map(" ".join),
    st.sampled_from(ORDINARY).flatmap(lambda text: anything.map(lambda noise: f"{noise} {text} {noise}")),
    st.tuples(st.sampled_from(["folder", "domain", "since", "type"]), anything).map(
        lambda pair: f"{pair[0]}:{pair[1]}"
    ),
)


@pytest.mark.slow
@given(hostile, st.booleans(), st.sampled_from(Repeats))
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_nothing_that_is_asked_raises_or_loses_a_channel(
    searcher: Searcher, text: str, adaptive: bool, repeats: Repeats
) -> None:
    """RET-21: whatever the text; no channel fails, and every score is a number that its parts sum to."""
    memory = SessionMemory().given(["ab" * 32], limit=5)
    answer = searcher.search(asked(text, adaptive=adaptive, context=True, repeats=repeats, memory=memory))
    assert answer.failed_channels == {}
    for result in answer.results:
        assert math.isfinite(result.score)
        assert result.score == math.fsum(part.amount for part in result.contributions)


def test_hostile_and_ordinary_queries_share_a_batch(searcher: Searcher) -> None:
    """RET-21: an ordinary query beside hostile ones finds what it finds alone."""
    wild = ["\ud800\x00" * 100, " ".join(SOUP * 50), "x" * 100_000, "", "ﷺ" * 4096]
    together = searcher.search_many([asked(text) for pair in zip(wild, [*ORDINARY, ""], strict=True) for text in pair])
    for text, answer in zip(ORDINARY, together[1::2], strict=False):
        alone = searcher.search(asked(text))
        assert [result.content_hash for result in answer.results] == [result.content_hash for result in alone.results]
