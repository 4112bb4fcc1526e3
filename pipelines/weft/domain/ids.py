"""Identities: a chunk's content hash by what it says, its id by where it stands; a question's hash without its text."""

from __future__ import annotations

import hashlib
import unicodedata
from typing import NewType

ContentHash = NewType("ContentHash", str)
"""SHA-256 of a chunk's normalised text, 64 hex digits: feedback, vectors and signals are kept under it (ARC-4)."""

ChunkId = NewType("ChunkId", str)
"""32 hex digits from the document's URI and the chunk's structural path: stable under edits elsewhere in the file."""

StoreId = NewType("StoreId", str)
GenerationId = NewType("GenerationId", str)
VersionName = NewType("VersionName", str)

PRIORS_VERSION = VersionName("v000000")
"""The beginning: what is believed before anything was learned. Every store has it, and what it learns from is empty."""
QueryId = NewType("QueryId", str)
SessionId = NewType("SessionId", str)

_DIGITS = 16  # of a fingerprint: among a billion questions, two share one with a probability of 3 %


def number_of(version: str) -> int | None:
    """The number in the name of a learned version; None where it is no such name."""
    digits = version.removeprefix("v")
    return int(digits) if version.startswith("v") and digits.isascii() and digits.isdigit() else None


def normalise(text: str) -> str:
    r"""The form of a text that its identity is taken from: NFC, `\n` line ends, no trailing blanks."""
    lines = unicodedata.normalize("NFC", text).replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return "\n".join(line.rstrip() for line in lines).strip("\n")


def content_hash(text: str) -> ContentHash:
    """Identity of a text: SHA-256 over its normalised UTF-8 form."""
    return ContentHash(hashlib.sha256(normalise(text).encode("utf-8", "replace")).hexdigest())


def chunk_id(uri: str, structural_path: str) -> ChunkId:
    """Identity of a place: the document and the path of names or headings that leads to the chunk in it."""
    # The length prefix keeps ("ab", "c") and ("a", "bc") apart.
    place = f"{len(uri)}:{uri}{structural_path}"
    return ChunkId(hashlib.sha256(place.encode("utf-8", "surrogatepass")).hexdigest()[:32])


def question_hash(text: str) -> str:
    """SHA-256 of a question, 64 hex digits; case, and how many blanks stand between words, make no difference."""
    return hashlib.sha256(" ".join(text.casefold().split()).encode("utf-8", "replace")).hexdigest()


def question_fingerprint(query_hash: str) -> str:
    """What outcomes under a question are kept by."""
    return query_hash[:_DIGITS]


def principal_fingerprint(principal: str) -> str:
    """Sixteen hex digits that stand for a principal."""
    return hashlib.blake2b(principal.encode(), digest_size=_DIGITS // 2).hexdigest()


def question_of(text: str) -> str:
    """The fingerprint of a question's text."""
    return question_fingerprint(question_hash(text))
