"""RET-12: a page in several languages is one result, in the language of who asks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.nights import stream
from tests.support.words_spoken import a_word
from weft.app.indexing import plan_of
from weft.app.indexing import run as index
from weft.app.searching.engines import opened
from weft.domain.ids import QueryId
from weft.domain.ranking import Query, RankedResult
from weft.retrieval.searcher import Searcher
from weft.runtime.clock import day_of, system_clock
from weft.runtime.stages import HERE
from weft.settings import Settings, load_settings

pytestmark = pytest.mark.integration

PROXY = {
    "en": "# Proxy\n\nThe setting `trusted_proxies` names the addresses whose forwarded headers are believed.\n",
    "de": "# Proxy\n\nDie Einstellung `trusted_proxies` nennt Adressen, deren Kopfzeilen geglaubt wird.\n",
    "fr": "# Proxy\n\nLe paramètre `trusted_proxies` nomme les adresses dont les en-têtes sont crus.\n",
}
KEYS = {
    "en": "# Keys\n\nA key is rotated by `rotate_key` after thirty days.\n",
    "de": "# Schlüssel\n\nEin Schlüssel wird mit `rotate_key` nach dreißig Tagen gewechselt.\n",
}
LAYOUTS = {
    "folders": {"docs/en/{}.md": "en", "docs/de/{}.md": "de", "docs/fr/{}.md": "fr"},
    "endings": {"docs/{}.md": "en", "docs/{}.de.md": "de", "docs/{}_fr.md": "fr"},
    "docusaurus": {
        "docs/{}.md": "en",
        "i18n/de/docusaurus-plugin-content-docs/current/{}.md": "de",
        "i18n/fr/docusaurus-plugin-content-docs/current/{}.md": "fr",
    },
}


def indexed(layout: str, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Settings whose store holds the pages in a layout."""
    source = tmp_path_factory.mktemp("pages") / "pages"
    for pattern, language in LAYOUTS[layout].items():
        for name, texts in (("proxy", PROXY), ("keys", KEYS)):
            if language in texts:
                path = source / pattern.format(name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(texts[language])
    root = tmp_path_factory.mktemp("store")
    settings = load_settings(assignments=[f"storage.root={root}", "extraction.enabled=false"], environment={})
    index(plan_of(settings, [source]), executor=HERE)
    return settings


@pytest.fixture(scope="module", params=LAYOUTS)
def searcher(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Searcher]:
    with opened(indexed(request.param, tmp_path_factory)) as searcher:
        yield searcher


def found(searcher: Searcher, text: str) -> RankedResult:
    """The page about proxies, of which no translation is a result of its own."""
    results = searcher.search(Query(text=text, query_id=QueryId("q"), k=10)).results
    (proxy,) = (each for each in results if "trusted_proxies" in each.text)
    assert len(results) == 2
    return proxy


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("trusted_proxies", "en"),
        ("which addresses are believed", "en"),
        ("welche Einstellung nennt Adressen", "de"),
        ("trusted_proxies adresses des en-têtes", "fr"),
    ],
)
def test_one_stands_for_all_languages(searcher: Searcher, text: str, language: str) -> None:
    """The one in the language of the query, or in the store's main one; the others are named."""
    proxy = found(searcher, text)
    assert proxy.text in PROXY[language]
    assert len(proxy.alike) == 2
    assert not {*proxy.uris} & {*proxy.alike}


def test_what_somebody_called_right_stands_for_the_others(tmp_path_factory: pytest.TempPathFactory) -> None:
    """LRN-23: whatever language most pages are in."""
    settings = indexed("folders", tmp_path_factory)
    with opened(settings) as before:
        german = found(before, "welche Einstellung nennt Adressen")
    word = a_word(german.content_hash, "trusted_proxies", "ada", day=day_of(system_clock()))
    stream(Path(settings.storage.root), 0, word)
    with opened(settings) as after:
        assert found(after, "trusted_proxies").content_hash == german.content_hash
