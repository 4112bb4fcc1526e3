"""What the documentation names exists: pages, headings, files, settings, commands and their options."""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import typer

from tests.conftest import ROOT
from weft.cli.registry import all_commands
from weft.settings import CONF, Settings, load_settings

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
TEXTS = {page: page.read_text(encoding="utf-8") for page in PAGES}
COMMENTED = {file: file.read_text(encoding="utf-8") for file in sorted(CONF.rglob("*.yaml"))}
SETTINGS = load_settings(environment={}).model_dump(mode="json")
JOB = re.compile(r"python -m jobs\.(\w+)(.*)")
WEFT = re.compile(r"^weft((?: [a-z]+)+)(.*)", re.MULTILINE)
MAKE = re.compile(r"^make ([a-z-]+)", re.MULTILINE)
FENCED = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)


def names(page: Path) -> str:
    return str(page.relative_to(ROOT))


def anchors(text: str) -> set[str]:
    """Of every heading, as GitHub makes them: lower case, no punctuation, hyphens for blanks."""
    headings = re.findall(r"^#+ (.*)$", FENCED.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def known_settings(values: object = SETTINGS, path: str = "") -> Iterator[str]:
    """Every section, group and key, dotted."""
    if path:
        yield path
    if isinstance(values, dict):
        for key, value in values.items():
            yield from known_settings(value, f"{path}.{key}" if path else str(key))


def commands(text: str) -> str:
    """What a page gives to be typed: lines of code blocks, and quoted code."""
    return "\n".join([*FENCED.findall(text), *re.findall(r"`([^`\n]+)`", FENCED.sub("", text))])


def options_of(command: Any) -> set[str]:
    """Of a command of typer's."""
    return {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}


def given(arguments: str) -> set[str]:
    """Options in what follows a command, its comment left out."""
    return set(re.findall(r"(?<=\s)--?[a-z][a-z-]*", arguments.split("  #", maxsplit=1)[0]))


@pytest.mark.parametrize("page", PAGES, ids=names)
def test_every_link_leads_somewhere(page: Path) -> None:
    """A page, a file, and where a heading is named, one of that page."""
    for target in re.findall(r"\]\(([^)\s]+)\)", TEXTS[page]):
        if not target.startswith("http"):
            name, _, anchor = target.partition("#")
            linked = (page.parent / name).resolve() if name else page
            assert linked.exists(), target
            assert not anchor or anchor in anchors(linked.read_text(encoding="utf-8")), target


@pytest.mark.parametrize("page", PAGES, ids=names)
def test_every_file_that_is_named_by_its_folder_exists(page: Path) -> None:
    """Paths below the folders of the repository."""
    found = re.findall(r"(?<![\w/])(?:docs|tests|conf|infra|jobs|notebooks|pipelines)/[\w./-]*\.\w+", TEXTS[page])
    assert [path for path in found if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("page", [*PAGES, *COMMENTED], ids=names)
def test_every_setting_that_is_named_exists_under_its_full_name(page: Path) -> None:
    """OPS-3: so that what a reader copies into `--set` is taken."""
    known = set(known_settings())
    ends = {key.split(".", depth)[-1] for key in known for depth in range(1, key.count("."))}
    text = TEXTS.get(page) or COMMENTED[page]
    spans = re.findall(r"`([a-z_]+(?:\.[a-z_0-9]+)+)(?:[:=][^`]*)?`", text)
    assigned = re.findall(r"--set \"?([a-z_]+(?:\.[a-z_0-9]+)+)=", text)
    sections = set(Settings.model_fields)
    named = {name for name in chain(spans, assigned) if name.split(".")[0] in sections or name in ends}
    files = {name for name in named if re.search(r"\.(py|md|json|parquet|yaml)$", name)}
    assert sorted(named - files - known) == []


def test_every_job_and_option_that_is_named_exists() -> None:
    """OPS-4: in README and docs."""
    for text in TEXTS.values():
        for name, arguments in JOB.findall(commands(text)):
            module = importlib.import_module(f"jobs.{name}")
            app = typer.Typer()
            app.command()(module.main.args[0])
            assert given(arguments) <= options_of(typer.main.get_command(app)), (name, arguments)


def test_every_weft_command_and_option_that_is_named_exists() -> None:
    """OPS-4: in README and docs; what follows the command's own words are its arguments."""
    for text in TEXTS.values():
        for words, arguments in WEFT.findall(commands(text)):
            command: Any = all_commands()
            for word in words.split():
                if known := getattr(command, "commands", None):
                    assert word in known, words
                    command = known[word]
            assert given(arguments) <= options_of(command), (words, arguments)


def test_every_make_target_that_is_named_exists() -> None:
    """In README and docs."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for text in TEXTS.values():
        assert set(MAKE.findall(commands(text))) <= targets
