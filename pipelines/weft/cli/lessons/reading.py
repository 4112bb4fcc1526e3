"""Lessons as the store has them, for whoever asks no service."""

from __future__ import annotations

import random
import uuid
from typing import Any

from weft.app.lessons.operations import lesson_page, lesson_sender
from weft.app.lessons.pairs import reviewed
from weft.app.lessons.view import listed, live_lessons, prompted
from weft.catalog.catalog import Catalog
from weft.learning.lessons.beliefs import LessonBeliefs
from weft.lessons.finding import ToolUse
from weft.settings import Settings, require_store

__all__ = ["ToolUse", "beliefs_of", "lesson_page", "listed", "prompt_here", "reviewed"]


def beliefs_of(settings: Settings) -> LessonBeliefs:
    """What is believed of lessons now."""
    return live_lessons(Catalog(require_store(settings)), settings)


def prompt_here(
    settings: Settings,
    use: ToolUse,
    *,
    budget: int | None,
    rng: random.Random,
    saying: tuple[str | None, str | None] | None,  # by whom and in which session it is told; None where it is not
) -> dict[str, Any]:
    """The lessons that fit a tool use, told to the topic where somebody says so."""
    lessons_ = prompted(beliefs_of(settings), settings, use, budget=budget, rng=rng)
    injection = None
    if saying is not None and lessons_.shown:
        injection = uuid.uuid4().hex
        with lesson_sender(settings, *saying) as sender:
            of, by = sender.session or f"injection-{injection}", sender.principal
            sender.producer.lessons_injected(of, injection, lessons_.injected(), principal=by, tool=use.tool or None)
    return lessons_.to_dict(injection)
