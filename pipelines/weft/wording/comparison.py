"""What two short texts are to each other: the same, perhaps the same, opposites, or about other things (LES-13).

Vectors cannot tell: "always squash" and "never squash" lie as near as two ways to say one thing. So texts are taken
apart. They are the same where they name the same, deny the same, and agree in signs, numbers, flags and order. They are
opposites where they are about the same and disagree in one of these. What they are about decides first: another
environment, another end or another name is another matter, and neither says anything of the other. Of else equal
sentences with two words in one place nothing tells whether these are two answers or two matters: a person is asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from enum import StrEnum
from functools import cached_property, lru_cache
from itertools import chain

from weft.wording.lexicon import DENYING_VERBS, NEGATIONS, ORDER, beside, excluding, meaning_of, sure_stem
from weft.wording.text import VALUES, Kind, Text, Way, is_denying, is_idle
from weft.wording.words import stem_of

_DENYING = frozenset(map(sure_stem, NEGATIONS | DENYING_VERBS | {"out", "free"}))
_QUOTE = re.compile(r"(?<!\w)['\"](?=\w)")
_ANSWERS = "perhaps two answers in one place"
_ABOUT = "one is about"
_SLOT = 2  # words of a name: "Visual Studio", "MySQL 8"
_SLACK = 1e-9  # a share of words is no exact number


class TextRelation(StrEnum):
    """What two texts are to each other."""

    SAME = "same"  # beyond doubt
    PROPOSED = "proposed"  # perhaps: a person is asked
    OPPOSITE = "opposite"  # both cannot be followed
    OTHER = "other"  # neither says anything of the other


class Polarity(StrEnum):
    """In what two texts are opposed."""

    DENIAL = "denial"
    OPPOSITE = "opposite"
    NUMBER = "number"


@dataclass(frozen=True, slots=True)
class Comparison:
    """How two texts compare."""

    relation: TextRelation
    shared: float  # share of what both name that both have, in [0, 1] (Dice), opposites with it
    why: str  # the words that decided
    rivals: bool = False  # whether what is proposed is that one of both answers holds, and not that they are one
    apart: bool = False  # whether their words say that they are about two things, whatever they say of these


@dataclass(frozen=True, slots=True)
class Thresholds:
    """How much alike texts must be."""

    least: float  # share of what both name, below which they are about other things
    bound: float = 0.0  # share of pairs of neighbouring words that both have, below which sameness is not sure


def compare(one: Text, other: Text, thresholds: Thresholds) -> Comparison:
    """What two texts are to each other; the same whichever comes first.

    Examples:
        >>> pairs = ["== for ===", "i for j", "tabs for spaces", "a remote for the remote", "staging for production"]
        >>> texts = [[Text(f"Use {each} when you compare keys") for each in pair.split(" for ")] for pair in pairs]
        >>> [compare(*both, Thresholds(0.6)).relation.value for both in texts]
        ['opposite', 'opposite', 'opposite', 'same', 'other']
    """
    differences = _Differences(one, other)
    shared = differences.shared
    if one.words != other.words or differences.spelt or differences.quoted:
        if shared < thresholds.least - _SLACK and not _slot(one, other):
            return Comparison(TextRelation.OTHER, shared, "they are about other things")
        for relation, reasons in (
            (TextRelation.OPPOSITE, differences.order()),
            (TextRelation.OTHER, differences.subjects()),
            (TextRelation.OPPOSITE, differences.opposed()),
            (TextRelation.PROPOSED, differences.two_answers()),
            (TextRelation.OTHER, differences.apart()),
            (TextRelation.PROPOSED, differences.doubts(thresholds.bound)),
        ):
            if why := next(reasons, None):
                about_two = relation is TextRelation.OTHER and why.startswith(_ABOUT)
                return Comparison(relation, shared, why, rivals=why.startswith(_ANSWERS), apart=about_two)
    return Comparison(TextRelation.SAME, shared, "the same words, denials, numbers and order")


@dataclass(frozen=True, slots=True)
class Opposition:
    """In what one of two texts says the opposite of the other."""

    polarity: Polarity
    exact: bool  # whether nothing else differs in them, which may be a condition or another subject


def opposition(one: Text, other: Text) -> Opposition | None:
    """In what two texts are opposed, the same whichever comes first; None where they are not, or differ in more.

    Examples:
        >>> pairs = [("The cache is on", "The cache is not on"), ("Keep it 3 days", "Do not keep it 5 days")]
        >>> [opposition(Text(one), Text(other)) for one, other in pairs]
        [Opposition(polarity=<Polarity.DENIAL: 'denial'>, exact=True), None]
    """
    return _Differences(*_in_order(one, other)).opposition()


def changes_places(one: Text, other: Text) -> bool:
    """Whether two words stand in each other's place, or any in another where a text orders or denies something.

    A clause may move, and nothing else: not so "warnings as errors" and "errors as warnings".

    Examples:
        >>> one = Text("The client calls the server")
        >>> [changes_places(one, Text(each)) for each in ("The server calls the client", "Now the client calls it")]
        [True, False]
    """
    if one.stems == other.stems:
        return False
    one, other = _in_order(one, other)
    matcher = SequenceMatcher(None, one.stems, other.stems, autojunk=False)
    blocks = [(one.stems[a:b], other.stems[c:d]) for kind, a, b, c, d in matcher.get_opcodes() if kind != "equal"]
    single = {block for block in blocks if len(block[0]) == len(block[1]) == 1}
    if any(block[::-1] in single for block in single):
        return True
    if any(is_denying(word) or word in ORDER for word in (*one.words, *other.words)):
        both = {stem for stem in one.stems if one.counted[stem] == other.counted[stem] == 1}
        return [stem for stem in one.stems if stem in both] != [stem for stem in other.stems if stem in both]
    if one.counted != other.counted:
        return False
    left, come = (sorted(filter(None, side)) for side in zip(*blocks, strict=True))
    return left != come or min(map(len, left)) < 2


def _in_order(one: Text, other: Text) -> tuple[Text, Text]:
    """Two texts, the same one first whichever is given first: what stands in whose place is told from one side."""
    return (one, other) if one.words <= other.words else (other, one)


def exclude_each_other(ours: Iterable[str], theirs: Iterable[str]) -> bool:
    """Whether a word of one side is the opposite of one of the other, or names another end, in whatever form."""
    stems = {stem for word in theirs for stem in (sure_stem(word), stem_of(word))}
    against = (_against(stem) for word in ours for stem in (sure_stem(word), stem_of(word)))
    return any(not stems.isdisjoint(each) for each in against)


@lru_cache(maxsize=65_536)
def _against(stem: str) -> frozenset[str]:
    return excluding(stem) | beside(stem)


def may_be_about_the_same(one: Text, other: Text, least: float) -> bool:
    """Whether both may name `least` of their words, opposites with them; where not, they are about other things."""
    both, every = len(one.content & other.content), len(one.content) + len(other.content)
    if 2 * both >= least * every - _SLACK:
        return True
    if both and max(len(one.content), len(other.content)) - both <= _SLOT and _slot(one, other):
        return True
    if 2 * (both + 1) >= least * every - _SLACK and one.values - other.values and other.values - one.values:
        return True
    theirs = other.every
    return any(not excluding(stem).isdisjoint(theirs) for stem in one.every - theirs)


def _slot(one: Text, other: Text) -> tuple[str, str] | None:
    """The one place in which else equal texts name something else: a word or two that both alone have."""
    ours, theirs = one.stems, other.stems
    front = _shared_words(ours, theirs)
    back = _shared_words(ours[front:][::-1], theirs[front:][::-1])
    left, right = ours[front : len(ours) - back], theirs[front : len(theirs) - back]
    distinct = not any(map(is_idle, (*left, *right)))
    if not (distinct and 1 <= len(left) <= _SLOT and 1 <= len(right) <= _SLOT and one.content & other.content):
        return None
    done_to = one.objects.issuperset(left) and other.objects.issuperset(right)
    if done_to and all(_is_code(stem, text) for text, stems in ((one, left), (other, right)) for stem in stems):
        return None  # "call open()", "call close()": code that something is done to is another matter
    return " ".join(left), " ".join(right)


def _shared_words(ours: Sequence[str], theirs: Sequence[str]) -> int:
    """With how many of the same words both begin."""
    return next(
        (at for at, pair in enumerate(zip(ours, theirs, strict=False)) if len({*pair}) > 1), min(len(ours), len(theirs))
    )


def _is_code(stem: str, text: Text) -> bool:
    return any(sign in stem for sign in "._/#$") or f"{text.named_as(stem)}(" in text.text.casefold()


class _Differences:
    """In what two texts differ."""

    def __init__(self, one: Text, other: Text) -> None:
        self._one, self._other = one, other
        ours, theirs = frozenset(one.counted - other.counted), frozenset(other.counted - one.counted)
        self.opposites = [(left, right) for left in sorted(ours) for right in sorted(theirs & excluding(left))]
        if one.order[0] & other.order[0]:  # "before" in one and "after" in the other may state one order
            self.opposites = [pair for pair in self.opposites if set(pair) != {"befor", "after"}]
        self._subjects = [(left, right) for left in sorted(ours) for right in sorted(theirs & beside(left))]
        self._ours, self._theirs = one.content & ours, other.content & theirs
        self._exchanged = list(self._exchanges()) if one.hard & ours or other.hard & theirs else []
        # One sign or number in the place of another is something that both are about, and so is each opposite.
        values = any(kind in VALUES for kind, _, _ in self._exchanged)
        both = len(one.content & other.content) + max(len(self.opposites), int(values))
        self.shared = min(1.0, 2 * both / max(1, len(one.content) + len(other.content)))

    @cached_property
    def spelt(self) -> list[str]:
        """Stems of signs, units and names that both have in other capitals."""
        ours, theirs = self._one.spelt, self._other.spelt
        both = ((stem, ours[stem], theirs[stem]) for stem in sorted(ours.keys() & theirs.keys()))
        return [stem for stem, one, other in both if one != other and one.casefold() == other.casefold()]

    @cached_property
    def quoted(self) -> bool:
        """Whether both quote, and with other marks."""
        ours, theirs = (_QUOTE.findall(each.text) for each in (self._one, self._other))
        return bool(ours and theirs) and ours != theirs

    def order(self) -> Iterator[str]:
        """What is turned around: what comes first, or which way something goes."""
        one, other = self._one, self._other
        (first, second), (their_first, their_second) = one.order, other.order
        turned = bool(second & their_first and first & their_second)
        if turned or (_moved(first, second, their_first, their_second) and _moved(*other.order, *one.order)):
            yield "the order is another"
        if any(_exchanged(way, back) for way in one.ways for back in other.ways):
            yield "the direction is another"

    def subjects(self) -> Iterator[str]:
        """What else one of them is about, whatever it says of that."""
        for left, right in self._subjects:
            yield f"{_ABOUT} {self._written(left)}, the other about {self._written(right)}"
        if self._turns > 1 and self._turns % 2 == 0 and not self._denied:
            yield f"another thing each: {self._pairs(self.opposites)}"  # add the new ones, remove the old ones

    def opposed(self) -> Iterator[str]:
        """In what they disagree."""
        if (self._turns + self._denied) % 2 and (self._crossed or not self._denied or not self._rest()):
            yield (
                f"opposites: {self._pairs(self.opposites[:1])}" if self.opposites else "one denies what the other says"
            )
        # Where nothing else differs, another sign or number is another answer to the same question.
        values = [(left, right) for kind, left, right in self._exchanged if kind in VALUES]
        if values and (self._ours | self._theirs) <= {*chain.from_iterable(values)}:
            yield f"in one place: {self._pairs(values)}"

    def opposition(self) -> Opposition | None:
        """In what they are opposed, where they name the same; another number beside a denial may be true with it."""
        values = [pair for kind, *pair in self._exchanged if kind in VALUES]
        named = {*chain.from_iterable(self.opposites), *chain.from_iterable(values)}
        ours, theirs = self._ours - named, self._theirs - named
        if any(self.subjects()) or changes_places(self._one, self._other) or (ours and theirs):
            return None
        exact = not ours and not theirs
        if any(self.order()):
            return None if self._denied or values else Opposition(Polarity.OPPOSITE, exact)
        turned = bool((self._turns + self._denied) % 2)
        if turned == bool(values) or not any(self.opposed()):
            return None
        turn = Polarity.DENIAL if self._denied else Polarity.OPPOSITE
        return Opposition(turn if turned else Polarity.NUMBER, exact)

    def two_answers(self) -> Iterator[str]:
        """What stands in one place of else equal texts: perhaps two answers, of which one holds."""
        if slot := _slot(self._one, self._other):
            yield f"{_ANSWERS}: {self._pairs([slot])}"

    def apart(self) -> Iterator[str]:
        """What one has in the place of something else, so that the two are about different things."""
        slips = [pair for pair in self._exchanged if _bare(pair[1]) == _bare(pair[2])]
        for kind, left, right in self._exchanged:
            if (kind, left, right) not in slips:
                yield f"{kind.value}s differ: {self._pairs([(left, right)])}"
        ours, theirs = (
            {meaning_of(stem) for stem in stems if not any(stem in pair for pair in (*slips, *self.opposites))}
            for stems in (self._ours, self._theirs)
        )
        if ours - theirs and theirs - ours and not self._say_one_deed(ours, theirs):
            yield f"words differ: {self._listed(self._ours)} and {self._listed(self._theirs)}"

    def doubts(self, bound: float) -> Iterator[str]:
        """Why texts that say much the same may yet be two."""
        one, other = self._one, self._other
        if self._exchanged:
            yield f"written in another way: {self._pairs([pair[1:] for pair in self._exchanged])}"
        if self._denied or self.opposites:
            yield "what one denies the other says the other way round"
        if self._ours and self._theirs:
            yield f"perhaps the same words: {self._listed(self._ours)} and {self._listed(self._theirs)}"
        if more := (self._ours | self._theirs | (one.hard ^ other.hard)):
            yield f"one of them says more: {self._listed(more)}"
        if one.deciding != other.deciding:
            yield f"one of them says: {self._listed(one.deciding ^ other.deciding)}"
        if bool(one.order[1]) != bool(other.order[1]) or one.directed != other.directed:
            yield "one of them alone says in which order or direction"
        yield from self._placed(bound)

    def _placed(self, bound: float) -> Iterator[str]:
        """Why the same words may yet say something else: where they stand, and how they are written."""
        one, other = self._one, self._other
        # "Commit often, push rarely" has the words of "push often, commit rarely".
        pairs = len(one.neighbours) + len(other.neighbours)
        if pairs and 2 * len(one.neighbours & other.neighbours) < bound * pairs:
            yield "the same words stand beside others"
        if not one.same_order(other):
            yield "the same words stand in another order"
        if _values_in_order(one) != _values_in_order(other):
            yield "signs or numbers stand in another order"
        if self.quoted:
            yield "in other quotation marks"
        if self.spelt:
            yield f"written in other letters: {self._listed(frozenset(self.spelt))}"

    @cached_property
    def _denied(self) -> bool:
        return self._one.denial[0] != self._other.denial[0] or self._crossed

    @cached_property
    def _crossed(self) -> bool:
        """Whether one says what the other denies by contrast."""
        denied, their_denied = self._one.denial[1], self._other.denial[1]
        ours, theirs = self._one.content - denied, self._other.content - their_denied
        return bool((denied & theirs) | (their_denied & ours))

    def _rest(self) -> bool:
        """Whether each names what the other does not, beside opposites: then a denial may be said in other words."""
        opposite = {*chain.from_iterable(self.opposites)}
        return bool(self._ours - opposite - self._one.deeds and self._theirs - opposite - self._other.deeds)

    @cached_property
    def _turns(self) -> int:
        """How many words stand in the place of their opposite; "never" for "always" is a denial already."""
        pairs = [pair for pair in self.opposites if _DENYING.isdisjoint(pair) or not self._denied]
        return min(len({left for left, _ in pairs}), len({right for _, right in pairs}))

    def _exchanges(self) -> Iterator[tuple[Kind, str, str]]:
        """Signs, numbers and names that stand in each other's place."""
        one, other = self._one, self._other
        matcher = SequenceMatcher(None, one.meanings, other.meanings, autojunk=False)
        for tag, a, b, c, d in matcher.get_opcodes():
            if tag == "equal":
                continue
            ours = [stem for stem in one.stems[a:b] if stem in self._ours]
            theirs = [stem for stem in other.stems[c:d] if stem in self._theirs]
            for left, right in zip(ours, theirs, strict=False):
                kinds = [kind for kind in (one.kinds.get(left), other.kinds.get(right)) if kind is not None]
                if kinds:
                    yield min(kinds, key=list(Kind).index), left, right

    def _say_one_deed(self, ours: set[str], theirs: set[str]) -> bool:
        """Whether they differ in what is done alone, which has more ways to be said than things have."""
        deeds = ours <= set(map(meaning_of, self._one.deeds)), theirs <= set(map(meaning_of, self._other.deeds))
        return all(deeds) or (any(deeds) and len(ours) == len(theirs) == 1)

    def _pairs(self, pairs: Sequence[tuple[str, ...]]) -> str:
        return ", ".join(f"{self._written(one)} and {self._written(other)}" for one, other in pairs)

    def _listed(self, stems: frozenset[str]) -> str:
        return ", ".join(map(self._written, sorted(stems)))

    def _written(self, stem: str) -> str:
        return next((word for each in (self._one, self._other) if (word := each.named_as(stem)) != stem), stem)


def _moved(first: frozenset[str], second: frozenset[str], theirs: frozenset[str], behind: frozenset[str]) -> bool:
    """Whether what comes first in one comes second in the other, and the rest is not ordered in both."""
    there, back = first & behind, second & theirs
    return bool((there and not first & theirs) or (back and not second & behind))


def _exchanged(way: Way, back: Way) -> bool:
    """Whether what stands before a word in one text stands behind it in the other, and the other way round."""
    (sign, before, behind), (their_sign, their_before, their_behind) = way, back
    crossed = before & their_behind and behind & their_before
    return bool(sign == their_sign and crossed and not behind & their_behind)


def _bare(word: str) -> str:
    return "".join(filter(str.isalnum, word)).casefold()


def _values_in_order(text: Text) -> list[str]:
    return [stem for stem in text.stems if text.kinds.get(stem) in {Kind.SIGN, Kind.LETTER}]
