"""Simulated users (EVA-6): what somebody who knows the right answer does with results, as events on the topic.

They also ask in other words, and ask near misses, made by rule (LRN-19). Nobody has judged those. A paraphrase keeps
every content word, up to synonyms of the priors' own list. So it asks the same by construction, and is nearer than what
people make up. A near miss puts a content word of another question in the place of one of its own, or exchanges a
number: most ask for something else, a few for nothing sensible.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from lab.settings import SimulationSettings
from weft.domain.ids import ContentHash
from weft.domain.ranking import Answer, Query
from weft.feedback.events.producer import FeedbackProducer
from weft.learning.priors import NearPrior, Priors
from weft.retrieval.query.wording import Lexicon

_ANSWERS = 0.5  # probability that a user who is asked about a result says what it is, wherever it stands
_FIRST_REFRESH = 20  # sessions after which searches first see what was learned
_REFRESH_GROWTH = 1.7  # and by this factor later every further time: what is learned early shapes what is shown next

_NUMBER = re.compile(r"\d+")
_FRAMES = ("{}", "please help: {}", "i would like to know, {}", "question about this: {}", "{} - does anybody know")
_SHORT = 3  # content words from which on a text keeps its sense without the others


class UserKind(StrEnum):
    """What a user wants: an answer, nothing in particular, or to mislead."""

    HONEST = "honest"
    RANDOM = "random"
    ADVERSARIAL = "adversarial"


@dataclass(frozen=True, slots=True)
class Reaction:
    """One thing a user does about one result."""

    content_hash: ContentHash
    rank: int
    satisfaction: float | None = None  # A verdict in [−1, 1], or None for merely opening the result
    requested: bool = False  # whether the verdict was asked for


@dataclass(frozen=True, slots=True)
class UserBehaviour:
    """How users read, whatever they want; each a probability."""

    # of reading the next result after one that looks wrong, as click logs tell of web searches
    persistence: float = 0.9
    verdict_rate: float = 0.5  # of a thumb up or down on a result that was read
    verdict_noise: float = 0.02  # that a verdict says the opposite of what a result is: who votes has read it


DEFAULT_BEHAVIOUR = UserBehaviour()


def kind_of_user(settings: SimulationSettings, rng: random.Random) -> UserKind:
    """What the next user wants."""
    drawn = rng.random()
    if drawn < settings.random:
        return UserKind.RANDOM
    return UserKind.ADVERSARIAL if drawn < settings.random + settings.adversarial else UserKind.HONEST


def react(
    shown: Sequence[ContentHash],
    relevant: Collection[ContentHash],
    settings: SimulationSettings,
    rng: random.Random,
    *,
    kind: UserKind = UserKind.HONEST,
    habits: UserBehaviour = DEFAULT_BEHAVIOUR,
) -> list[Reaction]:
    """Read a list from the top, open what looks right, and now and then say what one thinks of it.

    A cascade (Craswell et al., WSDM 2008): after a result that looks wrong the user reads on with probability
    `persistence`; the first that looks right is opened and ends the reading. With probability `noise` a result looks
    the opposite of what it is; with probability `verdict_rate` a read result gets a thumb up or down, which is wrong
    with probability `verdict_noise`. To a random user a result is right by the toss of a coin, to an adversarial one
    when it is wrong.

    Examples:
        >>> certain = SimulationSettings(noise=0.0, random=0.0, adversarial=0.0, sessions=1, deals=1)
        >>> QUIET = UserBehaviour(persistence=1.0, verdict_rate=0.0, verdict_noise=0.0)
        >>> [r.rank for r in react(["a", "b", "c"], {"b"}, certain, random.Random(0), habits=QUIET)]
        [2]
        >>> [r.rank for r in react(["a", "b", "c"], {"b"}, certain, random.Random(0), kind=UserKind.ADVERSARIAL,
        ...     habits=QUIET)]
        [1]
    """
    reactions = []
    for rank, content in enumerate(shown, start=1):
        is_opened = _SEEMS[kind](content in relevant, settings.noise, rng)
        if is_opened:
            reactions.append(Reaction(content, rank))
        if rng.random() < habits.verdict_rate:
            is_right = _SEEMS[kind](content in relevant, habits.verdict_noise, rng)
            reactions.append(Reaction(content, rank, 1.0 if is_right else -1.0))
        if is_opened or rng.random() >= habits.persistence:
            break
    return reactions


def answered(
    content: ContentHash,
    rank: int,
    relevant: Collection[ContentHash],
    rng: random.Random,
    *,
    kind: UserKind = UserKind.HONEST,
    habits: UserBehaviour = DEFAULT_BEHAVIOUR,
) -> list[Reaction]:
    """What a user says who is asked about one result, whether they came to it or not: a verdict, or nothing.

    Examples:
        >>> answered("b", 7, {"b"}, random.Random(1), habits=UserBehaviour(verdict_noise=0.0))
        [Reaction(content_hash='b', rank=7, satisfaction=1.0, requested=True)]
    """
    if rng.random() >= _ANSWERS:
        return []
    is_right = _SEEMS[kind](content in relevant, habits.verdict_noise, rng)
    return [Reaction(content, rank, 1.0 if is_right else -1.0, requested=True)]


_SEEMS: Mapping[UserKind, Callable[[bool, float, random.Random], bool]] = {
    UserKind.HONEST: lambda is_right, noise, rng: is_right != (rng.random() < noise),
    UserKind.RANDOM: lambda _is_right, _noise, rng: rng.random() < 0.5,
    UserKind.ADVERSARIAL: lambda is_right, _noise, _rng: not is_right,
}
"""Whether a result seems right to a user."""


T = TypeVar("T")


def question_schedule(questions: Sequence[T], sessions: int, rng: random.Random) -> list[T]:
    """What each session asks: every question once in random order, then again in another one.

    Examples:
        >>> sorted(question_schedule("abc", 6, random.Random(1)))
        ['a', 'a', 'b', 'b', 'c', 'c']

    Raises:
        ValueError: There is no question.
    """
    if not questions:
        raise ValueError("expected at least one question to ask, got none")
    in_order: list[T] = []
    while len(in_order) < sessions:
        in_order.extend(rng.sample(questions, len(questions)))
    return in_order[:sessions]


def refreshes(marks: Sequence[int]) -> list[int]:
    """After how many sessions searches see what was learned: soon at first, then ever later, and at every mark.

    Examples:
        >>> refreshes([100, 150])
        [20, 34, 57, 98, 100, 150]
    """
    sessions, at = set(marks), float(_FIRST_REFRESH)
    while at < max(marks):
        sessions.add(int(at))
        at *= _REFRESH_GROWTH
    return sorted(sessions)


PAGE = 10
"""Results that a simulated user is shown."""

SESSIONS_A_DAY = 100
"""Sessions of a study that stand for a day's.

A study takes minutes. Caps on what one day brings (`priors.robustness.daily_cap`) would take its users for a flood.
"""


def of_days(priors: Priors, days: float) -> Priors:
    """The priors for what happens within minutes and stands for days: as much counts as of so many days (LRN-3)."""
    cap = priors.robustness.daily_cap * max(1.0, days)
    return priors.model_copy(update={"robustness": priors.robustness.model_copy(update={"daily_cap": cap})})


def without_newcomers(priors: Priors, most: int) -> Priors:
    """The priors for a simulation: whoever speaks in it is no invented name, though all of it happens on one day."""
    internal = priors.authority.internal.model_copy(update={"newcomers": most})
    return priors.model_copy(
        update={
            "outcomes": priors.outcomes.model_copy(update={"newcomers": most}),
            "authority": priors.authority.model_copy(update={"internal": internal}),
        }
    )


def send_reactions(producer: FeedbackProducer, query: Query, reactions: Iterable[Reaction]) -> None:
    """Say what a user did about the results of a query."""
    for reaction in reactions:
        if reaction.satisfaction is None:
            producer.selection(query, reaction.content_hash, reaction.rank)
        else:
            producer.explicit(
                query, reaction.satisfaction, content_hash=reaction.content_hash, asked=reaction.requested
            )


def with_replies(
    answer: Answer, reactions: Iterable[Reaction], right: Collection[ContentHash], *, kind: UserKind = UserKind.HONEST
) -> list[Reaction]:
    """What a user does, and says about the result that the answer asks about, which is said once."""
    rng = random.Random(f"asked-{answer.query.query_id}")  # noqa: S311  a simulation, repeatable by the query
    about = [(result.content_hash, result.rank) for result in answer.results if result.asked]
    replies = [each for content, rank in about for each in answered(content, rank, right, rng, kind=kind)]
    replied = {each.content_hash for each in replies}
    return [each for each in reactions if each.satisfaction is None or each.content_hash not in replied] + replies


def paraphrase(text: str, prior: NearPrior, rng: random.Random) -> str:
    """The same question in other words: synonyms, without idle words, or within another sentence."""
    idle, words = Lexicon(prior).idle, [_exchanged(word, prior, rng) for word in text.split()]
    content = [word for word in words if _bare(word) not in idle]
    if len(content) >= _SHORT and rng.random() < 0.5:
        words = content
    plain = " ".join(words).strip()
    frame = rng.choice(_FRAMES[1:] if plain.casefold() == text.casefold() else _FRAMES)
    return frame.format(plain.rstrip("?.!"))


def near_miss(text: str, others: Sequence[str], prior: NearPrior, rng: random.Random) -> str | None:
    """A question that differs in what it asks for; None of a text without a word to exchange."""
    words, lexicon = text.split(), Lexicon(prior)
    places = [at for at, word in enumerate(words) if _is_content(word, lexicon)]
    own = {lexicon.stem(_bare(word)) for word in words}
    strange = (word for other in others for word in other.split() if lexicon.stem(_bare(word)) not in own)
    foreign = [word for word in strange if _is_content(word, lexicon)]
    if numbered := [at for at, word in enumerate(words) if _NUMBER.search(word)]:
        at = rng.choice(numbered)
        words[at] = _NUMBER.sub(lambda number: str(int(number[0]) + 1), words[at], count=1)
    elif places and foreign:
        words[rng.choice(places)] = rng.choice(foreign)
    else:
        return None
    return " ".join(words)


def _exchanged(word: str, prior: NearPrior, rng: random.Random) -> str:
    groups = [group for group in prior.synonyms if _bare(word) in group]
    return rng.choice([each for each in groups[0] if each != _bare(word)] or [word]) if groups else word


def _is_content(word: str, lexicon: Lexicon) -> bool:
    bare = _bare(word)
    return len(bare) > _SHORT and bare.isalpha() and bare not in lexicon.idle | lexicon.negations


def _bare(word: str) -> str:
    return word.strip("?.,;:!()\"'").casefold()
