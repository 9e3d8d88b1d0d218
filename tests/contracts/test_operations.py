from __future__ import annotations

import inspect
import re
import types
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import Struct, UnsetType
from msgspec.structs import fields as struct_fields

from beetle.cli.commands import COMMANDS
from beetle.contracts.async_methods import AsyncOperationMethods
from beetle.contracts.capabilities import CAPABILITY_NAMES
from beetle.contracts.codec import decode_request, pack, to_plain
from beetle.contracts.common import Report
from beetle.contracts.errors import Conflict
from beetle.contracts.fields import Request
from beetle.contracts.methods import OperationMethods
from beetle.contracts.operations import BY_NAME, OPERATIONS, Operation
from beetle.contracts.store import StoreOpenReport
from beetle.runtime.areas.table import HANDLERS, Handlers
from beetle.runtime.pipeline.views import field_rules
from beetle.sdk import MemoryRuntime
from tests.cases import CASES, Case, Prepared
from tests.each import each_of
from tests.store.conftest import open_runtime

NO_METHOD = {"subscribe", "unsubscribe"}
"""Rows of a connection that stays open: the client has its own ways to follow events."""
WITH_METHODS = [row for row in OPERATIONS if row.name not in NO_METHOD]

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


@each_of(OPERATIONS, lambda row: row.name)
def test_a_row_is_in_order(row: Operation) -> None:
    assert all(issubclass(kind, Request) for kind in row.kinds) and issubclass(row.report, Report)
    assert row.capability == "" or row.capability in CAPABILITY_NAMES
    assert row.effect in ("read", "write", "admin", "stream")
    assert row.exposed and row.exposed <= {"in_process", "unix_socket", "cli", "mcp_stdio", "http", "grpc"}
    assert not (row.batch and row.effect == "stream")
    assert bool(row.cli) is (row.name not in {"batch", *NO_METHOD} and row.name.partition(".")[0] != "transfer")


class AnyRequest(Request, frozen=True, kw_only=True):
    """A request without fields."""


def public_methods(kind: type) -> set[str]:
    return {name for name, _ in inspect.getmembers(kind, inspect.isfunction) if not name.startswith("_")}


def test_the_methods_are_the_rows_and_nothing_else() -> None:
    methods = {row.method for row in OPERATIONS} - NO_METHOD
    assert public_methods(OperationMethods) - {"call", "note"} == methods, "a note is a short word for a row's own"
    own = public_methods(MemoryRuntime) - public_methods(OperationMethods)
    assert own == {"builder", "close", "import_", "export_"}
    assert methods <= public_methods(MemoryRuntime)


@pytest.mark.parametrize("kind", [OperationMethods, AsyncOperationMethods])
def test_the_docstring_of_a_method_names_every_field_of_its_request(kind: type) -> None:
    for row in OPERATIONS:
        if row.method in NO_METHOD:
            continue
        told = inspect.getdoc(getattr(kind, row.method)) or ""
        arguments = told.partition("\nArgs:\n")[2].partition("\n\n")[0]
        named = re.findall(r"^    (\w+)(?: \(`\w+`\))?: .", arguments, re.MULTILINE)
        fields = {name for each in row.kinds for name in each.__struct_encode_fields__}
        tags = {each.__struct_config__.tag_field for each in row.kinds if each.__struct_config__.tag is not None}
        assert set(named) == fields | tags, row.name


@each_of(WITH_METHODS, lambda row: row.name)
def test_a_method_takes_its_row_s_request_and_answers_its_report(row: Operation) -> None:
    method = getattr(MemoryRuntime, row.method)
    # Its types are imported for type checkers alone.
    hints = {name: str(text).split(" | ") for name, text in method.__annotations__.items()}
    assert hints["return"] == [row.report.__name__]
    # The first field may be given by itself: its type stands there too.
    assert {*(kind.__name__ for kind in row.kinds), "None"} <= set(hints["request"])
    parameters = inspect.signature(method).parameters
    assert [p.kind for p in parameters.values()][1:] == [
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.VAR_KEYWORD,
    ]
    assert inspect.getdoc(method)


@each_of(WITH_METHODS, lambda row: row.name)
def test_a_method_calls_its_own_row(row: Operation) -> None:
    asked: list[str] = []

    class Listening(OperationMethods):
        def call(self, operation: str, arguments: Any = None, **more: Any) -> Any:
            asked.append(operation)
            return arguments, more

    assert getattr(Listening(), row.method)(a=1) == ({"a": 1}, {})
    assert asked == [row.name]
    with pytest.raises(TypeError, match="not both"):
        getattr(Listening(), row.method)(AnyRequest(), a=1)


@each_of(OPERATIONS, lambda row: row.name)
def test_the_example_of_a_row_is_a_request_and_there_where_one_is_needed(row: Operation) -> None:
    assert decode_request(pack(row.example), row.request) is not None
    assert row.example or not any(field.required for kind in row.kinds for field in struct_fields(kind))


@each_of([row for row in OPERATIONS if row.cli], lambda row: row.name)
def test_a_command_stands_in_its_group(row: Operation) -> None:
    assert bool(row.group.word) is bool(row.group.help) is (len(row.cli) > 1)
    assert row.cli[0] == row.group.word or len(row.cli) == 1
    assert row.word == "" or row.word in row.kinds[0].__struct_fields__
    begins = f"beetle {' '.join(row.cli)}"
    assert all(begins in each or each.startswith(("  ", "beetle --")) for each in row.shell)


def test_every_row_has_a_handler_or_is_the_dispatcher_s_own() -> None:
    assert sorted([*HANDLERS, "batch", "subscribe", "unsubscribe"]) == sorted(BY_NAME)
    fresh = Handlers()
    assert all(fresh[name] is HANDLERS[name] for name in reversed(list(HANDLERS)))
    with pytest.raises(KeyError):
        fresh["memory.nothing"]


WAYS = {"read": {"read", "plain"}, "write": {"write", "staged"}, "admin": {"read", "write", "plain"}}
"""How a row may be handled, by its effect. A write changes the store in transactions that the dispatcher opens, with
the idempotency key in them. A plain one opens its own, or none: that is for reads, and for work on the daemon itself.
"""


def way_of(name: str) -> str:
    return type(HANDLERS[name]).__name__.lower()


@each_of(list(HANDLERS))
def test_a_row_is_handled_in_one_way_which_fits_its_effect(name: str) -> None:
    row, way = BY_NAME[name], way_of(name)
    assert way in WAYS[row.effect]
    if way == "staged" or (way == "plain" and row.effect == "admin"):
        assert not row.batch, "a batch is one transaction, and this opens its own"


PLAIN_ADMIN = [case for case in CASES if case.who == "operator" and case.changes and way_of(case.op) == "plain"]
"""Admin work that opens its own transactions."""


@pytest.mark.parametrize("case", PLAIN_ADMIN, ids=lambda case: case.op)
def test_admin_work_that_opens_its_own_transactions_is_done_once_for_a_key(case: Case, tmp_path: Path) -> None:
    """Its events are in the log once, and the same key with another request does nothing."""
    with open_runtime(tmp_path / "b.db") as memory:
        args = case.request(Prepared(lambda op, args: to_plain(memory.call(op, args))))
        first = memory._opened.call(case.op, args, None, "key", None)
        assert not first.repeated and first.report.lifecycle.changed
    with open_runtime(tmp_path / "b.db") as memory:
        before = memory.read_event_log().rows
        again = memory._opened.call(case.op, args, None, "key", None)
        assert again.repeated and again.report == first.report
        other = "snapshot.prune" if case.op == "memory.close" else "memory.close"
        with pytest.raises(Conflict, match="idempotency key"):
            memory._opened.call(other, {"keep": 0} if other == "snapshot.prune" else {}, None, "key", None)
        assert memory.read_event_log().rows == before, "nothing was done, and nothing was closed"


def test_a_second_close_under_the_same_key_says_so_although_the_store_is_closed(tmp_path: Path) -> None:
    memory = open_runtime(tmp_path / "b.db")
    first, second = (memory._opened.call("memory.close", {}, None, "key", None).report for _ in range(2))
    assert (first.already, second.already) == (False, True)


@each_of(REQUESTS, lambda kind: kind.__name__)
def test_a_request_says_in_its_docstring_what_it_is(kind: type[Struct]) -> None:
    assert has_own_docstring(kind)


@each_of(REPORTS, lambda kind: kind.__name__)
def test_a_report_says_in_its_docstring_what_it_is(kind: type[Struct]) -> None:
    assert has_own_docstring(kind)


@each_of(OPERATIONS, lambda row: row.name)
def test_the_help_of_a_row_is_what_its_request_s_docstring_begins_with(row: Operation) -> None:
    """It stands twice: a frozen build is made without docstrings, and its commands must still say what they do."""
    first = (row.kinds[0].__doc__ or "").strip().partition("\n")[0].rstrip(".")
    said = COMMANDS[row.cli].help if len(row.kinds) > 1 else row.help
    assert said == first[:1].lower() + first[1:]


def test_the_help_of_memory_write_names_its_four_kinds() -> None:
    row = BY_NAME["memory.write"]
    assert len(row.kinds) == 4
    assert all(word in row.help for word in ("runtime skills", "candidates", "extraction", "feedback on tools"))


def has_own_docstring(kind: type[Struct]) -> bool:
    return bool((kind.__dict__.get("__doc__") or "").strip())


@each_of(REQUESTS, lambda kind: kind.__name__)
def test_a_request_refuses_unknown_fields_all_the_way_down(kind: type[Struct]) -> None:
    for each in reachable(kind):
        assert each.__struct_config__.forbid_unknown_fields, each
        assert (
            each.__struct_config__.frozen and each.__struct_config__.kw_only
            if hasattr(each.__struct_config__, "kw_only")
            else each.__struct_config__.frozen
        )


@each_of(REPORT_STRUCTS, lambda kind: kind.__name__)
def test_a_report_is_read_past_fields_that_a_client_does_not_know(kind: type[Struct]) -> None:
    assert not kind.__struct_config__.forbid_unknown_fields
    assert kind.__struct_config__.frozen


@each_of(REPORT_STRUCTS, lambda kind: kind.__name__)
def test_every_field_of_a_report_carries_a_sensitivity(kind: type[Struct]) -> None:
    rules = field_rules(kind)
    assert [rule.name for rule in rules if rule.name in kind.__struct_fields__] == [rule.name for rule in rules]
    assert {rule.name for rule in rules} == set(kind.__struct_fields__)
    assert {rule.sensitivity for rule in rules} <= {"open", "content", "evidence", "operator", "secret"}


@each_of(REPORT_STRUCTS, lambda kind: kind.__name__)
def test_what_the_gate_may_take_out_can_be_taken_out(kind: type[Struct]) -> None:
    """A field that is not open must be able to be None or absent, or the revealed report could not be decoded."""
    hints = typing.get_type_hints(kind)
    for rule in field_rules(kind):
        if rule.sensitivity != "open":
            assert {types.NoneType, UnsetType} & set(typing.get_args(hints[rule.name])), rule.name


@each_of(REPORT_STRUCTS, lambda kind: kind.__name__)
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


@each_of(OPERATIONS, lambda row: row.name)
def test_every_flag_of_a_command_has_a_description(row: Operation) -> None:
    for kind in row.kinds:
        hints = typing.get_type_hints(kind, include_extras=True)
        for name in kind.__struct_fields__:
            assert described(hints[name]) or name in EXPLAINED, f"{kind.__name__}.{name}"


@each_of(OPERATIONS, lambda row: row.name)
def test_a_request_and_a_report_have_a_schema(row: Operation) -> None:
    """What the MCP tools and the docs are made of."""
    _, components = msgspec.json.schema_components([row.request, row.report])
    assert row.report.__name__ in components
