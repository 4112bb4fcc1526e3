"""ING-28: exports of chats, sessions of agents and mail become conversations: who said what when, and nothing else."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.turns import turns_of
from weft.chunking.chunker import chunk_document
from weft.chunking.conversation.dialogue import Turn
from weft.chunking.units.splitting import ChunkSizes
from weft.domain.documents import ContentType, Document, Domain, Rejection
from weft.ingestion.report import NOTES
from weft.ingestion.sources.formats.exports import _of
from weft.ingestion.sources.formats.mail import _own
from weft.ingestion.sources.formats.messages import merged, words_of
from weft.ingestion.sources.formats.registry import LEFT_OUT, Conversion, digest_of, format_of
from weft.ingestion.sources.formats.whatsapp import is_chat
from weft.ingestion.sources.sources import list_items, read_source
from weft.settings import load_settings

CORPUS = Path(__file__).resolve().parents[2] / "support/corpus/exports"
SETTINGS = load_settings(environment={}).ingest
SIZES = ChunkSizes(max_tokens=150, target_tokens=80, min_tokens=5, overlap_tokens=8)
NEVER = ("hidden musing", "secret musing", "iVBOR", "You are", "base64", "Caveat", "system-reminder", "beekeeper")


def words(text: str) -> int:
    return len(text.split())


def read(path: Path) -> tuple[dict[str, Document], list[Rejection]]:
    results = list(read_source(path, SETTINGS, domain=None))
    documents = {each.uri.partition("#")[2]: each for each in results if isinstance(each, Document)}
    return documents, [each for each in results if isinstance(each, Rejection)]


def spoken(document: Document) -> list[tuple[str, str]]:
    return [(each.speaker, each.text) for each in turns_of(document.text) if isinstance(each, Turn)]


@pytest.mark.parametrize(
    "name", [path.relative_to(CORPUS).as_posix() for path in sorted(CORPUS.rglob("*.*")) if path.name != "users.json"]
)
def test_every_sample_is_recognised_and_says_what_is_left_out(name: str) -> None:
    """ING-28: by the name and the first bytes; no thought, instruction or picture is kept, and one note counts them."""
    documents, notes = read(CORPUS / name)
    assert documents
    assert all(not any(each in document.text for each in NEVER) for document in documents.values())
    assert [each.reason for each in notes] == [LEFT_OUT]
    assert LEFT_OUT in NOTES
    if not name.endswith(".ipynb"):
        kinds = {(each.content_type, each.domain) for each in documents.values()}
        assert kinds == {(ContentType.CONVERSATION, Domain.HISTORY)}
        assert all(each.trust_level < SETTINGS.trust.local_code for each in documents.values())


@pytest.mark.parametrize(
    ("name", "session", "question", "answer"),
    [
        ("chatgpt.json", "bees-1", "Will they swarm?", "Bearding on hot evenings is cooling"),
        ("chatgpt.json", "bees-1", "How do I split the colony?", "frames = 3"),
        ("chatgpt.json", "smoke-2", "What does a smoker burn?", "hessian"),
        ("claude.json", "kiln-1", "Why does my glaze craze?", "Add silica in steps"),
        ("claude_code.jsonl", "ferry-1", "a day late after midnight", "I take the addition out"),
        ("claude_code.jsonl", "ferry-1", "And the tests?", "All 41 tests pass."),
        ("codex.jsonl", "lock-7", "controller hang?", "Both gates wait for the same sluice"),
        ("slack/roof/2023-11-14.json", "2023-11-14", "key of the roof?", "it hangs behind the boiler"),
        ("whatsapp_android_de.txt", "2023-08", "Wann fährt der Zug", "Um 9:40: Gleis vier"),
        ("whatsapp_ios_us.txt", "2023-08", "Who brings the oars?", ""),
        ("list.mbox", "1@kite.example", "does it stretch?", "take polyethylene, für years"),
    ],
)
def test_a_question_finds_its_answer_in_one_piece(name: str, session: str, question: str, answer: str) -> None:
    """ING-8, ING-28: a piece holds both, and the session has its first two levels."""
    folder = CORPUS if name.startswith("slack") else CORPUS / name
    chunks = chunk_document(read(folder)[0][session], SIZES, words)
    assert any(question in chunk.text and answer in chunk.text for chunk in chunks if chunk.level == 2)
    assert {0, 1} <= {chunk.level for chunk in chunks}


def test_the_shown_branch_is_the_conversation_and_others_say_what_is_their_own() -> None:
    """ING-28: what was answered before it was answered anew is a session of its own: that, and the question."""
    documents, _ = read(CORPUS / "chatgpt.json")
    assert list(documents) == ["bees-1", "bees-1/q1b", "smoke-2"]
    assert [speaker for speaker, _ in spoken(documents["bees-1"])] == ["user", "assistant", "user", "assistant"]
    assert spoken(documents["bees-1/q1b"]) == [
        ("user", "My bees hang in a beard at the front of the hive. Will they swarm?"),
        ("assistant", "They may leave for a chimney: a swarm prefers forty litres of room."),
    ]
    assert documents["bees-1"].title == "Bees before the hive: user and assistant, 2024-06-01 10:00:00"
    assert documents["bees-1"].modified_at == 1717236000.0


def test_tools_are_a_line_of_the_assistant() -> None:
    """ING-28: what was called, and how the result begins."""
    (document,) = read(CORPUS / "claude_code.jsonl")[0].values()
    (_, first), (asked, said), *_ = spoken(document)
    assert first == "The ferry leaves a day late after midnight. Find out why."
    assert asked == "assistant"
    assert "[Read: file_path=/home/ann/ferry/timetable.py]" in said
    assert "[result: def departure(day): return day + 1 " in said
    assert len(said) < 600
    assert document.title == "Timetable of the ferry is off by one day: user and assistant, 2025-11-03 08:00:01"
    assert "[shell: command=" in next(iter(read(CORPUS / "codex.jsonl")[0].values())).text


def test_slack_shows_names_and_keeps_threads_together() -> None:
    """ING-28: ids of users become names, a reply follows what it replies to, links and signs are plain."""
    document = read(CORPUS)[0]["2023-11-14"]
    assert document.uri == "exports/slack/roof/2023-11-14.json#2023-11-14"
    assert spoken(document) == [
        ("Ann", "Who has the key of the roof? <urgent>"),
        ("Bob Crane", "@Ann it hangs behind the boiler"),
        (
            "Ann",
            "The gutter is full of leaves, see the forecast (https://weather.example/today)\n[file: gutter.jpg]",
        ),
        ("weatherbot", "Storm from the west at noon"),
    ]


def test_what_stands_for_a_picture_is_left_out_in_any_language(tmp_path: Path) -> None:
    """ING-28: and counted."""
    path = tmp_path / "chat.txt"
    omitted = ("<Media omitted>", "<Medien ausgeschlossen>", "<Mídia oculta>", "<Multimedia omitido>", "<Médias omis>")
    lines = [f"13/02/2024 18:{minute:02} - Ann: {text}" for minute, text in enumerate((*omitted, "Hello", "Bye"))]
    path.write_text("\n".join(lines))
    documents, (note,) = read(path)
    assert spoken(documents["2024-02"]) == [("Ann", "Hello"), ("Ann", "Bye")]
    assert note.detail == f"pictures and files: {len(omitted)}"


def test_a_chat_of_whatsapp_is_a_session_a_month() -> None:
    """ING-28: messages of several lines, numbers as names; notices and omitted pictures are left out."""
    documents, (note,) = read(CORPUS / "whatsapp_android_de.txt")
    assert list(documents) == ["2023-08", "2023-09"]
    assert spoken(documents["2023-08"])[0] == ("Ann", "Wann fährt der Zug nach Lindau?\nIch stehe schon am Gleis.")
    assert spoken(documents["2023-09"]) == [("+49 170 1234567", "Hier Carl, neue Nummer")]
    assert note.detail == "notices: 1, pictures and files: 1"
    american, _ = read(CORPUS / "whatsapp_ios_us.txt")
    assert spoken(american["2023-08"]) == [("Ann", "Who brings the oars?"), ("Bob", "I do, from the shed")]
    assert "Ann (2023-08-14 21:15:40)" in american["2023-08"].text


@pytest.mark.parametrize(
    "start",
    [
        "12/25/23, 3:04 PM - ",
        "25/12/2023, 15:04 - ",
        "25/12/23, 3:04 p. m. - ",
        "25.12.2023, 15:04 - ",
        "2023-12-25, 15:04 - ",
        "[25.12.23, 15:04:05] ",
        "[25/12/2023, 3:04:05 PM] ",
        "[25.12.2023 klo 15.04.05] ",
        "[2023/12/25 下午3:04:05] ",
        "25-12-2023 15:04 - ",
    ],
)
def test_dates_of_many_countries(tmp_path: Path, start: str) -> None:
    """ING-28: Android and iOS write them as the country does; the order of day and month follows from the file."""
    (tmp_path / "chat.txt").write_text(f"{start}Ann: Why?\nreally\n{start}Bob B: So: it is.\n", encoding="utf-8")
    documents, _ = read(tmp_path)
    (document,) = documents.values()
    assert spoken(document) == [("Ann", "Why?\nreally"), ("Bob B", "So: it is.")]
    assert "Ann (2023-12-25 15:04:0" in document.text


@pytest.mark.parametrize(
    "text",
    [
        "2024-01-01 10:00:00 - INFO: started\n2024-01-01 10:00:01 - WARNING: late\n" * 3,
        "1. Ann: first\n2. Bob: second\n" * 3,
        "12/25/23, 3:04 PM - nobody spoke\n" * 5,
        "In 2023 we met.\n12/25/23, 3:04 PM - Ann: hi\n12/25/23, 3:05 PM - Bob: ho\n",
    ],
)
def test_logs_and_lists_are_no_chats(text: str) -> None:
    """ING-28: severities are no senders, and a chat begins with its first message."""
    assert not is_chat(text)


def test_a_thread_of_mail_is_a_conversation() -> None:
    """ING-28: replies by their ids, words of names decoded; quotations, signatures, attachments are left out."""
    documents, (note,) = read(CORPUS / "list.mbox")
    assert list(documents) == ["1@kite.example", "3@kite.example"]
    assert spoken(documents["1@kite.example"]) == [
        ("Ann Ibis", "Is nylon good enough, or does it stretch?"),
        ("Böb Crane", "It stretches; take polyethylene, für years.\nFrom the shop at the pier."),
    ]
    assert spoken(documents["3@kite.example"]) == [("carl@kite.example", "The festival begins on Saturday.")]
    assert documents["1@kite.example"].title.startswith("Which line for a stunt kite?: Ann Ibis and Böb Crane")
    assert note.detail == "pictures and files: 1, quotations: 1, signatures: 1"


@pytest.mark.parametrize(
    ("text", "own"),
    [
        ("> old\n\nNew.", "New."),
        ("New.\n\nAm 01.01.2024 um 10:00 schrieb Ann <a@b.c>:\n> alt\n> älter", "New."),
        ("New.\n\n-----Original Message-----\nFrom: Ann\nold", "New."),
        ("Look: 3 > 2\n\n> quoted\n\nBelow it.", "Look: 3 > 2\n\n\nBelow it."),
        ("New.\n-- \nAnn\nACME", "New."),
    ],
)
def test_what_a_mail_says_by_itself(text: str, own: str) -> None:
    """ING-28: what it quotes is said where it was said first."""
    assert _own(text, Counter()).split() == own.split()


def tree_of(*messages: dict[str, object], title: str | None = "Ducks") -> dict[str, object]:
    """ChatGPT's export of messages that follow each other."""
    nodes = {
        str(n): {"parent": str(n - 1) if n else None, "children": [str(n + 1)], "message": message}
        for n, message in enumerate(messages)
    }
    return {"id": "c", "title": title, "current_node": str(len(messages) - 1), "mapping": nodes}


def said(role: str, content: object, **more: object) -> dict[str, object]:
    content = {"content_type": "text", "parts": [content]} if isinstance(content, str) else content
    return {"author": {"role": role}, "content": content, **more}


def written_as(path: Path, value: object) -> dict[str, Document]:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))
    return read(path)[0]


def test_what_was_said_aloud_is_text(tmp_path: Path) -> None:
    """ING-28: a transcription is what was said; the sound beside it is counted."""
    aloud = {
        "content_type": "multimodal_text",
        "parts": [{"content_type": "audio_transcription", "text": "Do ducks dive?"}, {"content_type": "audio_asset"}],
    }
    (document,) = written_as(tmp_path / "conversations.json", [tree_of(said("user", aloud))]).values()
    assert spoken(document) == [("user", "Do ducks dive?")]
    assert read(tmp_path)[1][0].detail == "pictures and files: 1"


REPORT = "# Ducks\n\n" + "They dabble in shallow water. " * 30 + "\n\n## Diving\n\nTufted ducks dive."


def test_documents_that_an_assistant_wrote_are_whole(tmp_path: Path) -> None:
    """ING-28: Claude's artifacts and ChatGPT's canvases keep headings and lines; other calls are a line."""
    written = json.dumps({"name": "Ducks", "type": "document", "content": REPORT})
    canvas = said("assistant", {"content_type": "code", "text": written}, recipient="canmore.create_textdoc")
    (document,) = written_as(tmp_path / "a.json", [tree_of(said("user", "Write."), canvas)]).values()
    assert spoken(document)[1] == ("assistant", f"[canmore.create_textdoc: name=Ducks]\n\n{REPORT}")
    made = {"id": "d", "type": "text/markdown", "title": "Ducks", "command": "create", "content": REPORT}
    code = {"type": "application/vnd.ant.code", "language": "python", "content": "def dive():\n    return 1"}
    blocks = [{"type": "tool_use", "name": "artifacts", "input": each} for each in (made, code)]
    blocks.append({"type": "tool_use", "name": "Write", "input": {"content": REPORT}})
    message = {"sender": "assistant", "content": blocks}
    (document,) = written_as(tmp_path / "b.json", [{"uuid": "c", "chat_messages": [message]}]).values()
    text = spoken(document)[0][1]
    assert text.startswith(
        f"[artifacts: title=Ducks]\n\n{REPORT}\n\n[artifacts]\n\n```python\ndef dive():\n    return 1\n```"
    )
    assert len(text) < len(REPORT) + 500


def test_marks_of_citations_are_left_out(tmp_path: Path) -> None:
    """ING-28: what ChatGPT shows as a link says nothing; the name of a thing stays."""
    marked = 'They dive.\ue200cite\ue202turn0search3\ue201 At \ue200entity\ue202["place","Lake Constance"]\ue201, too.'
    (document,) = written_as(tmp_path / "a.json", [tree_of(said("assistant", marked))]).values()
    assert spoken(document) == [("assistant", "They dive. At Lake Constance, too.")]


def test_a_conversation_without_a_title_is_called_by_its_question(tmp_path: Path) -> None:
    """ING-28: in short; an id says nothing."""
    untitled = tree_of(said("user", "Why do ducks " + "really " * 30 + "dive?"), title=None)
    (document,) = written_as(tmp_path / "a.json", [untitled]).values()
    assert document.title == f"Why do ducks{' really' * 9} real …: user"


@pytest.mark.parametrize("beside", ["conversations.json", "conversations-000.json", "general/2024-03-01.json"])
def test_lists_beside_an_export_are_left_out(tmp_path: Path, beside: str) -> None:
    """ING-28: who took part is no configuration; the same names elsewhere are what they were."""
    for name in ("users.json", "dms.json"):
        assert written_as(tmp_path / "app" / name, [{"id": "U1", "name": "ann"}])
        written_as(tmp_path / "export" / name, [{"id": "U1", "name": "ann"}])
    written_as(tmp_path / "export" / beside, [])
    assert [(each.uri, each.reason) for each in read(tmp_path / "export")[1]] == [
        ("export/dms.json", LEFT_OUT),
        ("export/users.json", LEFT_OUT),
    ]


def test_documents_of_projects_are_read(tmp_path: Path) -> None:
    """ING-28: what Claude's projects are told, and were given."""
    given = {"filename": "insurance.md", "content": "# Insurance\n\nPolicy 4711 covers pipes."}
    project = {"name": "House", "description": "", "prompt_template": "Be brief.", "docs": [given, 7]}
    (document,) = written_as(tmp_path / "projects.json", [project, 7]).values()
    assert document.content_type is ContentType.MARKDOWN
    assert document.text.startswith(f"# House\n\nBe brief.\n\n# House: insurance.md\n\n{given['content']}")


def test_slack_shows_what_programs_say(tmp_path: Path) -> None:
    """ING-28: attachments, blocks and previews of files, once; a fallback where there is nothing else."""
    rich = [
        {"type": "text", "text": "done "},
        {"type": "user", "user_id": "U1"},
        {"type": "link", "url": "https://a.b", "text": " here"},
    ]
    grafana = {
        "pretext": "Alert",
        "title": "Checkout is slow",
        "text": "p99 is 4s",
        "fields": [{"title": "Cluster", "value": "eu-west"}],
        "fallback": "never",
    }
    header = {"type": "header", "text": {"type": "plain_text", "text": "Release 4.2"}}
    section = {"type": "section", "fields": [{"type": "mrkdwn", "text": "*Env:* prod"}]}
    context = {"type": "context", "elements": [{"type": "mrkdwn", "text": "by ann"}]}
    buttons = {"type": "actions", "elements": [{"type": "button", "text": {"type": "plain_text", "text": "Approve"}}]}
    messages: list[dict[str, object]] = [
        {"username": "Grafana", "text": "", "attachments": [grafana, {"fallback": "short"}]},
        {"bot_id": "B1", "bot_profile": {"name": "Deploy"}, "text": "x", "blocks": [header, section, context, buttons]},
        {
            "user": "U1",
            "text": "*done* <@U1> <https://a.b|here>",
            "blocks": [{"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": rich}]}],
        },
        {
            "user": "U1",
            "text": "trace:",
            "files": [{"name": "t.txt", "title": "The trace", "preview": "at Cart:88"}, {}],
        },
        {"user": "U1", "text": "", "blocks": [{"type": "rich_text_section", "elements": rich}]},
    ]
    day = [{**each, "ts": f"170928000{n}.000100"} for n, each in enumerate(messages)]
    (document,) = written_as(tmp_path / "alerts/2024-03-01.json", day).values()
    assert spoken(document) == [
        ("Grafana", "Alert\nCheckout is slow\np99 is 4s\nCluster: eu-west\nshort"),
        ("Deploy", "x\nRelease 4.2\n*Env:* prod\nby ann"),
        ("U1", "*done* @U1 here (https://a.b)"),
        ("U1", "trace:\n[file: The trace]\nat Cart:88"),
        ("U1", "done @U1 here"),
    ]


def test_a_reply_on_a_later_day_stands_below_its_question(tmp_path: Path) -> None:
    """ING-28, ING-25: wherever it was day then; the day is read again where the earlier one has changed."""
    users = [{"id": "U1", "name": "ann"}, {"id": "U2", "name": "bob"}]
    began, late = "1709339400.000100", "1709628000.000100"  # 2024-03-02, half past midnight in UTC
    question = {"user": "U1", "text": "Is the roof tight?", "ts": began, "thread_ts": began}
    folder = tmp_path / "slack/D1"
    written_as(folder / "2024-03-01.json", [question, {"user": "U1", "text": "Lunch?", "ts": "1709280000.000100"}])
    written_as(tmp_path / "slack/users.json", users)
    written_as(tmp_path / "slack/dms.json", [{"id": "D1", "members": ["U1", "U2"]}])
    answer = {"user": "U2", "text": "Since May.", "ts": late, "thread_ts": began}
    written_as(folder / "2024-03-05.json", [{"user": "U1", "text": "Hi", "ts": "1709627000.000100"}, answer])
    document = read(tmp_path)[0]["2024-03-05"]
    assert spoken(document) == [("ann", "Is the roof tight?"), ("bob", "Since May."), ("ann", "Hi")]
    assert document.title == "ann, bob: ann and bob, 2024-03-05"
    assert document.modified_at == 1709627000.0001
    conversion = Conversion("slack", str(tmp_path), ("slack", "D1", "2024-03-05.json"), "a", 10**6, 10**6)
    before = digest_of(conversion)
    written_as(folder / "2024-03-01.json", [{**question, "text": "Is the roof dry?"}])
    assert digest_of(conversion) != before


def test_what_was_taken_back_in_a_session_is_left_out(tmp_path: Path) -> None:
    """ING-28: of two branches the newest counts; calls side by side, their results and agents below are no branches."""
    called = [{"type": "tool_use", "name": name, "input": {}} for name in ("ls", "cat")]
    results = [
        {"type": "tool_result", "content": text} for text in ("<system-reminder>never</system-reminder>a.py", "b")
    ]
    review = "<command-message>review</command-message>\n<command-name>/review</command-name>"
    review += "\n<command-args>a.py</command-args>"
    model = (
        "<command-name>/model</command-name>\n<command-message>model</command-message>\n<command-args>x</command-args>"
    )
    rows: list[tuple[str, str | None, str, object]] = [
        ("1", None, "user", "Which database?"),
        ("2", "1", "assistant", "Mongo."),
        ("3", "2", "user", "Why Mongo?"),
        ("4", "1", "assistant", [called[0]]),
        ("5", "4", "assistant", [called[1]]),
        ("6", "5", "user", [results[1]]),
        ("7", "4", "user", [results[0]]),
        ("8", "7", "assistant", "Postgres."),
        ("9", "8", "user", model),
        ("10", "9", "user", review),
    ]
    lines = [
        {
            "type": role,
            "sessionId": "s",
            "uuid": own,
            "parentUuid": above,
            "message": {"role": role, "content": content},
        }
        for own, above, role, content in rows
    ]
    for line in lines[3:5]:
        line["message"] = {**dict(line["message"]), "id": "msg"}  # type: ignore[call-overload]
    below = {"role": "user", "content": "Explore."}
    lines.append({"type": "user", "isSidechain": True, "uuid": "s1", "parentUuid": "1", "message": below})
    (tmp_path / "s.jsonl").write_text("\n".join(map(json.dumps, lines)))
    documents, (note,) = read(tmp_path)
    assert list(documents) == ["s", "s/sidechain"]
    assert spoken(documents["s"]) == [
        ("user", "Which database?"),
        ("assistant", "[ls]\n\n[cat]\n\n[result: b]\n\n[result: a.py]\n\nPostgres."),
        ("user", "/review a.py"),
    ]
    assert documents["s"].title == "Which database?: user and assistant"
    assert note.detail == "turns that were taken back: 2"


def test_a_session_without_times_began_when_its_file_says(tmp_path: Path) -> None:
    """ING-28: Codex once wrote a time in its first line alone."""
    lines = [{"id": "r", "timestamp": "2025-06-02T10:00:00Z"}, {"type": "message", "role": "user", "content": "Why?"}]
    lines.append({"type": "function_call", "name": "ls", "arguments": "{}", "call_id": "1"})
    (tmp_path / "r.jsonl").write_text("\n".join(map(json.dumps, lines)))
    (document,) = read(tmp_path)[0].values()
    assert document.modified_at == 1748858400.0


@pytest.mark.parametrize(
    ("subject", "text", "own"),
    [
        ("Fwd: Visa", "FYI.\n\n---------- Forwarded message ---------\nFrom: A\n\nOn 3 May.", "FYI. On 3 May."),
        ("WG: Visa", "FYI.\n\n-----Original Message-----\nFrom: A\n\nOn 3 May.", "FYI. On 3 May."),
        ("[visa] Fwd: Re: Visa", "\n> Begin forwarded message:\n>\n> From: A\n>\n> On 3 May.", "On 3 May."),
        ("Visa", "Begin forwarded message:\n\nFrom: A\n\nOn 3 May.", "On 3 May."),
        ("AW: Visa", "Ja.\n\nVon: A <a@b.c>\nGesendet: Montag\nAn: B\nBetreff: Visa\n\nAlt.", "Ja."),
        ("RE: Fwd: Visa", "Yes.\n\n*From:* A\n*Sent:* Monday\n*Subject:* Fwd: Visa\n\nOld.", "Yes."),
        ("Visa", "Name: A\nDay: Monday\nWhat: Visa\n\nPay.", "Name: A\nDay: Monday\nWhat: Visa\n\nPay."),
        ("Re: Visa", "> On 3 May.", "On 3 May."),
    ],
)
def test_what_is_forwarded_is_kept_and_what_is_answered_is_not(subject: str, text: str, own: str) -> None:
    """ING-28: a forward is said nowhere else, nor what a message without words of its own quotes."""
    said = _own(text, Counter(), subject)
    heads = ("From:", "Begin", "-----")
    assert [line for line in said.split("\n") if line and not line.startswith(heads)] == [
        line for line in own.replace(". ", ".\n").split("\n") if line
    ]


def a_mail(number: int, subject: str, text: str, *fields: str) -> str:
    return "\n".join(
        (
            "From x Mon Jan 15 10:00:00 2024",
            f"From: {number}@x.example",
            f"Subject: {subject}",
            f"Message-ID: <{number}@x>",
            *(fields or ("Content-Type: text/plain",)),
            f"\n{text}\n\n",
        )
    )


def test_mails_are_joined_by_what_they_refer_to_or_else_by_subject(tmp_path: Path) -> None:
    """ING-28: a subject joins replies that refer to nothing; a reply may come before what it answers."""
    box = (
        a_mail(1, "Invoice", "Kettle.")
        + a_mail(2, "Re: Invoice", "Tyres.", "In-Reply-To: <77@me>")
        + a_mail(3, "AW: Invoice", "Teeth.", "References: <5@x> <99@me>")
        + a_mail(4, "Re: Invoice", "Paid.")
        + a_mail(5, "Crowns", "Crowns.")
        + a_mail(6, "[list] Invoice", "Of a list.")
    )
    (tmp_path / "a.mbox").write_text(box)
    documents, _ = read(tmp_path / "a.mbox")
    threads = [[text for _, text in spoken(document)] for document in documents.values()]
    assert threads == [["Kettle.", "Paid."], ["Tyres."], ["Teeth.", "Crowns."], ["Of a list."]]


def test_a_page_is_read_where_the_text_beside_it_says_little(tmp_path: Path) -> None:
    """ING-28: as that a program shows no HTML."""
    parts = "--b\nContent-Type: text/plain\n\n{}\n--b\nContent-Type: text/html\n\n{}\n--b--"
    kind = "Content-Type: multipart/alternative; boundary=b"
    notice, page = "Your program shows no HTML.", "<p>The parade starts at noon on Sunday in the market.</p>"
    box = a_mail(1, "A", parts.format(notice, page), kind) + a_mail(
        2, "B", parts.format("It is <b>.", "<p>b</p>"), kind
    )
    (tmp_path / "a.mbox").write_text(box)
    documents, _ = read(tmp_path / "a.mbox")
    said = [text for document in documents.values() for _, text in spoken(document)]
    assert said == ["The parade starts at noon on Sunday in the market.", "It is <b>."]


def test_messages_by_role_are_turns_of_those_who_speak(tmp_path: Path) -> None:
    """ING-28: as OpenAI's and Anthropic's interfaces take them: instructions are no turns, tools the assistant's."""
    called = {"id": "c", "type": "function", "function": {"name": "weather", "arguments": '{"place": "Lindau"}'}}
    messages = [
        {"role": "system", "content": "You are a guide."},
        {"role": "user", "content": [{"type": "text", "text": "Rain?"}, {"type": "image_url", "image_url": {}}]},
        {"role": "assistant", "content": None, "tool_calls": [called]},
        {"role": "tool", "tool_call_id": "c", "content": "dry"},
        {"role": "assistant", "content": "No rain."},
    ]
    (tmp_path / "a.json").write_text(json.dumps({"id": "trip", "messages": messages}))
    (tmp_path / "b.jsonl").write_text("\n".join(map(json.dumps, messages)))
    documents, _ = read(tmp_path)
    expected = [("user", "Rain?"), ("assistant", "[weather: place=Lindau]\n\n[result: dry]\n\nNo rain.")]
    assert [spoken(each) for each in documents.values()] == [expected, expected]


def conversations(count: int) -> Iterator[dict[str, object]]:
    for number in range(count):
        said = {"author": {"role": "user"}, "content": {"content_type": "text", "parts": [f"Why {number}?"]}}
        reply = {"author": {"role": "assistant"}, "content": {"content_type": "text", "parts": ["So. " * 400]}}
        nodes = {"a": {"parent": None, "children": ["b"], "message": said}, "b": {"parent": "a", "message": reply}}
        yield {"conversation_id": f"c{number}", "current_node": "b", "mapping": nodes}


def test_lists_above_the_limit_are_read_as_a_stream(tmp_path: Path) -> None:
    """ING-28: exports, and lists in a plain notation; what does not end well keeps what came before it."""
    settings = SETTINGS.model_copy(update={"max_file_bytes": 50_000})
    whole = json.dumps(list(conversations(60)))
    (tmp_path / "a.json").write_text(whole)
    (tmp_path / "cut.json").write_text(whole[:-1500])
    plain = [{"id": f"p{n}", "messages": [{"role": "user", "content": "Why? " * 200}]} for n in range(60)]
    (tmp_path / "plain.json").write_text(json.dumps(plain))
    (tmp_path / "other.json").write_text(json.dumps({"values": ["Why? " * 200] * 60}))
    results = list(read_source(tmp_path, settings, domain=None))
    counts = Counter(each.uri.partition("#")[0] for each in results if isinstance(each, Document))
    folder = tmp_path.name
    assert counts == {f"{folder}/a.json": 60, f"{folder}/cut.json": 59, f"{folder}/plain.json": 60}
    reasons = {each.uri: each.reason for each in results if isinstance(each, Rejection)}
    assert reasons == {f"{folder}/cut.json": "unreadable_format", f"{folder}/other.json": "too_large"}


def test_a_session_of_any_length_is_cut_in_parts_of_whole_turns(tmp_path: Path) -> None:
    """ING-28: each part is a document, and none takes longer to cut than a file does."""
    lines = [
        {"type": "user", "sessionId": "s", "message": {"role": "user", "content": f"{n} " + "why " * 5_000}}
        for n in range(60)
    ]
    (tmp_path / "s.jsonl").write_text("\n".join(map(json.dumps, lines)))
    documents, _ = read(tmp_path)
    assert list(documents) == ["s", "s/part-2", "s/part-3"]
    assert [text.split()[0] for each in documents.values() for _, text in spoken(each)] == [str(n) for n in range(60)]


def test_a_tree_with_circles_ends() -> None:
    """ING-3: parents in a circle, children that are nowhere, nodes that are none."""
    said = {"author": {"role": "user"}, "content": {"content_type": "text", "parts": ["Why?"]}}
    nodes = {
        "a": {"parent": "b", "children": ["b", "nowhere"], "message": said},
        "b": {"parent": "a", "children": ["a"], "message": said},
        "c": 7,
    }
    for current in ("a", "nowhere", None, 3):
        value = {"mapping": nodes, "current_node": current}
        assert all(session.lines for session in _of(value, Counter()))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["type", "text", "content", "role", "message", "input", "name", "payload", "parts", "uuid"])
            | st.text(max_size=3),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_any_content_says_something_that_can_be_encoded(content: object) -> None:
    """ING-3: whatever stands where a message was expected."""
    words_of(content, Counter()).encode()


@given(st.lists(st.tuples(st.sampled_from(["user", "assistant", "Ann"]), st.text("ab \n", max_size=9)), max_size=9))
def test_merging_turns_loses_no_word(turns: list[tuple[str, str]]) -> None:
    """ING-28: neighbouring turns of the assistant are one; every other stays as it is."""
    lines = list(merged(Turn(speaker, text) for speaker, text in turns))
    assert "".join(text for _, text in turns).replace("\n", "") == "".join(each.text for each in lines).replace(
        "\n", ""
    )
    assert not any(one.speaker == two.speaker == "assistant" for one, two in pairwise(lines))


def test_a_single_session_of_an_agent_is_no_corpus(tmp_path: Path) -> None:
    """ING-1: a file of lines that is named itself is read as in a folder."""
    shutil.copy(CORPUS / "codex.jsonl", tmp_path / "codex.jsonl")
    assert len(list_items(tmp_path / "codex.jsonl", SETTINGS)) == 1
    assert list(read(tmp_path / "codex.jsonl")[0]) == ["lock-7"]


def test_other_json_is_what_it_was() -> None:
    """ING-28: a word of an export in a file of another kind makes it none."""
    for name, text in [
        ("package.json", '{"name": "a", "mapping": {"b": 1}}'),
        ("a.json", '{"role": "admin", "users": []}'),
        ("2024-01-01.json", '[{"day": 1}]'),
        ("rows.jsonl", '{"_id": "1", "text": "sessionId is a word"}'),
        ("notes.md", "From Ann, 10:00\nSubject: x"),
        ("openapi.json", '{"paths": {}, "messages": {"role": "x"}}'),
    ]:
        assert format_of(name, text.encode()) is None, name
    random.seed(0)
    assert format_of("noise.bin", random.randbytes(2_000)) is None
