"""The house: imports run one way."""

from __future__ import annotations

import ast
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

pytestmark = pytest.mark.integration

ROOT = Path(__file__).resolve().parents[2]


def test_imports_run_from_jobs_towards_the_domain_and_never_back() -> None:
    """ARC-6: the contracts in pyproject.toml hold."""
    command = [Path(sys.executable).with_name("lint-imports"), "--no-cache"]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout[-3000:]
    assert "0 broken" in found.stdout


def modules() -> dict[str, ast.Module]:
    """Every module of the product and of the laboratory, by its dotted name."""
    base = ROOT / "pipelines"
    paths = (path for path in base.rglob("*.py") if path.name != "__init__.py")
    return {
        ".".join(path.relative_to(base).with_suffix("").parts): ast.parse(path.read_text(encoding="utf-8"))
        for path in paths
    }


def imported_by(tree: ast.Module) -> set[str]:
    """What a module imports anywhere, inside functions and for types alone as well."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names |= {node.module, *(f"{node.module}.{each.name}" for each in node.names)}
    return names


def test_no_circle_of_modules_hides_in_functions_or_types() -> None:
    """ARC-6: whoever reads a module has read before what it stands on, whichever way that is imported."""
    trees = modules()
    below = {name: imported_by(tree) & trees.keys() for name, tree in trees.items()}
    TopologicalSorter(below).prepare()  # raises CycleError with the modules of a circle


MOST_LATE = 49
"""Imports inside functions: each saves a command or a hook the time that stands beside it, or starts a machine."""


def test_few_imports_wait_until_a_function_is_called() -> None:
    """ARC-4: the others stand where a reader looks for them."""
    functions = (
        node
        for tree in modules().values()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    late = {
        id(each): each for node in functions for each in ast.walk(node) if isinstance(each, ast.Import | ast.ImportFrom)
    }
    assert len(late) <= MOST_LATE


PARTITION_TABLES = {f"feedback/store/{path.name}" for path in (ROOT / "pipelines/weft/feedback/store").glob("*.py")}
"""The tables of a partition's one file, by what they hold: all are written in one transaction, which `state` opens."""


HOOKS = {"app/lessons/board.py", "app/lessons/keeping.py"}
"""A hook answers within a tenth of a second: it imports nothing to open the table with."""


def test_a_database_is_opened_in_one_place_for_each_use() -> None:
    """ARC-3: caches of vectors and entities, the states of partitions, and the table that hooks of agents read.

    All others are handed a connection.
    """
    package = ROOT / "pipelines/weft"
    openers = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if "sqlite3.connect(" in path.read_text(encoding="utf-8")
    }
    answers = "runtime/storage/stored_answers.py"  # of a service, for explanations
    assert openers == {"runtime/storage/sqlite.py", answers, "feedback/store/state.py"} | HOOKS


def test_only_one_module_talks_to_each_engine() -> None:
    """ARC-6: an engine can be replaced, and its traps are known, in one place."""
    allowed = {
        "faiss": {"indexes/dense/vectors.py", "indexes/dense/close_pairs.py"},
        "jnius": {"indexes/text/jvm.py"},
        "pyserini": {"indexes/text/jvm.py"},
        "kafka": {"runtime/kafka/gaps.py", "runtime/kafka/writer.py"},
        "confluent_kafka": {f"runtime/kafka/{name}.py" for name in ("client", "reader", "writer")},
        "duckdb": {"runtime/storage/tables.py"},
        "polars": {"consolidation/steps/duplicates.py", "consolidation/steps/links.py"},
        "mlflow": {"runtime/mlflow/tracking.py"},
        "sentence_transformers": {
            f"embedding/encoders/{name}.py" for name in ("sentence_encoder", "cross_encoder", "sparse")
        },
        "sqlite3": {
            "runtime/storage/sqlite.py",
            "runtime/storage/errors.py",
            "runtime/storage/stored_answers.py",
            *PARTITION_TABLES,
            *HOOKS,
        },
    }
    package = ROOT / "pipelines/weft"
    for engine, places in allowed.items():
        importers = {
            path.relative_to(package).as_posix()
            for path in package.rglob("*.py")
            for line in path.read_text(encoding="utf-8").splitlines()
            if line.strip().startswith((f"import {engine}", f"from {engine}"))
        }
        assert importers <= places, engine
