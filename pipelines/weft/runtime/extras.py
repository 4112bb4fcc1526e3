"""Which extra brings a package that the base does without, and the error that names it (OPS-8a)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec

from weft.domain.errors import MissingExtraError

DISTRIBUTION = "weft-retrieval"

EXTRAS: Mapping[str, str] = {
    "faiss": "cpu",
    **dict.fromkeys(
        (
            "charset_normalizer",
            "gliner",
            "graspologic_native",
            "grpc",
            "onnxruntime",
            "pathspec",
            "ray",
            "rustworkx",
            "tree_sitter",
            "tree_sitter_language_pack",
            "watchfiles",
        ),
        "index",
    ),
    **dict.fromkeys(("docx", "ijson", "lxml", "pptx", "pypdfium2", "python_calamine", "selectolax"), "formats"),
    **dict.fromkeys(("alembic", "ir_measures", "matplotlib", "mlflow", "polars", "sqlalchemy"), "night"),
    **dict.fromkeys(("jgo", "onnx", "requests", "sentence_transformers", "torch", "transformers"), "models"),
    "accelerate": "train",
    "obstore": "remote",
    "nicegui": "console",
    "mcp": "mcp",
    "mcp_types": "mcp",
    "langchain_core": "langchain",
    "llama_index": "llamaindex",
    "haystack": "haystack",
    "opentelemetry.sdk": "otel",
    "opentelemetry.exporter": "otel",
}
"""The extra by the name that a package is imported by; pyproject.toml says what each extra holds."""


def missing_extra(error: ModuleNotFoundError) -> MissingExtraError | None:
    """What to install where an import failed for want of an extra; None where no extra would help."""
    parts = (error.name or "").split(".")
    for package in (parts[0], ".".join(parts[:2])):
        if (extra := EXTRAS.get(package)) is not None:
            return MissingExtraError(
                f"expected the extra `{extra}`, found no package `{package}`: pip install '{DISTRIBUTION}[{extra}]'"
            )
    return None


@contextmanager
def extras_named() -> Iterator[None]:
    """A block that imports what an extra may have to bring.

    Raises:
        MissingExtraError: It is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (named := missing_extra(error)) is None:
            raise
        raise named from error


def require(package: str) -> None:
    """Go on where a package can be imported.

    Raises:
        MissingExtraError: It is not installed.
    """
    with extras_named():
        if not installed(package):
            raise ModuleNotFoundError(name=package)


def installed(package: str) -> bool:
    """Whether a package can be imported, without importing it."""
    return find_spec(package) is not None
