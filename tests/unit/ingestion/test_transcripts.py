"""ING-1, ING-8: transcripts in several notations become one document per session, losing nothing that was said."""

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.turns import turns_of
from weft.chunking.conversation.dialogue import Turn, written
from weft.domain.documents import ContentType, Document, Domain
from weft.ingestion.sources.files import kind_of
from weft.ingestion.sources.sources import read_source
from weft.ingestion.sources.transcripts import Transcript, lines_of, sessions
from weft.settings import load_settings

MAY_8_2023_13_56 = 1683554160.0
TURNS = [{"speaker": "Ann", "text": "Why?"}, {"speaker": "Bob", "text": "So."}]


def turns_in(transcript: Transcript) -> list[tuple[str, str]]:
    return [(line.speaker, line.text) for line in turns_of(transcript.text) if isinstance(line, Turn)]


def test_locomo_gives_a_document_per_session() -> None:
    """ING-1: sessions with their time, turns with their ids, pictures by what they show."""
    value = [
        {
            "sample_id": "conv-1",
            "qa": [],
            "conversation": {
                "speaker_a": "Ann",
                "session_2": [{"speaker": "Ann", "dia_id": "D2:1", "text": "Hi.", "blip_caption": "a cat"}],
                "session_1_date_time": "1:56 pm on 8 May, 2023",
                "session_1": [{"speaker": "Ann", "dia_id": "D1:1", "text": "Hey!"}, TURNS[1] | {"dia_id": "D1:2"}],
                "session_3_date_time": "noon",
            },
        }
    ]
    first, second = sessions(json.dumps(value), "chats/locomo.json")
    assert first.uri == "chats/locomo.json#conv-1:session_1"
    assert first.time == MAY_8_2023_13_56
    assert first.metadata["turns"] == "D1:1 D1:2"
    assert (first.metadata["speakers"], first.metadata["conversation"]) == ("Ann, Bob", "conv-1")
    assert turns_in(first) == [("Ann", "Hey!"), ("Bob", "So.")]
    assert turns_in(second) == [("Ann", "Hi. [shares image: a cat]")]
    assert second.time is None


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (json.dumps({"sessions": [{"id": "a", "turns": TURNS}, {"id": "b", "turns": TURNS}]}), ["a", "b"]),
        (json.dumps({"sessions": [TURNS, {"turns": TURNS}]}), ["1", "2"]),
        (json.dumps({"sessions": [{"id": "a", "turns": TURNS}, {"id": "a", "turns": TURNS}]}), ["a", "a~2"]),
        (json.dumps({"messages": [{"role": "user", "content": "Why?"}, {"role": "bot", "content": "So."}]}), ["1"]),
        (json.dumps([{"from": "human", "value": "Why?"}, {"from": "gpt", "value": "So."}]), ["1"]),
        ("\n".join(json.dumps(turn) for turn in TURNS), ["1"]),
        ("\n".join(json.dumps(turn | {"session": name}) for name in "xy" for turn in TURNS), ["x", "y"]),
        ("\n".join(json.dumps({"messages": TURNS, "id": name}) for name in "xy"), ["x", "y"]),
    ],
)
def test_plain_notations(text: str, names: list[str]) -> None:
    """ING-1: sessions of turns, bare lists, a turn or a session a line."""
    transcripts = list(sessions(text, "f"))
    assert [each.uri for each in transcripts] == [f"f#{name}" for name in names]
    assert all([words for _, words in turns_in(each)] == ["Why?", "So."] for each in transcripts)


def test_parts_of_a_message_and_times_of_turns() -> None:
    """ING-1: texts in parts are joined; a session begins with its first turn where it does not say when."""
    turns = [
        {
            "role": "user",
            "content": [{"type": "text", "text": "a"}, {"type": "image"}, "b"],
            "timestamp": 1683554160000,
        },
        {"role": "assistant", "content": None, "tool_calls": []},
    ]
    assert list(sessions(json.dumps(turns), "f")) == []
    (session,) = sessions(json.dumps([turns[0], turns[1] | {"content": "c"}]), "f")
    assert session.time == MAY_8_2023_13_56
    assert session.text == "user (2023-05-08 13:56:00): a\n\n  b\nassistant: c\n"


def test_a_line_of_a_chat_ends_where_lines_of_files_do() -> None:
    """ING-40: a form feed or a line separator within what somebody said ends nothing."""
    turns = [("Ann", "Why\x0cso?"), ("Bob", "First\u2028second."), ("Ann", "I see."), ("Bob", "Good.")]
    lines = lines_of("\r\n".join(f"{speaker}: {text}" for speaker, text in turns))
    assert [(line.speaker, line.text) for line in lines if isinstance(line, Turn)] == turns


def test_a_chat_log_keeps_code_and_topics() -> None:
    """ING-1, ING-8: a name in a fence of code begins no turn; a rule or a heading begins a topic."""
    text = "Ann: Look:\n```yaml\nBob: 1\n```\nBob: Fine.\n\n# Lunch\nAnn: Where?\nBob (10:31): There.\n"
    (session,) = sessions(text, "f")
    assert list(turns_of(session.text)) == [
        Turn("Ann", "Look:\n```yaml\nBob: 1\n```"),
        Turn("Bob", "Fine."),
        "Lunch",
        Turn("Ann", "Where?"),
        Turn("Bob", "There.", "10:31"),
    ]


WORDS = st.text(alphabet=st.characters(blacklist_categories=["Cs"], blacklist_characters="\r"), max_size=40)
LINES = st.one_of(
    st.builds(Turn, st.sampled_from(["Ann", "Bo B", "user", "Zoë", "C"]), WORDS),
    st.sampled_from(["Lunch", "A longer topic", "x: y"]),
    st.just(""),
)
TRICKY = st.sampled_from(
    ["Bob: x", "# Topic", "---", "  Bob: x", "", " ", "```\nAnn: y\n```", "a\n\n\n b", "Bob (1): x"]
)


@given(st.lists(st.one_of(LINES, st.builds(Turn, st.just("Ann"), TRICKY)), max_size=8))
def test_what_was_said_can_be_read_back(lines: list[Turn | str]) -> None:
    """ING-8: the canonical text is unambiguous, whatever a turn says."""
    assert list(turns_of(written(lines))) == lines


@pytest.mark.parametrize("speaker", ["# a", "a: b", "a (b)", "---", "\n", "x" * 300, "é" * 70, "a\u2028b"])
def test_no_name_of_a_speaker_breaks_the_text(speaker: str) -> None:
    """ING-8: names are made plain, and what was said stays."""
    (turn, other) = turns_of(written([Turn(speaker, "said: so"), Turn("Bob", "yes")]))
    assert isinstance(turn, Turn)
    assert turn.text == "said: so"
    assert other == Turn("Bob", "yes")


def test_a_transcript_in_a_tree_is_read_by_session(tmp_path: Path) -> None:
    """ING-1, ING-2: URIs, titles, times and facts of sessions in a folder."""
    value = {"id": "talk", "sessions": [{"id": "s1", "time": "2023-05-08T13:56:00Z", "turns": TURNS}]}
    (tmp_path / "chat.json").write_text(json.dumps(value))
    (document,) = read_source(tmp_path, load_settings(environment={}).ingest, domain=None)
    assert isinstance(document, Document)
    assert document.uri == f"{tmp_path.name}/chat.json#s1"
    assert (document.content_type, document.domain) == (ContentType.CONVERSATION, Domain.HISTORY)
    assert document.modified_at == MAY_8_2023_13_56
    assert document.metadata["conversation"] == "talk"
    assert document.metadata["folder"] == tmp_path.name


def test_a_file_of_turns_is_no_corpus(tmp_path: Path) -> None:
    """ING-1: a transcript and a corpus may bear the same suffix."""
    settings = load_settings(environment={}).ingest
    (tmp_path / "chat.jsonl").write_text("\n".join(json.dumps(turn) for turn in TURNS))
    (tmp_path / "corpus.jsonl").write_text(json.dumps({"_id": "1", "text": "x", "metadata": {"speaker": "Ann"}}))
    (chat,) = read_source(tmp_path / "chat.jsonl", settings, domain=None)
    (record,) = read_source(tmp_path / "corpus.jsonl", settings, domain=None)
    assert isinstance(chat, Document)
    assert isinstance(record, Document)
    assert (chat.content_type, record.content_type) == (ContentType.CONVERSATION, ContentType.RECORD)


def test_every_turn_of_locomo_is_kept(data_root: Path) -> None:
    """ING-1: the six conversations as published, against the corpus made from them."""
    text = gzip.decompress((data_root / "locomo" / "locomo_conv1-6.json.gz").read_bytes()).decode()
    with gzip.open(data_root / "locomo" / "corpus.jsonl.gz", "rt") as file:
        records = [json.loads(line) for line in file]
    expected = {record["_id"]: (record["title"], record["text"].strip()) for record in records}
    turns = {}
    for session in sessions(text, "locomo.json"):
        ids = session.metadata["turns"].split()
        for turn_id, (speaker, words) in zip(ids, turns_in(session), strict=True):
            turns[f"{session.metadata['conversation']}:{turn_id}"] = (speaker, words.strip())
    assert turns == expected


@pytest.mark.parametrize(
    "stated",
    [1e300, float("nan"), float("inf"), 10**400, -1e14, "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"],
    ids=lambda stated: str(stated)[:30],
)
def test_a_time_that_no_calendar_has_is_none(tmp_path: Path, stated: object) -> None:
    """ING-3: it stops nothing, and the turns are read all the same."""
    (tmp_path / "chat.json").write_text(json.dumps([TURNS[0] | {"time": stated}, TURNS[1]]))
    (document,) = read_source(tmp_path, load_settings(environment={}).ingest, domain=None)
    assert isinstance(document, Document)
    assert 0.0 < (document.modified_at or 0.0) < 5e9  # the file's own
    assert [words for words in ("Why?", "So.") if words not in document.text] == []


def test_a_session_of_a_number_that_is_none_stops_nothing(tmp_path: Path) -> None:
    """ING-3: Python reads no integer of 5,000 digits."""
    (tmp_path / "chat.json").write_text(json.dumps({f"session_{'9' * 5000}": TURNS, "session_1": TURNS}))
    results = list(read_source(tmp_path, load_settings(environment={}).ingest, domain=None))
    assert [one.uri.partition("#")[2] for one in results] == ["session_1"]


def test_a_session_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    """ING-3: beside others that can; a turn without a text, such as a call of a tool, took its session away unsaid."""
    silent = [{"speaker": "Ann", "text": "Why?"}, {"speaker": "Bob", "text": None}]
    named = {"sessions": [{"id": "a", "turns": TURNS}, {"id": "b", "turns": silent}]}
    (tmp_path / "named.json").write_text(json.dumps(named))
    (tmp_path / "numbered.json").write_text(json.dumps({"session_1": TURNS, "session_2": silent, "session_3": []}))
    results = list(read_source(tmp_path, load_settings(environment={}).ingest, domain=None))
    kinds = {one.uri.rpartition("/")[2]: getattr(one, "reason", None) for one in results}
    assert kinds == {
        "named.json#a": None,
        "named.json#b": "invalid_record",
        "numbered.json#session_1": None,
        "numbered.json#session_2": "invalid_record",
    }


def test_a_line_of_json_ends_where_lines_of_files_do(tmp_path: Path) -> None:
    """ING-1: JSON holds further separators of lines unescaped."""
    turns = [{"speaker": "Ann", "text": "Why\u2028not?"}, {"speaker": "Bob", "text": "So\x85."}]
    lines = "".join(json.dumps(turn, ensure_ascii=False) + "\r\n" for turn in turns)
    (tmp_path / "chat.jsonl").write_bytes(lines.encode())
    (document,) = read_source(tmp_path, load_settings(environment={}).ingest, domain=None)
    assert isinstance(document, Document)
    assert document.content_type is ContentType.CONVERSATION
    assert "Why\u2028not?" in document.text


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"2026-01-01 10:00:0{at} INFO {bird}: did {at}\n" for at, bird in enumerate(("ibis", "stork") * 4)),
        "".join(f"N: {bird}\nE: {bird}@e.org\nD: counted it\n\n" for bird in ("Ibis", "Stork", "Heron")),
        "".join(f"{bird} DRIVER\nM:\tAnn\nS:\tMaintained\nF:\ta/\nF:\tb/\n\n" for bird in ("IBIS", "STORK", "HERON")),
        "".join(f"Name: {bird}\nWeight: 3\nWhere: here\n\n" for bird in ("Ibis", "Stork", "Heron")),
    ],
)
def test_logs_and_lists_of_fields_are_no_conversations(text: str) -> None:
    """ING-1: severities speak to nobody, nor do names that come in one order again and again."""
    assert kind_of("MAINTAINERS", text).content_type is ContentType.TEXT


def test_a_log_is_a_conversation_where_somebody_asks() -> None:
    """ING-1: a time before each line is no sign of it."""
    lines = [f"10:00:0{at} {name}: did {at} now" for at, name in enumerate(("Ann", "Bob", "Ann", "Bob", "Ann"))]
    assert kind_of("gem.log", "\n".join(lines)).content_type is ContentType.TEXT
    asked = [*lines, "10:01:00 Bob: and why?"]
    assert kind_of("gem.log", "\n".join(asked)).content_type is ContentType.CONVERSATION
    assert kind_of("gem.chat", "\n".join(lines)).content_type is ContentType.CONVERSATION


@given(
    st.lists(
        st.sampled_from(["<  > hi", "<Ann> hi", "<Bob> why?", "INFO: a", "A: b", " : c", "10:00 <\t> x"]), max_size=12
    )
)
def test_any_lines_have_a_kind(lines: list[str]) -> None:
    """ING-3: whatever a name is made of."""
    assert kind_of("notes", "\n".join(lines)).content_type in {ContentType.TEXT, ContentType.CONVERSATION}
