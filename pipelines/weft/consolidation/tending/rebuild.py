"""When a generation is made anew: other sizes are believed in, or its vectors were trained on other contents (CON-7).

Generations are built one upon the other. Each takes the quantisers of its vectors from the one before, as long as they
reach the recall that is asked for; the more contents are others, the more lists a search has to visit for it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from weft.domain.chunks import Overflow, pairs_of
from weft.domain.documents import Domain
from weft.learning.observe.sizes import AFTER, BEFORE, MINIMUM, OVERFLOW, TARGET, DomainSizing, SizingBeliefs

_PAIRS = {TARGET: "target", MINIMUM: "min", BEFORE: "before", AFTER: "after"}
"""By size, its name in a snapshot."""
_BOUNDED = frozenset({"max", "target"})
"""Names of sizes that no chunk reaches beyond the encoder's window."""

Snapshots = Mapping[str, Sequence[str]]
"""Sizes in force by domain, as a manifest keeps them."""


@dataclass(frozen=True, slots=True)
class MovedSize:
    """A size that chunks were cut with and that is not believed any more."""

    domain: str
    size: str
    before: str  # in force
    after: str  # what the next generation is cut with
    low: float  # The interval of the belief; of a strategy that of its share. `before` lies outside
    high: float


@dataclass(frozen=True, slots=True)
class RebuildResult:
    """What became of the live generation."""

    moved: Sequence[MovedSize] = ()  # why it is to be cut anew; nothing where it is not
    # whether a generation with these very sizes, or trained anew on the same contents, was taken back; it is not
    # made again
    declined: bool = False
    generation: str = ""  # what was made of it; "" where nothing was
    reason: str = ""  # why not, where it was due
    counts: Mapping[str, float] = field(default_factory=dict)
    changed: float = 0.0  # share of the contents that were not there when the quantisers of vectors were trained
    outdated: bool = False  # whether that is more than a setting allows

    @property
    def due(self) -> bool:
        """Whether there is something to do."""
        return (bool(self.moved) or self.outdated) and not self.declined

    @property
    def examples(self) -> Sequence[MovedSize]:
        """What a report shows: every size that moved."""
        return self.moved

    def as_step(self) -> dict[str, float]:
        """What a report counts."""
        return {
            "proposed": int(self.due),
            "applied": int(bool(self.generation)),
            "moved": len(self.moved),
            "changed": self.changed,
            "declined": int(self.declined),
            **self.counts,
        }


Rebuild = Callable[[bool], RebuildResult]
"""Finds out whether the live generation is to be cut anew, and where it may (True), does so."""


def moved_sizes(
    in_force: Snapshots, wanted: Snapshots, believed: SizingBeliefs, domains: Collection[Domain], *, level: float
) -> list[MovedSize]:
    """The sizes in force that lie outside the interval of what is believed, and that would come out otherwise."""
    moved: list[MovedSize] = []
    for domain in sorted(domains):
        before, after = (pairs_of(sizes.get(domain.value, ())) for sizes in (in_force, wanted))
        for size in (*_PAIRS, OVERFLOW):
            name = _PAIRS.get(size, size)
            if name not in before or before[name] == after.get(name):
                continue
            low, high = _interval(believed[domain], size, before[name], level)
            # Of strategies: the share that speaks for the next one lies above all that may speak for the one in force.
            value = believed[domain].overflow.mean[_place(after[name])] if size == OVERFLOW else float(before[name])
            if not low <= value <= high:
                moved.append(MovedSize(domain.value, size, before[name], after[name], low, high))
    return moved


def same_sizes(one: Snapshots, other: Snapshots) -> bool:
    """Whether two generations were cut alike, whichever learned versions put that in force."""
    return _numbers(one) == _numbers(other)


def within_window(sizes: Snapshots, window: int) -> dict[str, list[str]]:
    """Sizes as they cut for an encoder that reads `window` tokens: no larger one makes a difference.

    Examples:
        >>> within_window({"code": ["max=4096", "target=300", "min=30", "overflow=recursive"]}, 254)
        {'code': ['max=254', 'target=254', 'min=30', 'overflow=recursive']}
    """
    return {
        domain: [
            f"{name}={min(int(value), window)}" if name in _BOUNDED else f"{name}={value}"
            for name, value in pairs_of(each).items()
        ]
        for domain, each in sizes.items()
    }


def _numbers(sizes: Snapshots) -> dict[str, dict[str, str]]:
    pairs = {domain: pairs_of(each) for domain, each in sizes.items()}
    return {
        domain: {name: value for name, value in each.items() if name != "learned"} for domain, each in pairs.items()
    }


def _interval(believed: DomainSizing, size: str, before: str, level: float) -> tuple[float, float]:
    """The interval of a size; of a strategy that of the share that speaks for the one in force."""
    if size == OVERFLOW:
        return believed.overflow.interval(level)[_place(before)]
    low, high = believed.sizes[size].interval(level)
    longer = believed.shortfall if size == TARGET else 1.0
    return low * longer, high * longer


def _place(strategy: str) -> int:
    return list(Overflow).index(Overflow(strategy))
