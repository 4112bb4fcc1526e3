"""CON-2, CON-4: the corpus of a week of nights is what it says, made of two releases that need no network here."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from tests.support import week_corpus
from tests.support.real_questions import COMMITTED, RealCollection, RealQuestion
from tests.support.week import HALVES, MONDAY, Now, Topic, halves_of
from tests.support.week_corpus import Standing, WeekCorpus, make_corpus, opposite
from weft.domain.links import LinkKind

PROSE = "The worker is started by hand and says every hour what it does, with 3 lines, until it ends. Of page {0}."
PATHS = [f"docs/page{number}.rst" for number in range(8)]


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WeekCorpus:
    """Of a collection whose newer release has a page more, and lines that the older one lacks."""
    pins = {"file": "Shop-1.0.tar.gz", "docs": "docs", "released": "2022-02-14", "followed": "2025-08-19"}
    source = tmp_path / "shop"
    source.mkdir()
    (source / "former.json").write_text(json.dumps(pins))
    (source / "source.json").write_text(json.dumps({**pins, "file": "shop-2.0.tar.gz"}))
    for release, paths in (("old", PATHS[1:]), ("new", PATHS)):
        for path in paths:
            file = tmp_path / release / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"Page\n====\n\n{PROSE.format(path)}\n\nIn the {release} one.\n")
    questions = tuple(
        RealQuestion(f"q{at}", f"what of {path}", "question", "a/b#1", "m", {path: 2}, {})
        for at, path in enumerate(PATHS)
    )
    collection = RealCollection("shop", tmp_path / "new", tmp_path / "new" / "docs", questions)
    monkeypatch.setattr(week_corpus, "read_collection", lambda *_: collection)
    monkeypatch.setattr(week_corpus, "fetched", lambda *_: tmp_path / "old")
    return make_corpus([source], tmp_path, tmp_path / "corpus", declare=True)


def uris_of(corpus: WeekCorpus, standing: Standing) -> list[str]:
    return sorted(uri for uri, page in corpus.pages.items() if page.standing is standing)


def test_both_releases_stand_beside_each_other_and_the_older_one_is_older(corpus: WeekCorpus) -> None:
    """CON-4: a page is known by its tree, has the date of its release, and its successor has the same path."""
    of = {standing: uris_of(corpus, standing) for standing in Standing}
    assert of[Standing.OUTDATED] == [f"corpus/shop-1.0/{path}" for path in PATHS[1:]]
    assert of[Standing.CURRENT] == [f"corpus/shop-2.0/{path}" for path in PATHS]
    assert corpus.successors == dict(zip(of[Standing.OUTDATED], of[Standing.CURRENT][1:], strict=True))
    times = [(corpus.folder.parent / of[standing][0]).stat().st_mtime for standing in Standing]
    assert times[1] < times[0] < times[2] < times[3] < MONDAY


def test_copies_differ_from_their_pages_and_what_is_opposed_from_both(corpus: WeekCorpus) -> None:
    """CON-2, CON-4: a quarter of what is judged has a copy of each kind, changed in what its paragraphs say."""
    for standing in (Standing.COPY, Standing.OPPOSED):
        uris = uris_of(corpus, standing)
        assert len(uris) == 2
        for uri in uris:
            original = (corpus.folder / "shop-2.0" / uri.split("/", 2)[2]).read_text()
            assert (corpus.folder.parent / uri).read_text() != original
    assert min(corpus.planted.values()) == 2


def test_what_is_first_is_what_it_stands_in(corpus: WeekCorpus) -> None:
    """CON-4: text of both releases counts as current, that of the older one alone as outdated."""
    old, new = next(iter(corpus.successors.items()))
    assert [corpus.standing(uris) for uris in ([old, new], [old])] == [Standing.CURRENT, Standing.OUTDATED]
    (question,) = (name for name, grades in corpus.qrels.items() if corpus.pages[new].name in grades)
    assert corpus.answers(question, [old, new])
    assert not corpus.answers(question, [old])
    assert corpus.names([old, new]) == [corpus.pages[new].name]
    assert corpus.holds(LinkKind.SUPERSEDES, [new], [old])
    assert not corpus.holds(LinkKind.SUPERSEDES, [old], [new])
    opposed = uris_of(corpus, Standing.OPPOSED)[0]
    original = "corpus/shop-2.0/" + opposed.split("/", 2)[2]
    assert corpus.holds(LinkKind.CONTRADICTS, [original], [opposed])
    assert not corpus.holds(LinkKind.CONTRADICTS, [original], [old])


def test_sidecars_declare_every_second_successor(corpus: WeekCorpus) -> None:
    """GRA-1: as a user would, beside the newer page."""
    said = sorted((corpus.folder / "shop-2.0").rglob("*.meta.json"))
    assert len(said) == len(PATHS) // 2
    (relation,) = json.loads(said[0].read_text())["relations"]
    assert corpus.successors[relation["target"]] == f"corpus/{said[0].relative_to(corpus.folder)}".removesuffix(
        ".meta.json"
    )


def test_a_paragraph_is_turned_round() -> None:
    """CON-4: by a denial where there is a verb, else by a number."""
    rng = random.Random(1)
    assert "is not started" in str(opposite(PROSE, rng))
    assert opposite("page 3", rng) not in (None, "page 3")
    assert opposite("page", rng) is None


def test_halves_share_no_question_and_events_have_the_days_time() -> None:
    """EVA-6: what is not asked stays unasked, and a day is a day for whoever learns."""
    questions = [RealQuestion(str(at), "", "question", "", "m", {}, {}) for at in range(9)]
    halves = halves_of(questions, 1)
    assert sorted(len(halves[name]) for name in HALVES) == [4, 5]
    assert not {each.question_id for each in halves["asked"]} & {each.question_id for each in halves["unasked"]}
    now = Now()
    topic = Topic(now)
    now.at += 60.0
    topic.send(b"key", b"value")
    assert [record.timestamp for record in topic.log.partitions[0]] == [round(MONDAY * 1000) + 60_000]
    assert (COMMITTED / "flask" / "former.json").is_file()
