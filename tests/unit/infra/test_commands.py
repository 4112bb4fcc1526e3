"""OPS-9, OPS-10a: what units and containers run is a command of weft, with options that it has."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.infra import UNITS, unit_lines, weft_calls
from tests.unit.test_docs import options_of
from weft.cli.registry import COMMANDS, load_command

SERVICES = [unit for unit in UNITS if unit.suffix == ".service"]


@pytest.mark.parametrize(("where", "words"), list(weft_calls()), ids=str)
def test_every_command_and_option_exists(where: str, words: list[str]) -> None:
    """OPS-4: a unit that cannot start would be found by its first user."""
    if words[0] == "serve" and "serve" not in COMMANDS:
        pytest.skip("weft serve is not there yet")
    command: Any = load_command(words[0])
    given = {word.partition("=")[0] for word in words[1:] if word.startswith("-")}
    assert given <= options_of(command)
    assert "--store" in given


@pytest.mark.parametrize("unit", SERVICES, ids=lambda unit: unit.name)
def test_what_a_restart_can_mend_is_restarted_and_what_needs_a_person_is_not(unit: Any) -> None:
    """OPS-10a: 75 and 78; 2 is wrong usage."""
    lines = unit_lines(unit)
    assert lines["RestartForceExitStatus"] == ["75"]
    assert lines["RestartPreventExitStatus"] == ["2 78"]


@pytest.mark.parametrize("unit", SERVICES, ids=lambda unit: unit.name)
def test_a_unit_writes_to_the_store_alone(unit: Any) -> None:
    """OPS-11, OPS-11a: as a user of its own, with private files."""
    lines = unit_lines(unit)
    assert lines["User"] == ["weft"]
    assert lines["StateDirectoryMode"] == ["0700"]
    assert lines["UMask"] == ["0077"]
    assert lines["ProtectSystem"] == ["strict"]
    assert lines["NoNewPrivileges"] == lines["ProtectHome"] == lines["PrivateTmp"] == ["yes"]
    assert not any("token" in value.lower() for value in lines["Environment"])


def test_the_timer_starts_the_night() -> None:
    """OPS-10a: once a day, and after a day that the machine slept through."""
    (timer,) = (unit for unit in UNITS if unit.suffix == ".timer")
    assert timer.with_suffix(".service") in UNITS
    assert unit_lines(timer)["Persistent"] == ["yes"]
