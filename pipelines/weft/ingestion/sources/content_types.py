"""Content type, domain and language of a file, from its name and, where that leaves it open, its content (ING-1)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from weft.chunking.paper.json_layouts import paper_from_json
from weft.chunking.paper.paper import is_paper
from weft.domain.documents import ContentType, Domain
from weft.ingestion.metadata.declared import as_text
from weft.ingestion.sources import transcripts

_SUFFIX_IS_LANGUAGE = "cmake css dart go java lua nix php proto r scala scss sql svelte swift tsx vue zig"
_CODE = {
    **{language: language for language in _SUFFIX_IS_LANGUAGE.split()},
    "python": "py pyi pyw",
    "javascript": "js jsx mjs cjs",
    "typescript": "ts mts cts",
    "rust": "rs",
    "c": "c h",
    "cpp": "cc cpp cxx c++ hh hpp hxx h++ ipp tpp inl ino",
    "bash": "sh bash zsh ksh",
    "csharp": "cs",
    "cuda": "cu cuh",
    "cython": "pyx pxd pxi",
    "elixir": "ex exs",
    "erlang": "erl hrl",
    "fortran": "f f90 f95 f03 for",
    "graphql": "graphql gql",
    "groovy": "groovy gradle",
    "haskell": "hs",
    "html": "html htm xhtml",
    "julia": "jl",
    "kotlin": "kt kts",
    "matlab": "m",
    "ocaml": "ml",
    "perl": "pl pm",
    "powershell": "ps1 psm1",
    "ruby": "rb",
    "solidity": "sol",
    "starlark": "bzl star",
}
_CONFIGURATION = {
    "hcl": "hcl tf tfvars",
    "ini": "ini cfg conf properties env editorconfig service desktop",
    "json": "json json5 jsonc ipynb webmanifest",
    "make": "mk mak",
    "toml": "toml",
    "xml": "xml xsd xsl pom",
    "yaml": "yaml yml",
}
_TABLES = {"csv": "csv", "tsv": "tsv tab", "json": "jsonl ndjson", "bibtex": "bib"}  # a row is a line

_CONFIGURATION_NAMES = {
    **dict.fromkeys(("dockerfile", "containerfile"), "dockerfile"),
    **dict.fromkeys(("makefile", "gnumakefile"), "make"),
    **dict.fromkeys(("go.mod", "go.work"), "gomod"),
    **dict.fromkeys(("pipfile", "cargo.lock", "poetry.lock", "uv.lock", "pdm.lock"), "toml"),
    **dict.fromkeys(("pipfile.lock", "composer.lock", ".watchmanconfig"), "json"),
    **dict.fromkeys((".clang-format", ".clang-tidy", "pubspec.lock"), "yaml"),
    **dict.fromkeys((".env", ".flake8", ".coveragerc", ".gitconfig", ".gitmodules", ".npmrc", ".pylintrc"), "ini"),
}
_EITHER_NAMES = {".babelrc", ".eslintrc", ".prettierrc", ".stylelintrc", ".swcrc"}  # JSON, or YAML
_CODE_NAMES = {"cmakelists.txt": "cmake", "build.bazel": "starlark", "rakefile": "ruby", "gemfile": "ruby"}
_DOCKERFILE = re.compile(r"(?:docker|container)file\.|.*\.(?:docker|container)file\Z")
_REQUIREMENTS = re.compile(r"(?:.*[-_.])?(?:requirements|constraints)(?:[-_.].*)?\.(?:txt|in)\Z")

_SHEBANG = re.compile(r"#![^\n]*?\b(python|node|deno|ruby|perl|lua|php|(?:ba|da|z|k)?sh)[0-9.]*(?![\w-])")
_SHEBANG_LANGUAGES = {"node": "javascript", "deno": "typescript"}
_CPP = re.compile(
    r"^[ \t]*(?:class|namespace|template\s*<|using\s+\w|public:|private:|protected:)|\bstd::|^#include <\w+>",
    re.MULTILINE,
)
_OBJECTIVE_C = re.compile(r"^[ \t]*(?:@(?:interface|implementation|protocol|import)\b|#import\b)", re.MULTILINE)
_PAGE = re.compile(r"<(?:!doctype\s|html\b|title\b|h[1-6]\b)", re.IGNORECASE)
_TEMPLATE = re.compile(r"\{%|<\?(?:php|=)")
_LATEX = re.compile(r"\\documentclass\b|\\begin\s*\{document\}")
_PAPER = re.compile(r"\"(?:abstract|body_text|sections)\"\s{0,9}:")
_LOOKED_AT = 65_536  # characters: enough to tell the kind of a text, and no more whatever its size


@dataclass(frozen=True, slots=True)
class FileKind:
    """What a file is."""

    content_type: ContentType
    domain: Domain
    language: str | None


def kind_of(name: str, text: str) -> FileKind:
    r"""Kind of a file by its name, and by its content where one name may stand for several kinds.

    Examples:
        >>> kind_of("tool", "#!/usr/bin/env python3\n").content_type
        <ContentType.CODE: 'code'>
        >>> kind_of("conf.yaml", "a: 1").language
        'yaml'
        >>> kind_of("notes.txt", "Some prose.").domain
        <Domain.GENERAL: 'general'>
        >>> kind_of("chat.json", '[{"role": "user", "content": "Why?"}]').content_type
        <ContentType.CONVERSATION: 'conversation'>
    """
    lower = name.lower()
    suffix = PurePosixPath(lower).suffix.removeprefix(".")
    configuration = _configuration(lower, suffix, text)
    if configuration is not None:
        return _structured(configuration, text)
    code = _CODE_NAMES.get(lower) or _CODE_SUFFIXES.get(suffix) or (None if suffix else _shebang(text))
    if code == "html" and _PAGE.search(text[:_LOOKED_AT]) and not _TEMPLATE.search(text[:_LOOKED_AT]):
        return FileKind(ContentType.MARKUP, Domain.GENERAL, code)
    if code is not None:
        return FileKind(ContentType.CODE, Domain.CODE, _dialect(code, text[:_LOOKED_AT]))
    return _PROSE.get(suffix, _plain)(lower, text)


def _by_suffix(languages: Mapping[str, str]) -> dict[str, str]:
    return {suffix: language for language, suffixes in languages.items() for suffix in suffixes.split()}


_CODE_SUFFIXES = _by_suffix(_CODE)
_CONFIGURATION_SUFFIXES = _by_suffix(_CONFIGURATION)
_TABLE_SUFFIXES = _by_suffix(_TABLES)


def _configuration(lower: str, suffix: str, text: str) -> str | None:
    """Notation of a configuration file, None for every other file."""
    if lower in _EITHER_NAMES:
        return "json" if text.lstrip().startswith("{") else "yaml"
    if _REQUIREMENTS.match(lower):
        return "requirements"
    if _DOCKERFILE.match(lower):
        return "dockerfile"
    if lower.startswith(".env."):
        return "ini"
    return _CONFIGURATION_NAMES.get(lower) or _CONFIGURATION_SUFFIXES.get(suffix)


def _structured(language: str, text: str) -> FileKind:
    if language == "json" and transcripts.recognised(text):
        return _CONVERSATION
    if language == "json" and paper_as_markdown(text):
        return FileKind(ContentType.PAPER, Domain.ACADEMIC, "json")
    return FileKind(ContentType.CONFIGURATION, Domain.CODE, language)


def paper_as_markdown(text: str) -> str | None:
    """A paper that was JSON as Markdown; None of any other JSON."""
    if not _PAPER.search(text):
        return None
    try:
        paper = paper_from_json(json.loads(text))
    except (ValueError, RecursionError):
        return None
    return None if paper is None else as_text(paper)


def _shebang(text: str) -> str | None:
    match = _SHEBANG.match(text[:_LOOKED_AT])
    if match is None:
        return None
    program = match.group(1)
    return "bash" if program.endswith("sh") else _SHEBANG_LANGUAGES.get(program, program)


def _dialect(language: str, start: str) -> str:
    """The language itself where a suffix stands for two."""
    if language == "c" and _CPP.search(start):
        return "cpp" if not _OBJECTIVE_C.search(start) else "objc"
    if language == "matlab" and _OBJECTIVE_C.search(start):
        return "objc"
    return language


_CONVERSATION = FileKind(ContentType.CONVERSATION, Domain.HISTORY, None)


def _markdown(_lower: str, text: str) -> FileKind:
    if is_paper(text, "a.md") == "markdown":
        return FileKind(ContentType.PAPER, Domain.ACADEMIC, "markdown")
    return FileKind(ContentType.MARKDOWN, Domain.GENERAL, None)


def _markup(language: str) -> Callable[[str, str], FileKind]:
    return lambda _lower, _text: FileKind(ContentType.MARKUP, Domain.GENERAL, language)


def _rst(_lower: str, _text: str) -> FileKind:
    return FileKind(ContentType.RST, Domain.GENERAL, None)


def _latex(_lower: str, text: str) -> FileKind:
    """A paper where it is a document of its own; a fragment that others include is prose."""
    if _LATEX.search(text[:_LOOKED_AT]):
        return FileKind(ContentType.PAPER, Domain.ACADEMIC, "latex")
    return FileKind(ContentType.TEXT, Domain.ACADEMIC, None)


def _table(lower: str, text: str) -> FileKind:
    language = _TABLE_SUFFIXES[PurePosixPath(lower).suffix.removeprefix(".")]
    if language == "json" and transcripts.recognised(text):
        return _CONVERSATION
    return FileKind(ContentType.TEXT, Domain.ACADEMIC if language == "bibtex" else Domain.GENERAL, language)


def _plain(lower: str, text: str) -> FileKind:
    if PurePosixPath(lower).suffix in {"", ".txt", ".log", ".chat", ".transcript"} and transcripts.recognised(text):
        return _CONVERSATION
    return FileKind(ContentType.TEXT, Domain.GENERAL, None)


_PROSE: Mapping[str, Callable[[str, str], FileKind]] = {
    **dict.fromkeys(("md", "markdown", "mdown", "mkd", "mdx"), _markdown),
    **dict.fromkeys(("rst", "rest"), _rst),
    **dict.fromkeys(("adoc", "asciidoc", "asc"), _markup("asciidoc")),
    "org": _markup("org"),
    **dict.fromkeys(("tex", "ltx", "latex"), _latex),
    **dict.fromkeys(_TABLE_SUFFIXES, _table),
}
