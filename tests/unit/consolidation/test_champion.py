"""Following the champion alias, whatever the registry does."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

import pytest

from weft.consolidation.champion import ChampionFollower, follow_champion
from weft.domain.errors import NothingPublishedError, TrackingUnavailableError
from weft.domain.ids import VersionName

OLD, NEW = VersionName("old"), VersionName("new")


@dataclass
class Now:
    learned: VersionName | None


@dataclass
class InMemoryCatalog:
    live: VersionName | None = OLD
    published: tuple[VersionName, ...] = (OLD, NEW)
    switches: list[VersionName] = field(default_factory=list)

    def pointer(self) -> Now:
        return Now(self.live)

    @property
    def learned(self) -> InMemoryCatalog:
        return self

    def read(self, version: VersionName) -> None:
        if version not in self.published:
            raise NothingPublishedError(f"expected a published learned version, found {version}")

    def make_live(self, version: VersionName) -> None:
        if version not in self.published:
            raise NothingPublishedError(f"expected a published learned version, found {version}")
        self.live = version
        self.switches.append(version)


@dataclass
class Registry:
    champion: VersionName | None = None
    answers: bool = True
    gate: threading.Event | None = None
    asked: int = 0

    def alias(self, alias: str) -> VersionName | None:
        self.asked += 1
        if self.gate is not None:
            self.gate.wait(10)
        if not self.answers:
            raise TrackingUnavailableError("expected it to answer, found: silence")
        return self.champion if alias == "champion" else None


@dataclass
class Hands:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_named_version_goes_live_once() -> None:
    """CON-9: moving the alias moves what is live; following again changes nothing."""
    catalog = InMemoryCatalog()
    assert follow_champion(catalog, Registry(NEW)) == NEW
    assert follow_champion(catalog, Registry(NEW)) is None
    assert follow_champion(catalog, Registry(OLD)) == OLD
    assert catalog.switches == [NEW, OLD]


def test_without_an_alias_nothing_changes() -> None:
    """CON-9: a missing alias is not an order."""
    catalog = InMemoryCatalog()
    assert follow_champion(catalog, Registry(None)) is None
    assert catalog.switches == []


@pytest.mark.parametrize("registry", [Registry(VersionName("elsewhere")), Registry(NEW, answers=False)])
def test_a_look_that_fails_is_counted_and_changes_nothing(registry: Registry) -> None:
    """CON-9, OPS-11: an unknown version and a silent registry leave what is live alone."""
    catalog = InMemoryCatalog()
    follower = ChampionFollower(catalog, registry, every_s=15.0, clock=Hands())
    follower.tick()
    follower.close(10)
    assert (follower.failed, follower.moved, catalog.live) == (1, 0, OLD)


def test_looks_are_spaced_and_never_overlap() -> None:
    """OPS-11: a registry that hangs holds up no tick, and is asked once."""
    clock, gate = Hands(), threading.Event()
    registry = Registry(NEW, gate=gate)
    catalog = InMemoryCatalog()
    follower = ChampionFollower(catalog, registry, every_s=15.0, clock=clock)
    for clock.now in (0.0, 1.0, 20.0, 40.0):
        follower.tick()
    gate.set()
    follower.close(10)
    assert (catalog.live, follower.moved, registry.asked) == (NEW, 1, 1)
    follower.tick()
    follower.close(10)
    assert registry.asked == 2
