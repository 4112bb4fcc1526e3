"""OPS-6, OPS-11: sessions of browsers end, and are bounded."""

from __future__ import annotations

from weft.service.gate import scope_needed
from weft.service.sessions import AGE_S, MOST, BrowserSessions
from weft.service.tokens import ANYBODY, TokenScope


def test_a_session_ends_with_its_age_and_when_somebody_leaves() -> None:
    """OPS-6: twelve hours; afterwards the cookie is nobody's."""
    now = 100.0
    sessions = BrowserSessions(lambda: now)
    one, two = sessions.begin(ANYBODY), sessions.begin(ANYBODY)
    assert one != two
    sessions.end(two)
    assert (sessions.get(one), sessions.get(two), sessions.get("")) == (ANYBODY, None, None)
    now += AGE_S + 1.0
    assert sessions.get(one) is None


def test_the_oldest_session_gives_way() -> None:
    """OPS-11: logging in again and again takes no more memory."""
    sessions = BrowserSessions()
    first = sessions.begin(ANYBODY)
    second = sessions.begin(ANYBODY)
    for _ in range(MOST - 1):
        sessions.begin(ANYBODY)
    assert sessions.get(first) is None
    assert sessions.get(second) is ANYBODY


def test_what_pages_talk_by_is_no_asset() -> None:
    """OPS-11: files of the console are anybody's to read, and nothing else is."""
    assert scope_needed("GET", "/_nicegui/3/static/x.js") is None
    assert scope_needed("GET", "/console/style.css") is None
    assert scope_needed("POST", "/_nicegui/client/x/upload") is TokenScope.SEARCH
    assert scope_needed("GET", "/_nicegui_ws/socket.io/") is TokenScope.SEARCH
    assert scope_needed("GET", "/learned") is TokenScope.SEARCH
