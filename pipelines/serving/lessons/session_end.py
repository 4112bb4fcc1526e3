"""The end of an agent's session: what was injected is told to the topic, and what came of it (LES-5, LES-7)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from pipelines.catalog.catalog import Catalog
from pipelines.domain.events import InjectedLesson
from pipelines.runtime.storage.errors import advice_on
from pipelines.serving.lessons.hook import session_file
from pipelines.serving.lessons.telling import speaking
from pipelines.serving.lessons.view import live_lessons
from pipelines.settings import load_settings


@dataclass(frozen=True, slots=True)
class SpooledInjection:
    """What was put before an agent, as the hook wrote it down."""

    injection_id: str
    at: int
    tool: str
    lessons: tuple[InjectedLesson, ...]
