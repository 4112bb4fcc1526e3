"""Pages for a browser: one file each, with nothing beside it and nothing to fetch."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from jinja2 import DictLoader, Environment, StrictUndefined

_FRAME = "page.html"
_FEW, _MANY = 100.0, 1e6  # from where on decimals, and digits at all, say nothing


def rendered(package: str, template: str, **values: Any) -> str:
    """A template of a package, which extends `page.html`, with these values in it."""
    sources = {
        name: files(where).joinpath(name).read_text(encoding="utf-8")
        for where, name in ((__package__, _FRAME), (package, template))
    }
    environment = Environment(
        loader=DictLoader(sources), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template(template).render(**values)


def number(value: float | None, *, sign: bool = False) -> str:
    """A number in as many characters as are worth reading."""
    if value is None:
        return "–"
    size = abs(value)
    form = ",.3f" if size < _FEW else ",.0f" if size < _MANY else ".0e"
    return f"{value:{'+' if sign else ''}{form}}"
