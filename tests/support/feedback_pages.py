"""What an independent reading of the log makes of a page: its results against one another (LRN-4, LRN-22)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

MICRO = 1_000_000
Side = tuple[str, dict[str, float], Callable[[str, str], float]]


def sides_of(result: dict[str, Any], good: bool, impression: dict[str, Any], slope: float) -> list[Side]:
    """What an outcome says of signals: kinds of outcome, values, and products of two signals or of one alone."""
    signals, page = result["signals"], impression["results"]
    if len(page) < 2:
        return [("good" if good else "bad", signals, lambda one, two: signals[one] * signals.get(two, 1.0))]
    if not good:
        return []
    telling = {name: [each for each in page if name in each["signals"]] for name in signals}
    means = {name: mean([each["signals"][name] for each in some]) for name, some in telling.items()}
    away = {name: signals[name] - means[name] for name in signals}
    scores = [round(each["score"] * MICRO) for each in page]
    if all(each["score"] < result["score"] for each in page if each is not result):
        spread = len(page) * sum(each * each for each in scores) - sum(scores) ** 2
        steepest = (len(page) * max(scores) - sum(scores)) * len(page) * MICRO / spread if spread else 0.0
        for name, some in telling.items():
            high = [cut(0.5 + each["signals"][name] - means[name]) for each in some]
            both = mean([value * each["score"] for value, each in zip(high, some, strict=True)])
            away[name] = min(slope, steepest) * (both - mean(high) * mean([each["score"] for each in some]))
    chosen = {name: cut(0.5 + each) for name, each in away.items()}
    others = {name: cut(0.5 - each / max(len(telling[name]) - 1, 1)) for name, each in away.items()}

    def product(one: str, two: str) -> float:
        some = [each["signals"] for each in telling[one] if not two or two in each["signals"]]
        high = [
            cut(0.5 + each[one] - means[one]) * (cut(0.5 + each[two] - means[two]) if two else 1.0) for each in some
        ]
        return mean(high)

    return [("good", chosen, product), ("bad", others, product)]


def mean(values: Sequence[float]) -> float:
    """Of values as whole millionths."""
    return sum(round(value * MICRO) for value in values) / len(values) / MICRO


def cut(value: float) -> float:
    return min(max(value, 0.0), 1.0)


def order_uncertainty(impression: dict[str, Any]) -> float:
    """How far what came of the same question before left the order of a page open; 1 where nothing did."""
    told = [each["precedent"] for each in impression["results"] if "precedent" in each]
    return min([1.0, *(2.0 * min(each, 1.0 - each) for each in told)]) if len(impression["results"]) > 1 else 1.0
