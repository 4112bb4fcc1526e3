"""ING-3: documents are cut in a child process; whatever becomes of it, every document has chunks and a reason."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT
from weft.chunking.chunker import chunk_document
from weft.chunking.units.splitting import ChunkSizes
from weft.domain.chunks import Chunk
from weft.domain.documents import ContentType, Document, Domain
from weft.embedding.tokens import load_token_counter
from weft.ingestion.parser.parser import Parser
from weft.settings import load_settings

SETTINGS = load_settings(environment={})
SIZES = ChunkSizes(max_tokens=254, target_tokens=254, min_tokens=30, overlap_tokens=20)
ENDLESS = "a = (1,\n" * 400_000  # takes its chunker far longer than any limit here


def a_document(text: str, uri: str = "a.py", kind: ContentType = ContentType.CODE) -> Document:
    return Document(uri=uri, content_type=kind, domain=Domain.CODE, text=text, language="python", trust_level=50)


def a_parser(**limits: float) -> Parser:
    return Parser(SETTINGS.ingest.parser.model_copy(update=limits), SETTINGS.embedding)


@pytest.fixture
def parser() -> Iterator[Parser]:
    parser = a_parser()
    yield parser
    parser.close()


def children_of(process: int) -> list[int]:
    found = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return [int(child) for child in found if b"parser.parser" in Path(f"/proc/{child}/cmdline").read_bytes()]


def covered(chunks: list[Chunk], document: Document) -> bool:
    return chunks[0].start_byte == 0 and chunks[-1].end_byte == len(document.text.encode())


def test_the_child_cuts_as_this_process_would(parser: Parser) -> None:
    """ING-3, ARC-9: real modules, and text with half a character, in order, more than pipes hold."""
    count = load_token_counter(SETTINGS.embedding)
    modules = [
        a_document(path.read_text(), path.name) for path in sorted(Path(os.__file__).parent.glob("[a-f]*.py"))[:10]
    ]
    documents = [*modules, a_document("x = '\ud800'\n", "half.py"), a_document("", "blank.py")]
    answers = [parser.cut(document, SIZES) for document in documents]
    assert answers == [(chunk_document(document, SIZES, count), None) for document in documents]


def test_a_document_that_takes_too_long_is_cut_plainly_and_the_next_one_properly() -> None:
    """ING-3: the wall limit ends the child, not the run; the reason is noted."""
    parser = a_parser(cpu_s=0.5)
    endless, fine = a_document(ENDLESS), a_document("def f():\n    return 1\n", "fine.py")
    (chunks, note), (after, none) = parser.cut(endless, SIZES), parser.cut(fine, SIZES)
    parser.close()
    assert note is not None
    assert (note.uri, note.reason) == ("a.py", "parser_timeout")
    assert covered(chunks, endless)
    assert {chunk.kind for chunk in chunks} == {"window"}
    assert (after[0].symbol, none) == ("f", None)


def test_a_document_that_takes_too_much_memory_is_cut_plainly() -> None:
    """ING-3: address space is refused above the limit, whoever asks for it."""
    parser = a_parser(memory_bytes=200_000_000, cpu_s=30.0)
    document = a_document("x = [\n" + "(1), " * 300_000 + "]\n")
    chunks, note = parser.cut(document, SIZES)
    parser.close()
    assert note is not None
    assert note.reason == "parser_memory"
    assert covered(chunks, document)


@pytest.mark.parametrize("last", [signal.SIGSEGV, signal.SIGKILL])
def test_a_child_that_always_dies_leaves_windows_and_its_signal(last: signal.Signals) -> None:
    """ING-3: a crash in native code is tried once more, and then noted with the signal that ended it."""
    parser = a_parser(cpu_s=20.0)
    endless = a_document(ENDLESS)
    with _Killing(last, times=2, above=_idle(parser)):
        chunks, note = parser.cut(endless, SIZES)
    parser.close()
    assert note is not None
    assert note.reason == "parser_crashed"
    assert last.name in note.detail
    assert covered(chunks, endless)


def test_a_child_killed_from_outside_changes_nothing() -> None:
    """ING-3, ING-24: the document in hand is cut again, by its own chunker, and nothing is noted."""
    parser = a_parser(cpu_s=60.0)
    large = a_document("def f():\n    return [1, 2, 3]\n\n\n" * 15_000)
    with _Killing(signal.SIGKILL, times=1, above=_idle(parser)) as killed:
        chunks, note = parser.cut(large, SIZES)
    parser.close()
    assert killed
    assert note is None
    assert chunks[0].symbol == "f"


def test_a_child_does_not_outlive_its_limit_when_its_parent_is_killed(tmp_path: Path) -> None:
    """ING-26: SIGKILL of the reading process in the middle of a document leaves nothing behind."""
    script = (
        "from tests.integration.test_parser import *; print('ready', flush=True); "
        "a_parser(cpu_s=2.0).cut(a_document(ENDLESS), SIZES)"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], cwd=ROOT, stdout=subprocess.PIPE)
    child = _awaited(lambda: next(iter(children_of(parent.pid)), None))
    parent.kill()
    parent.communicate()
    _awaited(lambda: not Path(f"/proc/{child}/cmdline").exists() or not Path(f"/proc/{child}/cmdline").read_bytes())


def _awaited(condition: Callable[[], object]) -> object:
    while not (value := condition()):
        time.sleep(0.01)
    return value


class _Killing:
    """Sends a signal to the next children of this process, each once it has more memory than one without work."""

    def __init__(self, last: signal.Signals, *, times: int, above: int) -> None:
        self._above = above + 10_000_000
        self._thread = threading.Thread(target=self._run, args=(last, times))
        self._killed: list[int] = []

    def __enter__(self) -> list[int]:
        self._thread.start()
        return self._killed

    def __exit__(self, *_: object) -> None:
        self._thread.join()

    def _run(self, last: signal.Signals, times: int) -> None:
        for _ in range(times):
            child = _awaited(self._busy)
            os.kill(int(str(child)), last)
            self._killed.append(int(str(child)))

    def _busy(self) -> int | None:
        fresh = [child for child in children_of(os.getpid()) if child not in self._killed]
        return next((child for child in fresh if _resident(child) > self._above), None)


def _idle(parser: Parser) -> int:
    """Memory of a child that has nothing to do."""
    parser.cut(a_document("x = 1\n"), SIZES)
    (child,) = children_of(os.getpid())
    return _resident(child)


def _resident(process: int) -> int:
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
