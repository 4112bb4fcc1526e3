"""ING-3: prose made to cost time costs in proportion to its length."""

import re
from itertools import pairwise

import pytest

from weft.chunking.chunker import chunk_or_fallback
from weft.chunking.units.splitting import ChunkSizes
from weft.domain.documents import ContentType, Document, Domain

SIZES = ChunkSizes(200, 100, 20, 10, list_tokens=100, paragraph_tokens=150)
BYTES = 16_000  # at which a reader that takes the square of this is told from the others, on a busy machine too
MARKS = [
    "`",
    "` ``",
    "<!-- ",
    "<script>",
    "{.a ",
    "{%",
    "{{<include ",
    "!!! a\n",
    "```{note}\n",
    ":::\n",
    "[[a](b",
    "{a}`",
    " ",
    "<div>\n\n",
    "<Tab>\na\n\n",
    '=== "a"\n',
    ":::{list-table}\n",
    "{% highlight a %}\n",
]
REPEATED = {
    (ContentType.MARKDOWN, None): ["[", "$$\n\n", "# \n", "<a ", "{#", "#### a\n##### b\n", "|a|b|\n|-|-|\n", *MARKS],
    (ContentType.RST, None): [
        "`",
        "a\n==\n",
        "- - ",
        "=== ===\na\n",
        ".. a::\n",
        ".. _a:\n",
        " a\n  b\n",
        "[a]_ ",
        ":a",
    ],
    (ContentType.PAPER, "markdown"): ["[1, ", "A et al. ", "## References\n\n[1] ", "*Proof.* \n\n", "Table 1: a\n\n"],
    (ContentType.PAPER, "latex"): [
        *("\\author{", "\\section{", "\\begin{a}", "\\begin{verbatim}", "\\verb|", "$$", "\\cite[", "\\bibitem["),
        *("\\begin{itemize}\\item", "\\newtheorem{", "\\begin{a}\\begin{b}\\end{a}", "\\title{a}", "%"),
    ],
    (ContentType.MARKUP, "html"): [
        *(
            "<div>",
            "<p>a",
            "<",
            "<a ",
            "<b>x</i>",
            "<table><tr><th>a",
            "<article>a",
            "<header><h1>a",
            "<div hidden>a",
            "<b role=main>a",
            "<!--",
            "<script>",
            '<a "<b ',
            "<h1>a",
            "&lt;",
            "<!",
        ),
        *("<ul><li>a", "<nav>", "<pre>", "a<br>", "<dl><dt>a<dd>b", '<i id="a">'),
    ],
    (ContentType.MARKUP, "asciidoc"): [
        "= a\n",
        "----\n",
        "|===\n|a\n",
        "<<a",
        "[[a]]\n",
        "* a\n\n",
        "a::",
        "xref:a[",
        "`",
    ],
    (ContentType.MARKUP, "org"): ["* a\n", "#+begin_src a\n", "|a\n", "[[a]", "- a\n\n", ":PROPERTIES:\n", "#+a: b\n"],
    (ContentType.TEXT, None): [". ", "\n\n", "A. ", "'", "漢。"],
}


@pytest.mark.parametrize(
    ("content_type", "language", "text"), [(*kind, text) for kind, texts in REPEATED.items() for text in texts]
)
def test_repetition_costs_seconds_and_loses_nothing(content_type: ContentType, language: str | None, text: str) -> None:
    """ING-3: no reader takes the square of what it reads, and none crashes; every byte is in a chunk."""
    document = Document(
        uri="a",
        content_type=content_type,
        domain=Domain.GENERAL,
        text=text * (BYTES // len(text)),
        language=language,
        trust_level=60,
    )
    chunks, note = chunk_or_fallback(document, SIZES, lambda said: len(said.split()))
    assert note is None
    assert all(right.start_byte <= left.end_byte for left, right in pairwise(chunks))
    covered = chunks[-1].end_byte if chunks else 0
    said = re.sub("<!--|<[^<>]*>", "", document.text) if language == "html" else document.text
    assert covered == (len(document.text.encode()) if said.strip() else 0), "tags alone say nothing"
