"""What is believed of documents by what they declare and by who relies on them, before any evidence (RET-13, CIT-3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from weft.domain.links import Measure, Quadrant
from weft.domain.sections import NonNegative, Positive, Section, Share, one_for_each


class CountScale(Section):
    """How a count says how much a document is relied on: most · min(1, log(1 + count) / log(1 + full))."""

    full: Positive
    most: Share


class QuadrantRule(Section):
    """base + of_both · e · i + of_external · e + of_internal · i, and how far that is to be believed (CIT-3)."""

    base: Share
    of_both: Share
    of_external: Share
    of_internal: Share
    confidence: Share


class InternalScale(Section):
    """What counts as a citation within the store, in citations, and how many say all that can be said (CIT-2)."""

    full: Positive  # citations that count as 1, on a logarithmic scale
    document: NonNegative  # another document that refers to it
    reference: NonNegative  # By an agent: an answer rests on it, it is put into a context, it served
    request: NonNegative
    success: NonNegative
    agent: NonNegative  # each one by whom answers rest on it
    co_citation: NonNegative  # another content that served under the same question
    per_agent: Positive  # of each kind, what one agent counts at most
    # as many agents those count at most, on one content and day, who were there on one day alone (FBK-13)
    newcomers: Annotated[int, Field(ge=1)]


class DeclaredPrior(Section):
    """What a person's word on a document says of it beforehand, by that word, in lower case (RET-13)."""

    tiers: Mapping[str, Share]
    validations: Mapping[str, Share]
    undeclared: Share  # of a document that declares none of these words, where others do


class AuthorityPrior(Section):
    """How far a document is relied on, by what is counted elsewhere and here (CIT-1 to CIT-3)."""

    bound: Share  # from which on either axis is high
    external: Annotated[Mapping[Measure, CountScale], one_for_each(Measure)]  # what each measure says
    internal: InternalScale
    quadrants: Annotated[Mapping[Quadrant, QuadrantRule], one_for_each(Quadrant)]
