"""How a night judges what it learned, and how the running system follows the verdict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field, SecretStr

from weft.domain.links import Provider
from weft.domain.sections import Section
from weft.wording.comparison import Polarity

FOLDS = 5
"""Parts of the observations, each predicted by a calibration that was fitted on the others."""

SEED = 7
"""Of the deal of observations to folds, and of the draw of probes: a night can be repeated."""

FOLLOW_EVERY_S = 15.0
"""Seconds between looks at the champion alias: well within the promised minute (CON-9)."""


class ShadowSettings(Section):
    """Bounds on how far replayed rankings may move (EVA-7)."""

    safe_tau: float  # At least both: goes live
    safe_jaccard: float
    monitored_tau: float  # at least this: goes live, marked for a look; below, a person decides


class MovementSettings(Section):
    """Bounds on how far a domain's weights may move where no queries can be replayed; shares of the score."""

    safe: float
    monitored: float


class AnswersBegin(Section):
    """From when on matches were answers to people's questions in the stores that were measured (RET-15)."""

    meaning: Annotated[float, Field(ge=0.0, le=1.0)]
    near: Annotated[float, Field(ge=0.0, le=1.0)]


class CalibrationSettings(Section):
    """How confidence is checked against outcomes (CON-8)."""

    minimum_observations: float  # below this many the former calibration stays
    # nats per verdict that a curve of matches must gain over the overall rate; below, good and bad do not
    # separate
    least_gain: float
    # how often at most a query without an answer may count as answered (RET-15)
    answering_bound: Annotated[float, Field(gt=0.0, lt=1.0)]
    # probability that it is kept, over the draw of the probes
    answering_confidence: Annotated[float, Field(gt=0.0, lt=1.0)]
    probes: str  # queries that have no answer in the store, one a line: "bundled", a file, or "" for none
    scrambled: Annotated[int, Field(ge=0)]  # more are made of the store's own words; none where there are no probes
    # how often at most a question of a store's own may count as unanswered
    answerable_bound: Annotated[float, Field(gt=0.0, lt=1.0)]
    answers_begin: AnswersBegin
    own_questions: Annotated[int, Field(ge=0)]  # how many of them are asked when a generation is built


class NearDuplicateSettings(Section):
    """When contents of different documents are near-duplicates (CON-2)."""

    least_cosine: Annotated[float, Field(gt=0.0)]  # of their static vectors; above 1 none are
    least_overlap: Annotated[float, Field(ge=0.0, le=1.0)]  # share of their words that both have, in [0, 1]


class ContradictionSettings(Section):
    """When contents that lie near each other and say the opposite are named beside each other (CON-4)."""

    # in what they must be opposed for that; what is opposed otherwise, or differs in more, is proposed to whoever
    # reads the report
    acting: tuple[Polarity, ...]


class SuccessionSettings(Section):
    """When a folder is a later release of one beside it, so that its pages supersede those of the same path (CON-4)."""

    # of the earlier one's pages that the later one has, too; above 1 no folder is a release
    least_share: Annotated[float, Field(gt=0.0)]
    # share of phrases, of the shorter page's, that the middle one of these pages has in common with the other; a
    # page with less needs the same title, or new pages that have so much of what it said
    least_overlap: Annotated[float, Field(ge=0.0, le=1.0)]


class LinkSettings(Section):
    """When contents are linked as similar, and as used together (CON-3)."""

    # of the default encoder's vectors of contents of different documents; above 1 none are similar
    least_cosine: Annotated[float, Field(gt=0.0)]
    # contents used for one question by one principal on one day that are linked, the best first
    together: Annotated[int, Field(ge=2)]
    least_uses: Annotated[float, Field(gt=0.0)]  # from which on contents are linked that were used together
    half_uses: Annotated[float, Field(gt=0.0)]  # at which such a link has half of its greatest strength
    # after which a use counts half; days after the newest use of anything do not count
    half_life_days: Annotated[float, Field(gt=0.0)]


class ThinningSettings(Section):
    """When chunks are so far from what their document is about that searches of everything pass over them (CON-5)."""

    enabled: bool  # off, all that was thinned is found again from the next night on
    # to the mean of the document's chunks, below which one is a candidate
    least_cosine: Annotated[float, Field(ge=-1.0, le=1.0)]
    # share of recall@20 that the store's questions may lose, all of a night's candidates together
    most_loss: Annotated[float, Field(ge=0.0, le=0.1)]


class CitationSettings(Section):
    """Who is asked how much documents are relied on elsewhere, and how (CIT-1)."""

    providers: tuple[Provider, ...]  # those that are on; none asks nobody
    # of providers that are asked elsewhere than at their public address
    urls: Mapping[Provider, Annotated[str, Field(pattern=r"^https?://\S+$")]]
    semantic_scholar_key: SecretStr
    github_token: SecretStr
    refresh_hours: Annotated[float, Field(ge=24.0, le=72.0)]  # age from which on a count is asked for again
    most_works: Annotated[int, Field(ge=0)]  # asked for in one night; the others wait for the next ones


class RebuildSettings(Section):
    """When a night makes the live generation anew (CON-7)."""

    resize: bool  # cut by other sizes once they are believed in; else that is proposed
    # share of the contents that may be others than those which quantisers were trained on
    most_changed: Annotated[float, Field(gt=0.0, le=1.0)]


class ConsolidationSettings(Section):
    """The section `consolidation` of the configuration."""

    shadow: ShadowSettings
    movement: MovementSettings
    calibration: CalibrationSettings
    duplicates: NearDuplicateSettings
    contradictions: ContradictionSettings
    succession: SuccessionSettings
    links: LinkSettings
    thinning: ThinningSettings
    rebuild: RebuildSettings
    citations: CitationSettings
