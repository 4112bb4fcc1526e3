"""Content type, domain and language of a file, from its name and its first line (ING-1)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from pipelines.domain.documents import ContentType, Domain

_PYTHON_SHEBANG = re.compile(r"#![^\n]*\bpython[0-9.]*\b")
_SHELL_SHEBANG = re.compile(r"#![^\n]*\b(?:ba|da|z|k)?sh\b")

_SUFFIXES = {
    "python": ("py", "pyi", "pyw"),
    "markdown": ("md", "markdown"),
    "c": ("c", "h"),
    "cpp": ("cc", "cpp", "cxx", "hh", "hpp", "hxx"),
    "csharp": ("cs",),
    "css": ("css", "scss"),
    "cython": ("pyx", "pxd"),
    "go": ("go",),
    "html": ("html", "htm"),
    "ini": ("ini", "cfg", "conf", "properties"),
    "java": ("java",),
    "javascript": ("js", "jsx", "mjs", "cjs"),
    "json": ("json",),
    "kotlin": ("kt", "kts"),
    "lua": ("lua",),
    "perl": ("pl", "pm"),
    "php": ("php",),
    "protobuf": ("proto",),
    "r": ("r",),
    "ruby": ("rb",),
    "rust": ("rs",),
    "scala": ("scala",),
    "shell": ("sh", "bash", "zsh"),
    "sql": ("sql",),
    "swift": ("swift",),
    "toml": ("toml",),
    "typescript": ("ts", "tsx"),
    "xml": ("xml",),
    "yaml": ("yaml", "yml"),
}
_LANGUAGES = {suffix: language for language, suffixes in _SUFFIXES.items() for suffix in suffixes}
_NAMES = {"dockerfile": "dockerfile", "makefile": "make", "go.mod": "gomod", "cmakelists.txt": "cmake"}


@dataclass(frozen=True, slots=True)
class Kind:
    """What a file is."""

    content_type: ContentType
    domain: Domain
    language: str | None


def kind_of(name: str, text: str) -> Kind:
    r"""Kind of a file by its name, or by its first line where the name says nothing.

    Examples:
        >>> kind_of("tool", "#!/usr/bin/env python3\n").content_type
        <ContentType.CODE: 'code'>
        >>> kind_of("conf.yaml", "a: 1").language
        'yaml'
        >>> kind_of("notes.txt", "Some prose.").domain
        <Domain.GENERAL: 'general'>
    """
    language = _language(name, text)
    if language == "markdown":
        return Kind(ContentType.MARKDOWN, Domain.GENERAL, None)
    if language is None:
        return Kind(ContentType.TEXT, Domain.GENERAL, None)
    return Kind(ContentType.CODE if language == "python" else ContentType.TEXT, Domain.CODE, language)


def _language(name: str, text: str) -> str | None:
    lower = name.lower()
    known = _NAMES.get(lower) or _LANGUAGES.get(PurePosixPath(lower).suffix.removeprefix("."))
    if known is not None or PurePosixPath(lower).suffix:
        return known
    if _PYTHON_SHEBANG.match(text):
        return "python"
    return "shell" if _SHELL_SHEBANG.match(text) else None
