"""Why a result stands where it does, for people and for machines (RET-18)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import msgspec
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from weft.domain.chunks import Context
from weft.domain.lesson_match import ChosenLesson
from weft.domain.matching import EvidenceGap
from weft.domain.ranking import Answer, Contribution, RankedResult
from weft.domain.understanding import HandOff, Understanding
from weft.retrieval.answer.reasons import SEEN, because, difference, reason, reasons, related
from weft.retrieval.ranking.effects import CONTENT, QUESTION


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


def answer_as_json(answer: Answer) -> dict[str, Any]:
    """The whole derivation of an answer, in JSON's own types."""
    return {
        "query": answer.query.text,
        "query_id": answer.query.query_id,
        "token": answer.token,
        **({"session_token": answer.session_token} if answer.session_token else {}),
        "generation": answer.generation,
        "learned": answer.learned,
        "fusion": answer.fusion,
        "explored": answer.query.explore,
        "truncated": answer.truncated,
        "failed_channels": dict(answer.failed_channels),
        "gap": None if answer.gap is None else asdict(answer.gap),
        "hand_off": None if answer.hand_off is None else {**asdict(answer.hand_off), "due": answer.hand_off.due},
        "uncalibrated": answer.uncalibrated,
        "timings_ms": dict(answer.timings_ms),
        "heads": {
            channel.value: [{"content_hash": content, "score": score} for content, score in head]
            for channel, head in answer.heads.items()
        },
        "understanding": None if answer.understanding is None else understanding_as_json(answer.understanding),
        "results": [result_as_json(result) for result in answer.results],
        **({"lessons": [lesson_as_json(each) for each in answer.lessons]} if answer.lessons else {}),
    }


def lesson_as_json(chosen: ChosenLesson) -> dict[str, Any]:
    """A lesson beside the results, with why it is there and how sure it is."""
    believed = chosen.match.believed
    return {
        **believed.lesson.as_fields(),
        "p_good": believed.p_good,
        "interval": [believed.lower, believed.upper],
        "status": believed.status.value,
        "rank": chosen.match.rank,
        "propensity": chosen.propensity,
        "contributions": [asdict(each) for each in chosen.match.contributions],
        "why": chosen.why,
    }


def understanding_as_json(read: Understanding) -> dict[str, Any]:
    """How a query was read, and what that changed."""
    shift = read.shift
    return {
        "type": read.type.value,
        "confidence": read.confidence,
        "cues": list(read.cues),
        "complexity": read.complexity.value,
        "limit": read.limit,
        "variants": [{"text": variant.text, "source": variant.source} for variant in read.variants],
        "filters": [asdict(each) for each in read.filters],
        "unknown_filters": list(read.unknown),
        "unmet_filters": list(read.unmet),
        "signs": list(read.signs),
        "unheld_signs": list(read.unheld),
        "home": read.home,
        "triggers_on_trial": dict(read.shadowed),
        "shift": None if shift is None else {**asdict(shift), "happened": shift.happened},
    }


def understanding_line(read: Understanding) -> str:
    """How a query was read, on one line for people."""
    cues = f" ({', '.join(read.cues)})" if read.cues else ""
    parts = [f"read as {read.type.value.replace('_', ' ')}{cues}", read.complexity.value]
    parts += [f"{each.name}: {each.value}{'' if each.applied else ' not applied'}" for each in read.filters]
    parts += [f"no document has {each}: taken as words" for each in read.unknown]
    parts += [f"no document has {each}: nothing passes" for each in read.unmet]
    parts += [f"followed: {' '.join(read.signs)}"] if read.signs else []
    parts += [f"no text has {each}: taken as plain words" for each in read.unheld]
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


def result_as_json(result: RankedResult) -> dict[str, Any]:
    """One result with where each channel put it, its signals, and every addend of its score."""
    return {
        "rank": result.rank,
        "why": reason(result),
        "reasons": list(reasons(result)),
        "past": None if result.past is None else msgspec.to_builtins(result.past),
        "score": result.score,
        "relevance": result.relevance,
        "probability": result.probability,
        "doubtful": result.doubtful,
        "match": None
        if (match := result.match) is None
        else {"meaning": match.dense, "words": match.lexical, "near": match.late_interaction},
        "above_next": result.above_next,
        "propensity": result.propensity,
        "examination": result.examination,
        "asked": result.asked,
        "content_hash": result.content_hash,
        "chunk_id": result.chunk_id,
        "uris": list(result.uris),
        "alike": list(result.alike),
        "authority": None if result.authority is None else msgspec.to_builtins(result.authority),
        "relations": [{**msgspec.to_builtins(each), "says": related(each)} for each in result.relations],
        "start_line": result.start_line,
        "end_line": result.end_line,
        "kind": result.kind,
        "title": result.title,
        "symbol": result.symbol,
        "heading_path": list(result.heading_path),
        "domain": result.domain.value,
        "text": result.text,
        "channels": {channel.value: {"rank": hit.rank, "score": hit.score} for channel, hit in result.channels.items()},
        "signals": {signal.value: value for signal, value in result.signals.items()},
        "context": None if result.context is None else context_as_json(result.context),
        "contributions": [_contribution_as_json(contribution) for contribution in result.contributions],
    }


def context_as_json(context: Context) -> dict[str, Any]:
    """A context with its parts as they are read."""
    parts = [{**asdict(part), "role": part.role.value} for part in context.parts]
    return {"reach": context.reach.value, "tokens": context.tokens, "left_out": context.left_out, "parts": parts}


def context_lines(context: Context) -> list[str]:
    """Where each part of a context stands, a line each."""
    lines = [f"context: {context.reach.value.replace('_', ' ')}, {context.tokens} tokens"]
    lines += [f"  {part.role.value:<10} {part.uri}:{part.start_line}-{part.end_line}" for part in context.parts]
    return [*lines, f"  {context.left_out} more left out"] if context.left_out else lines


def _contribution_as_json(contribution: Contribution) -> dict[str, Any]:
    facts = {name: getattr(contribution, name) for name in ("name", "value", "weight", "amount")}
    if (belief := contribution.belief) is None:
        return facts
    return {
        **facts,
        "belief": {name: getattr(belief, name) for name in ("mean", "low", "high", "n_effective", "level")},
    }


def _channels(result: RankedResult) -> Text:
    hits = (f"{channel.value} #{hit.rank} ({hit.score:.4g})" for channel, hit in sorted(result.channels.items()))
    return Text(f"found by {', '.join(hits)}", style="dim")


def _order(result: RankedResult) -> Iterable[Text]:
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
    wanted = _words(query)
    best = max(range(len(lines)), key=lambda at: (len(wanted & _words(lines[at])), -at), default=0)
    shown = " ".join(" ".join(lines[best:]).split())
    if best:
        shown = f"… {shown}"
    return shown if len(shown) <= length else f"{shown[: length - 1].rstrip()}…"


def _words(text: str) -> set[str]:
    return {word.casefold() for word in _WORD.findall(text)}
