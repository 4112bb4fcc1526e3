"""The picture of the README: text of a terminal as SVG, which asks nobody for fonts."""

from __future__ import annotations

from tests.support.recording import picture


def test_a_picture_holds_what_was_shown_and_loads_nothing() -> None:
    svg = picture("\x1b[1mwho rolls back\x1b[0m\n  1  0.9487  docs/operations.md\n› ")
    assert "docs/operations.md" in svg
    assert "who&#160;rolls&#160;back" in svg
    assert "url(http" not in svg.replace('"', "")
