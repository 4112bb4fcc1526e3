"""ING-1: the kind of a file, from its name and its content."""

import pytest

from weft.domain.documents import ContentType, Domain
from weft.ingestion.sources.files import FileKind, kind_of

CODE = {
    "a.py": "python",
    "a.go": "go",
    "a.jsx": "javascript",
    "a.mjs": "javascript",
    "a.ts": "typescript",
    "a.tsx": "tsx",
    "A.java": "java",
    "a.rs": "rust",
    "a.c": "c",
    "a.cc": "cpp",
    "a.rb": "ruby",
    "a.sh": "bash",
    "CMakeLists.txt": "cmake",
}
CONFIGURATION = {
    "package.json": "json",
    "tsconfig.json": "json",
    "a.yml": "yaml",
    "compose.yaml": "yaml",
    "pyproject.toml": "toml",
    "Cargo.lock": "toml",
    "setup.cfg": "ini",
    ".env.local": "ini",
    "Dockerfile": "dockerfile",
    "Dockerfile.dev": "dockerfile",
    "web.dockerfile": "dockerfile",
    "go.mod": "gomod",
    "Makefile": "make",
    "requirements-dev.txt": "requirements",
}


@pytest.mark.parametrize(("name", "language"), CODE.items())
def test_source_code_goes_by_its_language(name: str, language: str) -> None:
    """ING-1: every language with a chunker of its own, and others that a parser knows."""
    assert kind_of(name, "x\n") == FileKind(ContentType.CODE, Domain.CODE, language)


@pytest.mark.parametrize(("name", "language"), CONFIGURATION.items())
def test_configuration_goes_by_its_notation(name: str, language: str) -> None:
    """ING-1: JSON, YAML, TOML, INI, Dockerfile, compose, go.mod, package.json and their kin."""
    assert kind_of(name, '{"a": 1}') == FileKind(ContentType.CONFIGURATION, Domain.CODE, language)


@pytest.mark.parametrize(
    ("name", "text", "content_type", "domain"),
    [
        ("README.md", "# A", ContentType.MARKDOWN, Domain.GENERAL),
        ("CHANGELOG.md", "# A", ContentType.MARKDOWN, Domain.GENERAL),  # a changelog is no conversation
        ("index.rst", "A\n=\n", ContentType.RST, Domain.GENERAL),
        ("a.adoc", "= A\n", ContentType.MARKUP, Domain.GENERAL),
        ("a.org", "* A\n", ContentType.MARKUP, Domain.GENERAL),
        ("a.html", "<!DOCTYPE html><p>A", ContentType.MARKUP, Domain.GENERAL),
        ("part.html", "<li>{{ a }}</li>", ContentType.CODE, Domain.CODE),  # a template
        ("a.html", "<h1>A</h1>{% if b %}c{% endif %}", ContentType.CODE, Domain.CODE),
        ("a.tex", "\\documentclass{article}", ContentType.PAPER, Domain.ACADEMIC),
        ("a.md", "# A\n\n## Abstract\n\nB.\n\n## References\n\n[1] C.\n", ContentType.PAPER, Domain.ACADEMIC),
        ("a.json", '{"title": "A", "abstract": "B."}', ContentType.PAPER, Domain.ACADEMIC),
        ("a.json", '{"title": "A", "properties": {}}', ContentType.CONFIGURATION, Domain.CODE),
        ("intro.tex", "Some words.", ContentType.TEXT, Domain.ACADEMIC),
        ("notes.txt", "Prose: of a kind.\nMore.\n", ContentType.TEXT, Domain.GENERAL),
        ("LICENSE", "Terms.", ContentType.TEXT, Domain.GENERAL),
        ("a.csv", "a,b\n", ContentType.TEXT, Domain.GENERAL),
    ],
)
def test_prose_goes_by_its_suffix(name: str, text: str, content_type: ContentType, domain: Domain) -> None:
    """ING-1: Markdown, reStructuredText, plain text and LaTeX; a fragment of LaTeX is no paper."""
    kind = kind_of(name, text)
    assert (kind.content_type, kind.domain) == (content_type, domain)


@pytest.mark.parametrize(
    ("name", "text", "language"),
    [
        ("a.h", "int f(void);\n", "c"),
        ("a.h", "namespace a {\n  class B;\n}\n", "cpp"),
        ("a.h", "@interface A\n@end\n", "c"),
        ("a.m", "#import <A.h>\n", "objc"),
        ("tool", "#!/usr/bin/env node\n", "javascript"),
        ("tool", "#!/bin/sh -e\n", "bash"),
        ("tool", "#!/usr/bin/python3.11 -O\n", "python"),
    ],
)
def test_content_decides_where_a_name_leaves_it_open(name: str, text: str, language: str) -> None:
    """ING-1: headers of C and C++, Objective-C and Matlab, scripts without a suffix."""
    assert kind_of(name, text).language == language


CHAT = "Ann: Did it run?\nBob: Not yet.\n  It waits.\nAnn: For what?\nBob: For you.\n"
FACTS = "Name: weft\nVersion: 1\nRequires-Dist: a\nProvides-Extra: b\nRequires-Dist: c\nSummary: d\nAuthor: e\n"
LEVELS = "ERROR: a\nINFO: b\nERROR: c\nINFO: d\nERROR: e\n"


@pytest.mark.parametrize(
    ("name", "text", "transcript"),
    [
        ("a.json", '{"conversation": {"session_1": [{"speaker": "A", "dia_id": "D1:1", "text": "x"}]}}', True),
        ("a.json", '{"sessions": [{"turns": [{"speaker": "A", "text": "x"}]}]}', True),
        ("a.json", '[{"role": "user", "content": "x"}]', True),
        ("a.jsonl", '{"role": "user", "content": "x"}\n{"role": "assistant", "content": "y"}\n', True),
        ("a.jsonl", '{"_id": "1", "text": "x"}\n', False),
        ("a.json", '[{"role": "user"}]', False),
        ("a.json", '{"role": "admin", "content": "x"}', False),
        ("a.json", '{"author": {"name": "x"}, "dependencies": {}}', False),
        ("a.json", '{"role": [', False),
        ("a.json", '{"role":' + "[" * 100_000, False),
        ("a.txt", CHAT, True),
        ("a.txt", FACTS, False),
        ("a.log", LEVELS, False),
        ("a.txt", "10:31 <ann> hi\n10:32 <bob> hi\n10:33 <ann> so?\n10:34 <bob> so.\n", True),
        ("a.txt", "[1/2/24, 10:31] Ann: hi\n[1/2/24, 10:32] Bob: hi\n" * 2, True),
        ("a.py", CHAT, False),
    ],
)
def test_a_transcript_is_known_by_what_it_says(name: str, text: str, transcript: bool) -> None:
    """ING-1: one suffix may hold configuration, data or a conversation."""
    kind = kind_of(name, text)
    assert (kind.content_type is ContentType.CONVERSATION) is transcript
    assert not transcript or kind.domain is Domain.HISTORY


RST = "Queues\n======\n\n.. module:: gannet\n\nSee :class:`~gannet.Queue`.\n"
ASCIIDOC = "gannet(1)\n=========\n\nOPTIONS\n-------\n--port::\n\tWhere it listens.\n--keep::\n\tHow long.\n"
MARKDOWN = "Curlew\n======\n\nA README.\n\n## Usage\n\n    curlew --help\n\n## Licence\n\nMIT\n"
MANUAL = '.\\" A remark\n.TH GANNET 1\n.SH NAME\ngannet \\- counts birds\n'
POD = "=head1 NAME\n\nGannet - counts birds\n\n=over 4\n\n=item C<new>\n\nMakes one.\n\n=back\n\n=cut\n"
ORG = "#+TITLE: Birds\n\n* One\n\nText.\n"
PAGE = "<!DOCTYPE html>\n<html><body><h1>A</h1></body></html>\n"
PROSE = "Dear all,\n\nthe list of 3: birds (see [1]) grew.\n\n-- \nAnn\n"


@pytest.mark.parametrize("name", ["a.txt", "README", "CHANGES.1st"])
@pytest.mark.parametrize(
    ("text", "content_type", "language"),
    [
        (RST, ContentType.RST, None),
        (ASCIIDOC, ContentType.MARKUP, "asciidoc"),
        (MARKDOWN, ContentType.MARKDOWN, None),
        (POD, ContentType.MARKUP, "pod"),
        (ORG, ContentType.MARKUP, "org"),
        (PAGE, ContentType.MARKUP, "html"),
        (MANUAL, ContentType.MARKUP, "man"),
        (PROSE, ContentType.TEXT, None),
        ("BIRD FAQ\n========\n\n1. How?\n\n   So.\n\n2. Why?\n\n   Thus.\n", ContentType.TEXT, None),
        ("# listen here\nport 5\n# and there\nbind 1\n", ContentType.TEXT, None),
        ("total 12\n----------\na   5\nb   7\n", ContentType.TEXT, None),
    ],
    ids=["rst", "asciidoc", "markdown", "pod", "org", "html", "man", "prose", "faq", "settings", "table"],
)
def test_markup_is_told_by_its_signs(name: str, text: str, content_type: ContentType, language: str | None) -> None:
    """ING-1: where a name says nothing of it; prose without any stays text."""
    kind = kind_of(name, text)
    assert (kind.content_type, kind.language) == (content_type, language)


@pytest.mark.parametrize(
    ("name", "text", "language"),
    [
        ("gannet.1", MANUAL, "man"),
        ("gannet.8", ".Dd May 1\n.Dt GANNET 8\n.Os\n.Sh NAME\n.Nm gannet\n", "man"),
        ("Gannet.pod", POD, "pod"),
        ("a.xml", '<?xml version="1.0"?>\n<!DOCTYPE book PUBLIC "x">\n<book/>\n', "docbook"),
        ("b.xml", '<article xmlns="http://docbook.org/ns/docbook"/>\n', "docbook"),
    ],
)
def test_manuals_are_markup(name: str, text: str, language: str) -> None:
    """ING-1: manual pages, POD and DocBook."""
    assert kind_of(name, text) == FileKind(ContentType.MARKUP, Domain.GENERAL, language)


def test_other_xml_is_configuration() -> None:
    """ING-1: one that is no book."""
    assert kind_of("pom.xml", "<project><title>a</title></project>").content_type is ContentType.CONFIGURATION
