"""What a feedback log comes to when it is read independently: masses by key, and the lives of its sessions."""

from __future__ import annotations

import hashlib
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Overlay:
    """What an isolated session learned: integer masses by key."""

    counts: dict[tuple[Any, ...], int] = field(default_factory=lambda: defaultdict(int))
    usage: dict[tuple[Any, ...], int] = field(default_factory=lambda: defaultdict(int))

    def add_to(self, other: Overlay, times: int = 1) -> None:
        for into, masses in ((other.counts, self.counts), (other.usage, self.usage)):
            for key, mass in masses.items():
                into[key] += times * mass


@dataclass
class Piece(Overlay):
    """What sessions drew on one allowance."""

    micro: int = 0

    def add_to(self, other: Overlay, times: int = 1) -> None:
        super().add_to(other, times)
        if isinstance(other, Piece):
            other.micro += self.micro

    def share(self, left: int) -> Overlay:
        """What of it counts, and the rest beside."""
        found = Overlay(usage=self.usage)
        for key, mass in self.counts.items():
            counts = mass if self.micro <= left else mass * left // self.micro
            found.counts[key] += counts
            *scope, parameter, bin_ = key
            if parameter != "examination":
                found.counts[*scope, f"surplus.{parameter}", bin_] += mass - counts
        return found


@dataclass
class SessionLifecycle:
    """One session that said that it starts: what it alone has learned, and what all have learned from it."""

    heard: int
    principal: str
    phase: str = "active"
    overlay: Overlay = field(default_factory=Overlay)
    pieces: dict[tuple[str, int, str], Piece] = field(default_factory=dict)
    settled: Overlay = field(default_factory=Overlay)
    settled_pieces: dict[tuple[str, int, str], Piece] = field(default_factory=dict)
    lives: int = 0  # how often it began again

    @property
    def isolated(self) -> bool:
        return self.phase in {"active", "suspended"}

    @property
    def patience(self) -> str:
        return "session_suspended_s" if self.phase == "suspended" else "session_idle_s"

    def settle(self) -> None:
        self.overlay.add_to(self.settled)
        for of, piece in self.pieces.items():
            piece.add_to(self.settled_pieces.setdefault(of, Piece()))

    def end(self, phase: str) -> None:
        self.phase, self.overlay, self.pieces = phase, Overlay(), {}

    def unlearn(self) -> None:
        self.settled, self.settled_pieces = Overlay(), {}


@dataclass
class Folded(Overlay):
    """What a log comes to, and how many records met which fate."""

    fates: Counter[str] = field(default_factory=Counter)

    def digest(self) -> str:
        """SHA-256 over all masses that are not zero."""
        return digest_of(self.counts, self.usage)


def digest_of(counts: dict[tuple[Any, ...], int], usage: dict[tuple[Any, ...], int]) -> str:
    rows = sorted([*map(str, key), str(mass)] for key, mass in [*counts.items(), *usage.items()] if mass)
    return hashlib.sha256("\n".join("\t".join(row) for row in rows).encode()).hexdigest()


def digest_of_stores(folders: Iterable[Path]) -> str:
    """The same digest over what the updaters left, read with SQL; keys of several partitions add up."""
    counts: dict[tuple[Any, ...], int] = defaultdict(int)
    usage: dict[tuple[Any, ...], int] = defaultdict(int)
    for folder in folders:
        connection = sqlite3.connect(folder / "state.sqlite")
        for *key, mass in connection.execute(
            "select day, domain, model, agent, intent, parameter, bin, micro from evidence"
        ):
            counts[tuple(key)] += mass
        for *key, mass in connection.execute("select day, content_hash, bin, principal, question, micro from usage"):
            usage[tuple(key)] += mass
        connection.close()
    return digest_of(counts, usage)
