"""One file of a tree: its bytes, its text, and the documents in it (ING-1, ING-2, ING-3)."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from weft.chunking.config.lines import is_of_directives
from weft.chunking.paper.json_layouts import paper_from_json
from weft.chunking.paper.paper import LATEX, MARKDOWN, PART_OF, is_paper, paper_facts
from weft.chunking.units.splitting import encoded
from weft.domain.documents import COMMITTED_AT, ContentType, Document, Domain, Rejection
from weft.ingestion.git.safe_files import VANISHED, UnreadableError, opened_file, read_bytes
from weft.ingestion.git.times import Commit
from weft.ingestion.metadata.assigned import trust_of
from weft.ingestion.metadata.declared import (
    MOST_BYTES,
    DeclarationError,
    Declared,
    as_text,
    read_sidecar,
    with_declared,
)
from weft.ingestion.metadata.front_matter import front_matter
from weft.ingestion.settings import IngestSettings
from weft.ingestion.sources import transcripts
from weft.ingestion.sources.encodings import decoded
from weft.ingestion.sources.floods import flood_of, in_short
from weft.ingestion.sources.formats.registry import FORMATS, HEAD_BYTES, LEFT_OUT, Conversion, Convert, format_of
from weft.ingestion.sources.formats.registry import convert as convert_here
from weft.ingestion.sources.items import FileItem, escaped
from weft.ingestion.sources.latex_parts import title_of_whole
from weft.ingestion.sources.markups import is_docbook, markup_of
from weft.ingestion.sources.transcripts import Transcript

# Content type, domain and language of a file, from its name and, where that leaves it open, its content (ING-1).

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
    "hcl": "hcl tf tfvars",
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
    "ini": "ini cfg cnf conf htaccess properties env editorconfig service desktop",
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
    **dict.fromkeys(
        (".htaccess", "caddyfile", "fstab", "login.defs", "ssh_config", "sshd_config", "sudoers", "torrc"), "ini"
    ),
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
_LATEX_PART = re.compile(r"^[ \t]*\\(?:part|chapter|(?:sub){0,2}section)\b|^[ \t]*\\begin\s*\{", re.MULTILINE)
_PAPER = re.compile(r"\"(?:abstract|body_text|sections)\"\s{0,9}:")
_LOOKED_AT = 65_536  # characters: enough to tell the kind of a text, and no more whatever its size


@dataclass(frozen=True, slots=True)
class FileKind:
    """What a file is."""

    content_type: ContentType
    domain: Domain
    language: str | None


def kind_of(name: str, text: str) -> FileKind:
    """Kind of a file by its name, and by its content where one name may stand for several kinds."""
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


def why_of(name: str, document: Document) -> str:
    """What tells the type of a document that a file of this name holds, in words."""
    form = document.metadata.get("format")
    if isinstance(form, str) and form in FORMATS:
        return f"{FORMATS[form].called}: by its name and how it begins"
    by_name = kind_of(name, "").content_type is document.content_type
    suffix = PurePosixPath(name).suffix
    return f"by its name ({suffix or name})" if by_name else "by its content"


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
    if language == "xml" and is_docbook(text):
        return FileKind(ContentType.MARKUP, Domain.GENERAL, "docbook")
    if language == "ini" and text[:_LOOKED_AT].lstrip().startswith(("<?xml", "<!DOCTYPE")):
        language = "xml"
    elif language == "ini" and is_of_directives(encoded(text[:_LOOKED_AT])):
        language = "directives"
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


def _of_type(content_type: ContentType, language: str | None = None) -> Callable[[str, str], FileKind]:
    return lambda _lower, _text: FileKind(content_type, Domain.GENERAL, language)


def _latex(_lower: str, text: str) -> FileKind:
    """A paper, or a part of one that others take in; what has no command that says so is prose."""
    if _LATEX.search(text[:_LOOKED_AT]) or _LATEX_PART.search(text[:_LOOKED_AT]):
        return FileKind(ContentType.PAPER, Domain.ACADEMIC, "latex")
    return FileKind(ContentType.TEXT, Domain.ACADEMIC, None)


def _table(lower: str, text: str) -> FileKind:
    language = _TABLE_SUFFIXES[PurePosixPath(lower).suffix.removeprefix(".")]
    if language == "json" and transcripts.recognised(text):
        return _CONVERSATION
    return FileKind(ContentType.TEXT, Domain.ACADEMIC if language == "bibtex" else Domain.GENERAL, language)


def _plain(lower: str, text: str) -> FileKind:
    suffix = PurePosixPath(lower).suffix
    is_chat = suffix in {"", ".txt", ".log", ".chat", ".transcript"}
    if is_chat and transcripts.recognised(text, of_a_program=suffix == ".log"):
        return _CONVERSATION
    markup = markup_of(text, may_be_notes=suffix in {"", ".txt", ".text"} or _NOTES.match(lower) is not None)
    content_type, language = (ContentType.TEXT, None) if markup is None else markup
    return FileKind(content_type, Domain.GENERAL, language)


_NOTES = re.compile(r"(?:readme|changes|changelog|news|history|install|contributing|todo|hacking)\b")
_PROSE: Mapping[str, Callable[[str, str], FileKind]] = {
    **dict.fromkeys(("md", "markdown", "mdown", "mkd", "mdx"), _markdown),
    **dict.fromkeys(("rst", "rest"), _of_type(ContentType.RST)),
    **dict.fromkeys(("adoc", "asciidoc", "asc"), _of_type(ContentType.MARKUP, "asciidoc")),
    "org": _of_type(ContentType.MARKUP, "org"),
    "pod": _of_type(ContentType.MARKUP, "pod"),
    **dict.fromkeys(("texi", "texinfo", "txi"), _of_type(ContentType.MARKUP, "texinfo")),
    **dict.fromkeys(("docbook", "dbk"), _of_type(ContentType.MARKUP, "docbook")),
    **dict.fromkeys(("tex", "ltx", "latex"), _latex),
    **dict.fromkeys(_TABLE_SUFFIXES, _table),
}


BAD_SIDECAR = "bad_sidecar"
BAD_FRONT_MATTER = "bad_front_matter"
PRIVATE_KEY = "private_key"
ACCESS_TOKEN = "access_token"  # noqa: S105  no password
DECODED = "decoded"
"""Noted of a file that is not UTF-8."""

MOST_FORMAT_BYTES = 1_000_000_000
"""Of a file in a format, which is read in pieces or unpacked in part."""

FLOOD = "flood"
"""Noted of a file of which one short piece stands for all (`floods`)."""

_KEY_SUFFIX = ".pem"  # of files that are read as a whole: a key may follow many certificates
_PRIVATE_KEY = re.compile(r"^-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----", re.MULTILINE)
_KEY_AS_VALUE = re.compile(rf"(?:^[ \t]*|[\"']){_PRIVATE_KEY.pattern[1:]}", re.MULTILINE)
_TOKEN = re.compile(
    r"^[^\s#;]*(?:_auth|authToken|_password)[\"']?\s*[=:]\s*(?![\"']?\$\{?\w)\S", re.MULTILINE | re.IGNORECASE
)
_OF_PACKAGES = frozenset({".npmrc", ".yarnrc.yml"})  # settings which may hold a token
_LONE_RETURN = re.compile(r"\r(?!\n)")  # ends a line, too; as a line feed it takes as many bytes


def read_file(
    item: FileItem, settings: IngestSettings, domain: Domain | None, convert: Convert = convert_here
) -> Iterator[Document | Rejection]:
    """Documents of one file, or why there are none, and what declares nothing of them that could be read.

    Args:
        convert: What reads files that are more than text.
    """
    try:
        data, modified_at, form = _content(item, settings)
        text, encoding = ("", None) if form else decoded(data)
    except UnreadableError as error:
        yield error.rejection(item.uri)
        return
    text = _LONE_RETURN.sub("\n", text)
    kind = _OF_MARKDOWN if form else kind_of(item.path[-1], text)
    secret = _secret_in(item.path[-1], text, kind.content_type) if settings.secret_files else None
    if secret is not None:
        detail = f"expected no {secret.replace('_', ' ')}, found one; ingest.secret_files=[] indexes such files"
        yield Rejection(item.uri, secret, detail)
        return
    if encoding is not None:
        yield Rejection(item.uri, DECODED, f"read as {encoding}")
    commit = item.commit if item.commit is not None and item.commit.is_of(data) else None
    flood = None if form else flood_of(item.path[-1], text, kind.content_type, kind.language)
    if flood is not None:
        yield Rejection(item.uri, FLOOD, f"{flood}, {len(text):,} characters: one short piece stands for it")
        kind, text = replace(kind, content_type=ContentType.TEXT, language=None), in_short(item.path[-1], flood, text)
    document = Document(
        uri=item.uri,
        content_type=kind.content_type,
        domain=domain or kind.domain,
        text=text,
        language=kind.language,
        modified_at=modified_at if commit is None else commit.time,
        trust_level=settings.trust.standard,
        authors=(commit.author,) if commit is not None and commit.author else (),
        metadata={"folder": item.uri.rpartition("/")[0], **_later_commit(item, commit, modified_at)},
    )
    if kind.language == LATEX and not _LATEX.search(text[:_LOOKED_AT]):
        whole = title_of_whole(Path(item.root), item.path)
        document = replace(document, metadata={**document.metadata, **({PART_OF: whole} if whole else {})})
    facts, rejections = _declared_facts(document, item)
    yield from rejections
    authors = next((one.authors for one in reversed(facts) if one.authors), None)
    of_source = None if item.source is None else item.source.trust
    has_trust = any(one.trust is not None for one in facts)
    if form is None:
        parts = expanded(document)
    else:
        most, limit = MOST_FORMAT_BYTES, settings.max_file_bytes
        conversion = Conversion(form, item.root, item.path, item.uri, most, limit)
        parts = _converted(document, conversion, domain, convert)
    for part in parts:
        if isinstance(part, Rejection):
            yield part
            continue
        for one in facts:
            part = with_declared(part, one)  # noqa: PLW2901
        level = trust_of(part, item.path[:-1], as_of=item.as_of, settings=settings.trust)
        level = level if flood is None else settings.trust.generated
        trust = part.trust_level if has_trust else level if of_source is None else of_source
        yield replace(part, authors=authors or part.authors, trust_level=trust)  # a paper names its own authors


# Lists that exports of ChatGPT, Claude and Slack have beside their conversations.
_COMPANION = re.compile(
    r"(?:users?|channels|dms|groups|mpims|integration_logs|canvases|message_feedback|shared_conversations)\.json"
)


def _is_beside_an_export(folder: Path) -> bool:
    day = "[0-9]" * 4 + "-[0-9][0-9]" * 2
    return any(any(folder.glob(pattern)) for pattern in ("conversations*.json", f"*/{day}.json"))


def _content(item: FileItem, settings: IngestSettings) -> tuple[bytes, float, str | None]:
    """What a file holds, or of a large one in a format how it begins, its time, and its format."""
    if _COMPANION.fullmatch(item.path[-1]) and _is_beside_an_export(Path(item.root, *item.path[:-1])):
        raise UnreadableError(LEFT_OUT, "a list of an export's: the conversations beside it are read")
    limit = settings.max_file_bytes
    with opened_file(Path(item.root), item.path) as file:
        status = os.fstat(file.fileno())
        head = file.read(HEAD_BYTES)
        form = format_of(item.path[-1], head, status.st_size, limit)
        most = limit if form is None else MOST_FORMAT_BYTES
        if status.st_size > most:
            raise UnreadableError("too_large", f"expected at most {most} bytes, found {status.st_size}")
        data = head + file.read(max(0, limit + 1 - len(head)))
    if form is None and len(data) > limit:
        raise UnreadableError("too_large", f"expected at most {limit} bytes, found more")
    return data, status.st_mtime, form


def _converted(
    document: Document, conversion: Conversion, domain: Domain | None, convert: Convert
) -> Iterator[Document | Rejection]:
    """The documents of a file in a format: conversations, or what it is as Markdown."""
    form = conversion.format
    facts = {**document.metadata, "format": form}
    for one in convert(conversion):
        if isinstance(one, Transcript):
            yield _of_session(
                replace(
                    document,
                    content_type=_CONVERSATION.content_type,
                    domain=domain or _CONVERSATION.domain,
                    metadata=facts,
                ),
                one,
            )
        elif isinstance(one, Rejection):
            yield one
        else:
            kind = _markdown("", one.text) if form in _MAY_BE_PAPERS else _OF_MARKDOWN
            kind = replace(kind, domain=Domain.CODE) if form == _OF_CODE else kind
            written = replace(
                document,
                content_type=kind.content_type,
                language=kind.language,
                domain=domain or kind.domain,
                text=one.text,
                title=one.title,
                authors=one.authors or document.authors,
                modified_at=document.modified_at if one.time is None or document.authors else one.time,
                metadata={**facts, **one.facts},
            )
            yield _paper(written) if kind.content_type is ContentType.PAPER else written


_OF_MARKDOWN = FileKind(ContentType.MARKDOWN, Domain.GENERAL, None)
_MAY_BE_PAPERS = frozenset({"pdf", "docx"})
_OF_CODE = "notebook"


def _later_commit(item: FileItem, commit: Commit | None, modified_at: float) -> dict[str, str]:
    """The fact that a file holds less than what was committed of it after it was changed; empty where it does not."""
    if item.commit is None or item.commit is commit or item.commit.time <= modified_at:
        return {}
    return {COMMITTED_AT: datetime.fromtimestamp(item.commit.time, UTC).isoformat()}


def _declared_facts(document: Document, item: FileItem) -> tuple[list[Declared], list[Rejection]]:
    """What the head of a document and the file beside it declare, the sidecar last, and what of it cannot be read."""
    facts: list[Declared] = []
    rejections: list[Rejection] = []
    if document.content_type in {ContentType.MARKDOWN, ContentType.PAPER}:
        try:
            declared = front_matter(document.text)
            facts += [] if declared is None else [declared]
        except DeclarationError as error:
            rejections.append(Rejection(document.uri, BAD_FRONT_MATTER, str(error)))
    if item.sidecar is not None:
        uri = sidecar_uri(item)
        try:
            data, _ = read_bytes(Path(item.root), (*item.path[:-1], item.sidecar), limit=MOST_BYTES)
            declared, problems = read_sidecar(data)
            facts.append(declared)
            rejections += [Rejection(uri, BAD_SIDECAR, "; ".join(problems))] if problems else []
        except UnreadableError as error:
            gone = error.reason == VANISHED
            detail = Rejection(uri, BAD_SIDECAR, f"{error.reason}: {error}")
            rejections.append(error.rejection(uri) if gone else detail)
        except DeclarationError as error:
            rejections.append(Rejection(uri, BAD_SIDECAR, str(error)))
    return facts, rejections


def sidecar_uri(item: FileItem) -> str:
    """What names the sidecar of a file that has one."""
    return f"{item.uri.rpartition('/')[0]}/{escaped(item.sidecar or '')}"


def expanded(document: Document) -> Iterator[Document | Rejection]:
    """The documents that a file holds: a transcript one per session, most others one, which is the file itself."""
    if document.content_type is not ContentType.CONVERSATION:
        yield _paper(document) if document.content_type is ContentType.PAPER else document
        return
    for session in transcripts.sessions(document.text, document.uri):
        yield session if isinstance(session, Rejection) else _of_session(document, session)


def _of_session(document: Document, session: Transcript) -> Document:
    return replace(
        document,
        uri=session.uri,
        text=session.text,
        title=session.title,
        modified_at=document.modified_at if session.time is None else session.time,
        metadata={**document.metadata, **session.metadata},
    )


def _paper(document: Document) -> Document:
    """A paper with its title, its authors and its numbers, where nothing else declared them; JSON as Markdown."""
    if document.language == "json":
        document = replace(document, text=paper_as_markdown(document.text) or document.text, language=MARKDOWN)
    facts = paper_facts(document.text, document.language or MARKDOWN)
    return replace(
        document,
        title=document.title or facts.title,
        authors=facts.authors or document.authors,
        metadata={**facts.numbers, **document.metadata},
    )


def _secret_in(name: str, text: str, content_type: ContentType) -> str | None:
    """What a file holds that is to stay secret; code, documentation and conversations may quote a key further down."""
    if name in _OF_PACKAGES and _TOKEN.search(text):
        return ACCESS_TOKEN
    head = text if name.endswith(_KEY_SUFFIX) else text[:_LOOKED_AT]
    within = _PRIVATE_KEY.match(head.lstrip())
    if content_type is ContentType.TEXT:
        within = within or _PRIVATE_KEY.search(head)
    elif content_type is ContentType.CONFIGURATION:
        within = within or _KEY_AS_VALUE.search(head)
    return None if within is None else PRIVATE_KEY
