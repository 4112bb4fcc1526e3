"""A property that is worked out once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

Value = TypeVar("Value")


class kept(Generic[Value]):  # noqa: N801  read as a decorator
    """What a method gives on first use, kept in the instance's `__dict__` under its name.

    As `functools.cached_property` is from Python 3.12 on: without a lock, which costs more than most of what is kept by
    it. Threads that ask at the same time may work it out twice.

    Examples:
        >>> class Circle:
        ...     @kept
        ...     def area(self) -> float:
        ...         print("worked out")
        ...         return 3.0
        >>> circle = Circle()
        >>> circle.area + circle.area
        worked out
        6.0
    """

    def __init__(self, work_out: Callable[[Any], Value]) -> None:
        self._work_out = work_out
        self._name = work_out.__name__
        self.__doc__ = work_out.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> kept[Value]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> Value: ...
    def __get__(self, instance: object | None, owner: type) -> kept[Value] | Value:
        """The value; of the class, the property itself."""
        if instance is None:
            return self
        value = vars(instance)[self._name] = self._work_out(instance)
        return value
