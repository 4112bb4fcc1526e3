"""What a night learns, as one value: evidence, and parts that know their name, their table and what they change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, Protocol, Self, TypeVar

import pyarrow as pa

from weft.learning.evidence import Evidence


class PartChange(NamedTuple):
    """One thing that a part says and another one does not."""

    content: str  # what it is said of: a content's hash, or a domain
    what: str  # for people
    kind: str = ""  # what it is counted by, where a part says things of several kinds


class PartChanges(NamedTuple):
    """What a part says and the one before did not, and the other way round."""

    added: frozenset[PartChange]
    gone: frozenset[PartChange]

    @classmethod
    def between(cls, before: Iterable[PartChange], after: Iterable[PartChange]) -> PartChanges:
        """What two parts say differently."""
        former, latter = frozenset(before), frozenset(after)
        return cls(latter - former, former - latter)

    def of_kinds(self, kinds: Iterable[str]) -> PartChanges:
        """Those of some kinds."""
        some = frozenset(kinds)
        return PartChanges(*(frozenset(each for each in side if each.kind in some) for side in self))


class Part(Protocol):
    """Something that a night learns beside evidence; an empty part is false, and not stored.

    A night step makes it, the catalog stores it under its name, and searches read it. Values are immutable.

    Attributes:
        name: That of its file, without a suffix.
    """

    name: ClassVar[str]

    def to_table(self) -> pa.Table | str:
        """How it is stored: a table as Parquet, JSON as a text file. Equal parts give equal ones."""

    @classmethod
    def from_table(cls, table: Any) -> Self:
        """What `to_table` gave.

        Raises:
            StoreError: It is something else.
        """

    def changes(self, before: Self | None) -> PartChanges:
        """What it means to have this part instead of that one, for reports and the gate; None is an empty one."""


P = TypeVar("P", bound=Part)


@dataclass(frozen=True, slots=True)
class LearnedVersion:
    """What searches follow beside the priors, as catalog, night, gate and snapshots carry it."""

    evidence: Evidence
    parts: Mapping[str, Part] = field(default_factory=dict)  # by name

    def part(self, kind: type[P]) -> P | None:
        """The part of a kind; None where it has none."""
        part = self.parts.get(kind.name)
        return part if isinstance(part, kind) else None

    def with_part(self, kind: type[P], part: P | None) -> Self:
        """The same with this part instead of its own; without one, where it is empty or None."""
        others = {name: each for name, each in self.parts.items() if name != kind.name}
        return replace(self, parts={**others, kind.name: part} if part else others)


def parts_of(*parts: Part | None) -> dict[str, Part]:
    """Parts by name; what is empty or None is none."""
    return {part.name: part for part in parts if part}


def same(one: Part | None, other: Part | None) -> bool:
    """Whether both are stored alike."""
    tables = [part.to_table() if part else None for part in (one, other)]
    return bool(tables[0] == tables[1])
