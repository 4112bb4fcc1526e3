"""OPS-6: the console in a real Chromium, by clicking and typing, over a service with a broker and updaters."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

import weft
from tests.support.browser import Visitor, axe_core, chromium
from tests.support.service import ADMIN, FEEDBACK, ROOT, SEARCH, TEXTS, Served, serving, small_store
from weft.catalog.catalog import Catalog
from weft.catalog.learned import LearnedState
from weft.learning.evidence import Evidence
from weft.runtime.kafka.broker import EmbeddedBroker

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.integration, pytest.mark.slow]

QUESTION = "yellow fruit that grows"
HOSTILE = "<img src=x onerror=window.owned=1> <script>window.owned=1</script> ${window.owned=1} {{constructor}} `\n"
SHELF = {
    **TEXTS,
    "fruit/hostile.py": f'def hostile_fruit():\n    """What the hostile yellow fruit says:\n    {HOSTILE}    """\n',
}
PAGES = ("/", f"/?q={QUESTION.replace(' ', '+')}", "/learned", "/lessons", "/sources", "/generations")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A service with tokens, a broker and updaters, over two generations and a learned version that waits."""
    folder = tmp_path_factory.mktemp("console")
    store = small_store(folder, SHELF)
    (folder / "texts" / "locks.md").write_text("# Locks\n\nA lock is released at the end.", encoding="utf-8")
    weft.index([folder / "texts"], store, assignments=["extraction.enabled=false"])
    waits = LearnedState(parent=None, evidence=Evidence(), cut=Evidence())
    Catalog(store).learned.publish(waits, expected_newest=None)
    with EmbeddedBroker() as broker:
        at = ["--bootstrap", broker.bootstrap]
        update = [sys.executable, "-m", "weft", "update", "--local", "--store", str(store), *at]
        updaters = subprocess.Popen(update, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            with serving(store, *at) as running:
                yield running
        finally:
            updaters.terminate()
            updaters.wait(60)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened


@pytest.fixture
def admin(browser: Browser, served: Served) -> Iterator[Visitor]:
    """Somebody who may do everything."""
    visitor = Visitor(browser, served.url)
    visitor.log_in(ADMIN)
    yield visitor
    assert visitor.elsewhere == []
    assert visitor.said == []
    visitor.close()


def test_who_asks_sees_why_says_what_is_good_and_sees_it_move(admin: Visitor) -> None:
    """OPS-6: from the question to the third result that is first, and the page says what moved."""
    page = admin.ask(QUESTION)
    third = admin.titles()[2]
    result = page.locator("article.result").nth(2)
    assert result.get_by_role("img").get_attribute("aria-label").startswith("Score ")  # type: ignore[union-attr]
    result.locator("summary").click()
    made_of = result.locator("table.made-of")
    made_of.wait_for()
    assert made_of.locator("tbody tr").count() >= 3
    assert made_of.locator(".whisker").count() >= 1
    assert "Nobody said anything of it" in result.locator(".facts").inner_text()
    assert result.locator("pre.text").inner_text()
    result.get_by_role("button", name="Good").click()
    page.wait_for_selector(".status:has-text('oved: ')")
    assert admin.titles()[0] == third
    first = page.locator("article.result").first
    assert "You called this right" in first.locator("p.why").inner_text()
    assert first.get_by_role("button", name="Good").get_attribute("aria-pressed") == "true"
    assert "↑ 2" in first.inner_text()
    assert first.locator(".segment.people").count() >= 1


def test_keys_lead_everywhere(admin: Visitor) -> None:
    """OPS-6: /, j, k, Enter, + and ?; what is typed into the field is no key."""
    page = admin.go("/lessons")
    page.keyboard.press("/")
    page.keyboard.type("locks j k ?")
    assert page.get_by_label("Question").input_value() == "locks j k ?"
    page.get_by_label("Question").fill("when is a lock released")
    page.keyboard.press("Enter")
    page.wait_for_selector("article.result")
    admin.listening()
    for key, place in (("j", 0), ("j", 1), ("k", 0)):
        page.keyboard.press(key)
        assert page.locator("article.result").nth(place).get_attribute("aria-current") == "true"
    page.keyboard.press("Enter")
    page.locator("article.result").first.locator("table.made-of").wait_for()
    page.keyboard.press("+")
    page.wait_for_selector("article.result button.good[aria-pressed=true]")
    assert page.locator("article.result[aria-current=true]").count() == 1
    page.keyboard.press("?")
    assert page.locator("#help").is_visible()
    page.keyboard.press("Escape")
    assert not page.locator("#help").is_visible()


def test_a_token_that_may_only_search_can_press_nothing_else(browser: Browser, served: Served) -> None:
    """OPS-6, OPS-11: buttons are disabled and say what is missing."""
    reader = Visitor(browser, served.url)
    reader.log_in(SEARCH)
    page = reader.ask(QUESTION)
    buttons = page.locator("article.result .actions > button")
    assert buttons.count() >= 2
    assert all(each.is_disabled() for each in buttons.all())
    assert "scope feedback" in page.locator(".status").inner_text()
    page = reader.go("/generations")
    assert page.get_by_role("button", name="Make it live").is_disabled()
    page = reader.go("/learned")
    assert page.get_by_role("button", name="Promote").is_disabled()
    page.get_by_role("button", name="Log out").click()
    page.wait_for_selector("input[name=token]")
    page.goto("/learned")
    assert page.get_by_label("Token").is_visible()
    reader.close()


def test_versions_are_promoted_and_generations_rolled_back_after_a_question(admin: Visitor, served: Served) -> None:
    """OPS-6, CON-9: what is live is what was pressed; Cancel changes nothing."""
    catalog = Catalog(served.store)
    live = catalog.pointer().generation
    page = admin.go("/generations")
    page.get_by_role("button", name="Make it live").click()
    page.get_by_role("button", name="Cancel").click()
    assert catalog.pointer().generation == live
    page.get_by_role("button", name="Make it live").click()
    page.locator(".dialog:popover-open").get_by_role("button", name="Make it live").click()
    page.locator(f"li:has-text('{live}')").get_by_role("button", name="Make it live").wait_for()
    assert catalog.pointer().previous == live
    page = admin.go("/learned")
    page.get_by_role("button", name="Promote").click()
    page.locator(".dialog:popover-open").get_by_role("button", name="Promote").click()
    page.get_by_role("button", name="Roll back to it").wait_for()
    assert catalog.pointer().learned == "v000001"
    page.get_by_role("button", name="Roll back to it").click()
    page.locator(".dialog:popover-open").get_by_role("button", name="Roll back to it").click()
    page.get_by_role("button", name="Promote").wait_for()
    assert catalog.pointer().learned in {None, "v000000"}


def test_a_lesson_is_judged_and_the_page_shows_what_that_changed(admin: Visitor, served: Served) -> None:
    """OPS-6, LES-10: by the event that `weft lessons validate` sends."""
    content = f"Run the tests before each commit {HOSTILE.strip()}"
    said = {"type": "lesson", "op": "add", "session_id": "s", "principal": "ada"}
    lesson = {"section": "testing", "content": content, "source": "other"}
    with served.client() as client:
        told = client.post("/v1/feedback", json={**said, "lesson": lesson})
        assert told.status_code == 202, told.text
        page = admin.go("/lessons")
        while not page.get_by_role("button", name="Validate").count():
            page = admin.go("/lessons")
        page.get_by_role("button", name="Validate").first.click()
        page.wait_for_selector(".status:has-text('Said: validate')")
        (known,) = client.get("/v1/lessons").json()
    assert known["outcomes"]["confirmation"] == 1
    assert page.evaluate("window.owned") is None


def test_no_text_of_the_store_is_ever_markup(admin: Visitor) -> None:
    """OPS-11: neither in results, nor in what is opened, nor around a content; in the question neither."""
    page = admin.ask("what does the hostile yellow fruit say")
    place = next(at for at, title in enumerate(admin.titles()) if "ostile" in title)
    result = page.locator("article.result").nth(place)
    result.locator("summary").click()
    result.locator("pre.text").wait_for()
    assert "<script>" in result.locator("pre.text").inner_text()
    result.locator("a.place").click()
    page.wait_for_selector("pre.text")
    admin.listening()
    assert "onerror" in page.locator("pre.text").inner_text()
    admin.go("/?q=%3Cimg%20src%3Dx%20onerror%3Dwindow.owned%3D1%3E%22%3E%3Cscript%3Ewindow.owned%3D1%3C/script%3E")
    assert page.locator("h1").inner_text().startswith("<img")
    assert page.evaluate("window.owned") is None
    assert page.locator(".nicegui-content img").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_and_nothing_is_wider_than_a_telephone(
    browser: Browser, served: Served, scheme: str, tmp_path: Path
) -> None:
    """OPS-6: language, headings, contrast and names are right on every page; at 360 px nothing scrolls sideways."""
    axe = axe_core(tmp_path)
    visitor = Visitor(browser, served.url, color_scheme=scheme, viewport={"width": 360, "height": 740}, bypass_csp=True)
    visitor.page.goto("/")
    _is_accessible(visitor, axe, "/login")
    visitor.log_in(FEEDBACK)
    for path in PAGES:
        page = visitor.go(path)
        for details in page.locator("summary").all()[:2]:
            details.click()
        _is_accessible(visitor, axe, path)
        assert page.evaluate("document.documentElement.lang").startswith("en")
    page = visitor.go(PAGES[1])
    page.locator("a.place").first.click()
    page.wait_for_selector("pre.text")
    _is_accessible(visitor, axe, "/contents")
    assert visitor.elsewhere == []
    visitor.close()


def _is_accessible(visitor: Visitor, axe: str, path: str) -> None:
    page = visitor.page
    page.evaluate(axe)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    wrong = [(each["id"], each["nodes"][0]["html"][:200]) for each in found["violations"]]
    assert wrong == [], path
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), path


def test_only_its_own_pages_may_speak_for_a_browser(served: Served) -> None:
    """OPS-11: a cookie for this site alone; another origin's request, also a sandboxed one's, is refused."""
    with httpx.Client(base_url=served.url, timeout=30.0) as client:
        assert client.post("/login", data={"token": "wrong" * 5}).headers["location"] == "/?refused"
        assert 'role="alert"' in client.get("/?refused").text
        entered = client.post("/login", data={"token": FEEDBACK})
        cookie = entered.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert FEEDBACK not in cookie
        page = client.get("/")
        policy = page.headers["content-security-policy"]
        assert "unsafe-eval" not in policy
        assert "unsafe-inline" not in policy.partition("script-src")[2].partition(";")[0]
        verdict = {"type": "explicit", "signal": 1.0, "query_id": "q", "session_id": "s", "principal": "eve"}
        for origin in ("https://elsewhere.example", "null"):
            assert client.post("/v1/feedback", json=verdict, headers={"Origin": origin}).status_code == 403
        assert client.post("/v1/feedback", json=verdict, headers={"Origin": served.url}).status_code == 202
        assert client.post("/v1/generations/any/rollback").status_code == 403  # the scope is the token's
        client.post("/logout")
        assert client.get("/v1/status").status_code == 401
        assert client.get("/learned", headers={"Accept": "text/html"}).headers["location"] == "/"
        assert client.get("/v1/nothing", headers={"Authorization": f"Bearer {SEARCH}"}).json()["status"] == 404
        assert client.get("/_nicegui_ws/socket.io/?EIO=4&transport=polling").status_code == 401
        assert client.get("/v1/search", headers={"Authorization": f"Bearer {SEARCH}"}).status_code == 405
