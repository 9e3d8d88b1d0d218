"""beetle.named_tuple against the standard library's."""

from __future__ import annotations

import ast
import copy
import inspect
import pickle
import typing
from pathlib import Path
from typing import Any, Generic, TypeVar

import pytest

from beetle import named_tuple

T = TypeVar("T")
ROOT = Path(named_tuple.__file__).parent


class Place(named_tuple.NamedTuple):
    """Where."""

    name: str
    row: int = 3
    column: int = 4

    def moved(self) -> Place:
        return self._replace(row=self.row + 1)

    @property
    def area(self) -> int:
        return self.row * self.column


class Empty(named_tuple.NamedTuple):
    """None."""


class Pair(named_tuple.NamedTuple, Generic[T]):
    left: T
    right: T


class StandardPlace(typing.NamedTuple):
    """Where."""

    name: str
    row: int = 3
    column: int = 4


def test_it_is_a_tuple_with_names() -> None:
    made = Place("a", column=5)
    assert isinstance(made, tuple) and made == ("a", 3, 5) and hash(made) == hash(("a", 3, 5))
    name, *rest = made
    assert (name, rest, made.column, made.area, made.moved()) == ("a", [3, 5], 5, 15, Place("a", 4, 5))
    match made:
        case Place(name, row, column=5):
            assert (name, row) == ("a", 3)
        case _:
            pytest.fail(f"{made} is not matched")
    assert not hasattr(made, "__dict__") and len(Empty()) == 0
    assert pickle.loads(pickle.dumps(made)) == made and type(copy.deepcopy(made)) is Place
    assert Pair[int](1, 2).left == 1 and Pair[int].__origin__ is Pair


@pytest.mark.parametrize("ask", [
    lambda kind: repr(kind("a", 1)).partition("(")[2], lambda kind: kind._fields, lambda kind: kind._field_defaults,
    lambda kind: kind.__match_args__, lambda kind: kind.__doc__, lambda kind: kind._make("abc"),
    lambda kind: kind("a")._asdict(), lambda kind: kind.row.__doc__, lambda kind: typing.get_type_hints(kind),
    lambda kind: [(each.name, each.kind, each.default) for each in inspect.signature(kind).parameters.values()],
    lambda kind: kind("a")._replace(row=9), lambda kind: kind(row=1, name="b"), lambda kind: kind.__mro__[1:],
])  # fmt: skip
def test_it_answers_as_the_standard_library_s(ask: Any) -> None:
    assert ask(Place) == ask(StandardPlace)


@pytest.mark.parametrize("ask", [
    lambda kind: kind(), lambda kind: kind("a", 1, 2, 3), lambda kind: kind("a", depth=1),
    lambda kind: kind._make("ab"),
    lambda kind: kind("a")._replace(depth=1), lambda kind: setattr(kind("a"), "row", 1),
    lambda kind: setattr(kind("a"), "depth", 1), lambda kind: kind("a", name="b"),
])  # fmt: skip
def test_it_refuses_as_the_standard_library_s(ask: Any) -> None:
    with pytest.raises((TypeError, ValueError, AttributeError)) as standard:
        ask(StandardPlace)
    with pytest.raises(standard.type) as own:
        ask(Place)
    assert str(own.value).replace("Place", "StandardPlace") == str(standard.value)


def test_the_product_makes_all_of_its_named_tuples_so() -> None:
    """One of the standard library's costs each start 0.2 ms."""
    for file in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())) if file != Path(named_tuple.__file__) else ():
            if isinstance(node, ast.ImportFrom) and node.module in ("typing", "collections"):
                names = {each.name for each in node.names}
                assert not names & {"NamedTuple", "namedtuple"}, file
