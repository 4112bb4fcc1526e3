"""Every feature off in turn, and what that does (EVA-9); features are found in the settings, so that new ones join."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from weft.domain.ranking import Channel, Signal
from weft.evaluation.measures.beir import Qrels
from weft.evaluation.measures.compare import HEADLINE, Difference, compare, compare_halves
from weft.evaluation.measures.metrics import measure
from weft.evaluation.measures.runs import Run
from weft.evaluation.measures.significance import Half
from weft.evaluation.settings import EvaluationSettings
from weft.retrieval.settings import FusionMode, OffValue, RetrievalSettings

_ERRS = 0.05  # probability of calling any feature that does nothing one that does something

Changes = Mapping[tuple[str, ...], Any]
"""New values by the path of names that leads to them."""


@dataclass(frozen=True, slots=True)
class Feature:
    """Something that can be switched off by configuration alone (ARC-8)."""

    name: str  # where it stands in the settings, and for one of several what it is
    off: Changes  # the change that switches it off

    def without(self, settings: RetrievalSettings) -> RetrievalSettings:
        """The settings with the feature off."""
        return changed(settings, self.off)


@dataclass(frozen=True, slots=True)
class Effect:
    """What switching one feature off does to the headline measure."""

    feature: str
    difference: Difference  # off against on, over all queries: negative where the feature is worth having
    halves: Mapping[Half, Difference]  # the same on either half of the queries
    # the p-value, corrected for as many features as were tried (Holm, Scandinavian Journal of Statistics 1979)
    p_adjusted: float

    @property
    def verdict(self) -> str:
        """What the effect shows.

        "helps" or "hurts" where it would be shown though so many features were tried; "may help" or "may hurt" where it
        would be shown had it been the only one; else "not shown", or "no effect" where no query changed.
        """
        if not self.difference.better + self.difference.worse:
            return "no effect"
        if not self.difference.significant:
            return "not shown"
        helps = self.difference.change.mean < 0.0
        if self.p_adjusted > _ERRS:
            return "may help" if helps else "may hurt"
        return "helps" if helps else "hurts"

    def as_json(self) -> dict[str, Any]:
        """For machines."""
        halves = {half.value: difference.as_json() for half, difference in self.halves.items()}
        facts = {"verdict": self.verdict, "p_adjusted": self.p_adjusted, "halves": halves}
        return {"feature": self.feature, **self.difference.as_json(), **facts}


def features_of(
    settings: RetrievalSettings,
    *,
    channels: Collection[Channel] = tuple(Channel),  # those that answer anything here; others have no effect to measure
    signals: Collection[Signal] = tuple(Signal),  # those that are weighed here
) -> list[Feature]:
    """Everything in force that can be switched off.

    Each channel where there are several, each signal that is weighed, learned fusion, every switch that is on, and
    every setting that says at which other value its feature is off (`OffValue`).
    """
    is_learned, weighed = settings.fusion is FusionMode.LEARNED, {*signals} - {*settings.without_signals}
    return [
        *(
            Feature(
                f"channel {channel.value}",
                {("channels",): tuple(each for each in settings.channels if each is not channel)},
            )
            for channel in settings.channels
            if len(settings.channels) > 1 and channel in channels
        ),
        *(
            Feature(f"signal {signal.value}", {("without_signals",): (*settings.without_signals, signal)})
            for signal in Signal
            if is_learned and signal in weighed
        ),
        *(
            Feature(f"learned fusion (instead {mode.value})", {("fusion",): mode})
            for mode in (FusionMode.RRF, FusionMode.RSF)
            if is_learned
        ),
        *_switches(settings, ()),
    ]


def changed(settings: RetrievalSettings, changes: Changes) -> RetrievalSettings:
    """The settings with some values replaced, validated anew."""
    values = settings.model_dump()
    for path, value in changes.items():
        place = values
        for name in path[:-1]:
            place = place[name]
        place[path[-1]] = value
    return RetrievalSettings.model_validate(values)


def effects(full: Run, without: Mapping[str, Run], qrels: Qrels, settings: EvaluationSettings) -> list[Effect]:
    """What each feature is worth, the most valuable first."""
    on = measure(full, qrels)[HEADLINE]
    runs = {name: measure(run, qrels)[HEADLINE] for name, run in without.items()}
    differences = {name: compare(on, off, settings) for name, off in runs.items()}
    adjusted = holm({name: difference.p for name, difference in differences.items()})
    measured = [
        Effect(name, differences[name], compare_halves(on, off, settings), adjusted[name]) for name, off in runs.items()
    ]
    return sorted(measured, key=lambda effect: (effect.difference.change.mean, effect.feature))


def harmful(measured: Sequence[Effect]) -> list[str]:
    """Features that look harmful on the half to tune on; whether that holds, the other half tells."""
    return [
        effect.feature
        for effect in measured
        if (tuned := effect.halves.get(Half.TUNED)) is not None and tuned.significant and tuned.change.mean > 0.0
    ]


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """p-values such that calling those below α significant errs at all with probability α at most.

    Examples:
        >>> holm({"a": 0.01, "b": 0.04, "c": 0.03})
        {'a': 0.03, 'c': 0.06, 'b': 0.06}
    """
    adjusted, least = {}, 0.0
    for place, (name, p) in enumerate(sorted(p_values.items(), key=lambda item: (item[1], item[0]))):
        least = max(least, min(1.0, p * (len(p_values) - place)))
        adjusted[name] = least
    return adjusted


def _switches(settings: BaseModel, path: tuple[str, ...]) -> Iterator[Feature]:
    for name, value in settings:
        here = (*path, name)
        if isinstance(value, BaseModel):
            if getattr(value, "enabled", True):
                yield from _switches(value, here)
        elif value is True:
            yield Feature(".".join(here).removesuffix(".enabled"), {here: False})
        else:
            stated = type(settings).model_fields[name].metadata
            for off in (each.value for each in stated if isinstance(each, OffValue) and each.value != value):
                yield Feature(".".join(here), {here: off})
