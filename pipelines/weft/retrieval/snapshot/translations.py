"""Pages in several languages: what says the same in each of them, told by paths that differ in a language's code."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from weft.domain.arrays import Ints
from weft.indexes.chunk_store import StoredDocument
from weft.retrieval.snapshot.asides import PAGES

# ISO 639-1.
_CODES = (
    "aa ab ae af ak am an ar as av ay az ba be bg bi bm bn bo br bs ca ce ch co cr cs cu cv cy da de dv dz ee el en eo "
    "es et eu fa ff fi fj fo fr fy ga gd gl gn gu gv ha he hi ho hr ht hu hy hz ia id ie ig ii ik io is it iu ja jv ka "
    "kg ki kj kk kl km kn ko kr ks ku kv kw ky la lb lg li ln lo lt lu lv mg mh mi mk ml mn mr ms mt my na nb nd ne ng "
    "nl nn no nr nv ny oc oj om or os pa pi pl ps pt qu rm rn ro ru rw sa sc sd se sg si sk sl sm sn so sq sr ss st su "
    "sv sw ta te tg th ti tk tl tn to tr ts tt tw ty ug uk ur uz ve vi vo wa wo xh yi yo za zh zu"
)
_IS_CODE = frozenset(_CODES.split())
_LANGUAGE = re.compile(r"([a-z]{2})(?:[-_](?:[a-z]{2}|hans|hant))?", re.IGNORECASE)
_DOCUSAURUS = re.compile(r"\bi18n/([^/]+)/docusaurus-plugin-content-([^/]+)/current/")
_WITHOUT, _ENGLISH = "", "en"


@dataclass(frozen=True, slots=True, eq=False)
class Translations:
    """Which documents say the same in several languages."""

    page: Ints  # number of what each document is a translation of; −1 where it is none, (documents,)
    preference: Ints  # of the document's language: the lowest is shown where a query tells no other, (documents,)

    @classmethod
    def of(cls, documents: Sequence[StoredDocument]) -> Translations | None:
        """The translations among documents; None where there are none."""
        named = [
            page_and_language(each.uri) if each.content_type in PAGES else (each.uri, _WITHOUT) for each in documents
        ]
        numbers = defaultdict[str, list[int]](list)
        for number, (name, _) in enumerate(named):
            numbers[name].append(number)
        page = np.full(len(documents), -1, dtype=np.int64)
        for at, some in enumerate(numbers.values()):
            if len({named[number][1] for number in some}) > 1:
                page[some] = at
        if not (page >= 0).any():
            return None
        held = Counter(language for _, language in named)
        order = sorted(held, key=lambda each: (-held[each], each != _WITHOUT, each != _ENGLISH, each))
        return cls(page, np.array([order.index(language) for _, language in named], dtype=np.int64))


def page_and_language(uri: str) -> tuple[str, str]:
    """What a path names in any language, and the code of the language that it is in; empty where it names none.

    Examples:
        >>> page_and_language("docs/de/proxy.md"), page_and_language("docs/proxy.zh-CN.md")
        (('docs/proxy.md', 'de'), ('docs/proxy.md', 'zh-cn'))
        >>> page_and_language("i18n/fr/docusaurus-plugin-content-docs/current/proxy.md")
        ('docs/proxy.md', 'fr')
        >>> page_and_language("docs/to/do.md"), page_and_language("docs/go/do.md")
        (('docs/do.md', 'to'), ('docs/go/do.md', ''))
    """
    if (translated := _DOCUSAURUS.search(uri)) is not None:
        return f"{uri[: translated.start()]}{translated[2]}/{uri[translated.end() :]}", _plain(translated[1])
    folder, slash, name = uri.rpartition("/")
    stem, dot, ending = name.rpartition(".")
    for mark in "._":
        start, _, code = stem.rpartition(mark)
        if start and _is_language(code):
            return f"{folder}{slash}{start}{dot}{ending}", _plain(code)
    parts = uri.split("/")
    at = next((at for at in reversed(range(len(parts) - 1)) if _is_language(parts[at])), None)
    return (uri, _WITHOUT) if at is None else ("/".join(parts[:at] + parts[at + 1 :]), _plain(parts[at]))


def _is_language(code: str) -> bool:
    match = _LANGUAGE.fullmatch(code)
    return match is not None and match[1].lower() in _IS_CODE


def _plain(code: str) -> str:
    return code.lower().replace("_", "-")
