"""How many files one document, query, event and night enter: `python -m tests.support.trace [--functions]`.

A file is entered where a function of it is called: what is imported alone does not count. Child processes count, too.
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
LIMITS = {"document": 98, "query": 55, "event": 29, "night": 74}
"""Files that each flow may enter: as many as it enters today, never more. The goal is 80, 45, 25 and 50."""

_PLACES = tuple(f"{ROOT / name}{os.sep}" for name in ("pipelines", "jobs"))
_OUT = "TRACED_INTO"
_NOT_FUNCTIONS = frozenset({"<module>", "<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>"})


class Trace:
    """The functions that were entered, as lines of `file function`, also written to a file as they are met."""

    def __init__(self, path: Path) -> None:
        self._seen: set[object] = set()
        self._path = path
        self.writes = False

    def profile(self, frame: FrameType, event: str, _argument: Any) -> None:
        """What `sys.setprofile` takes."""
        code = frame.f_code
        if not self.writes or event != "call" or code in self._seen or not code.co_filename.startswith(_PLACES):
            return
        if code.co_name in _NOT_FUNCTIONS or _is_importing(frame):
            return
        self._seen.add(code)
        with self._path.open("a", encoding="utf-8") as file:
            file.write(f"{Path(code.co_filename).relative_to(ROOT).as_posix()} {code.co_qualname}\n")

    def start(self) -> None:
        """Trace this thread and all that begin from now on."""
        threading.setprofile(self.profile)
        sys.setprofile(self.profile)

    def stop(self) -> None:
        """Trace nothing more."""
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]


def _is_importing(frame: FrameType | None) -> bool:
    """Whether a module's own lines run, bodies of classes among them: what they call only defines."""
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_globals.get("__name__") != "__main__":
            return True
        frame = frame.f_back
    return False


@contextmanager
def traced(trace: Trace, path: Path) -> Iterator[None]:
    """Write down what the block enters, in threads that were started since, and in Python processes that it starts."""
    site = path.parent / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text("from tests.support.trace import start_in_child\nstart_in_child()\n")
    places = [str(site), str(ROOT)]
    os.environ[_OUT] = str(path)
    sys.path[:0] = places
    trace.writes = True
    try:
        yield
    finally:
        trace.writes = False
        del os.environ[_OUT]
        del sys.path[: len(places)]


def start_in_child() -> None:
    """Called when a child process of a trace begins."""
    if _OUT in os.environ:
        trace = Trace(Path(os.environ[_OUT]))
        trace.writes = True
        trace.start()


def document(scratch: Path, stack: ExitStack) -> Callable[[], object]:
    """A folder with one Markdown file is indexed in this process."""
    from weft.cli.commands import reindex
    from weft.runtime.stages import HERE

    source = scratch / "source"
    source.mkdir()
    (source / "notes.md").write_text("# Notes\n\nA checkpoint is written in one transaction.\n\n## Locks\n\nNone.\n")
    plan = reindex.plan_of(settings_of(scratch / "store"), [source])
    return lambda: reindex.run(plan, executor=HERE)


def query(scratch: Path, stack: ExitStack) -> Callable[[], object]:
    """A searcher that is open answers one query over one document."""
    from weft.app.searching.engines import opened
    from weft.domain.ids import QueryId
    from weft.domain.ranking import Query

    document(scratch, stack)()
    searcher = stack.enter_context(opened(settings_of(scratch / "store")))
    searcher.search(Query(text="what is a lock", query_id=QueryId("q0"), k=5))
    return lambda: searcher.search(Query(text="how is a checkpoint written", query_id=QueryId("q1"), k=5))


def event(scratch: Path, stack: ExitStack) -> Callable[[], object]:
    """An updater that is open reads one selection, commits and publishes it."""
    from tests.support.feedback_events import impression, records, rules, selection
    from tests.support.feedback_publisher import MemoryTopic, republisher
    from tests.support.feedback_source import FakeLog, FakeSource
    from weft.feedback.run.updater import Updater

    settings = rules(publish_every_s=1.0)
    showing, choosing = records([impression(), selection(1)])
    log = FakeLog.of([showing])
    letters = republisher(MemoryTopic(), settings)
    updater = Updater.open(FakeSource(log), scratch, [0], settings, dead_letters=letters)
    stack.callback(updater.close)
    updater.step(0.0)
    log.partitions[0].append(choosing)
    return lambda: updater.step(10.0)


def night(scratch: Path, stack: ExitStack) -> Callable[[], object]:
    """One night consolidates a day of outcomes, and publishes what it learned."""
    from tests.support.nights import a_day, stream
    from weft.app.night import night_of
    from weft.consolidation.pipeline import consolidate

    stream(scratch / "store", 0, a_day(20_000))
    settings = settings_of(scratch / "store")
    return lambda: consolidate(night_of(settings, clock=lambda: 20_001 * 86_400.0))


FLOWS: Mapping[str, Callable[[Path, ExitStack], Callable[[], object]]] = {
    "document": document,
    "query": query,
    "event": event,
    "night": night,
}


def settings_of(store: Path) -> Any:
    from weft.settings import load_settings

    return load_settings([], [f"storage.root={store}"], environment={})


def entered(flow: str) -> list[tuple[str, str]]:
    """The functions that a flow enters, as pairs of file and name, in the order of first entry."""
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        scratch = Path(folder)
        path = scratch / "entered.txt"
        path.touch()
        trace = Trace(path)
        trace.start()  # before anything is opened: a pool's threads are traced from their beginning
        stack.callback(trace.stop)
        run = FLOWS[flow](scratch, stack)
        with traced(trace, path):
            run()
        lines = [line.split(" ", 1) for line in path.read_text("utf-8").splitlines()]
        return [(file, function) for file, function in lines]


def main(arguments: list[str]) -> None:
    """Print a table of the flows; with `--functions`, or the name of a flow, the files and functions themselves."""
    names = [name for name in arguments if name in FLOWS] or list(FLOWS)
    for name in names:
        functions = list(dict.fromkeys(entered(name)))
        files = list(dict.fromkeys(file for file, _ in functions))
        sys.stdout.write(f"| {name} | {len(files)} | {LIMITS[name]} | {len(functions)} |\n")
        if "--functions" in arguments:
            for file in files:
                names_in = ", ".join(function for its, function in functions if its == file)
                sys.stdout.write(f"    {file}: {names_in}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
