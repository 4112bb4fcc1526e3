"""The settings that all processes of a store share: the store keeps them, and a process that differs stops (OPS-3a)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from weft.domain.errors import ConfigurationError, DiskError
from weft.runtime.storage.errors import advice_on
from weft.runtime.storage.working_copy import replace_table, working_copy_of

SETTINGS_FILE = "settings.json"

_SHARED = ("embedding", "feedback", "priors")
# Each process has its own: they change how fast it works, and not what it computes. The precision is pinned in every
# generation; the folder of models is a place on one machine.
_OF_A_PROCESS = {("embedding", name) for name in ("model_folder", "batch_tokens", "threads", "device", "precision")} | {
    ("feedback", "attribution", "encoder")
}

_Key = tuple[str, ...]


def shared_settings(values: Mapping[str, Any]) -> dict[str, Any]:
    """What all processes of a store must agree on, of all settings; of `feedback` its tables alone.

    Examples:
        >>> shared_settings({"priors": {"trust": 4}, "feedback": {"updaters": 2, "credit": {"success": 0.8}}})
        {'feedback': {'credit': {'success': 0.8}}, 'priors': {'trust': 4}}
    """
    shared: dict[str, Any] = {}
    for path, value in _leaves(values):
        of_an_updater = path[0] == "feedback" and len(path) == 2
        if path[0] in _SHARED and path not in _OF_A_PROCESS and not of_an_updater:
            table = shared
            for name in path[:-1]:
                table = table.setdefault(name, {})
            table[path[-1]] = value
    return {section: shared[section] for section in sorted(shared)}


def read_shared(root: Path) -> dict[str, Any]:
    """The settings that a store keeps; nothing where it keeps none.

    Raises:
        ConfigurationError: The file holds something else.
        DiskError: It cannot be read.
    """
    path = root / SETTINGS_FILE
    if (copy := working_copy_of(root)) is not None:
        copy.follow()
    try:
        content = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise DiskError(f"expected to read {path}, found {error.strerror}: {advice_on(error)}") from error
    except ValueError as error:
        raise ConfigurationError(
            f"{path}: expected the settings of the store as JSON, found: {error}: {_MEND}"
        ) from error
    if not isinstance(content, dict):
        raise ConfigurationError(f"{path}: expected a JSON object, found {type(content).__name__}: {_MEND}")
    return content


_MEND = "mend it, or remove it; the next reindex then writes those it was given"


def keep_shared(root: Path, values: Mapping[str, Any], *, change: bool = False) -> None:
    """Write the shared ones of all settings into a store that keeps none, or `change` those that it keeps."""
    if change or not (root / SETTINGS_FILE).exists():
        ours = json.dumps(shared_settings(values), indent=1).encode() + b"\n"
        replace_table(root, SETTINGS_FILE, lambda theirs: ours if change or theirs is None else theirs)


def require_agreement(values: Mapping[str, Any], stored: Mapping[str, Any], root: Path) -> None:
    """Check that settings are those that a store keeps, as far as they are shared.

    Raises:
        ConfigurationError: Some differ; all are named.
    """
    theirs = dict(_leaves(stored))
    differing = [
        f"{'.'.join(path)} ({value!r} here, {theirs[path]!r} in the store)"
        for path, value in _leaves(shared_settings(values))
        if path in theirs and theirs[path] != value
    ]
    if differing:
        raise ConfigurationError(
            f"expected the settings that {root / SETTINGS_FILE} keeps, found others: {', '.join(differing)}: leave out "
            "what differs, or set storage.settings to `given` (it counts for this run) or `changed` (for the store "
            "from then on)"
        )


def _leaves(values: Mapping[str, Any], above: _Key = ()) -> Iterable[tuple[_Key, Any]]:
    for name, value in values.items():
        path = (*above, str(name))
        if isinstance(value, Mapping):
            yield from _leaves(value, path)
        else:
            yield path, value
