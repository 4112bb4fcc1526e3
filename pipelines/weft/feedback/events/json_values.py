"""Where JSON and the structs of events differ (FBK-2).

Read from JSON: JSON Schema counts 3.0 among the integers, and serialisers of Java and .NET write null for a field that
nobody set. msgspec refuses both; `coerce_to` makes of them what it takes.

Written as JSON: msgspec writes NaN as null, and bytes and ids of Python as text. `not_json` names such values.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any

import msgspec
from msgspec import inspect

from weft.domain.errors import InvalidEventError

Coerce = Callable[[Any], Any]
"""Returns the value as msgspec takes it. A value of a wrong type passes unchanged: `msgspec.convert` names it."""

_JSON_TYPES = {str, int, float, bool, type(None)}


def coerce_to(kind: type[msgspec.Struct]) -> Coerce:
    """Coerces JSON objects to a struct's fields: whole floats to integers, null to the default of an optional field.

    Raises:
        InvalidEventError: By the result, where a number is beyond the range of a float (`non_finite`).

    Examples:
        >>> class Click(msgspec.Struct):
        ...     rank: int
        ...     asked: bool = False
        >>> coerce_to(Click)({"rank": 3.0, "asked": None, "unknown": 1})
        {'rank': 3}
    """
    return _coerce(inspect.type_info(kind))


def whole(value: object) -> object:
    """A float without a fraction as the integer that it is."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def leaves(value: object, place: str = "$") -> Iterator[tuple[str, object]]:
    """Every value in an event that holds no other, with its place; keys of mappings are among them."""
    if isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            yield from leaves(getattr(value, name), f"{place}.{name}")
    elif isinstance(value, Mapping):
        for key, each in value.items():
            yield place, key
            yield from leaves(each, f"{place}[{key!r}]")
    elif isinstance(value, list | tuple):
        for index, each in enumerate(value):
            yield from leaves(each, f"{place}[{index}]")
    else:
        yield place, value


def not_json(event: msgspec.Struct) -> InvalidEventError | None:
    """The first value of an event made in Python that JSON has no words for; None where there is none."""
    for place, leaf in leaves(event):
        if isinstance(leaf, float) and not math.isfinite(leaf):
            return InvalidEventError("non_finite", f"expected a finite number, found {leaf} - at `{place}`")
        if isinstance(leaf, str) and any("\ud800" <= character <= "\udfff" for character in leaf):
            return InvalidEventError(
                "invalid", f"expected text that UTF-8 can carry, found {leaf!r:.64} - at `{place}`"
            )
        if type(leaf) not in _JSON_TYPES and not isinstance(leaf, Enum):
            kind = f"{type(leaf).__module__}.{type(leaf).__qualname__}".removeprefix("builtins.")
            return InvalidEventError(
                "invalid", f"expected `str`, `int`, `float`, `bool` or None, found `{kind}` - at `{place}`: convert it"
            )
    return None


def _coerce(kind: inspect.Type) -> Coerce:
    coerce: Coerce = _unchanged
    match kind:
        case inspect.Metadata():
            coerce = _coerce(kind.type)
        case inspect.UnionType():
            (only,) = (each for each in kind.types if not isinstance(each, inspect.NoneType))
            coerce = _coerce(only)
        case inspect.IntType():
            coerce = _integer
        case inspect.FloatType():
            coerce = _finite
        case inspect.ListType() | inspect.VarTupleType():
            coerce = _array(_coerce(kind.item_type))
        case inspect.DictType():
            coerce = _mapping(_coerce(kind.value_type))
        case inspect.StructType():
            coerce = _object(kind.fields)
    return coerce


def _unchanged(value: object) -> object:
    return value


def _integer(value: object) -> object:
    return whole(_finite(value)) if isinstance(value, float) else value


def _finite(value: object) -> object:
    if isinstance(value, int | float) and abs(value) > sys.float_info.max:
        raise InvalidEventError("non_finite", "expected numbers in the range of a float, found one beyond it")
    return value


def _array(coerce: Coerce) -> Coerce:
    return lambda value: [coerce(each) for each in value] if isinstance(value, list) else value


def _mapping(coerce: Coerce) -> Coerce:
    return lambda value: {name: coerce(each) for name, each in value.items()} if isinstance(value, dict) else value


def _object(fields: Sequence[inspect.Field]) -> Coerce:
    coerces = {field.encode_name: (field.required, _coerce(field.type)) for field in fields}

    def coerce(value: object) -> object:
        if not isinstance(value, dict):
            return value
        return {
            name: coerces[name][1](each)
            for name, each in value.items()
            if name in coerces and (each is not None or coerces[name][0])
        }

    return coerce
