"""Calls that the graph resolves, against the interpreter itself: what a name in a module really is when it runs."""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.support.graphs import Part, a_graph, edges
from weft.chunking.chunker import chunk_document
from weft.domain.documents import ContentType, Document, Domain
from weft.ingestion.sizing import prior_sizes
from weft.settings import load_settings

CALLING = "retrieval"
PACKAGES = (CALLING, "domain", "learning", "quality")
Call = tuple[str, str]  # "uri symbol" that calls, and that is called


def _files(*packages: str) -> list[Path]:
    return sorted(path for package in packages for path in (ROOT / "pipelines" / "weft" / package).rglob("*.py"))


def _uri(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.fixture(scope="module")
def parts() -> list[Part]:
    settings = load_settings(environment={})
    sizes = prior_sizes(settings.chunking, settings.priors, limit=254)
    found = []
    for path in _files(*PACKAGES):
        document = Document(
            uri=_uri(path),
            content_type=ContentType.CODE,
            domain=Domain.CODE,
            text=path.read_text(encoding="utf-8"),
            language="python",
            trust_level=100,
        )
        found.append((document, chunk_document(document, sizes.sizes_of(document), lambda text: len(text.split()))))
    return found


def _called(path: Path) -> Iterator[Call]:
    """Functions and classes of these packages that top-level functions call by a plain name."""
    module = importlib.import_module(_uri(path).removesuffix(".py").removesuffix("/__init__").replace("/", "."))
    for function in ast.parse(path.read_text(encoding="utf-8")).body:
        if not isinstance(function, ast.FunctionDef):
            continue
        local = {
            name.id for name in ast.walk(function) if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
        }
        local |= {argument.arg for argument in ast.walk(function) if isinstance(argument, ast.arg)}
        for call in ast.walk(function):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id not in local:
                target = inspect.unwrap(getattr(module, call.func.id, None) or len)
                if (inspect.isfunction(target) or inspect.isclass(target)) and target is not getattr(
                    module, function.name
                ):
                    file = target.__module__.replace(".", "/") + ".py"
                    if any(file.startswith(f"pipelines/weft/{package}/") for package in PACKAGES):
                        yield f"{_uri(path)} {function.name}", f"{file} {target.__qualname__}"


def _heads(parts: list[Part]) -> dict[str, str]:
    """By "uri symbol", the same of the piece that holds it: tiny functions are joined with others (ING-38)."""
    return {
        f"{chunk.uri} {symbol}": f"{chunk.uri} {chunk.symbol}"
        for _, chunks in parts
        for chunk in chunks
        for symbol in chunk.symbols
    }


def test_plain_calls_resolve_to_what_the_interpreter_calls(parts: list[Part], tmp_path: Path) -> None:
    """ING-14: all of them are found, surely, and none leads to another thing of the same name."""
    heads = _heads(parts)
    calls = {(heads[source], heads[target]) for path in _files(CALLING) for source, target in _called(path)}
    expected = {(source, target) for source, target in calls if source != target}
    graph = a_graph(tmp_path, parts)
    found = {(source, target): sure for kind, source, target, sure in edges(graph, parts) if kind == "calls"}
    assert len(expected) > 30
    assert expected - found.keys() == set()
    assert min(found[call] for call in expected) > 0.9
    names = {(source, target.rpartition(" ")[2]) for source, target in expected}
    wrong = {call for call in found if (call[0], call[1].rpartition(" ")[2]) in names} - expected
    assert wrong == set()
