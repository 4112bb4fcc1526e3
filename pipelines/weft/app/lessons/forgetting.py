"""Taking the text of a lesson out of the files of a store, and saying what remains where (LES-14)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from weft.catalog.catalog import Catalog
from weft.catalog.learned import CUT_FILE, EVIDENCE_FILE, read_evidence, write_evidence
from weft.domain.errors import StoreError
from weft.learning.evidence import Evidence
from weft.learning.lessons.rows import NOTE, TEXT
from weft.settings import Settings

log = logging.getLogger(__name__)


def forget_in_versions(catalog: Catalog, lesson: str) -> Mapping[str, int]:
    """Take a lesson's text and history out of learned versions and their copies in MLflow; how many held it.

    What is read of both stays the same: base and cut lose the same rows. What is damaged is named, and stays.
    """
    change = partial(_without_words, lesson=lesson)
    versions = copies = 0
    for version in catalog.learned.versions():
        try:
            versions += catalog.learned.rewrite(version, change)
        except StoreError as error:
            log.warning("%s keeps what it holds of the lesson: %s", version, error)
    for path in sorted((catalog.root / "mlflow" / "artifacts").rglob("*.parquet")):
        if path.name in {EVIDENCE_FILE, CUT_FILE}:
            try:
                copies += _rewritten(path, lesson)
            except StoreError as error:
                log.warning("%s keeps what it holds of the lesson: %s", path, error)
    return {"learned versions": versions, "files in MLflow": copies}


def what_remains(settings: Settings, lesson: str) -> Mapping[str, str]:
    """Where the text of a lesson still is once it is forgotten, and until when."""
    topic = settings.feedback.topic
    return {
        "the updaters' states, evidence and hooks' table": "until the updaters have read of it, a second or two",
        f"the topic {topic}": (
            "what was said of it outside of conversations (key lesson-"
            f"{lesson}): until the topic is compacted, where its cleanup.policy has compact; all else until its "
            "retention (retention.ms) ends"
        ),
        "checkpoints": "the state before, until updaters have written two newer ones, one every quarter of an hour",
        "open sessions": "what they said of it among themselves, until they complete",
        "reports of nights in MLflow": "pages and tables that quote it, until you delete these runs",
        "backups, transcripts of agents, pages of `export`": "until you remove or overwrite them",
    }


def _rewritten(path: Path, lesson: str) -> bool:
    evidence = read_evidence(path)
    if (changed := _without_words(evidence, lesson)) is evidence:
        return False
    staged = path.with_name(f".{path.name}")
    write_evidence(staged, changed)
    staged.replace(path)
    return True


def _without_words(evidence: Evidence, lesson: str) -> Evidence:
    """The evidence without what a lesson says and what was written of it for people; itself where there is nothing."""
    gone = {key for key in evidence.usage if key.content_hash == lesson and key.bin.startswith((TEXT, NOTE))}
    if not gone:
        return evidence
    return Evidence(evidence.counts, {key: micro for key, micro in evidence.usage.items() if key not in gone})
