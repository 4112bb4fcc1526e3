"""LES-6: a model behind an endpoint reflects where the settings name one, and the heads where it fails."""

from __future__ import annotations

import json

from tests.support.judging_model import a_model
from weft.app.lessons.hearing import load_hearing
from weft.app.lessons.session_end import reflector_of
from weft.lessons.reflection import EpisodeStep
from weft.settings import load_settings

EPISODE = [EpisodeStep("Always run the linter before pushing.")]


def test_the_named_model_reflects_and_the_rules_where_it_fails() -> None:
    """LES-6: with its key; an answer that is no list of lessons leaves what the rules say."""
    lesson = json.dumps([{"section": "git", "content": "Sign every commit"}])
    with a_model(lesson, "I cannot say") as (url, seen):
        stated = [f"lessons.reflector.{each}" for each in (f"endpoint={url}", "model=small", "api_key=secret")]
        settings = load_settings(assignments=stated, environment={})
        reflector = reflector_of(settings, load_hearing(settings))
        shown = [[each.content for each in reflector.reflect(EPISODE, []).proposals] for _ in range(2)]
    assert shown == [["Sign every commit"], ["Always run the linter before pushing"]]
    assert (seen[0]["model"], seen[0]["authorization"]) == ("small", "Bearer secret")
    assert "run the linter" in seen[0]["messages"][1]["content"]
