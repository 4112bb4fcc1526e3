"""ARC-2: searches go on while generations and learned versions change under them: none fails, none mixes two."""

from __future__ import annotations

import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.outcomes import outcome_evidence
from tests.support.parts import a_document, write_part
from tests.support.retrieval_fakes import a_query
from tests.support.small_store import DirectionEncoder
from weft.catalog.catalog import Catalog
from weft.catalog.learned import LearnedState
from weft.domain.documents import ContentType, Domain
from weft.domain.ids import ContentHash, GenerationId, VersionName
from weft.domain.ranking import Scope
from weft.indexes.builder import GenerationBuilder
from weft.indexes.manifest import read_generation_manifest, seal
from weft.learning.evidence import Evidence
from weft.retrieval.searcher import Searcher
from weft.retrieval.snapshot.live import CatalogSource
from weft.runtime.clock import day_of, system_clock
from weft.settings import load_settings

GENERATIONS, LEARNED, READERS = 100, 50, 4
SETTINGS = load_settings(environment={})
COLOURS = ("red", "blue")
SIGNALS = ("vector", "lexical")

Weights = frozenset[tuple[str, float]]


@dataclass(frozen=True)
class Seen:
    """What one answer says it is made of, and what it is made of."""

    generation: str
    learned: VersionName
    colours: frozenset[str]
    weights: Weights


def built(folder: Path, colour: str) -> Path:
    texts = [f"{colour} text number {number}" for number in range(12)]
    part = write_part(
        folder / "part", [a_document(f"{at}.txt", text, kind=ContentType.TEXT) for at, text in enumerate(texts)]
    )
    (folder / "staged").mkdir()
    GenerationBuilder(folder / "staged", SETTINGS.index).build([part], {"created_at": 1.0})
    return folder / "staged"


def publish(catalog: Catalog, original: Path, name: str, created_at: float) -> None:
    staging = catalog.stage()
    shutil.copytree(original, staging, dirs_exist_ok=True)
    manifest = read_generation_manifest(staging)
    (staging / "manifest.json").unlink()
    seal(staging, manifest.model_copy(update={"id": GenerationId(name), "created_at": created_at, "files": {}}))
    catalog.publish(staging, expected_parent=catalog.pointer().generation)


def learn(catalog: Catalog, signal: str) -> VersionName:
    """A live version that has seen one signal agree with outcomes, and the other disagree."""
    values = {"vector": 0.1, "lexical": 0.1} | {signal: 0.9}
    evidence = Evidence.sum(
        outcome_evidence(
            day=day_of(system_clock()),
            scope=Scope(Domain.GENERAL),
            intent="*",
            signals=values,
            score=0.5,
            content_hash=ContentHash(f"{number:064x}"),
            good=True,
            weight=1.0,
        )
        for number in range(60)
    )
    versions = catalog.learned.versions()
    newest = versions[-1] if versions else None
    state = LearnedState(parent=newest, evidence=evidence, cut=Evidence(), created_at=system_clock())
    version = catalog.learned.publish(state, expected_newest=newest)
    catalog.make_live(version)
    return version


def swap(catalog: Catalog, originals: list[Path], versions: dict[VersionName, str]) -> None:
    """A hundred generations and fifty learned versions go live, in turns; versions by the signal that they believe."""
    for number in range(1, GENERATIONS + 1):
        at = number % len(COLOURS)
        publish(catalog, originals[at], f"{COLOURS[at]}-{number:03d}", float(number))
        catalog.prune(1)
        if number % (GENERATIONS // LEARNED) == 0:
            signal = SIGNALS[number // 2 % len(SIGNALS)]
            versions[learn(catalog, signal)] = signal


def searching(catalog: Catalog) -> Searcher:
    source = CatalogSource(catalog, SETTINGS.priors, clock=system_clock, sessions_held=1)
    # On a busy machine a channel may take longer than it has; here that is not what is looked for.
    patient = dict.fromkeys(SETTINGS.retrieval.channel_budgets_ms, 60_000.0)
    settings = SETTINGS.retrieval.model_copy(update={"refresh_s": 0.001, "channel_budgets_ms": patient})
    return Searcher(source, DirectionEncoder(), settings, clock=system_clock)


def seen_by(searcher: Searcher) -> Seen:
    answer = searcher.search(a_query("text number 3", k=20))
    assert not set(answer.failed_channels) - {"late_interaction"}
    colours = frozenset(result.text.split()[0] for result in answer.results)
    parts = answer.results[0].contributions
    weights = frozenset((part.name, part.weight) for part in parts if part.belief is not None)
    return Seen(answer.generation, answer.learned, colours, weights)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_searches_never_fail_nor_mix_what_is_live(tmp_path: Path) -> None:
    """ARC-2: a hundred generations and fifty learned versions go live under four readers.

    Every answer's texts are of the generation that it names, and its weights are those of the learned version that it
    names; readers meet many of both.
    """
    catalog = Catalog(tmp_path / "store")
    originals = [built(tmp_path / colour, colour) for colour in COLOURS if (tmp_path / colour).mkdir() is None]
    publish(catalog, originals[0], "red-000", 0.0)
    versions = {learn(catalog, signal): signal for signal in SIGNALS}
    expected: dict[str, Weights] = {}
    for version, signal in list(versions.items()):
        catalog.make_live(version)
        with searching(catalog) as searcher:
            expected[signal] = seen_by(searcher).weights
    assert expected["vector"] != expected["lexical"]
    done = threading.Event()
    with searching(catalog) as searcher, ThreadPoolExecutor(READERS) as pool:

        def read() -> list[Seen]:
            seen = []
            while not done.is_set():
                seen.append(seen_by(searcher))
            return seen

        readers = [pool.submit(read) for _ in range(READERS)]
        try:
            swap(catalog, originals, versions)
        finally:
            done.set()
        seen = [one for reader in readers for one in reader.result()]
    assert all(one.colours == {one.generation.partition("-")[0]} for one in seen)
    assert all(one.weights == expected[versions[one.learned]] for one in seen)
    assert len({one.generation for one in seen}) > GENERATIONS // 4
    assert len({one.learned for one in seen}) > LEARNED // 4
