"""The one lexicon: small words, what denies, synonyms, and words of which one excludes the other.

Words are stated in their usual form; other forms are those of the same stem.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from functools import lru_cache

from weft.wording.words import STEM, stem_of


def _words(text: str) -> list[str]:
    return text.split()


# Say nothing of what a text is about.
IDLE = frozenset(
    _words(
        """a an the of on at by for with and or is are was were be been being do does did doing done me my us we our you
    your he she they them their it its own itself myself yourself themselves this that these those there here what
    which who when where why how can could should would will shall may might must have has had to in into onto from
    as if so up out off any some also just then than but about too very really please want need needs like let lets
    sure ensure always every each all both use using used get got via per only again still even because since while
    before after first yes no ok okay let's now well one remember prefer preferred instead rather otherwise until
    whenever within inside during through between over under other another possible way ways exactly actually
    anybody anyone somebody someone know"""
    )
) | {"make sure"}
NEGATIONS = frozenset(_words("not no never without w/o cannot nor neither none nobody nothing"))
DENYING_VERBS = frozenset(_words("avoid stop refrain forbid forbidden skip"))  # of what one is told to do
LACKING = frozenset(_words("except missing unable unreachable lack lacking"))  # of what is the case
ABSOLUTES = frozenset({"always", "never"})
CONDITIONS = frozenset(
    _words("""if unless only except when whenever while provided depending least most exactly almost hardly""")
)
ORDER = frozenset(
    _words("""before after first then last next until since previous following finally from to into over""")
)
DIRECTIONS = frozenset(_words("to into before after from over"))
QUESTIONS = frozenset(
    {"where", "when", "who", "why", *(f"how {each}" for each in _words("long often many much old far"))}
)
# Small words that change what is said.
AUXILIARIES = frozenset(
    _words(
        """must should shall may might can could will would do does did is are am was were has have had need needs"""
    )
)
DECIDING = frozenset(
    _words(
        """some only may might can could out off up down unless until while but except hardly rarely seldom often
    sometimes more less fewer most least if nobody everybody other one once half almost even first last optionally"""
    )
)
_NUMERALS = _words("zero one two three four five six seven eight nine ten eleven twelve")
NUMERALS = {word: str(number) for number, word in enumerate(_NUMERALS) if number != 1} | dict.fromkeys(
    _words(
        """thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty
    ninety hundred thousand million half"""
    ),
    "",
)
NUMERALS = {word: digits or word for word, digits in NUMERALS.items()} | {"twice": "2"}
_UNITS = frozenset(
    map(
        stem_of,
        _words(
            """ms millisecond second sec minute min hour day week month quarter year byte kb mb gb tb kib mib gib
    percent px pixel point mm cm metre meter km inch mile gram kg euro dollar cent hourly daily nightly weekly monthly
    yearly"""
        ),
    )
)

# One meaning each, whatever the text: abbreviations, forms that no ending tells, and plain synonyms.
_SYNONYMS = """
remove delete erase drop discard rid wipe | add append include insert | create generate build built
run execute launch invoke | start boot begin begun | stop halt terminate kill | change modify edit alter adjust update
set configure specify define | check verify validate confirm inspect | fix repair mend resolve | database db
directory folder dir | function method | argument parameter param arg | variable var | repository repo
dependency package | error failure exception | configuration config settings | environment env | documentation docs
deploy release ship rollout | merge combine | large big huge | small little tiny | fast quick | secret credential
authentication auth login log_in sign_in | message msg | password passphrase | send sent transmit | store save persist
keep kept | bring brought | break broken broke | do done | draw drawn | give given | hide hidden | hold held
make made | pay paid | show shown display | tell told | throw thrown | take taken | pull_request pr
wrap enclose surround | log record | retry reattempt | user customer | pin lock freeze frozen
format reformat formatter | read load fetch retrieve obtain
write written dump | production prod live | copy duplicate | raise increase
reduce decrease lower lessen | choose chosen select pick | enable activate turn_on switch_on
disable deactivate turn_off switch_off | virtual_environment venv virtualenv
command_line cli | command cmd | context ctx | character char | dict dictionary | application app | lockfile lock_file
filename file_name | asynchronous async | synchronous sync | stdin standard_input | stdout standard_output
setup set_up | allow permit | child children kid | forget forgotten forgot | quit exit | one single
pull_request merge_request
"""
# One meaning to whoever asks for something; of two instructions they are taken for the same only by a person.
_LOOSE = """
remove uninstall | create make | show see view | ignore exclude skip omit | expose publish | vacation holiday
gift present | buy purchase | illness disease | medicine medication drug | read get | find locate search
kind type sort | how_long since_when | check test determine | convert transform | merge join | stop end | install setup
cause reason | effect influence impact affect | fail crash | all every each | avoid prevent
difference_between difference versus vs
"""
# One excludes the other where both are said of the same.
_OPPOSITES = """
always never | before after | first last | enable disable | add remove | install uninstall | install remove
start stop | open close | lock unlock | allow deny | allow forbid | allow reject | allow refuse | allow block
allow prohibit | accept reject | accept refuse | accept block | grant revoke | attach detach | import export
upload download | push pull | get set | get write | least most | high low
higher lower | highest lowest | increase decrease | more fewer | more less | above below | over under | old new
old newest | oldest newest | latest oldest | encode decode | encrypt decrypt | sync async | synchronous asynchronous
local remote | public private | upgrade downgrade | acquire release | show hide | show conceal | expose hide
expand collapse | subscribe unsubscribe | compress decompress | early late | earlier later | left right
ascending descending | static dynamic | tabs spaces | merge rebase | squash merge | merge split | with without
include exclude | require forbid | upper lower | uppercase lowercase | camelcase snake_case | absolute relative
short long | shorter longer | smaller larger | faster slower | fast slow | strict lenient | commit ignore
commit gitignore | commit revert | inside outside | optional required | mutable immutable | stateless stateful
keep remove | keep drop | internal external | eager lazy | eagerly lazily | positive negative | sequential parallel
sequentially parallel | sequentially concurrently | serial parallel | blocking nonblocking | signed unsigned
true false | on off | up down | yes no | in out | inclusive exclusive | read-only read-write | return raise
succeed fail | success failure | pass fail | continue abort | fail continue | manual automatic
manually automatically | explicit implicit | permanent temporary | online offline | empty full | weak strong
cheap expensive | half double | weekday weekend | morning evening | day night | http https | optimistic pessimistic
singular plural | horizontal vertical | horizontally vertically | plain encrypted | verbose quiet | all some | all most
all none | all one | each some | every some | every most | both either | most few | most none | pause resume | skip run
throw ignore | raise ignore | if unless | activate inhibit | promote inhibit | single double | prefix suffix
"""
# Each of a set excludes the others.
_SETS = """
debug info warning warn error critical fatal | hourly daily nightly weekly monthly quarterly yearly
major minor patch
"""
# Two things that a text may be about: what is said of the one says nothing of the other.
_SUBJECTS = """
staging production development test dev live | client server | input output | source target | frontend backend
sender receiver producer consumer publisher subscriber | reader writer | parent child | row column | key value
primary secondary replica | front back | top bottom | inbound outbound | incoming outgoing
request response | staging demo | read write | min max | minimum maximum | startup shutdown
"""
_PREFIXES = ("un", "dis", "in", "im", "non", "non-", "de", "ir", "il", "anti")


def _groups(text: str) -> list[list[str]]:
    parts = (part for line in text.strip().splitlines() for part in line.split("|"))
    return [[word.replace("_", " ") if word != "snake_case" else word for word in part.split()] for part in parts]


def _one_each(groups: Iterable[list[str]]) -> dict[str, str]:
    """By word and stem, the word that stands for its group; of a word in two groups the first counts."""
    by_word: dict[str, str] = {}
    for group in groups:
        head = next((by_word[each] for each in group if each in by_word), stem_of(group[0]))
        for word in group:
            for each in (word, stem_of(word)):
                by_word.setdefault(each, head)
    return by_word


SYNONYMS = _groups(_SYNONYMS)
LOOSE = _groups(_LOOSE)
OPPOSITES = [(one, other) for one, other in _groups(_OPPOSITES)]
_SURE = _one_each(SYNONYMS)
_MEANINGS = _one_each([[_SURE.get(word, word) for word in group] for group in LOOSE])
_PHRASES = frozenset(word for word in (*_SURE, *_one_each(LOOSE), *IDLE) if " " in word)


@lru_cache(maxsize=65_536)
def sure_stem(word: str) -> str:
    """A word's stem, one for all words that mean the same in every text; numbers are written in digits.

    Examples:
        >>> [sure_stem(word) for word in ("databases", "db", "deleting", "rid", "three", "uninstall")]
        ['databas', 'databas', 'remov', 'remov', '3', 'uninstall']
    """
    stem = stem_of(word)
    return NUMERALS.get(word) or _SURE.get(word) or _SURE.get(stem, stem)


@lru_cache(maxsize=65_536)
def meaning_of(stem: str) -> str:
    """One stem for all that may mean the same, of a sure one.

    Examples:
        >>> meaning_of(sure_stem("uninstall")) == meaning_of(sure_stem("delete"))
        True
    """
    return _MEANINGS.get(stem, stem)


def joins(one: str, other: str) -> bool:
    """Whether two words side by side are one in the lexicon: "set up", "env vars"."""
    phrase = f"{one} {other}"
    return phrase in _PHRASES or stem_of(phrase) in _PHRASES


def _pairs(groups: Iterable[list[str]]) -> dict[str, frozenset[str]]:
    excluding: dict[str, set[str]] = defaultdict(set)
    for group in groups:
        stems = {sure_stem(word) for word in group}
        for stem in stems:
            excluding[stem] |= stems - {stem}
    return {stem: frozenset(others) for stem, others in excluding.items()}


_EXCLUDING = _pairs([*map(list, OPPOSITES), *_groups(_SETS)])
_BESIDE = _pairs(_groups(_SUBJECTS))


@lru_cache(maxsize=65_536)
def excluding(stem: str) -> frozenset[str]:
    """Stems of which each excludes one: as the lexicon lists them, and the same with a denying prefix, or without.

    Examples:
        >>> sorted(excluding("lock") & {"unlock", "open", "relock"}), "sign" in excluding("unsign")
        (['unlock'], True)
        >>> "debug" in excluding("info"), "staging" in excluding(sure_stem("production"))
        (True, False)
    """
    with_prefix = [prefix + stem for prefix in _PREFIXES if len(stem) >= STEM]
    rests = [stem.removeprefix(prefix) for prefix in _PREFIXES if stem.startswith(prefix)]
    without = [_SURE.get(rest, rest) for rest in rests if len(rest) >= STEM]
    return _EXCLUDING.get(stem, frozenset()).union(with_prefix, without) - {stem}


def beside(stem: str) -> frozenset[str]:
    """Stems of what a text may be about in the place of one: staging for production."""
    return _BESIDE.get(stem, frozenset())


def denies(word: str) -> bool:
    """Whether a word in lower case denies what it stands with, in whatever text."""
    return word in NEGATIONS or word.endswith("n't")


def is_unit(word: str) -> bool:
    """Whether a word says what is counted or measured: a week, hourly."""
    return stem_of(word) in _UNITS
