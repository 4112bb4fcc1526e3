"""OPS-8a: who lacks an extra is told which one, and how it is had."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Mapping
from importlib.metadata import packages_distributions

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.licences import EXTRAS as STATED
from tests.support.licences import ROOT, closure, direct
from tests.unit.test_layers import imported_by
from weft.cli.registry import COMMANDS
from weft.domain.errors import MissingExtraError
from weft.runtime.extras import EXTRAS, extras_named, installed, missing_extra, require

NAMES: Mapping[str, str] = {
    "faiss": "faiss-cpu",
    "docx": "python-docx",
    "pptx": "python-pptx",
    "opentelemetry.sdk": "opentelemetry-sdk",
    "grpc": "grpcio",
    "haystack": "haystack-ai",
    "llama_index": "llama-index-core",
    "opentelemetry.exporter": "opentelemetry-exporter-otlp-proto-http",
}
"""Distributions that are not called as what is imported from them."""
INDIRECT: Mapping[str, str] = {"alembic": "mlflow", "sqlalchemy": "mlflow", "requests": "jgo", "mcp_types": "mcp"}
"""What comes with what an extra names."""


def test_the_error_says_what_is_missing_and_how_it_is_had() -> None:
    """OPS-15: expected, found, what to do; the package that failed decides, however deep in it."""
    for name, extra, package in (
        ("mlflow.tracking", "night", "mlflow"),
        ("opentelemetry.sdk.trace", "otel", "opentelemetry.sdk"),
        ("nicegui", "console", "nicegui"),
    ):
        said = missing_extra(ModuleNotFoundError(name=name))
        expected = f"expected the extra `{extra}`, found no package `{package}`: pip install 'weft-retrieval[{extra}]'"
        assert str(said) == expected
    assert missing_extra(ModuleNotFoundError(name="weft.nowhere")) is None
    assert missing_extra(ModuleNotFoundError()) is None


def test_other_failures_stay_what_they_are() -> None:
    """OPS-15: what no extra brings is no want of an extra."""
    with pytest.raises(ModuleNotFoundError, match="nowhere_at_all"), extras_named():
        __import__("nowhere_at_all")
    with pytest.raises(MissingExtraError, match=re.escape("weft-retrieval[train]")), extras_named():
        raise ModuleNotFoundError(name="accelerate")
    require("json")
    assert not installed("nowhere_at_all")


def test_every_package_is_in_the_extra_that_is_named_for_it() -> None:
    """OPS-8a: pyproject.toml names it, or names what brings it, in that extra; and the base does not bring it."""
    base = {canonicalize_name(each.name) for each in direct()}
    for package, extra in EXTRAS.items():
        distribution = canonicalize_name(NAMES.get(package, INDIRECT.get(package, package)))
        assert distribution in {canonicalize_name(Requirement(line).name) for line in STATED[extra]}, (package, extra)
        assert distribution not in base


def test_all_is_all() -> None:
    """OPS-8a: `[all]` brings what every other extra does, but for the other build of FAISS."""
    every = {canonicalize_name(each.name) for extra in STATED if extra != "gpu" for each in direct([extra])}
    assert {canonicalize_name(each.name) for each in direct(["all"])} == every


def test_whatever_is_imported_comes_with_the_base_or_with_a_named_extra() -> None:
    """OPS-8a: nothing is missing without the name of what brings it, in any module of the product."""
    base = closure(direct())
    brought = {
        name
        for name, owners in packages_distributions().items()
        if not base.keys().isdisjoint(map(canonicalize_name, owners))
    }
    trees = [ast.parse(path.read_text("utf-8")) for path in (ROOT / "pipelines/weft").rglob("*.py")]
    imported = {name.partition(".")[0] for tree in trees for name in imported_by(tree)}
    others = imported - {"weft", *sys.stdlib_module_names} - brought
    assert others <= {name.partition(".")[0] for name in EXTRAS}, others
    assert {command.needs for command in COMMANDS.values()} - {None} <= EXTRAS.keys()
