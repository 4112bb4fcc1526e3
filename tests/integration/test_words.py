"""RET-22: words as people write and type them, on the lexical channel alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from tests.support.shelf import Find, Shelf, entries, pairs, words
from weft.domain.documents import ContentType

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def find(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shelf]:
    with closing(Shelf(tmp_path_factory.mktemp("words"))) as shelf:
        yield shelf


NUMBERED = dict(
    pairs(
        "base64 base64_pack, sha256 sha256_of, utf8 utf8ToString, s3 S3Client, x509 load_x509, "
        "http2 HTTP2Server, ipv4 IPv4Address, i18n i18nKey, md5sum md5sum_all, oauth2 OAuth2Client, "
        "k8s k8sApply, log4j log4jSetup, vec3 Vec3, mp3 mp3_decode, rgb565 to_rgb565, ec2 startEC2Instance, "
        "p95 p95_ms, h264 H264Encoder, v2 api_v2_routes, crc32 crc32c_table, utf16 is_utf16le, "
        "l10n l10n_bundle, neo4j Neo4jDriver, bm25 rank_bm25"
    )
)


@pytest.mark.parametrize("kind", [ContentType.CODE, ContentType.TEXT])
@pytest.mark.parametrize("query", NUMBERED.keys() - {"crc32", "utf16"})
def test_names_with_digits(find: Find, query: str, kind: ContentType) -> None:
    """Letters and the digits after them are a word, in code and in prose."""
    texts = {name: f"def {name}(value):\n    return value" for name in NUMBERED.values()}
    assert find(list(texts.values()), query, kind=kind)[0] == texts[NUMBERED[query]]


NAMES = entries(
    "max retry count, parse json body, user id, read only mode, on key down, open file, is valid email, "
    "to be, cache ttl, send reset link, page size, flush buffer, load config file, not found handler, "
    "start time ms, build query plan, line width, next batch, decode frame, set default locale, "
    "sort by name, http server error"
)


def camel(words: str) -> str:
    first, *others = words.split()
    return first + "".join(map(str.capitalize, others))


def snake(words: str) -> str:
    return words.replace(" ", "_")


def kebab(words: str) -> str:
    return words.replace(" ", "-")


@pytest.mark.parametrize("words", NAMES)
@pytest.mark.parametrize(("typed", "written"), [(camel, snake), (snake, camel), (kebab, snake), (snake, kebab)])
def test_a_name_is_found_in_another_spelling(
    find: Find, words: str, typed: Callable[[str], str], written: Callable[[str], str]
) -> None:
    """camelCase, snake_case and kebab-case of either in the others, stop words inside names included."""
    texts = [f"Set {written(name)} before the first call." for name in NAMES]
    assert find(texts, typed(words))[0] == f"Set {written(words)} before the first call."


@pytest.mark.parametrize("words", NAMES)
def test_a_name_is_found_by_its_words(find: Find, words: str) -> None:
    """The words of a name in prose are words of the text."""
    texts = [f"Set {camel(name)} before the first call." for name in NAMES]
    assert find(texts, words)[0] == f"Set {camel(words)} before the first call."


def test_what_is_typed_exactly_stands_first(find: Find) -> None:
    """Before another spelling of the name."""
    texts = ["Call max_retry_count here.", "Call maxRetryCount here.", "Call max-retry-count here."]
    for typed, text in zip(("max_retry_count", "maxRetryCount", "max-retry-count"), texts, strict=True):
        found = find(texts, typed)
        assert (found[0], len(found)) == (text, 3)


PARTS = {
    "dependency_overrides": "Tests replace app.dependency_overrides with a mapping.",
    "overrides": "Tests replace app.dependency_overrides with a mapping.",
    "checkpoint": "Write it with torch.utils.checkpoint and read it later.",
    "utils.checkpoint": "Write it with torch.utils.checkpoint and read it later.",
    "urlopen": "Then urllib.request.urlopen answers.",
    "request.urlopen": "Then urllib.request.urlopen answers.",
    "pyproject.toml": "Everything is declared in pyproject.toml today.",
    "pyproject": "Everything is declared in pyproject.toml today.",
    "main.py": "Begin to read at src/app/main.py there.",
    "app/main.py": "Begin to read at src/app/main.py there.",
    "docker-compose.yml": "The services stand in docker-compose.yml below.",
    "compose": "The services stand in docker-compose.yml below.",
    "coverage": "It depends on pytest-cov-coverage alone.",
    "cov": "It depends on pytest-cov-coverage alone.",
    "gitignore": "Leave it out with .gitignore please.",
    ".gitignore": "Leave it out with .gitignore please.",
    "HashMap": "Import std::collections::HashMap at the top.",
    "collections::HashMap": "Import std::collections::HashMap at the top.",
    "innodb": "Set mysql.innodb-buffer-pool-size higher.",
    "buffer-pool": "Set mysql.innodb-buffer-pool-size higher.",
    "subcommand": "Each sub-command has its own help.",
    "README": "The file README.rst says so.",
}


@pytest.mark.parametrize("query", PARTS)
def test_parts_of_dotted_and_hyphenated_names(find: Find, query: str) -> None:
    """Of module paths, file names and packages, in prose."""
    assert find(sorted(set(PARTS.values())), query)[0] == PARTS[query]


FLAGS = words("cache color deps build sync index verify header strict progress wait edit")


@pytest.mark.parametrize("flag", [f"--{no}{name}" for name in FLAGS for no in ("", "no-")])
def test_a_flag_stands_before_its_opposite(find: Find, flag: str) -> None:
    """`--cache` before `--no-cache`, and the other way round."""
    texts = {
        f"--{no}{name}": f"With `--{no}{name}` the {name} is another {name}." for name in FLAGS for no in ("", "no-")
    }
    assert find(list(texts.values()), flag)[0] == texts[flag]


SIGNED = words(
    "@property @staticmethod @override @dataclass @Inject @media @Test @cache @abstractmethod @wraps @click "
    "$HOME $PATH $USER $SHELL $this $scope $argv $TMPDIR ${LANG} ${PWD} ${EDITOR} #include #define #pragma #endif"
)


@pytest.mark.parametrize("query", SIGNED)
def test_a_sign_before_a_name_counts(find: Find, query: str) -> None:
    """`@property` before a property, `$HOME` before home, with braces or without, `#include` before include."""
    bare = [f"A {name.strip('@#${}')} is a {name.strip('@#${}')} here." for name in SIGNED]
    texts = [f"Write {name} there." for name in SIGNED]
    assert find([*bare, *texts], query)[0] == texts[SIGNED.index(query)]


VERSIONS = words(
    "1.2.3 1.3.2 2.0 2.0.1 3.11 3.1.1 10.4 4.10 0.13.0 0.0.13 7.1 1.7 6.28 2.8.6 5.0.5 9.3 3.9 12.5 5.12 8.0.0"
)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("typed", "written"), [("", "v"), ("v", ""), ("v", "v"), ("", "")])
def test_a_version_is_found(find: Find, version: str, typed: str, written: str) -> None:
    """With the letter before it or without, and not by the same numbers in another order."""
    texts = [f"Since {written}{one}, it is quicker." for one in VERSIONS]
    assert find(texts, typed + version)[0] == texts[VERSIONS.index(version)]


OPERATORS = [
    ("IS NULL", "Rows where x IS NULL are kept.", "Rows where x IS NOT NULL, and null IS told."),
    ("IS NOT NULL", "Rows where x IS NOT NULL are kept.", "Rows where x IS NULL, and null is told not."),
    ("not found", "The page was not found here.", "What was found is not here."),
    ("to be", "It has to be so.", "Be it said to him."),
    ("NOT IN", "Filter by NOT IN then.", "It stands in what is not there."),
    ("if not", "Write if not here.", "Not all, if any."),
    ("or else", "Do it or else.", "Something else or other."),
    ("AND NOT", "Combine by AND NOT these.", "Not this and that."),
    ("as is", "Taken as is today.", "Is it as told."),
    ("is in", "The item is in the list.", "In the list it is."),
    ("for this", "Made for this purpose.", "This is for others."),
    ("with no", "Left with no choice.", "No one left with it."),
    ("at a", "One at a time.", "A time at one."),
    ("the will", "Against the will of all.", "It will be the end."),
    ("such as", "Fruit such as these.", "As such it is fruit."),
    ("on no", "We do so on no day.", "No day to go on."),
    ("but not", "Nearly but not quite.", "Not all but some."),
    ("into the", "Step into the dark.", "The dark we step into."),
    ("by then", "Done by then.", "Then it is done by us."),
    ("they are", "Here they are again.", "Are they here again?"),
]


@pytest.mark.parametrize(("query", "right", "other"), OPERATORS)
def test_operators_and_stop_words_side_by_side(find: Find, query: str, right: str, other: str) -> None:
    """A short query is also looked for as it stands."""
    found = find([other, right], query)
    assert found[0] == right


STOP_WORDS = words("with this for not if in is it no of on or the then there these they to was will")


@pytest.mark.parametrize("word", STOP_WORDS)
def test_a_stop_word_alone_is_found(find: Find, word: str) -> None:
    """Where nothing else is asked for."""
    texts = [f"{other}\n\nKeyword `{other}`: {other} begins a block." for other in STOP_WORDS]
    assert find(texts, word)[0] == f"{word}\n\nKeyword `{word}`: {word} begins a block."


LANGUAGES = words("C C++ C# F# R Go .NET J D Objective-C G++ Q# VB.NET ASP.NET B A++ A Node.js X++ T V Vue.js")


@pytest.mark.parametrize("language", LANGUAGES)
def test_languages_whose_names_have_signs(find: Find, language: str) -> None:
    """C, C++, C# and .NET are four things."""
    texts = [f"A compiler for {other} is needed." for other in [*LANGUAGES, "the net"]]
    assert find(texts, language)[0] == f"A compiler for {language} is needed."


PLURALS = pairs(
    "status statuses, alias aliases, virus viruses, campus campuses, bus buses, bonus bonuses, "
    "index indices, matrix matrices, vertex vertices, analysis analyses, hypothesis hypotheses, "
    "crisis crises, axis axes, basis bases, lens lenses, gas gases, canvas canvases, leaf leaves, "
    "half halves, knife knives, child children, criterion criteria, corpus corpuses, atlas atlases, "
    "quiz quizzes, census censuses, appendix appendices, person people, ox oxen, radius radii, nucleus nuclei, "
    "bacterium bacteria, formula formulae, spectrum spectra, automaton automata, stimulus stimuli"
)


@pytest.mark.parametrize(("one", "several"), PLURALS)
def test_plurals_that_the_stemmer_leaves(find: Find, one: str, several: str) -> None:
    """Found by the singular and the other way round, after the form that was typed."""
    texts = [f"We look at {word} today." for pair in PLURALS for word in pair]
    right, other = f"We look at {one} today.", f"We look at {several} today."
    assert find(texts, one)[:2] == [right, other]
    assert find(texts, several)[:2] == [other, right]


STEMS_OF_OTHERS = entries(
    "index indices indicate, vertex vertices vertical, matrix matrices matric, vortex vortices vortic"
)


@pytest.mark.parametrize("some", STEMS_OF_OTHERS)
def test_the_singular_stands_before_another_word_of_the_stem(find: Find, some: str) -> None:
    """`indices` finds an index before what indicates something, whose stem is the same."""
    one, several, other = some.split()
    texts = [f"{other} it with {other} words today", f"one {one} of it today"]
    assert find(texts, several)[0] == texts[1]


SPELT_OTHERWISE = {
    "ClientSession": "Open it with `aiohttp.ClientSession()` there.",
    "voila": "Dashboards by Voilà are served.",
    "maxRetryCount": "Set max_retry_count to three.",
    "base64": "Call base64encode on it.",
    "statuses": "Its status is kept.",
    "cafe": "In the café nearby.",
    "overrides": "Use app.dependency_overrides in tests.",
    "datasource": "Set spring.datasource.url today.",
}


@pytest.mark.parametrize("word", SPELT_OTHERWISE)
def test_a_word_that_is_spelt_otherwise_is_not_missing(find: Shelf, word: str) -> None:
    """RET-15: what an answer calls missing stands in no text, in whatever spelling a search would find it."""
    index = find.index_of(list(SPELT_OTHERWISE.values()))
    assert index.unknown_words(f"{word} zeppelin dont") == ("zeppelin",)


FORMS = pairs(
    "run running, index indexing, connect connected, cache caches, train trained, general generally, "
    "organ organs, test testing, parse parsing, match matches, load loaded, commit commits, "
    "merge merging, sort sorted, filter filters, build building, write writes, publish published, "
    "store storing, rank ranked"
)


@pytest.mark.parametrize(("one", "other"), FORMS)
def test_the_exact_form_stands_before_its_stem(find: Find, one: str, other: str) -> None:
    """Both are found."""
    for typed, stemmed in ((one, other), (other, one)):
        texts = [f"They {stemmed} it.", f"After all that was said about it they {typed} it, if at all."]
        assert find(texts, typed)[:2] == texts[::-1]


WIDE_FORMS = {
    "organ": "organization organizes organs",
    "university": "universe of universal universities",
    "caching": "cached caches cache caches",
    "general": "generals generate generators, generally generalised",
    "policy": "police policies policing policies",
    "store": "stores stored storing stores",
    "author": "authority authorities authored authors",
    "relate": "relations related relative relatives",
    "import": "imports important imported importance",
    "test": "tests tested testing tests",
    "match": "matches matching matched matches",
    "commit": "commits committing commits committed",
    "numbers": "number numbered numbering number",
    "process": "processes processing processed processes",
    "indexing": "index indexes indexed index",
    "operate": "operators operation operates operating",
    "connect": "connections connected connecting connects",
    "design": "designs designers designed designing",
    "probable": "probably probability probabilities probably",
    "install": "installs installed installing installs",
}


@pytest.mark.parametrize("word", WIDE_FORMS)
def test_many_words_of_a_stem_do_not_outweigh_the_one_that_was_typed(find: Find, word: str) -> None:
    """Where it is all that was asked for."""
    exact = f"After all that was said about it there was one {word}, if any."
    assert find([f"{WIDE_FORMS[word]}.", exact], word)[0] == exact


SIGNS = words("== === != !== => -> :: ?? ?. := <= >= <=> ** && || += |> >>= ++ // ..= ~= <<")


@pytest.mark.parametrize("sign", SIGNS)
@pytest.mark.parametrize("query", ["{}", "what is `{}`", "the {} operator"])
def test_operators_of_signs(find: Find, sign: str, query: str) -> None:
    """By themselves in a query; in a text with names on either side."""
    texts = [f"Write left{other}right there." for other in SIGNS]
    assert find(texts, query.format(sign))[0] == texts[SIGNS.index(sign)]


def test_signs_that_end_a_sentence_are_none(find: Find) -> None:
    """Nobody who asks twice as loud asks for an operator."""
    texts = ["Take left ?? right.", "It failed the tests."]
    assert find(texts, "why has it failed??")[0] == texts[1]
