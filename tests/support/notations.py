"""Configuration in notations that the standard library cannot write, or writes in one way only."""

from __future__ import annotations

import configparser
import json
import re
from collections.abc import Mapping
from io import StringIO

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def toml(value: Mapping[str, object]) -> str:
    """Keys, then a table for each mapping; lists and texts go on over lines."""
    keys = [f"{_toml_key(key)} = {_toml(item)}\n" for key, item in value.items() if not isinstance(item, dict)]
    for key, item in value.items():
        if isinstance(item, dict):
            keys += [
                f"[{_toml_key(key)}]\n",
                *(f"{_toml_key(name)} = {_toml(inner)}\n" for name, inner in item.items()),
            ]
    return "".join(keys)


def _toml_key(key: str) -> str:
    return key if _BARE.fullmatch(key) else json.dumps(key)


def _toml(value: object) -> str:
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{_toml_key(key)} = {_toml(item)}' for key, item in value.items())} }}"
    if isinstance(value, list):
        return "".join(["[  # [\n", *(f"  {_toml(item)},\n" for item in value), "]"])
    if isinstance(value, str) and "\n" in value:
        return f"'''\n{value}'''" if "''" not in value else f'"""\n{json.dumps(value)[1:-1]}"""'.replace("\\n", "\n")
    if isinstance(value, str) and "'" not in value:
        return f"'{value}'"
    return json.dumps(value)


def ini(value: Mapping[str, Mapping[str, str]]) -> str:
    """Sections; the lines of a value are indented."""
    written, parser = StringIO(), configparser.RawConfigParser()
    parser.read_dict(value)
    parser.write(written)
    return written.getvalue()


def properties(value: Mapping[str, str]) -> str:
    """Keys and values as Java writes them; after a backslash a value goes on over lines."""
    lines = [(re.sub("(?=[ :=#!])", r"\\", key), item.replace("\n", "\\n\\\n    ")) for key, item in value.items()]
    return "".join(f"{key} = {item}\n" for key, item in lines)
