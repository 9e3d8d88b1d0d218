"""transcript.export: every visibility and state, with and without private material, for every kind of caller."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from beetle import MemoryRuntime
from beetle.contracts.codec import UNSET
from beetle.contracts.errors import BeetleError, PrivacyDenied
from beetle.open import Embedded
from beetle.runtime.host.caller import Caller
from beetle.runtime.host.principals import OPERATOR
from tests.store.conftest import CONVERSATION, commit, lifecycle, open_runtime, path, store_of

__all__ = ["path"]

KINDS = ("shared", "private", "soul", "backend", "operator")
STATES = ("live", "masked", "deleted")
LEAVES = {("shared", False), ("shared", True), ("private", True), ("soul", True)}
"""(visibility, include_private) of live content that an export shows."""


def text(state: str, kind: str) -> str:
    return f"pelican {state} {kind}"


@pytest.fixture
def memory(path: str) -> Iterator[MemoryRuntime]:
    """A turn for each visibility and state, with an attr of its message."""
    with open_runtime(path) as opened:
        for state, kind in itertools.product(STATES, KINDS):
            turn_id = f"{state}-{kind}"
            said = {"message_id": turn_id, "role": "user", "content": text(state, kind), "visibility": kind}
            attr = {"key": "k", "value": f"attr {text(state, kind)}", "visibility": ["export"], "export_allowed": True,
                    "target": {"message_id": turn_id}}  # fmt: skip
            commit(opened, {"turn_id": turn_id, "at": "2024-03-09T12:00:00Z", "messages": [said], "attrs": [attr]})
        lifecycle(opened, "mask", *(f"masked-{kind}" for kind in KINDS))
        lifecycle(opened, "delete_raw", *(f"deleted-{kind}" for kind in KINDS))
        yield opened


def asked_by(memory: MemoryRuntime, caller: Caller) -> MemoryRuntime:
    mine = memory._opened
    return MemoryRuntime(Embedded(mine._opened, caller, mine._scope))


@pytest.mark.parametrize("include_private", [False, True])
def test_an_export_shows_what_the_table_lets_leave_and_no_word_more(
    memory: MemoryRuntime, include_private: bool
) -> None:
    report = memory.export_transcript(conversation=CONVERSATION, include_private=include_private)
    shown = {turn.messages[0].message_id for turn in report.turns if turn.messages[0].content is not UNSET}
    assert shown == {f"live-{kind}" for kind in KINDS if (kind, include_private) in LEAVES}
    assert {turn.turn_id for turn in report.turns if turn.attrs} == shown
    for state, kind in itertools.product(STATES, KINDS):
        assert (text(state, kind) in repr(report)) is (f"{state}-{kind}" in shown)
    hidden = len(KINDS) * len(STATES) - len(shown)
    assert (report.audit.messages_redacted, report.audit.attrs_redacted) == (hidden, hidden - len(KINDS))
    assert all(turn.messages[0].digest is UNSET for turn in report.turns)
    assert all(turn.messages[0].redacted is UNSET or turn.messages[0].redacted.digest is UNSET for turn in report.turns)


GRANTS = ("admin", "transcript.raw", "private.read", "raw_owner", "export")


@pytest.mark.parametrize("granted", list(itertools.product((False, True), repeat=len(GRANTS))), ids=str)
def test_private_material_leaves_only_with_every_grant(memory: MemoryRuntime, granted: tuple[bool, ...]) -> None:
    """A caller who answers for the store, sees the raw view and the private plane, and has the export view."""
    has = dict(zip(GRANTS, granted, strict=True))
    views = ("host_ui", *(view for view in ("raw_owner", "export") if has[view]))
    extra = {name for name in ("transcript.raw", "private.read") if has[name]}
    caller = Caller("someone", "operator" if has["admin"] else "principal", frozenset({"transcript", *extra}),
                    views, "unix_socket", "owner-a", "agent-a")  # type: ignore[arg-type]  # fmt: skip
    memory = asked_by(memory, caller)
    if has["export"]:
        assert memory.export_transcript(conversation=CONVERSATION).audit.messages_redacted == 14
    else:
        with pytest.raises(PrivacyDenied):
            memory.export_transcript(conversation=CONVERSATION)
    if all(granted):
        report = memory.export_transcript(conversation=CONVERSATION, include_private=True)
        assert report.audit.messages_redacted == 12
        return
    with pytest.raises(PrivacyDenied) as caught:
        memory.export_transcript(conversation=CONVERSATION, include_private=True)
    assert "pelican" not in caught.value.message and caught.value.hint


def test_the_operator_of_a_daemon_and_a_device_may_not_take_private_material_out(memory: MemoryRuntime) -> None:
    device = Caller("device:1", "device", OPERATOR.capabilities | {"transcript.raw", "private.read"},
                    ("export", "raw_owner"), "unix_socket", "owner-a", "agent-a")  # fmt: skip
    for caller in (OPERATOR, OPERATOR._replace(transport="cli"), device):
        with pytest.raises(PrivacyDenied):
            asked_by(memory, caller).export_transcript(conversation=CONVERSATION, include_private=True)


def test_a_refused_export_leaves_a_row_in_the_event_log_and_no_content(memory: MemoryRuntime) -> None:
    before = store_of(memory).head.seq
    with pytest.raises(BeetleError):
        asked_by(memory, OPERATOR).export_transcript(conversation=CONVERSATION, include_private=True)
    assert memory._opened._opened.dispatcher.refusals.flush(30)
    with store_of(memory).read() as tx:
        rows = list(tx.rows("SELECT event, operation, subject FROM event_log WHERE seq > ?", before))
    assert [(event, operation) for event, operation, _ in rows] == [("refused", "transcript.export")]
    assert "pelican" not in str(rows)


def test_a_batch_may_not_take_out_more_than_a_request(memory: MemoryRuntime) -> None:
    args = {"conversation": CONVERSATION, "include_private": True}
    with pytest.raises(PrivacyDenied):
        asked_by(memory, OPERATOR).batch(requests=[{"op": "transcript.export", "args": args}])
    (report,) = memory.batch(requests=[{"op": "transcript.export", "args": args}]).reports or ({},)
    assert report["include_private"] is True and text("live", "soul") in str(report)
    assert text("masked", "shared") not in str(report)
