"""A real Chromium for tests of the console, and axe-core to look at its pages."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page, Route

CHROMIUM = "/usr/bin/chromium"
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
AXE = "axe-core@4.14.1"
PATIENCE_MS = 60_000.0
"""A busy machine draws slowly; nothing is measured by it."""


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser; skips where there is none."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright drives the browser")
    if not Path(CHROMIUM).exists():
        pytest.skip(f"there is no {CHROMIUM}")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


class Visitor:
    """Somebody with a browser of their own: whatever it asks another host for is stopped, and listed."""

    def __init__(self, browser: Browser, url: str, **context: Any) -> None:
        self.url = url
        self.elsewhere: list[str] = []
        self.said: list[str] = []  # by scripts: errors, and what a policy refused
        self.context: BrowserContext = browser.new_context(base_url=url, **context)
        self.context.set_default_timeout(PATIENCE_MS)
        self.context.route("**/*", self._routed)
        self.page: Page = self.context.new_page()
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("console", lambda message: self.said.append(message.text) if message.type == "error" else None)

    def log_in(self, token: str) -> None:
        """Give a token, as a person does."""
        self.page.goto("/")
        self.page.get_by_label("Token").fill(token)
        self.page.get_by_role("button", name="Log in").click()
        self.page.wait_for_selector("h1:has-text('Retrieval that learns')")

    def go(self, path: str) -> Page:
        """Open a page, and wait until it is drawn and listens."""
        self.page.goto(path)
        self.page.wait_for_selector(".nicegui-content h1, .nicegui-content .problem")
        return self.listening()

    def listening(self) -> Page:
        """Wait until what is pressed is heard; by looking, for the policy lets no page wait for an expression."""
        while not self.page.evaluate("window.did_handshake === true"):
            self.page.wait_for_timeout(50)
        return self.page

    def ask(self, question: str) -> Page:
        """Type a question, and wait for its results."""
        self.page.get_by_label("Question").fill(question)
        self.page.keyboard.press("Enter")
        self.page.wait_for_selector(f"h1:has-text('{question}')")
        self.page.wait_for_selector("article.result")
        return self.page

    def titles(self) -> list[str]:
        """Of the results, in their order."""
        return self.page.locator("article.result h2").all_inner_texts()

    def close(self) -> None:
        self.context.close()

    def _routed(self, route: Route) -> None:
        asked = urlsplit(route.request.url)
        if asked.scheme in {"data", "blob"} or asked.netloc == urlsplit(self.url).netloc:
            route.continue_()
        else:
            self.elsewhere.append(route.request.url)
            route.abort()


def axe_core(folder: Path) -> str:
    """The script of axe-core, got by npm; skips where that cannot be had."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm gets axe-core, and there is none")
    got = subprocess.run([npm, "pack", AXE], cwd=folder, capture_output=True, text=True, check=False, timeout=120)
    if got.returncode:
        pytest.skip(f"npm could not get {AXE}: {got.stderr[-200:]}")
    with tarfile.open(next(folder.glob("*.tgz"))) as archive:
        script = archive.extractfile("package/axe.min.js")
        assert script is not None
        return script.read().decode()
