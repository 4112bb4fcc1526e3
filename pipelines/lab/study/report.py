"""What a study found, for people and for machines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from rich.table import Table

from lab.simulation.study import StudyRow, Values
from lab.study.again import Outcome
from lab.study.probabilities import ProbabilityQuality, ProbabilityReport
from weft.cli.console.terminal import plain
from weft.cli.reports.figures import titled
from weft.evaluation.measures.beir import Dataset
from weft.learning.evidence import Evidence

CONVEX = "best fixed convex"
PRIOR = "weft at its priors"
WITH_EFFECTS = ", with effects"
"""What the row is named by, behind its sessions, in which what is known of single contents counts."""
FITTED = ", fitted"
"""What the row is named by, behind its sessions, whose weights a night would fit to the log (CON-8)."""


@dataclass(frozen=True, slots=True)
class StudyResult:
    """The table, and what it was made from."""

    rows: Sequence[StudyRow]  # in the order of the table
    values: Mapping[str, Values]  # the headline measure by held-out query, by row
    # share of the lexical signal that was best on the queries learned from; None where not looked for
    convex_weight: float | None
    evidence: Mapping[int, Evidence]  # by number of sessions
    # what the probabilities are worth that the last of it gives, by deal of users; empty where not looked at
    held: Sequence[ProbabilityReport]


def table(title: str, study: StudyResult) -> Table:
    """The study, for people."""
    question_schedule = any(each.deals for each in study.rows)
    columns = ["", "nDCG@10", "interval", *(["deals"] if question_schedule else []), "against the priors", "weights"]
    shown = titled(title, *columns)
    for each in study.rows:
        change = each.change.change if each.change else None
        shown.add_row(
            each.name if each.name != CONVEX else f"{CONVEX}, {study.convex_weight:.2f} lexical",
            f"{each.mean.mean:.4f}",
            f"{each.mean.low:.3f} – {each.mean.high:.3f}",
            *([_deals(each.deals)] if question_schedule else []),
            "" if change is None else f"{change.mean:+.4f} ({change.low:+.3f} … {change.high:+.3f})",
            "" if each.weights is None else _weights(each.weights),
        )
    for name, fall in largest_falls(study.rows).items():
        shown.add_row(f"largest fall, {name}", f"{fall:.4f}")
    return shown


MEANS, ONE_DEAL = "means", "one deal"


def largest_falls(rows: Sequence[StudyRow]) -> dict[str, float]:
    """By how much the measure fell at most from the priors or an earlier mark to a later one (LRN-22).

    Of the means over deals of users, and of the worst of them; the row with effects, which is about single contents, is
    left out, and so are fitted weights, which go live where they are better alone.
    """
    others = (WITH_EFFECTS, FITTED)
    marks = [each for each in rows if each.change is not None and not each.name.endswith(others)]
    start = next((each.mean.mean for each in rows if each.name == PRIOR), None)
    if start is None or not marks:
        return {}
    falls = {MEANS: _largest_fall([start, *(each.mean.mean for each in marks)])}
    if all(each.deals for each in marks):
        curves = zip(*(each.deals for each in marks), strict=True)
        falls[ONE_DEAL] = max(_largest_fall([start, *curve]) for curve in curves)
    return falls


def _largest_fall(curve: Sequence[float]) -> float:
    """By how much a curve falls at most from any point to a later one.

    Examples:
        >>> _largest_fall([0.5, 0.75, 0.625, 0.875])
        0.125
    """
    return max(max(curve[: at + 1]) - value for at, value in enumerate(curve))


def outcomes(title: str, again: Sequence[Outcome]) -> Table:
    """What came of asking again, for people."""
    shown = titled(title, "", "share", "questions", "goal", "")
    for each in again:
        shown.add_row(
            each.name, f"{each.value:.3f}", str(each.count), each.goal, "" if each.met else "[yellow]not met[/]"
        )
    return shown


def _deals(means: Sequence[float]) -> str:
    return f"{min(means):.4f} – {max(means):.4f} of {len(means)}" if means else ""


def calibrated(deals: Sequence[ProbabilityReport]) -> Table:
    """What the probabilities are worth, for people; means over deals, and all else as after the first of them."""
    shown = Table("calibration error", "from judgements", "from verdicts", "were they right", "moved", box=None)
    study = deals[0]
    for name, worth in study.from_verdicts.items():
        chance = "" if worth is None else f"{worth.chance:.3f}"
        both = (_ece([getattr(each, kind)[name] for each in deals]) for kind in ("from_judgements", "from_verdicts"))
        shown.add_row(name, *both, chance, f"{study.moved[name]:.3f}")
    shown.add_row("an answer begins above", "unknown" if study.threshold is None else f"{study.threshold:.3f}")
    shown.add_row("held-out queries answered", f"{study.answered:.1%}")
    for name, share in study.answered_without.items():
        shown.add_row(plain(f"queries of {name} answered"), f"{share:.1%}")
    return shown


def _ece(deals: Sequence[ProbabilityQuality | None]) -> str:
    mean, errors = mean_error(deals), [each.ece for each in deals if each is not None]
    if mean is None:
        return "do not separate"
    spread = f" ({min(errors):.3f} – {max(errors):.3f} of {len(errors)})" if min(errors) < max(errors) else ""
    return f"{mean:.3f}{spread}"


def mean_error(deals: Sequence[ProbabilityQuality | None]) -> float | None:
    """The mean calibration error over deals of users, of those that gave probabilities; None where none did."""
    return fmean(errors) if (errors := [each.ece for each in deals if each is not None]) else None


def _weights(weights: Mapping[str, float]) -> str:
    shares = sorted(weights.items(), key=lambda item: -item[1])
    return "  ".join(f"{name.replace('_', ' ')} {share:.2f}" for name, share in shares if share >= 0.005)


def described(dataset: Dataset, learn_from: str, study: StudyResult) -> dict[str, Any]:
    """The study, for machines."""
    return {
        "dataset": dataset.name,
        "split": dataset.split,
        "learned_from": learn_from,
        "queries": len(dataset.queries),
        "convex_lexical_weight": study.convex_weight,
        "largest_falls": largest_falls(study.rows),
        **(_probabilities(study.held) if study.held else {}),
        "rows": {
            each.name: {
                "ndcg_at_10": each.mean.mean,
                "interval": [each.mean.low, each.mean.high],
                "against_priors": None if each.change is None else each.change.as_json(),
                "weights": None if each.weights is None else dict(each.weights),
                **({"deals": list(each.deals)} if each.deals else {}),
            }
            for each in study.rows
        },
    }


def _probabilities(deals: Sequence[ProbabilityReport]) -> dict[str, Any]:
    held = deals[0]
    from_judgements, from_verdicts = (
        {name: mean_error([getattr(each, kind)[name] for each in deals]) for name in held.from_verdicts}
        for kind in ("from_judgements", "from_verdicts")
    )
    return {
        "calibration_error": from_judgements,
        "calibration_error_from_verdicts": from_verdicts,
        "calibration_error_by_chance": {name: each and each.chance for name, each in held.from_verdicts.items()},
        "probability_moved": dict(held.moved),
        "answer_threshold": held.threshold,
        "answered": held.answered,
        "answered_without": dict(held.answered_without),
    }
