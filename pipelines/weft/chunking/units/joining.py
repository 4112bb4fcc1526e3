"""Pieces below the minimum are joined with what they belong to: nothing too small stands alone (ING-38).

One pass over the units of a file, in source order. A unit below the minimum joins the neighbour it belongs to most:

1. what it heads: a preamble the first declaration, the bare head of a type its first member
2. a sibling that is below the minimum too, so that tiny ones become a bundle
3. what heads it
4. another sibling
5. what else stands beside it, such as the last member of the type before it

Of equals it takes the shorter, then the one before. Nothing is joined beyond the maximum. What is joined bears the
name, the kind and the place of the unit in it that tells most: of those with a symbol the one that could stand alone,
so that a method is found as that method; of tiny ones what heads the others, or else the longest. It answers to the
paths and the symbols of all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from weft.chunking.units.parsed import ParsedUnit
from weft.chunking.units.splitting import SizedText

MARKUP = "markup"
"""The kind of what is shown as it stands: it is not named after a tiny definition beside it."""

_SPARSE = 64  # bytes per token that no text has: what is longer is above the minimum, and is not counted
_HEADS, _SMALL_SIBLING, _HEADED, _SIBLING, _BESIDE = range(5)


def joined(text: SizedText, units: Sequence[ParsedUnit]) -> list[ParsedUnit]:
    """The units of a document, in source order, with those below the minimum joined where they can be."""
    left = list(reversed(units))
    done: list[ParsedUnit] = []
    while left:
        unit = left.pop()
        if not _is_small(text, unit):
            done.append(unit)
            continue
        choices: list[tuple[int, int, bool]] = []  # how it belongs there, how long that is, whether that follows
        if done and (together := _together(text, done[-1], unit)) is not None:
            choices.append((_belongs(text, unit, done[-1], follows=False), together, False))
        if left and (together := _together(text, unit, left[-1])) is not None:
            choices.append((_belongs(text, unit, left[-1], follows=True), together, True))
        if not choices:
            done.append(unit)
        elif min(choices)[2]:
            left.append(_merged(text, unit, left.pop()))
        else:
            done[-1] = _merged(text, done[-1], unit)
    return done


def as_one(text: SizedText, units: Sequence[ParsedUnit]) -> list[ParsedUnit]:
    """Neighbours that belong together: one unit as far as they fit."""
    whole = list(units[:1])
    for unit in units[1:]:
        fit = _together(text, whole[-1], unit) is not None
        whole[-1:] = [_merged(text, whole[-1], unit)] if fit else [whole[-1], unit]
    return whole


def _is_small(text: SizedText, unit: ParsedUnit) -> bool:
    least = text.sizes.min_tokens
    if unit.text is not None or unit.end - unit.start > _SPARSE * least:
        return False
    return text.tokens(unit.start, unit.end) + text.of_context(unit.context) < least


def _together(text: SizedText, before: ParsedUnit, after: ParsedUnit) -> int | None:
    """Tokens of two neighbours as one; None where they cannot be one."""
    if not before.start <= after.start <= before.end <= after.end or not before.text is after.text is None:
        return None
    tokens = text.tokens(before.start, after.end) + text.of_context(before.context)
    return tokens if tokens <= text.sizes.max_tokens else None


def _belongs(text: SizedText, unit: ParsedUnit, other: ParsedUnit, *, follows: bool) -> int:
    if follows and set(unit.paths) & set(other.parents[:1]):
        return _HEADS
    if unit.parents[:1] == other.parents[:1]:
        return _SMALL_SIBLING if _is_small(text, other) else _SIBLING
    return _HEADED if set(other.paths) & set(unit.parents[:1]) else _BESIDE


def _merged(text: SizedText, before: ParsedUnit, after: ParsedUnit) -> ParsedUnit:
    """Two neighbours as one unit, which bears the name of the one that tells more."""
    main = before if _rank(text, before, after) >= _rank(text, after, before) else after
    other = after if main is before else before
    return replace(
        main,
        start=before.start,
        end=after.end,
        context=before.context,
        further_paths=(*main.further_paths, other.path, *other.further_paths),
        further_symbols=tuple(
            symbol
            for symbol in dict.fromkeys((*main.further_symbols, other.symbol, *other.further_symbols))
            if symbol is not None and symbol != main.symbol
        ),
        links=(*before.links, *after.links),
        attributes={**other.attributes, **main.attributes},
    )


def _rank(text: SizedText, unit: ParsedUnit, other: ParsedUnit) -> tuple[bool, bool, bool, int]:
    heads = bool(set(unit.paths) & set(other.parents))
    named = unit.symbol is not None or unit.kind == MARKUP
    return named, not _is_small(text, unit), heads, unit.end - unit.start
