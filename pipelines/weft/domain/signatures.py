"""Who may teach: what was shown is signed, and whoever may speak of it has a token (FBK-13). Pure."""

from __future__ import annotations

import base64
import hmac
import json
from typing import NamedTuple, Self

from weft.domain.errors import InvalidEventError
from weft.domain.ranking import ANONYMOUS, ANY, Query

_TOKEN_DIGITS = 32  # 128 bits: nobody guesses one

_SHOWN = 40  # characters of a text that is no token

_SIGNED, _OF_QUERY, _OF_SESSION = b"impression\0", b"query\0", b"session\0"
"""What a code stands for: one that was given out for one thing is none for another."""


class AnswerToken(NamedTuple):
    """What every event about one answer holds; as text, all that whoever reports what became of it needs.

    The text is base64url (RFC 4648, unpadded) of a JSON object in ASCII whose keys are fields of events. It holds
    neither the question nor the results: the impression does, and the updater joins the two.

    Examples:
        >>> AnswerToken.of(Query(text="why", query_id="q-7", session_id="s-41", principal="ada"), None).text
        'eyJzZXNzaW9uX2lkIjoicy00MSIsInF1ZXJ5X2lkIjoicS03IiwicHJpbmNpcGFsIjoiYWRhIn0'
        >>> AnswerToken.read(_).query_id
        'q-7'
    """

    session_id: str
    query_id: str
    principal: str
    model: str = ANY
    agent: str = ANY
    token: str = ""  # by which the principal proves itself; empty where no key is set (FBK-13)

    @classmethod
    def of(cls, query: Query, key: SigningKey | None) -> Self:
        """What the answer to a query gives out."""
        principal = principal_of(query)
        proof = "" if key is None else key.query_token(query.query_id, principal)
        return cls(session_of(query), query.query_id, principal, query.model, query.agent, proof)

    @property
    def text(self) -> str:
        """As it travels, in a URL, a form or a header."""
        stated = {name: value for name, value in self._asdict().items() if value != self._field_defaults.get(name)}
        return base64.urlsafe_b64encode(json.dumps(stated, separators=(",", ":")).encode()).rstrip(b"=").decode()

    @classmethod
    def read(cls, text: str) -> Self:
        """The token in a text.

        Raises:
            InvalidEventError: "invalid_token": it is none.
        """
        try:
            padded = text.encode("ascii") + b"=" * (-len(text) % 4)
            stated = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
            held = {name: stated[name] for name in cls._fields if name in stated}
            token = cls(**held)
        except (ValueError, TypeError, RecursionError):
            raise _no_token(text) from None
        if not all(isinstance(each, str) for each in token):
            raise _no_token(text)
        return token


def proof_in(code: str) -> str:
    """By what a principal proves itself: the part of an answer's token that does, or the code itself."""
    try:
        return AnswerToken.read(code).token
    except InvalidEventError:
        return code


def _no_token(text: str) -> InvalidEventError:
    found = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… of {len(text):,} characters"
    expected = "expected the token of an answer, as `Answer.token` and `weft search --json` hold it"
    return InvalidEventError("invalid_token", f"{expected}, found {found!r}: pass it on whole and unchanged")


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

    def _code(self, message: bytes) -> str:
        return hmac.digest(self._key, message, "sha256").hex()


def is_same(code: str, given: str | None) -> bool:
    """Whether a code was given, compared in a time that says nothing of where they differ."""
    return given is not None and hmac.compare_digest(code.encode(), given.encode())


def session_of(query: Query) -> str:
    """The session a query's events belong to: its own, or one of this query alone."""
    return query.session_id or query.query_id


def principal_of(query: Query) -> str:
    """Who asked: the query's principal, or the one that all share who name none."""
    return query.principal or ANONYMOUS


def _pair(meaning: bytes, identifier: str, principal: str) -> bytes:
    # The length prefix keeps ("ab", "c") and ("a", "bc") apart. Half a surrogate pair is no reason to fail a search.
    return meaning + f"{len(identifier)}:{identifier}{principal}".encode("utf-8", "surrogatepass")
