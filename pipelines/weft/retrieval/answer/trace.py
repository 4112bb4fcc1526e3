"""Why a result stands where it does, for people (RET-18)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from weft.domain.chunks import Context
from weft.domain.matching import EvidenceGap
from weft.domain.ranking import Contribution, RankedResult
from weft.domain.reasons import CONTENT, QUESTION, SEEN, because, difference, reason
from weft.domain.understanding import HandOff, Understanding


def explained(result: RankedResult) -> RenderableType:
    """Why a result stands where it does: a sentence, and a table of everything that made its score."""
    return Group(Text(reason(result)), _channels(result), _contributions(result), *_order(result))


def compared(one: RankedResult, other: RankedResult) -> RenderableType:
    """What sets one result apart from another: a line for each contribution, the greatest difference first."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in ("", f"{one.rank} over {other.rank}", "because"):
        table.add_column(heading, justify="right" if " over " in heading else "left")
    for name, amount in difference(one, other):
        table.add_row(name.replace("_", " "), f"{amount:+.4f}", because(one, other, name))
    table.add_row("score", f"{one.score - other.score:+.4f}", "", style="bold")
    return table


def understanding_line(read: Understanding) -> str:
    """How a query was read, on one line for people."""
    cues = f" ({', '.join(read.cues)})" if read.cues else ""
    parts = [f"read as {read.type.value.replace('_', ' ')}{cues}", read.complexity.value]
    parts += [f"{each.name}: {each.value}{'' if each.applied else ' not applied'}" for each in read.filters]
    parts += [f"no document has {each}: taken as words" for each in read.unknown]
    parts += [f"no document has {each}: nothing passes" for each in read.unmet]
    parts += [f"followed: {' '.join(read.signs)}"] if read.signs else []
    parts += [f"no text has {each}: taken as plain words" for each in read.unheld]
    parts += [f"names {', '.join(read.named)}"] if read.named else []
    parts += [f"home: {read.home}"] if read.home is not None else []
    parts += [f"also asked ({variant.source}): {variant.text}" for variant in read.variants]
    if read.shift is not None and read.shift.happened:
        parts.append(
            f"another topic: {read.shift.distance:.2f} from the last queries, above {read.shift.threshold:.2f}"
        )
    elif read.shift is not None and read.shift.recent:
        parts.append("the topic changed a moment ago: what was learned before counts less")
    return " · ".join(parts)


def gap_line(gap: EvidenceGap) -> str:
    """That nothing answers the query, in words.

    Examples:
        >>> gap_line(EvidenceGap(0.04, 0.1, 0.05))
        'evidence gap: the best found reaches 0.04, answers begin above 0.10 (of queries on other matters 5 % pass)'
        >>> gap_line(EvidenceGap(0.31, 0.6, None))
        'evidence gap: the surest result is good with confidence 0.31, reviews ask for 0.60'
        >>> gap_line(EvidenceGap(0.04, 0.1, 0.05, ("wine", "salmon"))).rpartition("; ")[2]
        'nothing here says wine, salmon'
    """
    if gap.bound is None:
        return (
            f"evidence gap: the surest result is good with confidence {gap.match:.2f}, "
            f"reviews ask for {gap.threshold:.2f}"
        )
    return (
        f"evidence gap: the best found reaches {gap.match:.2f}, answers begin above {gap.threshold:.2f} "
        f"(of queries on other matters {100.0 * gap.bound:g} % pass)"
        + (f"; nothing here says {', '.join(gap.missing)}" if gap.missing else "")
    )


def hand_off_line(advice: HandOff) -> str:
    """When to go on with another model, in words.

    Examples:
        >>> sure = {"quality": 0.74, "low": 0.7, "high": 0.78, "threshold": 0.6}
        >>> hand_off_line(HandOff(model="small", turn=4, **sure, at=21, earliest=18, latest=26))
        'small at turn 4: quality 0.74 (0.70 to 0.78), below 0.60 from turn 21 on (18 to 26)'
        >>> hand_off_line(HandOff(model="small", turn=4, **sure, at=None, earliest=90, latest=None))
        'small at turn 4: quality 0.74 (0.70 to 0.78), not expected below 0.60 (at the earliest from turn 90 on)'
    """
    now = f"{advice.model} at turn {advice.turn}: quality {advice.quality:.2f} ({advice.low:.2f} to {advice.high:.2f})"
    if advice.at is None:
        soonest = "" if advice.earliest is None else f" (at the earliest from turn {advice.earliest} on)"
        return f"{now}, not expected below {advice.threshold:.2f}{soonest}"
    span = f"{advice.earliest} to {'later' if advice.latest is None else advice.latest}"
    verdict = f"{now}, below {advice.threshold:.2f} from turn {advice.at} on ({span})"
    return f"{verdict}: hand over to another model" if advice.due else verdict


def context_lines(context: Context) -> list[str]:
    """Where each part of a context stands, a line each."""
    lines = [f"context: {context.reach.value.replace('_', ' ')}, {context.tokens} tokens"]
    lines += [f"  {part.role.value:<10} {part.uri}:{part.start_line}-{part.end_line}" for part in context.parts]
    return [*lines, f"  {context.left_out} more left out"] if context.left_out else lines


def _channels(result: RankedResult) -> Text:
    hits = (f"{channel.value} #{hit.rank} ({hit.score:.4g})" for channel, hit in sorted(result.channels.items()))
    return Text(f"found by {', '.join(hits)}", style="dim")


def _order(result: RankedResult) -> Iterable[Text]:
    if result.probability is not None:
        # Not beside the result: whoever reads it there takes it for all that is known of the result.
        share = f"{result.probability:.0%}"
        yield Text(f"of results that match so well, wherever they stand, {share} are good", style="dim")
    if result.above_next is not None:
        yield Text(f"belongs above the next with probability {result.above_next:.2f}", style="dim")
    if result.propensity < 1.0:
        yield Text(f"explored: shown at this rank with probability {result.propensity:.2f}", style="dim")
    if result.asked:
        yield Text(f"a verdict on this one is asked for, drawn with probability {result.asked:.3f}", style="dim")


def _contributions(result: RankedResult) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in ("", "value", "weight", "90 % interval", "samples", "level", "adds"):
        table.add_column(heading, justify="left" if heading in ("", "level") else "right")
    for contribution in result.contributions:
        # What is said of a result and hardly counts, such as by a crowd of new names, is told in the sentence above.
        if contribution.name not in {CONTENT, QUESTION} or abs(contribution.amount) >= SEEN:
            table.add_row(*_row(contribution))
    table.add_row("score", "", "", "", "", "", f"{result.score:.4f}", style="bold")
    return table


def _row(contribution: Contribution) -> Iterable[str]:
    belief = contribution.belief
    learned = (
        (f"{belief.low:.3f} – {belief.high:.3f}", f"{belief.n_effective:.1f}", belief.level) if belief else ("",) * 3
    )
    return (
        contribution.name.replace("_", " "),
        f"{contribution.value:.4f}",
        f"{contribution.weight:.3f}",
        *learned,
        f"{contribution.amount:.4f}",
    )


CHARACTERS = 240  # about three lines of a terminal
_WORD = re.compile(r"\w+")


def snippet(text: str, query: str, length: int = CHARACTERS) -> str:
    """The text from the line that has most words of the query, on one line, at most `length` characters."""
    lines = [line for line in text.splitlines() if line.strip()]
    best = _matched(lines, query)
    shown = " ".join(" ".join(lines[best:]).split())
    if best:
        shown = f"… {shown}"
    return shown if len(shown) <= length else f"{shown[: length - 1].rstrip()}…"


LINES = 8  # of a passage that is shown line by line
_ABOVE = 2  # of these, above the matched one


class Excerpt(NamedTuple):
    """Some lines of a text, as they are but for the indent that they share."""

    lines: tuple[str, ...]
    first: int  # place of the first of them among the lines of the text
    matched: int  # place of the line that has most words of the query


def excerpt(text: str, query: str, most: int = LINES) -> Excerpt:
    r"""The line of a text that has most words of the query, and those around it.

    Examples:
        >>> excerpt("def a():\n    one()\n    two()\n    three()\n", "three", most=2)
        Excerpt(lines=('two()', 'three()'), first=2, matched=3)
    """
    lines = text.expandtabs(4).splitlines()
    matched = _matched(lines, query)
    first = max(0, min(matched - min(_ABOVE, most // 2), len(lines) - most))
    some = lines[first : first + most]
    while some and not some[-1].strip():
        some.pop()
    shared = min((len(line) - len(line.lstrip()) for line in some if line.strip()), default=0)
    return Excerpt(tuple(line[shared:].rstrip() for line in some), first, matched)


def line_in_document(result: RankedResult, at: int) -> int:
    """The line of its document that a line of a result's text stands on, both by place; text has context above it.

    Where markup was left out of the text, or what follows was added to it, it is a line nearby.
    """
    above = max(0, len(result.text.splitlines()) - (result.end_line - result.start_line + 1))
    return min(max(result.start_line + at - above, result.start_line), result.end_line)


def _matched(lines: Sequence[str], query: str) -> int:
    wanted = _words(query)
    return max(range(len(lines)), key=lambda at: (len(wanted & _words(lines[at])), -at), default=0)


def _words(text: str) -> set[str]:
    return {word.casefold() for word in _WORD.findall(text)}
