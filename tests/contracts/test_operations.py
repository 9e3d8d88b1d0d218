from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from msgspec import Struct, UnsetType

from beetle.contracts.capabilities import CAPABILITY_NAMES
from beetle.contracts.common import Report
from beetle.contracts.fields import Request
from beetle.contracts.methods import OperationMethods
from beetle.contracts.operations import BY_NAME, OPERATIONS, Operation
from beetle.contracts.store import StoreOpenReport
from beetle.runtime.handlers import HANDLERS
from beetle.runtime.views import field_rules
from beetle.sdk import MemoryRuntime

NO_METHOD = {"subscribe", "unsubscribe"}
"""Rows of a connection that stays open: the client has its own ways to follow events."""
ROWS = [pytest.param(row, id=row.name) for row in OPERATIONS]

EXPLAINED = {
    "conversation": "named after what it is; its own fields have descriptions, and every command shows it alike",
    "limit": "described by the type that all limits share",
    "cursor": "described by the type that all cursors share",
    "turn_ids": "named after what it is: ids of turns",
    "requests": "batch has no command of its own",
}
"""Fields without a description of their own, and why they need none."""


def structs_in(hint: Any) -> Iterator[type[Struct]]:
    """Every struct that a type mentions."""
    if isinstance(hint, type) and issubclass(hint, Struct):
        yield hint
    for part in typing.get_args(hint):
        yield from structs_in(part)


def reachable(kind: type[Struct], seen: set[type[Struct]] | None = None) -> set[type[Struct]]:
    """A struct and all that stand in it, at any depth."""
    seen = set() if seen is None else seen
    if kind not in seen:
        seen.add(kind)
        for hint in typing.get_type_hints(kind, include_extras=True).values():
            for inner in structs_in(hint):
                reachable(inner, seen)
    return seen


REQUESTS = sorted({kind for row in OPERATIONS for kind in row.kinds}, key=lambda kind: kind.__name__)
REPORTS = sorted({row.report for row in OPERATIONS}, key=lambda kind: kind.__name__)
REPORT_STRUCTS = sorted(
    set().union(*(reachable(kind) for kind in (*REPORTS, StoreOpenReport))), key=lambda kind: kind.__name__
)


def test_names_methods_and_commands_are_unique() -> None:
    for of in ("name", "method"):
        values = [getattr(row, of) for row in OPERATIONS]
        assert len(values) == len(set(values)), of
    words = [row.cli for row in OPERATIONS if row.cli]
    assert len(words) == len(set(words))
    assert {name: row.name for name, row in BY_NAME.items()} == {row.name: row.name for row in OPERATIONS}


@pytest.mark.parametrize("row", ROWS)
def test_a_row_is_in_order(row: Operation) -> None:
    assert all(issubclass(kind, Request) for kind in row.kinds) and issubclass(row.report, Report)
    assert row.capability == "" or row.capability in CAPABILITY_NAMES
    assert row.effect in ("read", "write", "admin", "stream")
    assert row.exposed and row.exposed <= {"in_process", "unix_socket", "cli", "mcp_stdio", "http", "grpc"}
    assert not (row.batch and row.effect == "stream")
    assert bool(row.cli) is (row.name not in {"batch", *NO_METHOD})


def public_methods(kind: type) -> set[str]:
    return {name for name, _ in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("_")}


def test_the_methods_are_the_rows_and_nothing_else() -> None:
    methods = {row.method for row in OPERATIONS} - NO_METHOD
    assert public_methods(OperationMethods) - {"call"} == methods
    own = public_methods(MemoryRuntime) - public_methods(OperationMethods)
    assert own == {"builder", "close"}
    assert methods <= public_methods(MemoryRuntime)


@pytest.mark.parametrize("row", [each for each in ROWS if each.id not in NO_METHOD])
def test_a_method_takes_its_row_s_request_and_answers_its_report(row: Operation) -> None:
    method = getattr(MemoryRuntime, row.method)
    hints = typing.get_type_hints(method)
    assert hints["return"] is row.report
    assert set(typing.get_args(hints["request"])) == {*row.kinds, types.NoneType}
    parameters = inspect.signature(method).parameters
    assert [p.kind for p in parameters.values()][1:] == [
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.VAR_KEYWORD,
    ]
    assert inspect.getdoc(method)


@pytest.mark.parametrize("row", [each for each in ROWS if each.id not in NO_METHOD])
def test_a_method_calls_its_own_row(row: Operation) -> None:
    asked: list[str] = []

    class Listening(OperationMethods):
        def call(self, operation: str, arguments: Any = None, **more: Any) -> Any:
            asked.append(operation)
            return arguments, more

    assert getattr(Listening(), row.method)(a=1) == ({"a": 1}, {})
    assert asked == [row.name]
    with pytest.raises(TypeError, match="not both"):
        getattr(Listening(), row.method)(object(), a=1)


def test_every_row_has_a_handler_or_is_the_dispatcher_s_own() -> None:
    assert set(HANDLERS) | {"batch", "subscribe", "unsubscribe"} == {row.name for row in OPERATIONS}
    for name, handler in HANDLERS.items():
        ways = [way for way in (handler.read, handler.write, handler.plain, handler.staged) if way is not None]
        assert len(ways) == 1, name
        assert (handler.write is not None or handler.staged is not None) is (
            BY_NAME[name].effect in ("write", "admin")
        ), name


@pytest.mark.parametrize("kind", REQUESTS, ids=lambda kind: kind.__name__)
def test_a_request_says_in_its_docstring_what_it_is(kind: type[Struct]) -> None:
    assert has_own_docstring(kind)


@pytest.mark.parametrize("kind", REPORTS, ids=lambda kind: kind.__name__)
def test_a_report_says_in_its_docstring_what_it_is(kind: type[Struct]) -> None:
    assert has_own_docstring(kind)


@pytest.mark.parametrize("row", ROWS)
def test_the_help_of_a_row_is_what_its_request_s_docstring_begins_with(row: Operation) -> None:
    """It stands twice: a frozen build is made without docstrings, and its commands must still say what they do."""
    first = (row.kinds[0].__doc__ or "").strip().partition("\n")[0].rstrip(".")
    assert row.help == first[:1].lower() + first[1:]


def has_own_docstring(kind: type[Struct]) -> bool:
    return bool((kind.__dict__.get("__doc__") or "").strip())


@pytest.mark.parametrize("kind", REQUESTS, ids=lambda kind: kind.__name__)
def test_a_request_refuses_unknown_fields_all_the_way_down(kind: type[Struct]) -> None:
    for each in reachable(kind):
        assert each.__struct_config__.forbid_unknown_fields, each
        assert (
            each.__struct_config__.frozen and each.__struct_config__.kw_only
            if hasattr(each.__struct_config__, "kw_only")
            else each.__struct_config__.frozen
        )


@pytest.mark.parametrize("kind", REPORT_STRUCTS, ids=lambda kind: kind.__name__)
def test_a_report_is_read_past_fields_that_a_client_does_not_know(kind: type[Struct]) -> None:
    assert not kind.__struct_config__.forbid_unknown_fields
    assert kind.__struct_config__.frozen


@pytest.mark.parametrize("kind", REPORT_STRUCTS, ids=lambda kind: kind.__name__)
def test_every_field_of_a_report_carries_a_sensitivity(kind: type[Struct]) -> None:
    rules = field_rules(kind)
    assert [rule.name for rule in rules if rule.name in kind.__struct_fields__] == [rule.name for rule in rules]
    assert {rule.name for rule in rules} == set(kind.__struct_fields__)
    assert {rule.sensitivity for rule in rules} <= {"open", "content", "evidence", "operator", "secret"}


@pytest.mark.parametrize("kind", REPORT_STRUCTS, ids=lambda kind: kind.__name__)
def test_what_the_gate_may_take_out_can_be_taken_out(kind: type[Struct]) -> None:
    """A field that is not open must be able to be None or absent, or the revealed report could not be decoded."""
    hints = typing.get_type_hints(kind)
    for rule in field_rules(kind):
        if rule.sensitivity != "open":
            assert {types.NoneType, UnsetType} & set(typing.get_args(hints[rule.name])), rule.name


@pytest.mark.parametrize("kind", REPORT_STRUCTS, ids=lambda kind: kind.__name__)
def test_what_is_judged_by_its_message_stands_beside_visibility_and_state(kind: type[Struct]) -> None:
    """Turns are judged as a whole, so what stands in them needs no visibility of its own."""
    from beetle.contracts.transcript import AttrView, HostRefView

    rules = field_rules(kind)
    if kind in (AttrView, HostRefView) or all(rule.sensitivity != "evidence" for rule in rules):
        return
    assert {"visibility", "state"} <= set(kind.__struct_fields__)


def test_a_field_without_a_marker_is_found() -> None:
    class Careless(Report, frozen=True, kw_only=True):
        """A report whose author forgot."""

        content: str

    with pytest.raises(TypeError, match=r"Careless\.content has no sensitivity marker"):
        field_rules(Careless)


def described(hint: Any) -> bool:
    """Whether a description stands anywhere in a type, outside the structs that it mentions."""
    if any(getattr(meta, "description", None) for meta in getattr(hint, "__metadata__", ())):
        return True
    if isinstance(hint, type) and issubclass(hint, Struct):
        return False
    return any(described(part) for part in typing.get_args(hint))


@pytest.mark.parametrize("row", ROWS)
def test_every_flag_of_a_command_has_a_description(row: Operation) -> None:
    for kind in row.kinds:
        hints = typing.get_type_hints(kind, include_extras=True)
        for name in kind.__struct_fields__:
            assert described(hints[name]) or name in EXPLAINED, f"{kind.__name__}.{name}"


@pytest.mark.parametrize("row", ROWS)
def test_a_request_and_a_report_have_a_schema(row: Operation) -> None:
    """What the MCP tools and the docs are made of."""
    _, components = msgspec.json.schema_components([row.request, row.report])
    assert row.report.__name__ in components
