"""Who may teach: what was shown is signed, and whoever may speak of it has a token (FBK-13). Pure."""

from __future__ import annotations

import hmac
from typing import NamedTuple

from weft.domain.errors import InvalidEventError
from weft.domain.ranking import AnswerToken, Query, principal_of, session_of

_TOKEN_DIGITS = 32  # 128 bits: nobody guesses one

_SIGNED, _OF_QUERY, _OF_SESSION = b"impression\0", b"query\0", b"session\0"
"""What a code stands for: one that was given out for one thing is none for another."""


class Tokens(NamedTuple):
    """What whoever asked proves itself by."""

    query: str  # for feedback on the answer
    session: str  # for phases of its session, and for reports in it


def proof_in(code: str) -> str:
    """By what a principal proves itself: the part of an answer's token that does, or the code itself."""
    try:
        return AnswerToken.read(code).token
    except InvalidEventError:
        return code


class SigningKey:
    """The key that services and updaters share. Every code is an HMAC-SHA-256 (RFC 2104), in hex digits."""

    __slots__ = ("_key",)

    def __init__(self, secret: str) -> None:
        """Take the secret text."""
        self._key = secret.encode()

    def __repr__(self) -> str:
        return "SigningKey(...)"

    def signature(self, content: bytes) -> str:
        """Of an impression's bytes: HMAC(key, "impression" NUL bytes), 64 digits."""
        return self._code(_SIGNED + content)

    def query_token(self, query_id: str, principal: str) -> str:
        """Lets a principal speak of a query: HMAC(key, "query" NUL length ":" query id, principal), 32 digits."""
        return self._code(_pair(_OF_QUERY, query_id, principal))[:_TOKEN_DIGITS]

    def session_token(self, session_id: str, principal: str) -> str:
        """Lets a principal lead a session: HMAC(key, "session" NUL length ":" session id, principal), 32 digits."""
        return self._code(_pair(_OF_SESSION, session_id, principal))[:_TOKEN_DIGITS]

    def tokens_of(self, query: Query) -> Tokens:
        """What the answer to a query gives out to whoever asked."""
        principal = principal_of(query)
        return Tokens(self.query_token(query.query_id, principal), self.session_token(session_of(query), principal))

    def _code(self, message: bytes) -> str:
        return hmac.digest(self._key, message, "sha256").hex()


def is_same(code: str, given: str | None) -> bool:
    """Whether a code was given, compared in a time that says nothing of where they differ."""
    return given is not None and hmac.compare_digest(code.encode(), given.encode())


def _pair(meaning: bytes, identifier: str, principal: str) -> bytes:
    # The length prefix keeps ("ab", "c") and ("a", "bc") apart. Half a surrogate pair is no reason to fail a search.
    return meaning + f"{len(identifier)}:{identifier}{principal}".encode("utf-8", "surrogatepass")
