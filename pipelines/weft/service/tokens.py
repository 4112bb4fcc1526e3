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


class Scope(StrEnum):
    """What a token is good for."""

    SEARCH = "search"
    FEEDBACK = "feedback"
    ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Caller:
    """Whoever sent a request: what it may do, and a name by which logs and limits tell it from others."""

    name: str
    scopes: frozenset[Scope]


ANYBODY = Caller("anybody", frozenset(Scope))
"""Whoever reaches a service without tokens, which listens to this machine alone."""


class Tokens:
    """The tokens that a service knows. It keeps their SHA-256, and compares in a time that says nothing of them."""

    def __init__(self, scopes: dict[str, frozenset[Scope]]) -> None:
        self._known = {
            digest: Caller(digest.hex()[:8], of) for token, of in scopes.items() for digest in [_digest(token)]
        }

    def __len__(self) -> int:
        return len(self._known)

    def __repr__(self) -> str:
        return f"Tokens({len(self._known)})"

    def of(self, token: str) -> Caller | None:
        """Who has a token; None where nobody does."""
        given, found = _digest(token), None
        for digest, caller in self._known.items():
            if hmac.compare_digest(digest, given):
                found = caller
        return found

    def bearer(self, header: str) -> Caller | None:
        """Who says so in an `Authorization` header; None where that is nobody."""
        kind, _, token = header.partition(" ")
        return self.of(token.strip()) if kind.lower() == "bearer" else None

    def plus(self, token: str, scopes: Iterable[Scope]) -> Tokens:
        """These and one more."""
        more = Tokens({token: frozenset(scopes)})
        more._known.update(self._known)
        return more

    @classmethod
    def read(cls, text: str, *, where: str) -> Tokens:
        """Tokens in lines, or with commas between them, each as "TOKEN:search+feedback+admin".

        Raises:
            ConfigurationError: An entry is none; the message names its place and shows nothing of the token.
        """
        entries = [entry.strip() for line in text.splitlines() for entry in line.split(",")]
        scopes: dict[str, frozenset[Scope]] = {}
        for number, entry in enumerate((each for each in entries if each and not each.startswith("#")), start=1):
            token, _, names = entry.rpartition(":")
            wrong = sorted(set(names.split("+")) - set(Scope))
            if not _TOKEN.fullmatch(token) or len(token) < LEAST_CHARACTERS or wrong:
                found = f"scopes {', '.join(wrong)}" if wrong and token else f"a token of {len(token)} characters"
                raise ConfigurationError(
                    f"{where}, entry {number}: expected TOKEN:{'+'.join(Scope)} with a token of {LEAST_CHARACTERS} or "
                    f"more letters and digits, found {found}: `openssl rand -hex 24` makes one"
                )
            scopes[token] = frozenset(map(Scope, names.split("+")))
        return cls(scopes)

    @classmethod
    def configured(cls, file: Path | None, environment: str) -> Tokens:
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
        listed._known.update(tokens._known)
        return listed


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
