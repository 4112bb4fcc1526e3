"""Who may do what: bearer tokens with scopes, from a file or the environment (OPS-5)."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from weft.domain.errors import ConfigurationError

ENVIRONMENT = "WEFT_TOKENS"
"""The variable that holds tokens, one beside the other with commas between them."""

LEAST_CHARACTERS = 16
"""Of a token: of 64 signs, so many are 96 bits."""

_TOKEN = re.compile(r"[A-Za-z0-9._~+/=-]+")  # RFC 6750


class TokenScope(StrEnum):
    """What a token is good for."""

    SEARCH = "search"
    FEEDBACK = "feedback"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Caller:
    """Whoever sent a request: what it may do, and a name by which logs and limits tell it from others."""

    name: str
    scopes: frozenset[TokenScope]


ANYBODY = Caller("anybody", frozenset(TokenScope))
"""Whoever reaches a service without tokens, which listens to this machine alone."""


class TokenSet:
    """The tokens that a service knows. It keeps their SHA-256, and compares in a time that says nothing of them."""

    def __init__(self, scopes: dict[str, frozenset[TokenScope]]) -> None:
        self._callers = {
            digest: Caller(digest.hex()[:8], of) for token, of in scopes.items() for digest in [_digest(token)]
        }

    def __len__(self) -> int:
        return len(self._callers)

    def __repr__(self) -> str:
        return f"Tokens({len(self._callers)})"

    def of(self, token: str) -> Caller | None:
        """Who has a token; None where nobody does."""
        given, match = _digest(token), None
        for digest, caller in self._callers.items():
            if hmac.compare_digest(digest, given):
                match = caller
        return match

    def bearer(self, header: str) -> Caller | None:
        """Who says so in an `Authorization` header; None where that is nobody."""
        kind, _, token = header.partition(" ")
        return self.of(token.strip()) if kind.lower() == "bearer" else None

    def plus(self, token: str, scopes: Iterable[TokenScope]) -> TokenSet:
        """These and one more."""
        more = TokenSet({token: frozenset(scopes)})
        more._callers.update(self._callers)
        return more

    @classmethod
    def read(cls, text: str, *, where: str) -> TokenSet:
        """Tokens in lines, or with commas between them, each as "TOKEN:search+feedback+admin".

        Raises:
            ConfigurationError: An entry is none; the message names its place and shows nothing of the token.
        """
        entries = [entry.strip() for line in text.splitlines() for entry in line.split(",")]
        scopes: dict[str, frozenset[TokenScope]] = {}
        for number, entry in enumerate((each for each in entries if each and not each.startswith("#")), start=1):
            token, _, names = entry.rpartition(":")
            wrong = sorted(set(names.split("+")) - set(TokenScope))
            if not _TOKEN.fullmatch(token) or len(token) < LEAST_CHARACTERS or wrong:
                match = f"scopes {', '.join(wrong)}" if wrong and token else f"a token of {len(token)} characters"
                raise ConfigurationError(
                    f"{where}, entry {number}: expected TOKEN:{'+'.join(TokenScope)} with a token of "
                    f"{LEAST_CHARACTERS} or more letters and digits, found {match}: `openssl rand -hex 24` makes one"
                )
            scopes[token] = frozenset(map(TokenScope, names.split("+")))
        return cls(scopes)

    @classmethod
    def configured(cls, file: Path | None, environment: str) -> TokenSet:
        """Those of a file and of the environment.

        Raises:
            ConfigurationError: The file cannot be read or holds none, or an entry is none.
        """
        tokens = cls.read(environment, where=ENVIRONMENT)
        if file is None:
            return tokens
        try:
            listed = cls.read(file.read_text(encoding="utf-8"), where=str(file))
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"expected tokens in {file}, found {error}") from error
        if not listed:
            raise ConfigurationError(f"expected tokens in {file}, found none: state one a line, as TOKEN:search")
        listed._callers.update(tokens._callers)
        return listed


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
