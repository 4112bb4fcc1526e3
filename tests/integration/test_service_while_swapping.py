"""ARC-2, OPS-5: the service answers on while generations and learned versions change under it: none fails or mixes."""

from __future__ import annotations

import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

import weft
from tests.integration.test_search_while_swapping import COLOURS, GENERATIONS, LEARNED, SIGNALS, learn, publish, swap
from tests.support.service import Served, serving
from weft.catalog.catalog import Catalog
from weft.domain.ids import VersionName

CLIENTS = 8

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.timeout(1800)]

Weights = frozenset[tuple[str, float]]


@dataclass(frozen=True)
class Seen:
    """What one answer says it is made of, and what it is made of."""

    generation: str
    learned: str
    colours: frozenset[str]
    weights: Weights


def built(folder: Path, colour: str) -> Path:
    """A store of texts of one colour; its generation."""
    texts = folder / colour / "texts"
    texts.mkdir(parents=True)
    for number in range(12):
        (texts / f"{number}.md").write_text(f"{colour} text number {number}\n", encoding="utf-8")
    weft.index([texts], folder / colour / "store", assignments=["extraction.enabled=false"])
    (generation,) = (folder / colour / "store" / "generations").glob("[0-9]*")
    return generation


def seen_by(client: httpx.Client) -> Seen:
    answered = client.post("/v1/search", json={"text": "text number 3", "k": 12, "explain": True})
    assert answered.status_code == httpx.codes.OK, answered.text
    answer = answered.json()
    parts = answer["results"][0]["contributions"]
    return Seen(
        answer["generation"],
        answer["learned"],
        frozenset(result["text"].split()[0] for result in answer["results"]),
        frozenset((part["name"], part["weight"]) for part in parts if "belief" in part),
    )


def expected_weights(served: Served, catalog: Catalog, version: VersionName) -> Weights:
    """Those of a version while nothing changes."""
    catalog.make_live(version)
    with served.client() as client:
        while (seen := seen_by(client)).learned != version:
            pass
    return seen.weights


def test_no_request_fails_or_mixes_what_is_live(tmp_path: Path) -> None:
    """ARC-2, OPS-5: a hundred generations and fifty learned versions go live under eight clients."""
    originals = [built(tmp_path, colour) for colour in COLOURS]
    catalog = Catalog(tmp_path / "store")
    publish(catalog, originals[0], "red-000", 0.0)
    shutil.copyfile(tmp_path / COLOURS[0] / "store" / "settings.json", catalog.root / "settings.json")
    versions = {learn(catalog, signal): signal for signal in SIGNALS}
    done = threading.Event()
    with (
        serving(catalog.root, "--set", "serve.requests_per_s=100000", processes=2) as served,
        ThreadPoolExecutor(CLIENTS) as pool,
    ):
        expected = {signal: expected_weights(served, catalog, version) for version, signal in versions.items()}
        assert expected["vector"] != expected["lexical"]

        def ask() -> list[Seen]:
            seen = []
            with served.client() as client:
                while not done.is_set():
                    seen.append(seen_by(client))
            return seen

        clients = [pool.submit(ask) for _ in range(CLIENTS)]
        try:
            swap(catalog, originals, versions)
        finally:
            done.set()
        seen = [one for client in clients for one in client.result()]
    assert all(one.colours == {one.generation.partition("-")[0]} for one in seen)
    assert all(one.weights == expected[versions[VersionName(one.learned)]] for one in seen)
    assert len({one.generation for one in seen}) > GENERATIONS // 8
    assert len({one.learned for one in seen}) > LEARNED // 8
