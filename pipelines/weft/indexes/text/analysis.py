"""What becomes of texts before Lucene compares them: its analysers by field, and the text that each field is given."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from weft.indexes.settings import LexicalSettings
from weft.indexes.text.jvm import JAVA, java_cast, java_class
from weft.indexes.text.words import exact_tokens, normalised

FIELDS = ("contents", "title", "symbols")
EXACT = "exact"
"""The field of `words`; generations of the analysis "english" have none."""

_ANALYSIS = "org.apache.lucene.analysis."
_BY_SCRIPT = MappingProxyType(
    {
        "cjk": "cjk.CJKAnalyzer",
        "japanese": "ja.JapaneseAnalyzer",
        "arabic": "ar.ArabicAnalyzer",
        "hindi": "hi.HindiAnalyzer",
    }
)
_TERMS = msgspec.json.Decoder(list[str])


def english() -> Any:
    """Anserini's English analyser: standard tokens, lower case, its stop words, Porter's stemmer."""
    return java_class("io.anserini.analysis.DefaultEnglishAnalyzer").newStemmingInstance("porter")


def by_blanks() -> Any:
    """An analyser of tokens that are made already."""
    return java_class(_ANALYSIS + "core.WhitespaceAnalyzer")()


def delimited(filter_name: str, mark: str) -> Any:
    """An analyser of such tokens with a number behind each, and a mark between: their frequency, or their boost."""
    builder = java_class(_ANALYSIS + "custom.CustomAnalyzer").builder()
    for add, name, options in (
        (builder.withTokenizer, "whitespace", {"maxTokenLen": "512"}),
        (builder.addTokenFilter, filter_name, {"delimiter": mark}),
    ):
        stated = java_class("java.util.HashMap")()
        for each in options.items():
            stated.put(*each)
        add(name, stated)
    return builder.build()


def by_field() -> Any:
    """What each field is analysed with."""
    others = java_class("java.util.HashMap")()
    others.put(EXACT, by_blanks())
    wrapper = java_class(_ANALYSIS + "miscellaneous.PerFieldAnalyzerWrapper")
    return wrapper(java_cast(_ANALYSIS + "Analyzer", english()), java_cast("java.util.Map", others))


def terms_by(analyzer: Any, text: str) -> list[str]:
    """The terms that an analyser makes of a text, in order, repeats kept."""
    with JAVA:
        tokens = java_class("io.anserini.analysis.AnalyzerUtils").analyze(analyzer, text)
        return _TERMS.decode(str(json_mapper().writeValueAsString(tokens)))


def terms_of_script(name: str, text: str) -> list[str]:
    """The terms of a text by the analyser of a script; see `words.Analyse`."""
    return terms_by(_of_script(name), text)


@functools.cache
def json_mapper() -> Any:
    """Writes Java's values as JSON: taking a hundred of them out of Java one by one costs more than finding them."""
    return java_class("com.fasterxml.jackson.databind.ObjectMapper")()


@functools.cache
def _of_script(name: str) -> Any:
    with JAVA:
        return java_class(_ANALYSIS + _BY_SCRIPT[name])()


def texts_by_field(document: Any, settings: LexicalSettings) -> Mapping[str, str]:
    """What Lucene is given of a document, by field."""
    texts: dict[str, str] = {name: getattr(document, name) for name in FIELDS}
    if settings.analysis == "english":
        return texts
    texts = {name: normalised(text) for name, text in texts.items()}
    return {**texts, EXACT: " ".join(exact_tokens(texts[FIELDS[0]], terms_of_script))}
