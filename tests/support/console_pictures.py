"""The pictures of docs/console.md and of the README: the console in Chromium, over some pages of the documentation.

    python -m tests.support.console_pictures [STORE]  # one that has the pages; else they are indexed

Everything in them is real: pages are indexed, people say what is right, updaters and a night learn from it, and the
pages are clicked through. It fails where a verdict does not move what it is about.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

import httpx
from PIL import Image

import weft
from tests.support.browser import Visitor, chromium
from tests.support.recording import PAGES, QUESTION, RIGHT, ROOT
from tests.support.service import Served, serving
from weft.runtime.kafka.broker import EmbeddedBroker

PICTURES = ROOT / "docs" / "pictures"
MOST_BYTES = 150_000
_COLOURS = 256
_WIDE, _NARROW = {"width": 1280, "height": 860}, {"width": 360, "height": 740}

PEOPLE = ("ada", "bob", "cleo", "dan")
KNOWN = {
    "how do I move to another topic": "Moving to another topic",
    "how are near duplicates found": "Near-duplicates",
    "what happens to a question in other words": "The same question in other words",
    "who may teach": "Who may teach",
    "how do I back up a store": "Backing up and restoring",
    "what is a dead letter": "Dead letters",
    "how do I upgrade": "Upgrading",
    "when does an updater stop": "When an updater stops",
    "what does a night do with contradictions": "Contradictions",
    "how sure is a lesson": "How sure each is",
}
"""Questions, and the heading under which the answer stands: what people say, and nothing that is looked at below."""

LESSONS = (
    ("testing", "Run the tests of what was touched before a commit."),
    ("testing", "Wait for a condition instead of sleeping in tests."),
    ("api", "Name the unit in every parameter that holds a time."),
)


@contextmanager
def learning(store: Path) -> Iterator[Served]:
    """A service over a store, with a broker and updaters."""
    with EmbeddedBroker() as broker:
        at = ["--bootstrap", broker.bootstrap]
        update = [sys.executable, "-m", "weft", "update", "--local", "--store", str(store), *at]
        updaters = subprocess.Popen(update, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            with serving(store, *at, tokens="") as served:
                yield served
        finally:
            updaters.terminate()
            updaters.wait(60)


def teach(client: httpx.Client, people: tuple[str, ...]) -> None:
    """Have people say of each question which result is right, and that another one is not; wait until it is heard."""
    told = client.get("/v1/status").json()["events_consumed"]
    for person in people:
        for question, heading in KNOWN.items():
            answer = client.post("/v1/search", json={"text": question, "principal": person, "k": 5}).json()
            for result in answer["results"]:
                right = heading in result["heading_path"]
                if right or result["rank"] == 1:
                    verdict = {"type": "explicit", "signal": 1.0 if right else -1.0, "answer": answer["token"]}
                    client.post("/v1/feedback", json={**verdict, "content_hash": result["content_hash"]})
                    told += 1
    while client.get("/v1/status").json()["events_consumed"] < told:
        time.sleep(0.5)


def say_lessons(client: httpx.Client) -> None:
    """Lessons that wait for somebody."""
    for section, content in LESSONS:
        lesson = {"section": section, "content": content, "source": "other"}
        client.post("/v1/feedback", json={"type": "lesson", "op": "add", "session_id": section, "lesson": lesson})


def night(store: Path) -> None:
    """One night, as it runs every day."""
    command = [sys.executable, "-m", "weft", "consolidate", "--store", str(store)]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL, env={**os.environ, "WEFT_LOG": "error"})


def take(visitor: Visitor, name: str) -> None:
    """A picture of what is seen, in few colours, for it is text and lines."""
    visitor.page.wait_for_timeout(700)  # what moves has arrived then
    shown = Image.open(BytesIO(visitor.page.screenshot())).convert("RGB")
    path = PICTURES / f"console-{name}.png"
    shown.quantize(_COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(path, optimize=True)
    if path.stat().st_size > MOST_BYTES:
        raise SystemExit(f"expected at most {MOST_BYTES:,} bytes, found {path.stat().st_size:,} in {path}")
    sys.stdout.write(f"{path.relative_to(ROOT)}\n")


def recorded(store: Path) -> None:
    """Teach a store, and go through the console."""
    if not store.exists():
        weft.index([ROOT / "docs" / f"{page}.md" for page in PAGES], store)
    with learning(store) as served, chromium() as browser:
        with served.client(None) as client:
            for people in (PEOPLE[:2], PEOPLE[2:]):
                teach(client, people)
                night(store)
            say_lessons(client)
        wide = Visitor(browser, served.url, viewport=_WIDE, color_scheme="light")
        dark = Visitor(browser, served.url, viewport=_WIDE, color_scheme="dark")
        wide.go("/")
        page = wide.ask(QUESTION)
        place = next(at for at, title in enumerate(wide.titles()) if RIGHT in title)
        page.locator("article.result").nth(place).get_by_role("button", name="Good").click()
        page.wait_for_selector(".status:has-text('oved: ')")
        if RIGHT not in wide.titles()[0]:
            raise SystemExit(f"expected {RIGHT!r} first after praise, found {wide.titles()}")
        page.evaluate("scrollTo(0, 0)")
        take(wide, "search-light")
        asked = f"/?q={QUESTION.replace(' ', '+')}"
        wide.go(asked)
        page.locator("article.result summary").first.click()
        page.locator("table.made-of").first.wait_for()
        take(wide, "why-light")
        for visitor, scheme in ((wide, "light"), (dark, "dark")):
            visitor.go("/learned")
            take(visitor, f"learned-{scheme}")
        dark.go(asked)
        take(dark, "search-dark")
        for path, name in (("/lessons", "lessons"), ("/sources", "health")):
            wide.go(path)
            take(wide, f"{name}-light")
        for scheme in ("light", "dark"):
            narrow = Visitor(browser, served.url, viewport=_NARROW, color_scheme=scheme)
            narrow.go(asked)
            take(narrow, f"phone-{scheme}")
            narrow.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        recorded(Path(sys.argv[1]) if sys.argv[1:] else Path(folder) / "store")
