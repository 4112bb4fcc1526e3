"""ING-6: HTML, AsciiDoc and Org by headings."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.shown import reads_from, shown
from weft.chunking.chunker import chunk_document
from weft.chunking.units.splitting import ChunkSizes
from weft.domain.chunks import Chunk
from weft.domain.documents import ContentType, Document, Domain
from weft.domain.links import Link, LinkKind
from weft.ingestion.sources.files import kind_of

SIZES = ChunkSizes(max_tokens=60, target_tokens=30, min_tokens=3, overlap_tokens=5)


def words(text: str) -> int:
    return len(text.split())


def a_document(text: str, language: str) -> Document:
    return Document(
        uri="tree/a",
        content_type=ContentType.MARKUP,
        domain=Domain.GENERAL,
        text=text,
        language=language,
        trust_level=70,
    )


def chunks_of(text: str, language: str) -> list[Chunk]:
    return chunk_document(a_document(text, language), SIZES, words)


ROWS = 30
HTML = (
    "<!DOCTYPE html>\n<html><head><title>Manual &mdash; Tool</title><style>p { color: red }</style></head>\n"
    '<body><nav><a href="index.html">Menu</a></nav>\n<main><div id="manual">\n<h1>The <em>Manual</em></h1>\n'
    "<p>What it is &amp; why: a &lt;b&gt; tool.</p>\n</div>\n"
    '<section id="install">\n<h2>Install<a class="headerlink" href="#install">&para;</a></h2>\n'
    '<p>See <a href="other.html#use">the use</a>,<br>not <a href="https://a.org">others</a>.</p>'
    "<ul><li>one</li><li>two</li></ul>\n"
    '<pre class="language-python">\n' + "".join(f"print({row})  # python line\n" for row in range(ROWS)) + "</pre>\n"
    "</section>\n<section><h2>Values</h2>\n<table><thead><tr><th>Key</th><th>Value</th></tr></thead>\n"
    + "".join(f"<tr><td>cell{row}</td><td>one two</td></tr>\n" for row in range(ROWS))
    + "</table></section></main><script>var a = '<h1>None</h1>';</script></body></html>\n"
)
ASCIIDOC = (
    "= The Manual\n:toc:\n\nWhat it is: a tool.\n\n[[install]]\n== Install\n\n// A comment.\n"
    "See xref:other.adoc#use[the use], not https://a.org[others].\n\n* one\n* two\n\n"
    "[source,python]\n----\n== no heading\n"
    + "".join(f"print({row})  # python line\n" for row in range(ROWS))
    + '----\n\n== Values\n\n[cols="1,2"]\n|===\n|Key |Value\n\n'
    + "".join(f"|cell{row} |one two\n" for row in range(ROWS))
    + "|===\n"
)
ORG = (
    "#+TITLE: The Manual\n#+OPTIONS: toc:nil\n\nWhat it is: a tool.\n\n* TODO Install                    :set:up:\n"
    ":PROPERTIES:\n:CUSTOM_ID: install\n:END:\n# A comment.\nSee [[file:other.org][the use]], not [[https://a.org][others]]."
    "\n\n- one\n- two\n\n#+begin_src python\n* no heading\n"
    + "".join(f"print({row})  # python line\n" for row in range(ROWS))
    + "#+end_src\n\n* Values\n\n| Key | Value |\n|-----+-------|\n"
    + "".join(f"| cell{row} | one two |\n" for row in range(ROWS))
)
PAGES = {"html": HTML, "asciidoc": ASCIIDOC, "org": ORG}


@pytest.mark.parametrize("language", PAGES)
def test_passages_stand_under_their_headings(language: str) -> None:
    """ING-6, ING-37: whatever the markup; the first heading is the outermost."""
    chunks = chunks_of(PAGES[language], language)
    for words_of, path in (
        ("What it is", ("The Manual",)),
        ("the use", ("The Manual", "Install")),
        ("one", ("The Manual", "Install")),
        ("print(29)", ("The Manual", "Install")),
        ("cell0", ("The Manual", "Values")),
        ("cell29", ("The Manual", "Values")),
    ):
        assert next(chunk for chunk in chunks if words_of in chunk.text).heading_path == path, words_of


@pytest.mark.parametrize(
    ("language", "columns", "fence"),
    [
        ("html", "Key Value", "```python"),
        ("asciidoc", "|Key |Value", "[source,python]"),
        ("org", "| Key | Value |", "#+begin_src python"),
    ],
)
def test_pieces_of_tables_and_code_repeat_their_heads(language: str, columns: str, fence: str) -> None:
    """ING-36, ING-40: names of columns, and the language."""
    chunks = chunks_of(PAGES[language], language)
    for inside, head in (("cell", columns), ("print(", fence)):
        pieces = [chunk.text for chunk in chunks if inside in chunk.text]
        assert len(pieces) > 2
        assert all(head in piece for piece in pieces), head


@pytest.mark.parametrize("language", PAGES)
def test_markup_is_not_shown(language: str) -> None:
    """ING-40: tags, drawers, comments, targets of links, and what only a browser reads."""
    text = "\n".join(chunk.text for chunk in chunks_of(PAGES[language], language))
    hidden = (
        "<p>",
        "</",
        "&amp;",
        "color: red",
        "Menu",
        "var a",
        "toc",
        "comment",
        "other.",
        "a.org",
        "[[",
        "PROPERTIES",
    )
    for sign in hidden:
        assert sign not in text, sign
    assert "the use" in text
    assert "others" in text


def test_words_beside_tags_stay_apart_and_characters_are_read() -> None:
    """ING-40: `<li>one</li><li>two</li>` are two items, cells two words, `&lt;` is a sign."""
    text = chunks_of(HTML, "html")[0].text + chunks_of("<ul><li>one</li><li>two</li></ul>", "html")[0].text
    assert "a <b> tool" in text
    assert "- one\n- two" in text
    (row,) = {line for chunk in chunks_of(HTML, "html") for line in chunk.text.splitlines() if "cell7" in line}
    assert row == "cell7 one two"


@pytest.mark.parametrize(
    ("language", "target"), [("html", "other.html#use"), ("asciidoc", "other.adoc#use"), ("org", "other.org")]
)
def test_links_and_anchors_are_found(language: str, target: str) -> None:
    """ING-7."""
    (chunk,) = (chunk for chunk in chunks_of(PAGES[language], language) if "the use" in chunk.text)
    assert chunk.links == (Link(LinkKind.REFERENCES, target),)
    assert chunk.anchor == "install"
    line = PAGES[language].splitlines()[chunk.start_line - 1]
    assert "Install" in line, "where one starts to read"


FRAGMENTS = {
    "html": [
        "<h1>A</h1>",
        "<h2>B",
        "<p>c d e f",
        "</p>",
        "<ul><li>a",
        "</ul>",
        "<table><tr><th>a</tr>",
        "<td>b c</td>",
        "</table>",
        "<pre>x y\n",
        "</pre>",
        "&lt;",
        "<!-- a -->",
        "<div id=a>",
        "</div>",
        "<script>a",
        "<",
        "&",
        "'",
        "<dl><dt>a<dd>b",
        "</dl>",
    ],
    "asciidoc": [
        "= A\n",
        "== B\n",
        "----\n",
        "|===\n",
        "|a |b\n",
        "* a b c\n",
        "[source,c]\n",
        "[[a]]\n",
        "// a\n",
        ":a: b\n",
        "////\n",
        "<<a,b>>",
        "xref:a[b c]",
        "+\n",
        ".Title\n",
        "====\n",
        "a:: b\n",
    ],
    "org": [
        "* A\n",
        "** B\n",
        "#+begin_src c\n",
        "#+end_src\n",
        "| a | b |\n",
        "|---+---|\n",
        "- a b c\n",
        ":END:\n",
        ":PROPERTIES:\n",
        "# a\n",
        "#+title: a\n",
        "[[a][b c]]",
    ],
}
TAGS = re.compile(r"<!--.*?-->|</?[a-z][^<>]*>")
ANY = ["a b c d e f g. ", "\n", "\n\n", " ", "é", "漢字。", "w" * 30]


@given(
    st.sampled_from(sorted(FRAGMENTS)).flatmap(
        lambda name: st.builds(
            a_document, st.lists(st.sampled_from([*FRAGMENTS[name], *ANY]), max_size=25).map("".join), st.just(name)
        )
    )
)
def test_every_byte_is_in_a_chunk_that_shows_its_span(document: Document) -> None:
    """ING-6, ING-12, ING-13: places are those of the source, and texts say what their spans do."""
    source = document.text.encode()
    covered = 0
    for chunk in chunk_document(document, SIZES, words):
        assert chunk.start_byte <= covered
        covered = max(covered, chunk.end_byte)
        assert chunk.text.endswith(shown(document, chunk))
        if not source[chunk.start_byte : chunk.end_byte].isspace():
            assert chunk.start_line <= source.count(b"\n", 0, reads_from(document, chunk)) + 1 <= chunk.end_line
    said = TAGS.sub("", document.text) if document.language == "html" else document.text
    assert covered == (len(source) if said.strip() else 0), "a page of tags alone says nothing"


def test_every_fence_of_a_page_is_closed_below_its_code() -> None:
    """ING-31: what follows code does not read as code."""
    page = '<h1>A</h1><pre><code class="language-js">const a = 1;</code></pre>\n<p>After.</p>'
    (chunk,) = chunks_of(page, "html")
    assert list(filter(None, chunk.text.split("\n"))) == ["A", "```js", "const a = 1;", "```", "After."]


def test_titles_of_asciidoc_may_be_underlined() -> None:
    """ING-40: a line of signs about as long as the text above it; what closes a listing underlines nothing."""
    text = (
        "Gannet Manual\n=============\n\nStarting\n--------\nRun it.\n\n== Stopping\n\nStop it.\n\nBy force\n~~~~~~~~\n"
        "Kill it.\n\n////\nA remark.\n////\n\nUsage:\n\n----\nno title\n--------\n----\n"
    )
    chunks = chunks_of(text, "asciidoc")
    paths = [chunk.heading_path for chunk in chunks]
    assert paths[0][:1] == ("Gannet Manual",)
    assert ("Gannet Manual", "Stopping", "By force") in paths
    assert {name for path in paths for name in path} == {"Gannet Manual", "Starting", "Stopping", "By force"}
    assert not any("remark" in chunk.text or "~~~" in chunk.text for chunk in chunks)


def test_names_of_asciidoc_are_shown_as_what_they_stand_for() -> None:
    """ING-40: but for code, and names that nothing is given for."""
    text = (
        "= {product} Manual\n:product: Gannet\n:base: https://e.org\n:docs: {base}/docs\n\nSee {docs} of "
        "{product}{nbsp}2, {unknown}.\n\nifdef::x[]\nMore.\nendif::[]\n\n----\n{product}\n----\n"
    )
    (chunk,) = chunks_of(text, "asciidoc")
    assert chunk.heading_path == ("Gannet Manual",)
    assert "See https://e.org/docs of Gannet 2, {unknown}." in chunk.text
    assert "----\n{product}\n----" in chunk.text
    assert "ifdef" not in chunk.text


CORPUS = Path(__file__).parents[2] / "support/corpus/markup"


@pytest.mark.parametrize(
    ("language", "name", "paths", "shown_words", "hidden"),
    [
        (
            "man",
            "gannet.1",
            {("GANNET", "NAME"), ("GANNET", "OPTIONS"), ("GANNET", "OPTIONS", "Of birds")},
            ["gannet - counts birds", "These are all:", "--port", "-q", "Is 'quiet'."],
            ["\\f", ".TP", ".BR", "remark"],
        ),
        (
            "man",
            "gannet.8",
            {("GANNET", "NAME"), ("GANNET", "OPTIONS")},
            ["gannet", "-p port", "Listens."],
            [".It", "Fl", ".Bl"],
        ),
        (
            "pod",
            "Gannet.pod",
            {("NAME",), ("NAME", "Methods of Gannet::Bird")},
            ["counts birds", "new", "Makes <one>, see the list."],
            ["=item", "=over", "C<", "<b>x"],
        ),
        (
            "docbook",
            "birds.docbook",
            {("Birds", "Starting"), ("Birds", "Starting", "Stopping")},
            ["Run gannet, see", "gannet start", "--force", "By force."],
            ["<", "hidden"],
        ),
    ],
    ids=["man", "mdoc", "pod", "docbook"],
)
def test_manuals_are_read_by_their_headings(
    language: str, name: str, paths: set[tuple[str, ...]], shown_words: list[str], hidden: list[str]
) -> None:
    """ING-6, ING-40: what readers see of manual pages, POD and DocBook, without its marks."""
    text = (CORPUS / name).read_text()
    assert kind_of(name, text).language == language
    chunks = chunks_of(text, language)
    assert {chunk.heading_path for chunk in chunks} == paths
    whole = "\n".join(chunk.text for chunk in chunks)
    assert all(words in whole for words in shown_words)
    assert not any(mark in whole for mark in hidden)


@pytest.mark.parametrize(
    ("language", "text", "shown"),
    [
        (
            "man",
            '.TH GANNET 1\n.SH "SEE ALSO"\nOthers:\n.nf\ngannet \\-q\n  tern\n.fi\nThe end.\n',
            "GANNET\nSEE ALSO\nOthers:\ngannet -q\n  tern\nThe end.",
        ),
        (
            "man",
            ".Dd May 1, 2024\n.Dt GANNET 8\n.Sh NAME\n.Nm gannet\n.Nd counts\n.Sh SYNOPSIS\nThe\n.Nm\nutility\n"
            ".Bd -literal\ngannet -q\n.Ed\n",
            "GANNET\nNAME\ngannet\ncounts\nGANNET\nSYNOPSIS\nThe\ngannet\nutility\ngannet -q",
        ),
        (
            "docbook",
            '<!DOCTYPE book [<!ENTITY bird "gannet">]>\n<book><title>Birds</title>\n<programlisting language="c">'
            "<![CDATA[if (a < b && c > d) <no tag>]]></programlisting></book>\n",
            "Birds\n```c\nif (a < b && c > d) <no tag>\n```",
        ),
        (
            "texinfo",
            "\\input texinfo\n@settitle Birds of @dots{}\n@copying\nNobody.\n@end copying\n@node Top\n@top Birds\n"
            "@menu\n* Terns::\n@end menu\n@node Terns\n@chapter Of @emph{terns}\n@cindex tern\nThey @code{dive}. "
            "Mail a@@b.\n@example\ntern @var{depth}\n@end example\n@table @code\n@item -q\nQuiet.\n@end table\n@bye\n",
            "Birds of ...\nOf terns\nThey dive. Mail a@b.\ntern depth\n-q\nQuiet.",
        ),
    ],
    ids=["man", "mdoc", "docbook", "texinfo"],
)
def test_manuals_show_what_their_readers_see(language: str, text: str, shown: str) -> None:
    """ING-40: examples without what opens and closes them, a name for `.Nm`, titles without their quotes."""
    whole = "\n".join(chunk.text for chunk in chunks_of(text, language))
    assert [line for line in whole.splitlines() if line.strip()] == shown.splitlines()


def test_drawers_of_org_are_left_out_and_tags_are_facts() -> None:
    """ING-40: whatever they are called; one that nothing closes takes nothing with it."""
    text = (
        "* Birds :coast:urgent:\n:LOGBOOK:\nCLOCK: [2020-01-01]\n:END:\nText.\n\n** Lost\n:PROPERTIES:\nStill here.\n"
        "\n** Last\nThe end.\n"
    )
    chunks = chunks_of(text, "org")
    whole = "\n".join(chunk.text for chunk in chunks)
    assert "CLOCK" not in whole
    assert ":coast:" not in whole
    assert all(words in whole for words in ("Text.", "Still here.", "The end."))
    assert chunks[0].attributes["tags"] == "coast urgent"


def test_pages_show_their_main_text() -> None:
    """ING-31: items, the words that stand for pictures, code in fences; no navigation, whatever it is made of."""
    page = (
        "<html><body><nav><ul><li>Menu</li></ul></nav><div role='navigation'><div>Deep</div><p>Side</p></div>"
        '<h1>Birds</h1><ul><li>One</li><li>Two</li></ul><p><img src="a.png" alt="A heron"> and <img alt=""></p>'
        "<pre>x = 1\n</pre><p>After.</p><footer>Copyright</footer></body></html>"
    )
    (chunk,) = chunks_of(page, "html")
    lines = [line.strip() for line in chunk.text.split("\n") if line.strip()]
    assert lines == ["Birds", "- One", "- Two", "A heron and", "```", "x = 1", "```", "After."]


def test_what_stands_around_the_main_text_is_left_out() -> None:
    """ING-31: of a page that says which its main text is."""
    page = "<body><header><p>Shop</p></header><main><h1>Birds</h1><p>Text.</p></main><div>Ads</div></body>"
    (chunk,) = chunks_of(page, "html")
    assert chunk.text.split() == ["Birds", "Text."]


NAVIGATION = "<header>Shop</header><nav>Menu</nav><aside>Ads<article>Ad</article></aside><footer>End</footer>"


@pytest.mark.parametrize(
    ("page", "shown"),
    [
        (
            "<div>We</div><div class='a' role='main'><h1>Birds</h1><div>Text.</div></div><article>Ad</article>",
            "Birds Text.",
        ),
        ("<div>We</div><article><header><h1>Birds</h1></header><aside>Text.</aside></article>", "Birds Text."),
        (
            "<p>We</p><article>One.<article>Two.</article></article><p>Or</p><article>Three.</article>",
            "One. Two. Three.",
        ),
        ("<h1>Birds</h1><p>Text.</p><article>A comment.</article>", "Birds Text. A comment."),
        ("<header><h1>Birds</h1><nav>Menu</nav></header><p>Text.</p><div role=complementary>Ads</div>", "Birds Text."),
        ("<article>One.<p>Two.", "One. Two."),
    ],
)
def test_the_main_text_of_a_page_without_main(page: str, shown: str) -> None:
    """ING-31: the element of that role, or articles that hold the title, or all but headers and what stands beside."""
    (chunk,) = chunks_of(f"<body>{NAVIGATION}{page}</body>", "html")
    assert chunk.text.split() == shown.split()


def test_what_a_page_does_not_show_is_left_out() -> None:
    """ING-31: nor what asks or hides; tabs in the back, pictures and anchors of headings stay."""
    page = (
        '<main><h1>Birds <a id="top" class="a" aria-hidden="true" href="#top">#</a>'
        '<span class="mw-editsection">[<a href="e">edit</a>]</span></h1><p class="not hidden">Text.</p>'
        '<div hidden><div>No</div>No</div><p style="color: red; display:none">No</p><dialog>No</dialog>'
        '<div role="dialog">No</div><i aria-hidden="true">No</i><div role="tabpanel" hidden>Tab.</div>'
        '<img aria-hidden="true" alt="A formula."><div hidden="until-found">Folded.</div></main>'
    )
    (chunk,) = chunks_of(page, "html")
    assert chunk.text.split() == ["Birds", "Text.", "Tab.", "A", "formula.", "Folded."]
    assert chunk.anchor == "top"


@pytest.mark.parametrize(
    "body", ["<script>var a = 'b'</script><style>b {}</style>", '<div id="app"></div>', "<!-- a -->"]
)
def test_a_page_that_shows_nothing_is_none(body: str) -> None:
    """ING-31: what programs read of it is no text."""
    page = (
        f"<html><head><title>App</title><script>{{}}</script></head><body>{body}<noscript>On</noscript></body></html>"
    )
    assert not chunks_of(page, "html")


def test_tables_that_lay_out_a_page_hold_sections() -> None:
    """ING-6: a heading in a cell heads what follows; one that names a column does not."""
    page = (
        "<table><tr><th><h4>Menu</h4></th></tr><tr><td><h1>Birds</h1><p>All of them.</p>"
        "<table><tr><th><h3>Name</h3></th></tr><tr><td>Heron</td></tr></table>"
        '<h2><img src="{{ <a> }}" alt="A heron"> Herons</h2><p>Grey.</p></td></tr></table>'
    )
    paths = {chunk.heading_path for chunk in chunks_of(page, "html")}
    assert paths == {(), ("Birds",), ("Birds", "A heron Herons")}
