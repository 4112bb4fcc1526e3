"""ING-28 to ING-33: files that are more than text go through the child, into the index, and are found."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.office import Text, bomb, epub, paragraphs, pdf
from tests.unit.ingestion.test_chats import CORPUS, conversations
from weft import Query, index, open_searcher
from weft.cli.main import main
from weft.domain.documents import Document, Rejection
from weft.ingestion.parser.parser import Parser
from weft.ingestion.sizing import prior_sizes
from weft.ingestion.sources.sources import list_items, read_item, read_source
from weft.ingestion.stages.read_and_chunk import TOO_MANY, bounded_cut
from weft.settings import Settings, load_settings

pytestmark = pytest.mark.integration

MANUAL = [
    Text(72, 720, "Pump manual", 20, "B"),
    Text(72, 690, "Priming", 14, "B"),
    *paragraphs("Fill the pump with water before it is started for the first time.", left=72, top=670, width=80),
    Text(72, 600, "Frost", 14, "B"),
    *paragraphs("Drain the housing through the screw at its lowest point.", left=72, top=580, width=80),
]


@pytest.fixture(scope="module")
def parser() -> Iterator[Parser]:
    settings = load_settings(environment={})
    made = Parser(settings.ingest.parser.model_copy(update={"cpu_s": 1.5}), settings.embedding)
    yield made
    made.close()


def read(path: Path, settings: Settings, parser: Parser) -> list[Document | Rejection]:
    items = list_items(path, settings.ingest)
    return [one for item in items for one in read_item(item, settings.ingest, domain=None, convert=parser.convert)]


def test_the_child_reads_what_this_process_reads(tmp_path: Path, parser: Parser) -> None:
    """ARC-9: the same documents and notes, in the same order."""
    settings = load_settings(environment={})
    assert read(CORPUS, settings, parser) == list(read_source(CORPUS, settings.ingest, domain=None))


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_a_hostile_file_costs_itself_alone(tmp_path: Path, parser: Parser) -> None:
    """ING-3: what takes time or memory without end ends with a reason, after the documents that came before it."""
    (tmp_path / "a.pdf").write_bytes(pdf([MANUAL]))
    for suffix in ("docx", "xlsx", "pptx", "epub"):
        (tmp_path / f"bomb.{suffix}").write_bytes(bomb(suffix, 100_000_000))
    with (tmp_path / "conversations.json").open("w") as file:
        file.write(json.dumps(list(conversations(400)))[:-1] + ', {"title": "')
        file.writelines("x" * 1_000_000 for _ in range(300))
    with (tmp_path / "line.jsonl").open("wb") as file:
        file.write(json.dumps({"sessionId": "s", "message": {"role": "user", "content": "Why?"}}).encode() + b"\n{")
        file.truncate(500_000_000)
    with (tmp_path / "box.mbox").open("wb") as file:
        for number in range(3):
            file.write(b"From a@b Mon Jan  1 10:00:00 2024\nFrom: A\nSubject: %d\n\nHello.\n\n" % number)
        file.truncate(500_000_000)
    (tmp_path / "slow.pdf").write_bytes(pdf([[Text(9, 700, "word " * 50, 6)] * 3_000] * 12))
    (tmp_path / "z.pdf").write_bytes(pdf([MANUAL]))
    settings = load_settings(environment={})
    results = read(tmp_path, settings, parser)
    reasons: dict[str, set[str]] = {}
    for each in results:
        if isinstance(each, Rejection):
            reasons.setdefault(each.uri.rpartition("/")[2], set()).add(each.reason)
    assert {name: reasons[name] for name in reasons if name.startswith("bomb")} == {
        f"bomb.{suffix}": {"too_large"} for suffix in ("docx", "xlsx", "pptx", "epub")
    }
    assert reasons["conversations.json"] <= {"parser_timeout", "parser_memory"}
    assert reasons["line.jsonl"] <= {"left_out", "parser_timeout"}
    assert reasons.get("slow.pdf", set()) <= {"parser_timeout", "left_out"}
    uris = [each.uri.rpartition("/")[2] for each in results if isinstance(each, Document)]
    assert sum(uri.startswith("conversations.json#") for uri in uris) == 400
    assert {"a.pdf", "z.pdf"} <= set(uris)


def test_a_file_fills_no_more_than_its_share(tmp_path: Path, parser: Parser) -> None:
    """ING-33: the beginning is indexed, and a note says how much is left out."""
    settings = load_settings(environment={})
    (tmp_path / "long.md").write_text(
        "".join(f"## Part {n}\n\nThe heron of part {n} wades here.\n\n" for n in range(900))
    )
    (document,) = read(tmp_path, settings, parser)
    assert isinstance(document, Document)
    sizes = prior_sizes(settings.chunking, settings.priors, limit=254).sizes_of(document)
    whole, every, _ = bounded_cut(document, sizes, parser, 4_000)
    shortened, chunks, (note,) = bounded_cut(document, sizes, parser, 12)
    assert whole == document
    assert [chunk.chunk_id for chunk in chunks] == [chunk.chunk_id for chunk in every[:12]]
    assert document.text.startswith(shortened.text)
    assert chunks[-1].end_byte == len(shortened.text.encode())
    ids = {chunk.chunk_id for chunk in chunks}
    assert {chunk.parent_id for chunk in chunks} | {chunk.next_id for chunk in chunks} <= {*ids, None}
    assert (note.reason, note.uri) == (TOO_MANY, document.uri)
    assert note.detail.startswith(f"{len(every) - 12} of {len(every)} chunks left out, from line ")
    assert bounded_cut(document, sizes, parser, 4_000)[2] == []


def test_documents_and_chats_are_found(tmp_path: Path) -> None:
    """ING-28, ING-31: questions lead to the session, the section of the page, the chapter; and the title is shown."""
    folder = tmp_path / "things"
    folder.mkdir()
    shutil.copytree(CORPUS, folder / "chats")
    (folder / "pump.pdf").write_bytes(pdf([MANUAL]))
    chapters = {
        "a.xhtml": "<h1>Meadow</h1><p>Storks catch frogs.</p>",
        "b.xhtml": "<h1>Roof</h1><p>They breed there.</p>",
    }
    (folder / "birds.epub").write_bytes(epub(chapters, title="Storks"))
    outcome = index(
        [folder], tmp_path / "store", assignments=["extraction.enabled=false", "embedding.tokens.enabled=false"]
    )
    assert outcome.rejected.keys() == {"left_out"}
    assert outcome.skipped == 0
    with open_searcher(tmp_path / "store") as searcher:
        for question, name, title in (
            ("do bees hang before the hive on hot evenings to cool it", "chatgpt.json#bees-1", "Bees before the hive"),
            ("how many litres of room does a swarm prefer", "chatgpt.json#bees-1/q1b", "another branch"),
            ("where is the key of the roof", "2023-11-14.json#2023-11-14", "#roof"),
            ("which line for a kite does not stretch", "list.mbox#1@kite.example", "Which line for a stunt kite?"),
            ("why do both gates of the lock hang", "codex.jsonl#lock-7", "canal lock"),
            ("protect the pump against frost", "pump.pdf", "Pump manual"),
            ("what do storks catch in the meadow", "birds.epub", "Storks"),
            ("when are tides at new moon", "tides.ipynb", "Tides of the estuary"),
        ):
            best = searcher.search(Query(text=question)).results[0]
            assert best.uris[0].endswith(name), (question, best.uris)
            assert title in str(best.title), question


def test_files_in_formats_are_read_once(tmp_path: Path) -> None:
    """ING-25, ING-28: known by their bytes; the next run has no time to read any, and needs none but for a new one."""
    folder = tmp_path / "things"
    shutil.copytree(CORPUS, folder / "chats")
    (folder / "pump.pdf").write_bytes(pdf([MANUAL]))
    settings = ["extraction.enabled=false", "embedding.tokens.enabled=false"]
    hurried = [*settings, "ingest.parser.cpu_s=0.0005"]
    first = index([folder], tmp_path / "store", assignments=settings)
    again = index([folder], tmp_path / "store", assignments=hurried)
    assert (again.unchanged, again.generation, again.rejected) == (first.documents, first.generation, first.rejected)
    (folder / "pump.pdf").write_bytes(pdf([MANUAL[:-1]]))
    third = index([folder], tmp_path / "store", assignments=hurried)
    assert third.rejected == {**first.rejected, "parser_timeout": 1}
    fourth = index([folder], tmp_path / "store", assignments=settings)
    assert (fourth.rejected, fourth.unchanged) == (first.rejected, first.documents - 1)


def test_a_file_is_explained_as_it_would_be_cut(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """ING-28: type and why, trust, units with their lines and tokens, and what is left out; nothing is indexed."""
    path = CORPUS / "slack/roof/2023-11-14.json"
    assert main(["index", "--explain-file", str(path), "--store", str(tmp_path / "store"), "--json"]) == 0
    explained = json.loads(capsys.readouterr().out)
    (document,) = explained["documents"]
    assert document["title"].startswith("#roof: Ann and Bob Crane")
    assert (document["content_type"], document["domain"], document["trust"]) == ("conversation", "history", 40)
    assert "a day of Slack" in document["why"]
    assert {0, 1, 2} == {unit["level"] for unit in document["units"]}
    assert all(unit["tokens"] > 0 and unit["lines"][0] <= unit["lines"][1] for unit in document["units"])
    (note,) = explained["notes"]
    assert (note["reason"], note["detail"]) == ("left_out", "notices: 1, pictures and files: 1")
    (tmp_path / "scan.pdf").write_bytes(pdf([[]]))
    assert main(["index", "--explain-file", str(tmp_path / "scan.pdf"), "--store", str(tmp_path / "store")]) == 0
    shown = capsys.readouterr().out
    assert "no_text" in shown
    assert "nothing of it would be indexed" in shown
    (tmp_path / "a.py").write_text('"""Locks."""\n\n\ndef release():\n    return 1\n')
    assert main(["index", "--explain-file", str(tmp_path / "a.py"), "--store", str(tmp_path / "store")]) == 0
    shown = capsys.readouterr().out
    assert "by its name (.py)" in shown
    assert "release" in shown
    assert not (tmp_path / "store").exists()
    # Each of several documents has a table of its own.
    chats = CORPUS / "chatgpt.json"
    assert main(["index", "--explain-file", str(chats), "--store", str(tmp_path / "store")]) == 0
    assert capsys.readouterr().out.count(" level  kind ") > 1
