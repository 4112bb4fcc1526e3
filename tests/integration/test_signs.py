"""RET-22: quotation marks, + and - on the lexical channel, over a Lucene index."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from tests.support.retrieval_fakes import MemoryGeneration, a_query, a_searcher
from weft.domain.ranking import Answer, Channel
from weft.domain.reasons import STANDS_FIRST, sentence_of
from weft.indexes.text.build import LexicalDocument, write_shard
from weft.indexes.text.lexical import open_lexical
from weft.retrieval.answer.trace import understanding_line
from weft.settings import load_settings

pytestmark = pytest.mark.integration


def search(
    folder: Path, texts: list[str], text: str, *, channels: tuple[Channel, ...] = (Channel.LEXICAL,), title: str = ""
) -> Answer:
    """The answer over texts, of which each is a document named by its place; the first one has a title."""
    generation = MemoryGeneration({str(at): [each] for at, each in enumerate(texts)}, {"0": {"title": title}})
    rules = load_settings(environment={}).index.lexical
    write_shard(folder, ((held.row, LexicalDocument(held.text, "", "")) for held in generation.held), rules)
    with closing(open_lexical([folder], rules, rows=len(texts))) as index:
        generation.lexical = index
        with a_searcher(generation, channels=channels) as searcher:
            return searcher.search(a_query(text))


def shown(answer: Answer) -> list[int]:
    return [int(result.uris[0]) for result in answer.results]


PHRASES = [
    ("dead letter queue", "A letter queue is dead: a dead dead letter, a queue of letters, queue."),
    ("letter queue is dead", "A dead letter queue: dead, dead letters in a queue, queue, letter."),
    ("to be or not to be", "Not to be done: be it or not, to or to be not."),
    ("at least once", "Once at the least, at once, least of all once."),
    ("IS NOT NULL", "null is told not. It is null and so is null, which NOT."),
    ("read only memory", "Only memory is read: read memory only, memory only read."),
    ("out of memory", "Memory of what is out, out memory, memory out of it."),
    ("not found", "found and found again: what is found is not so found."),
    ("app.dependency_overrides", "dependency of an app overrides; app overrides dependency app."),
    ("max_retry_count", "count max retry, retry max count, count retry max."),
    ("--no-cache", "no cache, cache no, cache: no no cache at all."),
    ("the who", "Who is the one who was, and the other who is."),
    ("base64 encoding", "encoding of base64 and an encoding base64 has."),
    ("größe der datei", "datei der größe, der größe datei, datei größe der."),
    ("数据库备份", "备份库数据,数据备份库,库数据备份。"),
    ("全文検索", "検索の全文と検索の文が全てある。"),
    ("비밀번호", "번호의 비밀과 번호의 비밀."),
    ("C++ templates", "templates of C++ and templates in C++ or templates of C."),
    ("first come first served", "come first and be served first or come and be served."),
    ("statuses", "status, status, a status of the status, status."),
    ("New York Times", "times new york, york new times, york times new."),
]


@pytest.mark.parametrize("channels", [(Channel.LEXICAL,), (Channel.DENSE, Channel.LEXICAL)])
@pytest.mark.parametrize(("phrase", "other"), PHRASES)
def test_texts_with_the_phrase_stand_before_texts_without(
    tmp_path: Path, phrase: str, other: str, channels: tuple[Channel, ...]
) -> None:
    """RET-22: however often these hold its words; without the marks another order is possible."""
    long = f"{'Something else was told here about many other matters. ' * 8}And then {phrase} came."
    answer = search(tmp_path, [other, long, "Of other things."], f'"{phrase}"', channels=channels)
    assert shown(answer)[:2] == [1, 0]
    assert answer.understanding is not None
    assert (answer.understanding.signs, answer.understanding.unheld) == ((f'"{phrase}"',), ())


@pytest.mark.parametrize("channels", [(Channel.LEXICAL,), (Channel.DENSE, Channel.LEXICAL)])
def test_where_a_phrase_leads_scores_fall_from_place_to_place(tmp_path: Path, channels: tuple[Channel, ...]) -> None:
    """RET-22, ARC-7: what stands first gains what it lacks, as a contribution with a name; the sums still hold."""
    long = "Something else was told here about many other matters. " * 8
    texts = [
        f"{long}And then a dead letter queue came.",
        "A letter queue is dead: a dead dead letter, a queue of letters, queue.",
        f"{'Bananas are yellow and grow far away in the south. ' * 8}They met a dead letter queue.",
        "Dead letters.",
    ]
    answer = search(tmp_path, texts, '"dead letter queue"', channels=channels)
    scores = [result.score for result in answer.results]
    assert set(shown(answer)[:2]) == {0, 2}
    assert scores == sorted(scores, reverse=True)
    gained = [{each.name: each.amount for each in result.contributions}.get(STANDS_FIRST) for result in answer.results]
    assert gained[0] == gained[1]
    assert gained[0] is not None
    assert gained[0] > 0.0
    assert gained[2:] == [None] * len(gained[2:])
    assert "in quotes" in sentence_of(STANDS_FIRST)


PASTED = [
    ('ENOSPC: System limit for number of file watchers reached, watch "src"', "src"),
    ('Cannot find module "left-pad" from the entry of the bundle while it is built', "left-pad"),
    ('rate of requests that failed by handler, rate(requests{job="api"}[5m]), nothing comes', "api"),
    ('the option "base" is read and the public path of assets stays as before', "base"),
]


@pytest.mark.parametrize("channels", [(Channel.LEXICAL,), (Channel.DENSE, Channel.LEXICAL)])
@pytest.mark.parametrize(("error", "quoted"), PASTED)
def test_what_a_pasted_error_quotes_does_not_decide(
    tmp_path: Path, error: str, quoted: str, channels: tuple[Channel, ...]
) -> None:
    """RET-22: the text about the error stays first, and the answer speaks of no sign."""
    about = error.replace('"', "").replace(quoted, "a folder")
    texts = [f"Of other things, {quoted}: all is in {quoted}.", f"When it says {about}, this is why.", "Nothing."]
    answers = [
        search(tmp_path / name, texts, text, channels=channels)
        for name, text in (("with", error), ("without", error.replace('"', "")))
    ]
    assert [shown(answer)[:2] for answer in answers] == [[1, 0], [1, 0]]
    assert answers[0].understanding is not None
    assert answers[0].understanding.signs == answers[0].understanding.unheld == ()


def test_words_in_quotes_side_by_side_are_a_bonus(tmp_path: Path) -> None:
    """RET-22: of texts that hold the same words, the one that holds what a long query quotes stands first."""
    texts = [
        "The queue of each dead letter fills while consumers of the broker retry",
        "The dead letter queue of each fills while consumers of the broker retry",
    ]
    answer = search(tmp_path, texts, 'consumers of the broker retry and each "dead letter queue" fills')
    assert shown(answer) == [1, 0]


MARKS = ['""', "“”", "””", "„“", "„”", "‟”", "«»", "»«", "「」", "『』", "＂＂"]


@pytest.mark.parametrize("marks", MARKS)
def test_marks_of_quotation_of_other_languages(tmp_path: Path, marks: str) -> None:
    """RET-22: a phrase is quoted as people quote, with blanks within the marks as well."""
    texts = ["A letter queue is dead: a dead dead letter, a queue, queue.", "And then a dead letter queue came."]
    begin, end = marks[0], marks[1]
    for phrase in (f"{begin}dead letter queue{end}", f"{begin} dead letter queue {end}"):
        assert shown(search(tmp_path / str(len(phrase)), texts, phrase)) == [1, 0]


@pytest.mark.parametrize(("plus", "minus"), ["＋－", "+−"])
def test_signs_of_other_keyboards(tmp_path: Path, plus: str, minus: str) -> None:
    """RET-22: full-width signs, and the minus of mathematics."""
    texts = ["Queues by Redis, queues.", "Queues of ours.", "Once Kafka kept queues for us and for many others."]
    assert shown(search(tmp_path, texts, f"queues {plus}kafka {minus}redis")) == [2, 1]


@pytest.mark.parametrize(("phrase", "other"), PHRASES)
def test_a_phrase_that_no_text_has_is_as_unquoted(tmp_path: Path, phrase: str, other: str) -> None:
    """RET-22: and the answer says so."""
    texts = [other, f"Once more: {other}", "Of other things."]
    quoted, unquoted = search(tmp_path / "a", texts, f"“{phrase}”"), search(tmp_path / "b", texts, phrase)
    assert shown(quoted) == shown(unquoted)
    assert quoted.understanding is not None
    assert quoted.understanding.unheld == (f"“{phrase}”",)
    assert f"no text has “{phrase}”: taken as plain words" in understanding_line(quoted.understanding)
    assert quoted.to_dict()["understanding"]["unheld_signs"] == [f"“{phrase}”"]


WORDS = [
    "kafka",
    "redis",
    "OAuth2",
    "max_retry_count",
    "c++11",
    "größe",
    "updater",
    "is",
    "statuses",
    "k8s",
    "pyproject.toml",
    "no-cache",
    "HashMap",
    "Docker",
    "tests",
    "writing",
    "utf8",
    "the",
    "数据",
    "검색",
    "Sänger",
]


@pytest.mark.parametrize("word", WORDS)
def test_a_word_that_must_be_there_stands_first(tmp_path: Path, word: str) -> None:
    """RET-22: `+word`, whatever else a text has of the query."""
    texts = ["A queue of a queue: queue.", f"{'About matters of another kind altogether. ' * 6}With {word} a queue."]
    answer = search(tmp_path, texts, f"queue +{word}")
    assert shown(answer) == [1, 0]
    assert answer.understanding is not None
    assert answer.understanding.signs == (f"+{word}",)


@pytest.mark.parametrize("word", WORDS)
def test_a_word_that_must_not_be_there_leaves_texts_out(tmp_path: Path, word: str) -> None:
    """RET-22: `-word`; where every text has it, none is left out, and the answer says so."""
    texts = [f"A queue with {word}: queue, queue.", "About matters of another kind, and a queue."]
    answer = search(tmp_path / "a", texts, f"queue -{word}")
    assert shown(answer) == [1]
    everywhere = search(tmp_path / "b", [texts[0], f"{word} and a queue"], f"queue -{word}")
    assert sorted(shown(everywhere)) == [0, 1]
    assert everywhere.understanding is not None
    assert everywhere.understanding.unheld == (f"-{word}",)


@pytest.mark.parametrize(
    "text",
    [
        '"',
        '""',
        '" "',
        '"\x00"',
        '+"',
        '-"a',
        '+-+- "+" -"-"',
        '"\ud800" x',
        '"a' * 400,
        "+a " * 300,
        '-(b) +[c "d" e',
        "“„«»”",
        '"a" AND "b" -c*~^ +d:e',
        "a -- b ++ c",
        "- + \" '",
        '"--"',
        '+"数" -"据"',
        '"(" queue -")"',
        "--cache -q",
        '"*:*"',
    ],
)
def test_hostile_signs_are_words_or_nothing(tmp_path: Path, text: str) -> None:
    """RET-21: nothing raises, and what is meant by the rest is found."""
    assert shown(search(tmp_path, ["a queue", "other things"], f"{text} queue"))[:1] == [0]


def test_several_signs(tmp_path: Path) -> None:
    """RET-22: all of them hold for what stands first; one that leaves nothing is told, and the others hold."""
    texts = ["dead letter queue in redis", "dead letter queue in kafka", "kafka letters", "dead letter kafka queue"]
    answer = search(tmp_path, texts, '"dead letter queue" +kafka -redis "no such thing"')
    assert shown(answer)[0] == 1
    assert 0 not in shown(answer)
    assert answer.understanding is not None
    assert answer.understanding.signs == ("-redis", '"dead letter queue"', "+kafka")
    assert answer.understanding.unheld == ('"no such thing"',)


def test_stop_words_alone_are_asked_of_words_alone(tmp_path: Path) -> None:
    """RET-22: an encoder knows nothing of them; where no text is called so, all channels answer."""
    both = (Channel.DENSE, Channel.LEXICAL)
    answer = search(
        tmp_path / "a", ["what is not so is not here", "a block of text"], "not", channels=both, title="not"
    )
    assert (shown(answer), list(answer.heads)) == ([0], [Channel.LEXICAL])
    other = search(tmp_path / "b", ["one thing", "another thing"], "not", channels=both)
    assert len(other.results) == 2
