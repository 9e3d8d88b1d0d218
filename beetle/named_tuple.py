"""typing.NamedTuple, made in a seventh of the time.

The standard library compiles source text for every class: 0.2 ms each, a fifth of a daemon's start, which makes 145. A
class of this one takes its `__new__` from a function that is compiled once for each number of fields, under the names
of its own fields. What the standard library refuses when a class is made (a field's name that begins with an
underscore, a default before a field without) is left to the type checker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple
else:
    from _collections import _tuplegetter
    from collections.abc import Iterable, Mapping
    from functools import cache
    from types import FunctionType
    from typing import Any, Generic

    _GLOBALS: dict[str, Any] = {"_new": tuple.__new__, "__builtins__": {}}
    """Of the functions that make a named tuple."""

    @cache
    def _constructor(fields: int) -> FunctionType:
        """Takes so many arguments."""
        names = "".join(f"_{number}, " for number in range(fields))
        return eval(f"lambda _cls, {names}: _new(_cls, ({names}))", _GLOBALS)

    @cache
    def _getter(index: int) -> _tuplegetter:
        return _tuplegetter(index, f"Alias for field number {index}")

    def _make(cls: type[Any], iterable: Iterable[Any]) -> Any:
        made = tuple.__new__(cls, iterable)
        if len(made) != len(cls._fields):
            raise TypeError(f"Expected {len(cls._fields)} arguments, got {len(made)}")
        return made

    def _replace(self: Any, /, **values: Any) -> Any:
        made = self._make(map(values.pop, self._fields, self))
        if values:
            raise ValueError(f"Got unexpected field names: {list(values)!r}")
        return made

    def _asdict(self: Any) -> dict[str, Any]:
        return dict(zip(self._fields, self, strict=True))

    def _repr(self: Any) -> str:
        shown = ", ".join(f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True))
        return f"{type(self).__name__}({shown})"

    _METHODS: dict[str, Any] = {
        "_make": classmethod(_make), "_replace": _replace, "_asdict": _asdict, "__repr__": _repr,
        "__getnewargs__": lambda self: tuple(self), "__slots__": (),
    }  # fmt: skip

    class _Making(type):
        """Makes a subclass of tuple of what the body of a class says."""

        def __new__(cls, name: str, bases: tuple[type, ...], body: Mapping[str, Any]) -> type:
            types = body.get("__annotations__", {})
            fields = tuple(types)
            defaults = {field: body[field] for field in fields if field in body}
            of = _constructor(len(fields)).__code__
            code = of.replace(co_varnames=("_cls", *fields), co_name="__new__", co_qualname=f"{name}.__new__")
            new = FunctionType(code, _GLOBALS, "__new__", tuple(defaults.values()))
            new.__annotations__ = types
            own = {"_fields": fields, "_field_defaults": defaults, "__match_args__": fields, "__new__": new}
            own |= {field: _getter(index) for index, field in enumerate(fields)}
            if Generic in bases:  # that of tuple comes before it
                own["__class_getitem__"] = vars(Generic)["__class_getitem__"]
            others = [each for each in bases if each is not _Base]
            return type(name, (tuple, *others), _METHODS | body | own)

    _Base = type.__new__(_Making, "NamedTuple", (), {})

    class _NamedTuple:
        """What stands among the bases of a class."""

        def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type, ...]:
            return (_Base,)

    NamedTuple = _NamedTuple()
