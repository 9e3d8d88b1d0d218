from __future__ import annotations

import pickle
import string

from hypothesis import given, settings
from hypothesis import strategies as st

from beetle.contracts.errors import ERRORS, MESSAGE_LIMIT, STATUS, BeetleError, Internal, Status, from_wire
from tests.each import each_of

# WIRE §3, as it stands there.
TABLE = """
| invalid_request, invalid_frame | 2 | 400 | INVALID_ARGUMENT | the caller's input |
| unknown_operation | 2 | 404 | UNIMPLEMENTED | |
| not_found | 3 | 404 | NOT_FOUND | |
| conflict | 4 | 409 | ALREADY_EXISTS / ABORTED | idempotency clash, wrong expected revision |
| unauthorized | 5 | 401 | UNAUTHENTICATED | |
| forbidden, capability_hidden, privacy_denied | 5 | 403 | PERMISSION_DENIED | |
| signature_invalid, host_pubkey_not_enrolled | 5 | 403 | PERMISSION_DENIED | |
| payload_too_large | 6 | 413 | RESOURCE_EXHAUSTED | this input is too big |
| store_budget_exceeded | 6 | 507 | RESOURCE_EXHAUSTED | the store's own ceiling is reached |
| overloaded, deadline_exceeded | 7 | 503 / 504 | UNAVAILABLE / DEADLINE_EXCEEDED | retryable |
| store_locked | 8 | 503 | UNAVAILABLE | names the pid and socket that hold it |
| storage_full, store_read_only | 8 | 507 | INTERNAL | (gRPC as seed 001: a storage failure is INTERNAL) |
| store_corrupt, schema_mismatch, integrity_violation | 9 | 500 | INTERNAL | |
| services_unavailable | 7 | 503 | FAILED_PRECONDITION | needs a model, and none is configured or it is down |
| daemon_unavailable | 7 | - | - | client side: nobody answers at the socket |
| internal | 1 | 500 | INTERNAL | a defect; the message holds a reference into the log, never content |
"""
RETRYABLE = {"overloaded", "deadline_exceeded", "store_locked"}
NOT_YET = {"signature_invalid", "host_pubkey_not_enrolled", "services_unavailable"}
"""Keys of operations that come later: in the table of statuses already, without a class."""


def rows() -> dict[str, tuple[int, set[int | None], set[str | None]]]:
    """Key to its exit code and what it may be over HTTP and gRPC."""
    found: dict[str, tuple[int, set[int | None], set[str | None]]] = {}
    for line in TABLE.strip().splitlines():
        keys, code, http, grpc, _ = (cell.strip() for cell in line.strip("|").split("|"))
        names = [key.strip() for key in keys.split(",")]
        statuses = [None if each.strip() == "-" else int(each) for each in http.split("/")]
        codes = [None if each.strip() == "-" else each.strip() for each in grpc.split("/")]
        for place, key in enumerate(names):
            # "a / b" in a row of two keys names one each; in a row of one key it leaves a choice.
            both = len(names) == len(statuses) > 1
            found[key] = (
                int(code),
                {statuses[place]} if both else set(statuses),
                {codes[place]} if both and len(codes) == len(names) else set(codes),
            )
    return found


EXPECTED = rows()


@each_of(list(EXPECTED))
def test_a_key_has_the_exit_code_and_statuses_of_the_wire_table(key: str) -> None:
    status = STATUS[key]
    exit_code, http, grpc = EXPECTED[key]
    assert status.exit_code == exit_code
    assert status.http in http
    assert status.grpc in grpc


def test_the_table_holds_the_keys_of_the_wire_and_no_other() -> None:
    assert set(STATUS) == set(EXPECTED)
    assert set(STATUS) - set(ERRORS) <= NOT_YET
    assert set(ERRORS) <= set(STATUS)
    assert all(isinstance(status, Status) for status in STATUS.values())


def fields_of(kind: type[BeetleError]) -> set[str]:
    """What a class's templates are filled from."""
    templates = kind.template + kind.hint_template
    return {name for _, name, _, _ in string.Formatter().parse(templates) if name}


@each_of(ERRORS.values(), lambda kind: kind.key)
def test_an_error_is_built_from_its_fields(kind: type[BeetleError]) -> None:
    given = {name: f"<{name}>" for name in fields_of(kind)}
    error = kind(**given)
    assert error.key == kind.key and ERRORS[error.key] is kind
    assert str(error) == f"{kind.key}: {error.message}"
    assert error.details == given
    assert error.exit_code == STATUS[kind.key].exit_code
    for name in given:
        assert f"<{name}>" in error.message + error.hint
    assert "{" not in error.message + error.hint
    assert kind(hint="type this", **given).hint == "type this"
    assert kind.retryable is (kind.key in RETRYABLE)


@each_of(ERRORS.values(), lambda kind: kind.key)
def test_an_error_can_be_built_without_some_of_its_fields(kind: type[BeetleError]) -> None:
    error = kind()
    assert error.details == {}
    assert "{" not in error.message + error.hint


@each_of(ERRORS.values(), lambda kind: kind.key)
def test_a_message_its_hint_and_its_details_are_bounded(kind: type[BeetleError]) -> None:
    check_bounds(kind, "x" * 10_000_000)


@settings(deadline=None, max_examples=200)
@given(st.sampled_from(sorted(ERRORS.values(), key=lambda kind: kind.key)), st.text(max_size=4000) | st.integers())
def test_any_message_its_hint_and_its_details_are_bounded(kind: type[BeetleError], value: object) -> None:
    check_bounds(kind, value)


def check_bounds(kind: type[BeetleError], value: object) -> None:
    error = kind(**dict.fromkeys(fields_of(kind), value))
    assert len(error.message) <= MESSAGE_LIMIT
    assert len(error.hint) <= MESSAGE_LIMIT
    assert all(len(str(each)) <= max(MESSAGE_LIMIT, 400) for each in error.details.values())


def test_none_is_left_out_of_the_details() -> None:
    error = ERRORS["conflict"](reason="it is so", turn_id="t1", sequence=None)
    assert error.details == {"reason": "it is so", "turn_id": "t1"}


@each_of(ERRORS.values(), lambda kind: kind.key)
def test_an_error_comes_back_word_for_word_from_the_wire_and_from_a_pickle(kind: type[BeetleError]) -> None:
    error = kind(hint="h", **dict.fromkeys(fields_of(kind), "x"))
    told = from_wire(error.key, error.message, error.hint, error.retryable, error.details)
    for each in (told, pickle.loads(pickle.dumps(error)), pickle.loads(pickle.dumps(told))):
        assert type(each) is kind and str(each) == str(error) and each.exit_code == error.exit_code
        assert (each.message, each.hint, each.retryable, each.details) == (
            error.message, error.hint, error.retryable, error.details
        )  # fmt: skip


def test_an_error_of_a_newer_daemon_keeps_its_key() -> None:
    error = from_wire("not_yet_known", "a message", "a hint", True, {"n": 1})
    for each in (error, pickle.loads(pickle.dumps(error))):
        assert isinstance(each, Internal) and (each.key, each.retryable) == ("not_yet_known", True)
        assert (each.message, each.hint, each.details) == ("a message", "a hint", {"n": 1})
        assert each.exit_code == STATUS["internal"].exit_code
