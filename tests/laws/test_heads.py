"""Laws of long tables and fences: every piece names its columns, or its language (ING-36, ING-40)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.shown import shown
from weft.chunking.chunker import chunk_document
from weft.chunking.units.hierarchy import REMAINDER
from weft.chunking.units.splitting import ChunkSizes
from weft.domain.chunks import Overflow
from weft.domain.documents import ContentType, Document, Domain


def words(text: str) -> int:
    return len(text.split())


def a_document(text: str, content_type: ContentType, language: str | None = None) -> Document:
    return Document(
        uri="tree/file", content_type=content_type, domain=Domain.GENERAL, text=text, language=language, trust_level=70
    )


def indented(text: str, by: str) -> str:
    return "".join(f"{by}{line}\n" if line else "\n" for line in text.splitlines())


def markdown_table(rows: int) -> str:
    return "| Key | Value |\n| --- | --- |\n" + "".join(f"| cell{n} | one two |\n" for n in range(rows))


def fence(rows: int) -> str:
    return "```python\n" + "".join(f"cell{n} one two\n" for n in range(rows)) + "```\n"


def html(rows: int) -> str:
    lines = "".join(f"<tr><td>cell{n}</td>\n<td>one two</td></tr>\n" for n in range(rows))
    return f"<table>\n<thead>\n<tr><th>Key</th>\n<th>Value</th></tr>\n</thead>\n{lines}</table>\n"


def grid(rows: int) -> str:
    rule = "+-------+-------+\n"
    return f"{rule}| Key   | Value |\n+=======+=======+\n" + "".join(
        f"| cell{n} | one two |\n{rule}" for n in range(rows)
    )


def simple(rows: int) -> str:
    rule = "===== =======\n"
    return f"{rule}Key   Value\n{rule}" + "".join(f"cell{n}  one two\n" for n in range(rows)) + rule


def listed(rows: int) -> str:
    lines = "".join(f"   * - cell{n}\n     - one two\n" for n in range(rows))
    return f".. list-table:: Caption\n   :header-rows: 1\n\n   * - Key\n     - Value\n{lines}"


def separated(options: str, rows: int) -> str:
    return f".. csv-table:: Caption\n   {options}" + "".join(f"   cell{n}, one two\n" for n in range(rows))


def latex(rows: int) -> str:
    lines = "".join(f"cell{n} & one two \\\\\n" for n in range(rows))
    return (
        "\\begin{table}\\caption{Caption.}\n\\begin{tabular}{l|r}\n\\toprule\nKey & Value \\\\\n\\midrule\n"
        f"{lines}\\end{{tabular}}\n\\end{{table}}\n"
    )


def listing(rows: int) -> str:
    return (
        "\\begin{lstlisting}[language=Python]\n"
        + "".join(f"cell{n} one two\n" for n in range(rows))
        + "\\end{lstlisting}\n"
    )


def html_code(rows: int) -> str:
    return (
        '<pre><code class="language-python">\n' + "".join(f"cell{n} one two\n" for n in range(rows)) + "</code></pre>\n"
    )


def org_table(rows: int) -> str:
    return "| Key | Value |\n|-----+-------|\n" + "".join(f"| cell{n} | one two |\n" for n in range(rows))


def org_code(rows: int) -> str:
    return "#+BEGIN_SRC python\n" + "".join(f"cell{n} one two\n" for n in range(rows)) + "#+END_SRC\n"


def asciidoc_table(rows: int) -> str:
    return "|===\n| Key | Value\n\n" + "".join(f"| cell{n} | one two\n" for n in range(rows)) + "|===\n"


def asciidoc_code(rows: int) -> str:
    return "[source,python]\n----\n" + "".join(f"cell{n} one two\n" for n in range(rows)) + "----\n"


def listed_in_myst(rows: int, fence: str) -> str:
    lines = "".join(f"* - cell{n}\n  - one two\n" for n in range(rows))
    return f"{fence}{{list-table}} Caption\n:header-rows: 1\n\n* - Key\n  - Value\n{lines}{fence}\n"


def separated_in_myst(options: str, rows: int) -> str:
    return f"```{{csv-table}} Caption\n{options}" + "".join(f"cell{n}, one two\n" for n in range(rows)) + "```\n"


def two_rows_html(rows: int) -> str:
    lines = "".join(f"<tr><td>cell{n}</td>\n<td>one two</td></tr>\n" for n in range(rows))
    names = "<tr><td colspan=2>Group</td></tr>\n<tr><td>Key</td>\n<td>Value</td></tr>\n"
    return f"<table>\n<thead>\n{names}</thead>\n{lines}</table>\n"


def wrapped_code(opening: str, rows: int, closing: str = "</pre>") -> str:
    return f"{opening}\n" + "".join(f"cell{n} one two\n" for n in range(rows)) + f"{closing}\n"


def two_rows_listed(rows: int) -> str:
    lines = "".join(f"   - * cell{n}\n     * one two\n" for n in range(rows))
    return f".. list-table::\n   :header-rows: 2\n\n   - * Group\n     *\n   - * Key\n     * Value\n{lines}"


def two_rows_grid(rows: int) -> str:
    rule = "+-------+-------+\n"
    lines = "".join(f"| cell{n} | one two |\n{rule}" for n in range(rows))
    return f"{rule}| Group         |\n{rule}| Key   | Value |\n+=======+=======+\n{lines}"


def printed(rows: int) -> str:
    rule = "+-------+-------+\n"
    lines = "".join(f"| cell{n} | one two |\n" for n in range(rows))
    return f"{rule}| Key   | Value |\n{rule}{lines}{rule}"


def two_rows_org(rows: int) -> str:
    lines = "".join(f"| cell{n} | one two |\n" for n in range(rows))
    return f"|-----+-------|\n| Group | |\n| Key | Value |\n|-----+-------|\n{lines}"


def asciidoc_cells(rows: int) -> str:
    cells = "".join(f"|cell{n}\n|one two\n" for n in range(rows))
    return f'.Title\n[cols="1,2",options="header"]\n|===\n|Key\n|Value\n{cells}|===\n'


def asciidoc_separated(opening: str, delimiter: str, rows: int) -> str:
    lines = "".join(f"cell{n}, one two\n" for n in range(rows))
    return f"{opening}\n{delimiter}\nKey, Value\n{lines}{delimiter}\n"


def two_rows_latex(rows: int) -> str:
    lines = "".join(f"cell{n} & one two \\\\\n" for n in range(rows))
    names = "\\multicolumn{2}{c}{Group} \\\\\n\\cmidrule{1-2}\nKey & Value \\\\\n\\midrule\n"
    return f"\\begin{{tabular}}{{l|r}}\n\\toprule\n{names}{lines}\\end{{tabular}}\n"


MARKDOWN, RST, PAPER = ("# T\n\n", ContentType.MARKDOWN, None), ("T\n=\n\n", ContentType.RST, None), ContentType.PAPER
LATEX = ("\\documentclass{article}\\begin{document}\n\\section{T}\n", PAPER, "latex")
PAPER_MARKDOWN = ("# T\n\n## Abstract\n\nSays.\n\n## References\n\nTable 1: Caption.\n\n", PAPER, "markdown")
PLAIN = ("Words.\n\n", ContentType.TEXT, None)
HTML = ("<h1>T</h1>\n", ContentType.MARKUP, "html")
ASCIIDOC, ORG = ("= T\n\n", ContentType.MARKUP, "asciidoc"), ("* T\n\n", ContentType.MARKUP, "org")
NOTATIONS = {
    "markdown table": (MARKDOWN, markdown_table, "| Key | Value |"),
    "markdown table in a quote": (MARKDOWN, lambda rows: indented(markdown_table(rows), "> "), "| Key | Value |"),
    "markdown table in an item": (
        MARKDOWN,
        lambda rows: "- item\n\n" + indented(markdown_table(rows), "  "),
        "| Key | Value |",
    ),
    "markdown table of a paper": (PAPER_MARKDOWN, markdown_table, "| Key | Value |"),
    "markdown fence": (MARKDOWN, fence, "```python"),
    "markdown fence in an item": (MARKDOWN, lambda rows: "1. item\n\n" + indented(fence(rows), "   "), "```python"),
    "html table in markdown": (MARKDOWN, html, "Key Value"),
    "grid table": (RST, grid, "| Key   | Value |"),
    "grid table with a caption": (
        RST,
        lambda rows: ".. table:: Caption\n\n" + indented(grid(rows), "   "),
        "| Key   | Value |",
    ),
    "simple table": (RST, simple, "Key   Value"),
    "list table": (RST, listed, "* - Key\n     - Value"),
    "csv table": (RST, lambda rows: separated(":header: Key, Value\n\n", rows), "Key, Value"),
    "csv table with a row of names": (
        RST,
        lambda rows: separated(":header-rows: 1\n\n   Key, Value\n", rows),
        "Key, Value",
    ),
    "code block": (
        RST,
        lambda rows: ".. code-block:: python\n\n" + indented(fence(rows), "   "),
        ".. code-block:: python",
    ),
    "latex table": (LATEX, latex, "Key & Value"),
    "latex listing": (LATEX, listing, "\\begin{lstlisting}[language=Python]"),
    "csv": (("", ContentType.TEXT, "csv"), lambda rows: "Key,Value\n" + separated("", rows)[27:], "Key,Value"),
    "org table": (ORG, org_table, "| Key | Value |"),
    "org code": (ORG, org_code, "#+BEGIN_SRC python"),
    "asciidoc table": (ASCIIDOC, asciidoc_table, "| Key | Value"),
    "asciidoc code": (ASCIIDOC, asciidoc_code, "[source,python]"),
    "html table": (HTML, html, "Key Value"),
    "html code": (HTML, html_code, "```python"),
    "markdown table in an admonition": (
        MARKDOWN,
        lambda rows: '!!! note "Title"\n\n' + indented(markdown_table(rows), "    "),
        "| Key | Value |",
    ),
    "markdown table in a directive": (
        MARKDOWN,
        lambda rows: f"````{{note}}\n{markdown_table(rows)}````\n",
        "| Key | Value |",
    ),
    "grid table in markdown": (MARKDOWN, grid, "| Key   | Value |"),
    "list table of myst": (MARKDOWN, lambda rows: listed_in_myst(rows, "```"), "* - Key - Value"),
    "list table of myst between colons": (MARKDOWN, lambda rows: listed_in_myst(rows, ":::"), "* - Key - Value"),
    "csv table of myst": (
        MARKDOWN,
        lambda rows: separated_in_myst(":header: Key, Value\n\n", rows),
        "Key, Value",
    ),
    "csv table of myst with options in yaml": (
        MARKDOWN,
        lambda rows: separated_in_myst("---\nheader: Key, Value\n---\n", rows),
        "Key, Value",
    ),
    "code block of restructured text in myst": (
        MARKDOWN,
        lambda rows: "```{eval-rst}\n.. code-block:: python\n\n" + indented(fence(rows)[10:-4], "   ") + "```\n",
        ".. code-block:: python",
    ),
    "fence in a tab": (MARKDOWN, lambda rows: '=== "Tab"\n\n' + indented(fence(rows), "    "), "```python"),
    "fence in a directive": (MARKDOWN, lambda rows: f"````{{tip}}\n{fence(rows)}````\n", "```python"),
    "fence of jekyll": (
        MARKDOWN,
        lambda rows: wrapped_code("{% highlight python %}", rows, "{% endhighlight %}"),
        "```python",
    ),
    "fence of hugo": (
        MARKDOWN,
        lambda rows: wrapped_code('{{< highlight python "linenos=table" >}}', rows, "{{< /highlight >}}"),
        "```python",
    ),
    "html code in markdown": (MARKDOWN, lambda rows: wrapped_code('<pre lang="python">', rows), "```python"),
    "html table with two rows of names": (HTML, two_rows_html, "Group Key Value"),
    "html table in an item": (HTML, lambda rows: f"<ul><li>Item\n{html(rows)}</li></ul>\n", "Key Value"),
    "html code in an item": (HTML, lambda rows: f"<ol><li>Do\n{html_code(rows)}</li></ol>\n", "```python"),
    "html code of sphinx": (
        HTML,
        lambda rows: wrapped_code('<div class="highlight-python notranslate"><div class="highlight"><pre>', rows),
        "```python",
    ),
    "html code of github": (
        HTML,
        lambda rows: wrapped_code('<div class="highlight highlight-source-python"><pre>', rows),
        "```python",
    ),
    "grid table with two rows of names": (RST, two_rows_grid, "| Group         |"),
    "list table with two rows of names": (RST, two_rows_listed, "- * Group * - * Key * Value"),
    "csv table with names on two lines": (
        RST,
        lambda rows: separated(":header: Key,\n            Value\n\n", rows),
        "Key, Value",
    ),
    "code of sphinx's tests": (
        RST,
        lambda rows: ".. testcode:: group\n\n" + indented(fence(rows)[10:-4], "   "),
        ".. testcode:: group",
    ),
    "latex table with two rows of names": (
        LATEX,
        two_rows_latex,
        "\\multicolumn{2}{c}{Group} \\\\ \\cmidrule{1-2} Key & Value",
    ),
    "org table with two rows of names": (ORG, two_rows_org, "| Group | | | Key | Value |"),
    "asciidoc table of cells": (ASCIIDOC, asciidoc_cells, "|Key |Value"),
    "asciidoc table of csv": (
        ASCIIDOC,
        lambda rows: asciidoc_separated("[%header,format=csv]", "|===", rows),
        "Key, Value",
    ),
    "asciidoc table between commas": (
        ASCIIDOC,
        lambda rows: asciidoc_separated("[%header]", ",===", rows),
        "Key, Value",
    ),
    "asciidoc code with options": (
        ASCIIDOC,
        lambda rows: asciidoc_code(rows).replace("[source,python]", "[source%linenums,python]\n.Title"),
        "[source%linenums,python]",
    ),
    "asciidoc code with long rules": (
        ASCIIDOC,
        lambda rows: asciidoc_code(rows).replace("----", "------"),
        "[source,python]",
    ),
    "table of a database in plain text": (PLAIN, printed, "| Key   | Value |"),
    "csv with a name on two lines": (
        ("", ContentType.TEXT, "csv"),
        lambda rows: '"Key\nname",Value\n' + separated("", rows)[27:],
        '"Key name",Value',
    ),
    "org table in plain text": (PLAIN, org_table, "| Key | Value |"),
    "asciidoc code in plain text": (PLAIN, asciidoc_code, "[source,python]"),
    "fence in plain text": (PLAIN, fence, "```python"),
    "fence in a chat": (
        ("", ContentType.CONVERSATION, None),
        lambda rows: f"User: How?\n\nAssistant: So:\n\n{fence(rows)}\n",
        "```python",
    ),
}


def written(name: str, rows: int) -> Document:
    (front, content_type, language), build, _ = NOTATIONS[name]
    return a_document(front + build(rows), content_type, language)


@pytest.mark.parametrize("name", NOTATIONS)
@given(
    rows=st.integers(1, 60),
    sizes=st.builds(
        ChunkSizes,
        max_tokens=st.integers(45, 60),
        target_tokens=st.integers(36, 44),
        min_tokens=st.integers(0, 8),
        overlap_tokens=st.integers(0, 8),
        context_before=st.sampled_from([None, 0, 3, 12]),
        overflow=st.sampled_from(Overflow),
    ),
)
def test_every_piece_is_shown_under_the_head(name: str, rows: int, sizes: ChunkSizes) -> None:
    """ING-36, ING-40: once, before its rows, in every notation, whatever the context is granted; spans stay spans."""
    head = NOTATIONS[name][2]
    document = written(name, rows)
    for chunk in chunk_document(document, sizes, words):
        assert chunk.kind == REMAINDER or chunk.text.endswith(shown(document, chunk))
        assert chunk.tokens <= sizes.max_tokens
        if "cell" in chunk.text:
            said = " ".join(chunk.text.partition("cell")[0].split())
            assert said.count(" ".join(head.split())) == 1, chunk.text


@pytest.mark.parametrize("name", ["markdown table", "grid table", "markdown fence", "latex table"])
def test_what_follows_a_table_is_not_under_its_head(name: str) -> None:
    """ING-36: nor is what stands before it."""
    (front, content_type, language), build, head = NOTATIONS[name]
    prose = "Some words of prose that fill space. " * 20
    sizes = ChunkSizes(max_tokens=60, target_tokens=40, min_tokens=5, overlap_tokens=6)
    document = a_document(f"{front}{prose}\n\n{build(40)}\n\n{prose}\n", content_type, language)
    chunks = [chunk for chunk in chunk_document(document, sizes, words) if "cell" not in chunk.text]
    assert len(chunks) >= 6
    assert not any("Some words" in chunk.text.partition(head)[2] for chunk in chunks)


def test_a_header_row_wider_than_the_room_keeps_its_beginning() -> None:
    """ING-36: and every piece still fits the encoder."""
    names = " | ".join(f"column{n}" for n in range(100))
    table = f"| {names} |\n|{'---|' * 100}\n" + "".join(f"| cell{n} | {' | '.join('x' * 9)} |\n" for n in range(30))
    sizes = ChunkSizes(max_tokens=60, target_tokens=50, min_tokens=5, overlap_tokens=0)
    _, *pieces = chunk_document(a_document(f"# T\n\n{table}", ContentType.MARKDOWN), sizes, words)
    rows = [piece for piece in pieces if piece.text.lstrip("T\n").startswith("| column0 |") and "cell" in piece.text]
    assert len(rows) == sum("cell" in piece.text for piece in pieces) > 5
    assert all(piece.tokens <= sizes.max_tokens for piece in pieces)
