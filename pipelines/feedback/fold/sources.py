"""Who shows results, who says what became of them, and who only does one of the two (FBK-12).

A partition counts the events it applied by source and type. A source is an agent, by name, or a principal, by its
fingerprint. Retrieval says nothing about quality, and a loop that hears nothing but praise learns nothing: both are
told apart here from sources that report as others do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import get_args

from pipelines.domain.events import AnyEvent, Explicit
from pipelines.domain.ranking import ANY
from pipelines.feedback.settings import SourceSettings

IMPRESSION, PRAISE, BLAME = "impression", "praise", "blame"
OUTCOMES = frozenset({PRAISE, BLAME, "selection", "reference", "success"})
"""What says something about results that were shown."""

_TYPES = {kind: str(kind.__struct_config__.tag) for kind in get_args(AnyEvent)}

Heard = Counter[tuple[str, str, str]]
"""Events by kind of source, source, and what they were."""


@dataclass(frozen=True, slots=True)
class SourceActivity:
    """How one source compares with all others of its kind.

    Attributes:
        seen: Events per impression by type; by itself where there are no impressions.
        expected: The same over all other sources of its kind.
        flags: What is wrong with it, in words.
    """

    kind: str
    name: str
    impressions: int
    seen: Mapping[str, float]
    expected: Mapping[str, float]
    flags: tuple[str, ...]

    def as_json(self) -> dict[str, object]:
        """The same as JSON values."""
        return {
            "kind": self.kind,
            "name": self.name,
            "impressions": self.impressions,
            "seen": dict(self.seen),
            "expected": dict(self.expected),
            "flags": list(self.flags),
        }


def what_it_is(event: AnyEvent) -> str:
    """The type that an event counts under; verdicts by their sign."""
    if isinstance(event, Explicit):
        return PRAISE if event.signal > 0.0 else BLAME
    return _TYPES[type(event)]


def heard_of(said: Mapping[tuple[str, str, str], int]) -> Heard:
    """What was said, counted under both of its sources.

    Args:
        said: Events by fingerprint of the principal, name of the agent, and what was said.

    Examples:
        >>> heard_of({("5b0e", "*", "praise"): 1, ("5b0e", "coder", "praise"): 1})
        Counter({('principal', '5b0e', 'praise'): 2, ('agent', 'coder', 'praise'): 1})
    """
    heard: Heard = Counter()
    for (fingerprint, agent, what), events in said.items():
        heard["principal", fingerprint, what] += events
        if agent != ANY:
            heard["agent", agent, what] += events
    return heard


def compared(heard: Heard, rules: SourceSettings) -> list[SourceActivity]:
    """Every source beside all others of its kind, those with flags first.

    Examples:
        >>> from pipelines.feedback.settings import SourceSettings
        >>> heard = Counter({("agent", "mute", "impression"): 500, ("agent", "fan", "impression"): 100,
        ...                  ("agent", "fan", "praise"): 90})
        >>> rules = SourceSettings(impressions=100, verdicts=20, rate_factor=5.0)
        >>> [(source.name, source.flags) for source in compared(heard, rules)]
        [('fan', ('reports only praise',)), ('mute', ('shows results and reports no outcome',))]
    """
    totals: dict[str, Counter[str]] = {}
    sources: dict[tuple[str, str], Counter[str]] = {}
    for (kind, name, what), events in heard.items():
        totals.setdefault(kind, Counter())[what] += events
        sources.setdefault((kind, name), Counter())[what] += events
    found = [_compared(kind, name, counts, totals[kind], rules) for (kind, name), counts in sources.items()]
    return sorted(found, key=lambda source: (not source.flags, source.kind, source.name))


def _compared(kind: str, name: str, counts: Counter[str], total: Counter[str], rules: SourceSettings) -> SourceActivity:
    others = Counter({what: total[what] - counts[what] for what in total})
    seen, expected = _rates(counts, total), _rates(others, total)
    flags = []
    if counts[IMPRESSION] >= rules.impressions and not any(counts[what] for what in OUTCOMES):
        flags.append("shows results and reports no outcome")
    if counts[PRAISE] >= rules.verdicts and not counts[BLAME]:
        flags.append("reports only praise")
    if counts[PRAISE] + counts[BLAME] >= rules.verdicts and others[IMPRESSION] >= rules.impressions:
        own, usual = (rates.get(PRAISE, 0.0) + rates.get(BLAME, 0.0) for rates in (seen, expected))
        if own > rules.rate_factor * usual > 0.0:
            flags.append(f"reports {own / usual:.0f} times as many verdicts per answer as others")
    return SourceActivity(kind, name, counts[IMPRESSION], seen, expected, tuple(flags))


def _rates(counts: Counter[str], of: Iterable[str]) -> dict[str, float]:
    return {what: counts[what] / max(counts[IMPRESSION], 1) for what in sorted(of) if what != IMPRESSION}
