"""ING-40: marks of markup are neither shown nor searched, and a passage keeps its place in the source."""

import pytest

from weft.chunking.chunker import chunk_document
from weft.chunking.units.splitting import ChunkSizes
from weft.domain.chunks import Chunk
from weft.domain.documents import ContentType, Document, Domain

SIZES = ChunkSizes(max_tokens=400, target_tokens=300, min_tokens=5, overlap_tokens=10)


def chunks_of(text: str, content_type: ContentType = ContentType.MARKDOWN, language: str | None = None) -> list[Chunk]:
    document = Document(
        uri="tree/a", content_type=content_type, domain=Domain.GENERAL, text=text, language=language, trust_level=70
    )
    return chunk_document(document, SIZES, lambda said: len(said.split()))


def only(text: str, content_type: ContentType = ContentType.MARKDOWN, language: str | None = None) -> str:
    (chunk,) = chunks_of(text, content_type, language)
    return chunk.text


MARKDOWN = {
    "front matter": ("---\ntitle: A\nteam: b\n---\n# T\n\nText.", "# T\n\nText."),
    "front matter with a description": (
        "---\ntitle: A\ndescription: 'What it is.'\nteam: b\n---\n# T\n\nText.",
        "What it is.\n\n# T\n\nText.",
    ),
    "front matter with a long description": (
        "---\nsummary: >-\n  What it is,\n  and why.\n---\n# T\n\nText.",
        "  What it is,\n  and why.\n\n\n# T\n\nText.",
    ),
    "front matter in json": ('{"title": "A"}\n\n# T\n\nText.', "# T\n\nText."),
    "rules that hold prose": ("---\n\nJust words.\n\n---\n\nText.", "Just words.\n\n\nText."),
    "characters by name": ("A&nbsp;b &mdash; c &lt;x&gt; `&lt;` &#233;", "A b — c <x> `&lt;` é"),
    "pictures of myst": (
        "```{figure} a.png\n:name: f\n\nThe caption.\n```\n\n```{image} b.png\n:alt: A boat\n```",
        "The caption.\n\nA boat",
    ),
    "versions of myst": ("```{versionadded} 2.1\nNew.\n```", "versionadded 2.1\nNew."),
    "versions of myst between colons": (":::{versionchanged} 5.0\nNobody.\n:::", "versionchanged 5.0\nNobody."),
    "lines of a fence": (
        '```py hl_lines="1 3-4" linenums="1" title="a.py"\nx = 1\n```',
        '```py title="a.py"\nx = 1\n```',
    ),
    "lines of a fence between braces": ("```js {1,3-5} showLineNumbers\nx\n```", "```js\nx\n```"),
    "lines of a fence with attributes": ('``` {.sh hl_lines="2"}\nls\n```', "``` {.sh}\nls\n```"),
    "lines of a fence in a note": (
        '!!! note\n\n    ```toml hl_lines="3"\n    [a]\n    ```',
        "note\n\n    ```toml\n    [a]\n    ```",
    ),
    "code that speaks of lines": ("```py\nhl_lines = {1, 2}\n```", "```py\nhl_lines = {1, 2}\n```"),
    "link of a template": ("See [it]({% link b.md %}) and [that]({{ url }}).", "See it and that."),
    "break of a line": ("One\\\nTwo", "One\nTwo"),
    "place of the contents": ("[TOC]\n\nText.", "Text."),
    "heading with a role": ("# {class}`Foo` bar\n\nText.", "# Foo bar\n\nText."),
    "link without a text": ("See [](#Spawner.options), [](../a.md).", "See Spawner.options, ../a.md."),
    "escapes": ("x \\<user> \\#12 snake\\_case \\*no\\*", "x <user> #12 snake_case *no*"),
    "title above a rule": ("Title\n=====\n\nText.", "Title\n\nText."),
    "modules of mdx": (
        "import Tabs from '@theme/Tabs';\nimport './a.css'\n\nexport const a = 1;\n\n# T\n\nText.",
        "# T\n\nText.",
    ),
    "components of mdx": (
        "<Tabs groupId=\"os\" values={[{label: 'A', value: 'b'}]}>\n<TabItem value=\"a\">\n\nText. {/* why */}\n\n"
        '</TabItem>\n</Tabs>\n\n<Foo.Bar a="b" />',
        "a\n\nText.",
    ),
    "parameters of mdx": (
        '<ParamField path="colour" type="string" required>\n  Its look.\n</ParamField>\n\n'
        '<ResponseField name="wing" type="number" default="3">\n  In metres.\n</ResponseField>',
        "colour (string, required): Its look.\n\nwing (number, default 3): In metres.",
    ),
    "titles of mdx": (
        '<Accordion title="Why?" icon="bird">\n\nText.\n\n</Accordion>\n\n<Image src="/a.png" alt="A heron" />',
        "Why?\n\nText.\n\n\nA heron",
    ),
    "components in a line": (
        'Only <Note>for wardens</Note>, <Tooltip tip="Where birds sleep">roost</Tooltip>; pass <File>.',
        "Only for wardens, (Where birds sleep) roost; pass <File>.",
    ),
    "code right below a component": (
        "<Step>\n```sh\nnpm i\n\nnpm run\n```\n</Step>\n\nThen *start*.",
        "```sh\nnpm i\n\nnpm run\n```\n\nThen *start*.",
    ),
    "code indented in a component": (
        '<Tabs>\n    <Tab title="npm">\n    ```sh\n    npm i\n    ```\n    </Tab>\n</Tabs>\n\nNext.',
        "    npm\n    ```sh\n    npm i\n    ```\n\nNext.",
    ),
    "code right below a tag": ("<div>\n```js\ntwo()\n```\n</div>\n\nThe end.", "```js\ntwo()\n```\n\nThe end."),
    "component on its line": ("<Steps>\n\n1. One\n\n</Steps>", "1. One"),
    "cells of html": ("<table><tr><td>One</td><td>Two<br>Three</td></tr></table>", "One Two Three"),
    "line break in a row": ("| a<br>b | c |\n| --- | --- |", "| a b | c |\n| --- | --- |"),
    "items of html": ("<ul><li>One</li><li>Two</li></ul>", "- One\n- Two"),
    "code of html": ("Press <code>x</code>.", "Press x."),
    "heading with an id": ("# Title { #anchor }\n\nText.", "# Title\n\nText."),
    "heading with an id of kramdown": ("# Title {: #anchor .big }\n\nText.", "# Title\n\nText."),
    "class of a paragraph": ("Text.\n{: .lead }", "Text."),
    "attributes of a link": ('See [it](x.md){:target="_blank" .a}.', "See it."),
    "table of contents": ("Text.\n\n{:toc}", "Text."),
    "link": ('A [link](../a/b.md#c "Title") here.', "A link here."),
    "link with code in it": ("A [`name`](api.md#name) here.", "A `name` here."),
    "link to an address": ("A [link](https://x.org/a_(b)?c=d) here.", "A link here."),
    "link to a definition": ("A [link][ref], [`pkg.Name`][pkg.Name].\n\n[ref]: https://x.org", "A link, `pkg.Name`."),
    "image": ("![What it shows](a.png){ width=300 }", "What it shows"),
    "badge": ("# T\n\n[![Build](https://a/b.svg)](https://ci)", "# T\n\nBuild"),
    "address": ("See <https://x.org/a>.", "See https://x.org/a."),
    "comment": ("One <!-- two\nthree --> four.", "One  four."),
    "comment on its lines": ("One.\n\n<!-- two\nthree -->\n\nFour.", "One.\n\n\nFour."),
    "anchor": ('<a id="x"></a>\nText.', "Text."),
    "tags": ("Press <kbd>Ctrl</kbd> <br/>now.", "Press Ctrl now."),
    "style": ("<style>\n.a { b: c }\n</style>\n\nText.", "Text."),
    "division": ('<div class="grid" markdown>\n\nText.\n\n</div>', "Text."),
    "picture in html": ('<p align="center"><img src="a.png" alt="A boat"></p>\n\nText.', "A boat\n\nText."),
    "admonition with a title": ('!!! warning "Mind the gap"\n\n    [Do](x.md).', "Mind the gap\n\n    Do."),
    "admonition": ("!!! warning\n    Do.", "warning\n    Do."),
    "admonition in an item": (
        '- Item\n\n    !!! tip "Title"\n\n        See [it](x.md).\n\n        ```\n        [a](b)\n        ```',
        "- Item\n\n    Title\n\n        See it.\n\n        ```\n        [a](b)\n        ```",
    ),
    "admonition without a title": ('??? note ""\n\n    Do.', "    Do."),
    "tabs": ('=== "Linux"\n\n    Do.\n\n=== "Mac"\n\n    Do not.', "Linux\n\n    Do.\n\nMac\n\n    Do not."),
    "container": (":::tip Nice one\n\nText.\n\n:::", "Nice one\n\nText."),
    "container without a title": (":::note\nText.\n:::", "note\nText."),
    "alert": ("> [!WARNING]\n> Text.", "> WARNING\n> Text."),
    "directive of myst": ("```{admonition} A title\n:class: tip\n\nText.\n```", "A title\n\nText."),
    "directive of myst that warns": ("```{warning}\nText.\n```", "warning\nText."),
    "directive in a directive": (
        "````{tab-set}\n```{tab-item} One\nText.\n```\n````",
        "One\nText.",
    ),
    "directive with colons": (":::{tab-item} One\n:sync: a\n\nText.\n:::", "One\n\nText."),
    "role of myst": ("Read {ref}`the page <page>` and {py:func}`~a.b`.", "Read the page and a.b."),
    "target of myst": ("(a-label)=\n# Title\n\nText.", "# Title\n\nText."),
    "target of myst in a folder": ("(index/a label)=\n# Title\n\nText.", "# Title\n\nText."),
    "object of mkdocstrings": ("# API\n\n::: pkg.mod.Name", "# API\n\npkg.mod.Name"),
    "template": ("{% if a %}One.{% endif %}", "One."),
    "shortcode": ('{{< tabs "a" >}}\nOne.\n{{< /tabs >}}', "One."),
    "icon": ("A :material-check: sign.", "A  sign."),
    "snippet": ('--8<-- "docs/more.md"', "docs/more.md"),
    "include": ('{% include "more.md" %}', "more.md"),
    "include of the markdown plugin": ("{!docs/more.md!}", "docs/more.md"),
    "include of myst": ("```{include} ../more.md\n:start-line: 3\n```", "../more.md"),
}


@pytest.mark.parametrize("name", MARKDOWN)
def test_marks_of_markdown_are_left_out(name: str) -> None:
    """ING-40: of its many dialects, whichever it is; the words stay."""
    text, shown = MARKDOWN[name]
    assert only(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "Write `[a](b){: .c }` or ``{ref}`x` `` and `<!-- c -->`.",
        '```md\n[a](b) {: .c }\n<!-- d -->\n!!! note\n--8<-- "x"\n```',
        "Text:\n\n    [a](b) {: .c }\n    !!! note\n    x",
        "```{code-block} python\n:linenos:\nx = 1\n```",
        "import a thing from the other side, or <Name> and <Path to file>.",
        "Take Vec<String>, a < b and c > d, {a, b}, {}, {{ x }}, \\[a](b), a ::: b, 3 === 3.",
        "Emoji :tada: and 10:30:00 and a note [1] and [^2].\n\n[^2]: A footnote.",
        "| a | b |\n| - | - |\n| c | d |",
    ],
)
def test_code_and_what_only_looks_like_a_mark_stay(text: str) -> None:
    """ING-40: as they are."""
    assert only(text) == text


LINED = {
    "pictures": ("asciidoc", "See image:a.png[A boat] and:\n\nimage::b.png[]", "See A boat and:"),
    "macros": ("asciidoc", "Press kbd:[Ctrl+C] or btn:[OK]. A footnote:[Soon.]", "Press Ctrl+C or OK. A Soon."),
    "rule": ("asciidoc", "One.\n\n'''\n\nTwo.", "One.\n\n\nTwo."),
    "heading with a state and tags": ("org", "* TODO [#A] Head :a:b:\n\nText.", "* Head\n\nText."),
    "title": ("org", "#+TITLE: Tea\n\nText.", "Tea\n\nText."),
    "quote": ("org", "#+begin_quote\nText.\n#+end_quote", "Text."),
    "place": ("org", "Text <<here>> goes on.", "Text  goes on."),
    "button": ("html", "<h1>T</h1><p>Text.</p><button>Copy</button>", "T\n\nText."),
}


@pytest.mark.parametrize("name", LINED)
def test_marks_of_other_markups_are_left_out(name: str) -> None:
    """ING-40: of AsciiDoc, Org and HTML."""
    language, text, shown = LINED[name]
    assert only(text, ContentType.MARKUP, language).strip() == shown


RST = {
    "rules of headings": ("=====\nTitle\n=====\n\nText.\n\n----\n\nMore.", "Title\n\nText.\n\n\nMore."),
    "literal block": (
        "So::\n\n    .. note:: :ref:`a <b>`\n\nThat is ::\n\n    b::\n\n::\n\n    c",
        "So:\n\n    .. note:: :ref:`a <b>`\n\nThat is :\n\n    b::\n\n\n    c",
    ),
    "text by name": (
        "See |it| of |version|, ``|it|``.\n\n.. |it| replace:: the *book*\n   of |that|",
        "See the *book* of |that| of version, ``|it|``.",
    ),
    "picture by name": ("|b| Text, a|b|c.\n\n.. |b| image:: a.png\n   :alt: Built", "Built Text, a|b|c."),
    "escapes": ("v\\ 2, \\*star and ``a\\b``.", "v2, *star and ``a\\b``."),
    "what says that no page leads here": (":orphan:\n\nText.", "Text."),
    "label": (".. _a-label:\n.. _another:\n\nTitle\n=====\n\nText.", "Title\n\nText."),
    "comment": ("Text.\n\n.. a comment\n   of two lines\n\nMore.", "Text.\n\nMore."),
    "target": ("A `page`_, a page_.\n\n.. _page: https://x.org", "A page, a page."),
    "roles": ("See :ref:`the page <page>`, :func:`~a.b.c`, :doc:`/x`.", "See the page, a.b.c, /x."),
    "link": ("A `link <https://x.org>`_ and `other <y>`__.", "A link and other."),
    "admonition": (".. warning::\n\n   Text.", "warning\n\n   Text."),
    "admonition in a line": (".. note:: Text.", "Text."),
    "admonition with a title": (".. admonition:: Title\n   :class: a\n\n   Text.", "Title\n\n   Text."),
    "admonition in an item": ("- .. tip:: Text.", "- Text."),
    "version": (".. versionadded:: 3.2\n   Text.", "versionadded 3.2\n   Text."),
    "admonition that goes on with a role": (".. note:: Not by the\n   :ref:`way`. Text.", "Not by the\n   way. Text."),
    "picture": (".. image:: a.png\n   :width: 3\n   :alt: A boat", "A boat"),
    "figure": (".. figure:: a.png\n   :width: 3\n\n   A boat.", "A boat."),
    "contents": ("Text.\n\n.. contents::\n   :local:\n\nMore.", "Text.\n\n\nMore."),
    "index": ("Text.\n\n.. index:: single: a, b\n\nMore.", "Text.\n\nMore."),
    "raw": ("Text.\n\n.. raw:: html\n\n   <b>x</b>\n\nMore.", "Text.\n\nMore."),
    "tabs": (".. tabs::\n\n   .. tab:: Linux\n\n      Do.", "Linux\n\n      Do."),
    "object": (".. py:function:: mod.f(a)\n   :module: mod\n\n   Text.", "mod.f(a)\n\n   Text."),
    "options of code": (".. code-block:: python\n   :linenos:\n\n   x = 1", ".. code-block:: python\n\n   x = 1"),
    "include": (".. include:: more.rst", "more.rst"),
    "include of code": (".. literalinclude:: ../a.py\n   :language: python", "../a.py"),
}


@pytest.mark.parametrize("name", RST)
def test_marks_of_restructured_text_are_left_out(name: str) -> None:
    """ING-40: directives, options, roles and targets; what a warning is stays where it has no title."""
    text, shown = RST[name]
    assert only(text, ContentType.RST).lstrip() == shown


@pytest.mark.parametrize(
    "text",
    [
        ".. code-block:: rst\n\n   .. note::\n      :class: a\n\n      :ref:`a`",
        "Write ``:ref:`a``` and *this* and snake_case_ and `that`, from_.",
    ],
)
def test_examples_of_restructured_text_stay(text: str) -> None:
    """ING-40: as they are."""
    assert only(text, ContentType.RST) == text


def test_a_text_of_marks_alone_stays() -> None:
    """ING-13: a chunk says something, and every byte is in one."""
    assert only("<!-- nothing but this -->") == "<!-- nothing but this -->"
    assert only(".. nothing but this\n", ContentType.RST) == ".. nothing but this"


def test_a_passage_keeps_its_place() -> None:
    """ING-13, ING-40: lines and bytes are those of the source, marks included."""
    text = '# T {#t}\n\nOne.\n{: .a }\n\n## Part { #p }\n\n!!! note "Title"\n\n    See [it](x.md).\n\n<!-- end -->\n'
    first, second = chunks_of(text)
    assert (first.start_line, first.end_line, second.start_line, second.end_line) == (1, 4, 6, 12)
    assert (first.end_byte, second.end_byte) == (text.index("## Part"), len(text))
    assert (second.anchor, second.heading_path) == ("p", ("T", "Part"))
    assert second.text == "T\n## Part\n\nTitle\n\n    See it."


@pytest.mark.parametrize(
    ("text", "content_type", "lines"),
    [
        ("Top\n===\n\nOne two.\n\n.. _label:\n.. _other:\n\nPart\n----\n\nThree.\n", ContentType.RST, [1, 9]),
        ("# Top\n\nOne two.\n\n<!-- a note -->\n<!-- more -->\n\n## Part\n\nThree.\n", ContentType.MARKDOWN, [1, 8]),
    ],
)
def test_a_passage_begins_where_one_starts_to_read(text: str, content_type: ContentType, lines: list[int]) -> None:
    """RET-11, ING-13: at its heading, not at the anchors above it."""
    assert [chunk.start_line for chunk in chunks_of(text, content_type)] == lines


@pytest.mark.parametrize(
    ("text", "content_type", "files"),
    [
        (
            '--8<-- "docs/a.md:3:5"\n\n{% include_relative b.md %} {!c.md!}',
            ContentType.MARKDOWN,
            ["docs/a.md", "b.md", "c.md"],
        ),
        ("```{include} ../d.md\n```\n\n```{literalinclude} e.py\n```", ContentType.MARKDOWN, ["../d.md", "e.py"]),
        ('```md\n--8<-- "docs/a.md"\n```\n', ContentType.MARKDOWN, []),
        (".. include:: a.rst\n\n.. literalinclude:: ../b.py\n", ContentType.RST, ["a.rst", "../b.py"]),
    ],
)
def test_files_that_a_text_takes_in_are_links(text: str, content_type: ContentType, files: list[str]) -> None:
    """ING-14, ING-40: named in the text, and a reference to the document that they are."""
    (chunk,) = chunks_of(text, content_type)
    assert [link.target for link in chunk.links] == files
    assert all(file.removesuffix(":3:5") in chunk.text for file in files)


@pytest.mark.parametrize(("text", "shown"), [*MARKDOWN.values()], ids=MARKDOWN)
def test_marks_are_the_same_whatever_ends_a_line(text: str, shown: str) -> None:
    """ING-40: CRLF as LF."""
    assert only(text.replace("\n", "\r\n")).replace("\r\n", "\n") == shown
