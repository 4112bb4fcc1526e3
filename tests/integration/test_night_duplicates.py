"""CON-2, CON-6, CON-7a: a night over real texts with planted near-duplicates and opposites."""

from __future__ import annotations

import json
import os
import random
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.near_duplicates import denied, noisy, noticed, renumbered, reordered
from tests.support.nights import stream
from weft.app.indexing import plan_of
from weft.app.searching.engines import opened
from weft.catalog.catalog import Catalog
from weft.cli.commands.consolidate import consolidate
from weft.cli.console.options import run_job
from weft.domain.ids import ContentHash
from weft.domain.ranking import Query
from weft.ingestion.pipeline import ingest
from weft.learning.aliases import NO_ALIASES, ContentAliases
from weft.learning.evidence import MICRO, Evidence
from weft.learning.uses import UsageKey
from weft.runtime.clock import day_of, system_clock
from weft.runtime.stages import HERE
from weft.settings import Settings, load_settings

TEXTS = {
    "retries": "The scheduler retries a failed task 3 times before it gives up on the whole run. Workers that were "
    "started by hand are listed in the console, with the machine that they run on and the time since their last sign "
    "of life. Whoever stops a worker is asked for a reason, which is kept with the run and shown to its owner.",
    "signing": "Whoever publishes a package signs it with a key that is 4096 bits long. Clients refuse packages whose "
    "signature they cannot check, and say which key was expected and where it can be had. Keys are kept by the index "
    "and are replaced every year, after a notice to all who have published with them.",
    "cells": "Proteins of the membrane were isolated from the cells of 40 patients with a disease of the liver. Their "
    "concentration rose with the age of the patient and fell during the treatment, as had been reported of smaller "
    "cohorts. No effect was seen in those who had been treated before the samples were taken.",
}
OPTIONS = ["--set", "consolidation.calibration.probes=''", "--set", "extraction.enabled=false"]


def write(folder: Path) -> None:
    """Each text, near-duplicates of it, and its opposites, a file each, all of one time: the hash decides who leads."""
    rng = random.Random(5)
    words = " ".join(TEXTS.values()).lower().replace(".", "").split()
    words = [
        word for word in words if word.isalpha() and word not in {"no", "before", "after", "whole", "all", "every"}
    ]
    for name, text in TEXTS.items():
        other = {
            "own": text,
            "noisy": noisy(text, 0.03, ["presently", "mostly", "simply"], rng),
            "reordered": reordered(text, rng),
            "noticed": noticed(text),
            "denied": denied(text, rng),
            "renumbered": renumbered(text, rng),
        }
        for kind, changed in other.items():
            file = folder / f"{name}-{kind}.txt"
            file.write_text(str(changed) + "\n", encoding="utf-8")
            os.utime(file, (1e9, 1e9))


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """A store of these files."""
    (tmp_path / "files").mkdir()
    write(tmp_path / "files")
    return stored(tmp_path)


def stored(tmp_path: Path, *more: str) -> Settings:
    assignments = [f"storage.root={tmp_path / 'store'}", "extraction.enabled=false", *more]
    here = load_settings(assignments=assignments, environment={})
    catalog = Catalog(tmp_path / "store")
    ingest(plan_of(here, [tmp_path / "files"]), catalog, HERE, lambda _: None, clock=time.monotonic)
    return here


def night(settings: Settings, capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, Any]:
    """What the job says of a night."""
    assert run_job(consolidate, ["--store", settings.storage.root, *OPTIONS, "--json", *more]) == 0
    summary: dict[str, Any] = json.loads(capsys.readouterr().out.splitlines()[-1])
    return summary


def hashes(settings: Settings) -> dict[str, ContentHash]:
    """The content of each file, by the file's name."""
    generation = Catalog(Path(settings.storage.root)).open_live()
    return {Path(each.occurrences[0].uri).stem: each.content_hash for each in generation.chunks}


def files_of(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted((root / "learned").rglob("*")) if path.is_file()}


@pytest.mark.integration
@pytest.mark.slow
def test_a_night_merges_what_says_the_same_and_nothing_else(
    settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """CON-2: near-duplicates across files become aliases of the best supported, opposites of nothing, a second night
    changes nothing, a rehearsal writes nothing, and answers name whom a result stands for.
    """
    root, of = Path(settings.storage.root), hashes(settings)
    catalog = Catalog(root)
    rehearsal = night(settings, capsys, "--dry-run")
    assert rehearsal["steps"]["duplicates"]["proposed"] > 0
    assert rehearsal["steps"]["duplicates"]["applied"] == 0
    assert not catalog.learned.versions()

    supported = of["cells-noticed"]
    key = UsageKey(day_of(system_clock()), supported, "positive", "ada", "q")
    stream(root, 0, Evidence(usage={key: 2 * MICRO}))
    summary = night(settings, capsys)
    assert summary["learned"] == catalog.pointer().learned == "v000001"
    assert summary["steps"].keys() == {
        "merge", "citations", "successions", "duplicates", "contradictions", "links", "thinning", "rebuild",
        "recalibrate", "fit", "expiry", "lessons", "gate", "publish", "report",
    }  # fmt: skip
    aliases = catalog.learned.read(summary["learned"]).part(ContentAliases) or NO_ALIASES
    for name in TEXTS:
        same = {of[f"{name}-{kind}"] for kind in ("own", "noisy", "reordered", "noticed")}
        assert {aliases.of(content) for content in same} == {supported if supported in same else min(same)}
        assert not {of[f"{name}-{kind}"] for kind in ("denied", "renumbered")} & (
            aliases.representatives.keys() | set(aliases.representatives.values())
        )
    assert summary["steps"]["duplicates"]["applied"] == summary["steps"]["duplicates"]["aliases"] == 9

    before = files_of(root)
    again = night(settings, capsys)
    assert (again["decision"], again["steps"]["duplicates"]["proposed"], files_of(root)) == ("nothing new", 0, before)

    with opened(settings) as searcher:
        answer = searcher.search(Query(text="proteins of the membrane isolated from cells of patients", k=10))
    shown = {result.content_hash: result for result in answer.results}
    assert supported in shown
    assert not shown.keys() & aliases.representatives.keys()
    named = {Path(uri).stem for uri in shown[supported].alike}
    assert {"cells-own", "cells-noisy", "cells-reordered"} <= named

    assert catalog.live.evidence().usage[key] == 2 * MICRO


@pytest.mark.integration
@pytest.mark.slow
def test_aliases_expire_with_their_contents(
    settings: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """CON-6, CON-7a: where a representative is gone the class has another; a roll-back gives every content back."""
    catalog, of = Catalog(Path(settings.storage.root)), hashes(settings)
    first = night(settings, capsys)["learned"]
    aliases = catalog.learned.read(first).part(ContentAliases) or NO_ALIASES
    kinds = {f"cells-{kind}" for kind in ("own", "noisy", "reordered", "noticed")}
    leader = next(name for name in kinds if of[name] in aliases.classes())
    (tmp_path / "files" / f"{leader}.txt").unlink()
    stored(tmp_path)
    with opened(settings) as searcher:
        answer = searcher.search(Query(text="proteins of the membrane isolated from cells of patients", k=10))
    same = {of[name] for name in kinds - {leader}}
    assert len(same & {result.content_hash for result in answer.results}) <= 1
    named = {Path(uri).stem for result in answer.results for uri in (*result.uris, *result.alike)}
    assert named >= kinds - {leader}

    summary = night(settings, capsys)
    assert summary["steps"]["expiry"]["proposed"] == 3
    expired = catalog.learned.read(summary["learned"]).part(ContentAliases) or NO_ALIASES
    assert of[leader] not in set(expired.representatives.values()) | expired.representatives.keys()
    assert {expired.of(content) for content in same} == {min(same)}
