"""The one path of every call: whose view is used, what a batch may grow, which keys are kept, who is woken."""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from beetle.contracts.codec import to_plain
from beetle.contracts.errors import BeetleError, StoreBudgetExceeded
from beetle.open import Opened, open_store
from beetle.runtime.areas.table import HANDLERS, Handlers
from beetle.runtime.host.caller import Caller
from beetle.runtime.host.modes import RESTORED
from beetle.runtime.pipeline.handlers import Plain
from beetle.runtime.pipeline.invocation import Call
from beetle.store.event_log import Event
from tests.runtime.callers import agent_of
from tests.store.conftest import commit, open_runtime, turn

CALLER = agent_of("one")
CONVERSATION = {"channel_id": "local", "conversation_id": "c"}
KINDS = ("shared", "private", "soul", "backend", "operator")


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Opened]:
    found = open_store(str(tmp_path / "beetle.db"), "profile-server-linux-dev-full")
    yield found
    found.store.close()


def ask(opened: Opened, op: str, args: Any = None, caller: Caller = CALLER, **more: Any) -> dict[str, Any]:
    return to_plain(opened.dispatcher.dispatch(Call(op, args, caller, **more)).report)


def refused(opened: Opened, op: str, args: Any = None, caller: Caller = CALLER) -> BeetleError:
    with pytest.raises(BeetleError) as caught:
        opened.dispatcher.dispatch(Call(op, args, caller))
    return caught.value


def say(opened: Opened) -> None:
    messages = [{"message_id": kind, "role": "user", "content": f"kettle {kind}", "visibility": kind} for kind in KINDS]
    turns = [{"turn_id": each["message_id"], "at": "2024-05-01T10:00:00Z", "messages": [each]} for each in messages]
    ask(opened, "transcript.commit", {"conversation": CONVERSATION, "turns": turns})


@pytest.mark.parametrize(
    "views", [("raw_owner", "host_ui"), ("host_ui", "raw_owner"), ("raw_owner", "host_ui", "export")]
)
def test_an_operation_without_a_view_of_its_own_is_never_seen_through_the_owner_s(
    opened: Opened, views: tuple[Any, ...]
) -> None:
    say(opened)
    owner = CALLER._replace(
        kind="operator", views=views, agent_id="another", capabilities=CALLER.capabilities | {"transcript.raw"}
    )
    hits = ask(opened, "memory.recall", {"query": "kettle", "limit": 50}, owner)["hits"]
    assert [each["excerpt"] for each in hits] == ["kettle shared"]


def test_who_has_only_the_owner_s_view_or_none_sees_an_audit_s(opened: Opened) -> None:
    say(opened)
    for views in ((), ("raw_owner",)):
        hits = ask(opened, "memory.recall", {"query": "kettle"}, CALLER._replace(views=views, agent_id="another"))[
            "hits"
        ]
        assert "kettle shared" not in [each.get("excerpt") for each in hits]


RAW = frozenset({"transcript.raw"})


@pytest.mark.parametrize(
    ("kind", "more", "views", "shown"),
    [
        ("operator", RAW, ("raw_owner",), True),
        ("principal", RAW, ("raw_owner",), False),
        ("operator", frozenset(), ("raw_owner",), False),
        ("operator", RAW, ("host_ui",), False),
    ],
)
def test_the_raw_view_takes_an_operator_with_the_capability_and_the_view(
    opened: Opened, kind: Any, more: frozenset[str], views: Any, shown: bool
) -> None:
    say(opened)
    caller = CALLER._replace(kind=kind, views=views, capabilities=(CALLER.capabilities - RAW) | more)
    asked = {"conversation": CONVERSATION, "view": "raw_owner"}
    if shown:
        turns = ask(opened, "transcript.replay", asked, caller)["turns"]
        assert [each["messages"][0]["content"] for each in turns] == [f"kettle {kind}" for kind in KINDS]
    else:
        assert refused(opened, "transcript.replay", asked, caller).key == "privacy_denied"
        error = refused(
            opened, "private.list", {}, caller._replace(capabilities=caller.capabilities | {"private.read"})
        )
        assert (error.key, error.details["view"]) == ("forbidden", "raw_owner")


def test_an_export_s_view_leaves_private_material_out_where_nobody_asked_for_it(opened: Opened) -> None:
    say(opened)
    exporter = CALLER._replace(views=("export",), agent_id="another")
    turns = ask(opened, "transcript.replay", {"conversation": CONVERSATION, "view": "export"}, exporter)["turns"]
    assert [each["messages"][0].get("content") for each in turns] == ["kettle shared", None, None, None, None]


def test_a_caller_s_catalog_hides_what_it_was_not_granted_and_says_so(opened: Opened) -> None:
    poor = CALLER._replace(capabilities=frozenset({"recall"}))
    shown = ask(opened, "memory.capabilities", {}, poor)["capabilities"]
    assert shown["recall"]["visible"] is True and shown["recall"].get("reason") is None
    assert (shown["skill"]["visible"], shown["skill"]["reason"]) == (False, "this caller was not granted it")


def test_an_unknown_operation_is_named_up_to_a_length(opened: Opened) -> None:
    assert refused(opened, "memory.recal").details["operation"] == "memory.recal"
    assert refused(opened, "x" * 500).details["operation"] == "x" * 128


@pytest.mark.parametrize(
    ("number", "key"), [(errno.EMFILE, "overloaded"), (errno.ENFILE, "overloaded"), (errno.EIO, "internal")]
)
def test_where_no_descriptor_is_left_for_a_file_or_a_module_a_call_may_be_repeated(
    opened: Opened, monkeypatch: pytest.MonkeyPatch, number: int, key: str
) -> None:
    def opens(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setitem(HANDLERS, "hello", Plain(opens))
    error = refused(opened, "hello")
    assert (error.key, error.retryable) == (key, key == "overloaded")


def test_a_key_on_what_only_reads_is_not_kept_and_repeats_nothing(opened: Opened) -> None:
    for _ in range(2):
        call = Call("agent_skill.list", {}, CALLER, None, "a key")
        assert opened.dispatcher.dispatch(call).repeated is False
    with opened.store.read() as tx:
        assert tx.value("SELECT count(*) FROM idempotency") == 0


def test_a_report_says_that_a_budget_was_applied_only_where_one_was(opened: Opened) -> None:
    say(opened)
    most = opened.profile.budgets.recall_limit
    for asked, applied in ((1, False), (most, False), (most + 1, True)):
        report = ask(opened, "memory.recall", {"query": "kettle", "limit": asked})
        assert report.get("profile_budget_applied", False) is applied


def test_the_scheduler_is_woken_by_jobs_and_by_a_restore_alone(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    woken: list[str] = []
    say(opened)
    monkeypatch.setattr(opened.dispatcher.scheduler, "wake", lambda: woken.append("woken"))
    ask(opened, "memory.write", {"kind": "procedural", "source": "manual", "writes": [
        {"name": "tea", "topic": "tea", "title": "Tea", "summary": "how to", "content": "boil"}]})  # fmt: skip
    assert woken == []
    opened.store.write(lambda tx: tx.log(Event("job", "queued", "test", "test", None, {})))
    assert woken == ["woken"]
    opened.store.write(lambda tx: tx.log(Event("lifecycle", RESTORED, "test", "test", None, {})))
    assert woken == ["woken", "woken"]


def test_a_store_whose_scheduler_does_not_run_logs_no_trouble_when_a_job_is_left(
    opened: Opened, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="beetle"):
        say(opened)
        opened.store.write(lambda tx: tx.log(Event("job", "queued", "test", "test", None, {})))
    assert [record.message for record in caplog.records] == []


@pytest.mark.parametrize("beside", [[], [{"op": "memory.recall", "args": {"query": "word"}}]])
def test_a_batch_that_writes_is_held_to_the_ceiling_like_the_write_itself(tmp_path: Path, beside: list[Any]) -> None:
    with open_runtime(tmp_path / "store.db", store_bytes=600_000) as memory:
        with pytest.raises(StoreBudgetExceeded):
            for number in range(2000):
                commit(memory, turn(f"t{number}", f"word{number} " + "filler " * 1000))
        small = {
            "conversation": {"channel_id": "local", "conversation_id": "c1"},
            "turns": [turn("late", "filler " * 5000)],
        }
        with pytest.raises(StoreBudgetExceeded):
            for _ in range(50):
                memory.call("batch", {"requests": [*beside, {"op": "transcript.commit", "args": small}]})
                small["turns"][0]["turn_id"] += "x"
                small["turns"][0]["messages"][0]["message_id"] += "x"


def test_a_batch_that_only_reads_is_answered_at_the_ceiling(tmp_path: Path) -> None:
    with open_runtime(tmp_path / "store.db", store_bytes=600_000) as memory:
        with pytest.raises(StoreBudgetExceeded):
            for number in range(2000):
                commit(memory, turn(f"t{number}", f"word{number} " + "filler " * 1000))
        made = memory.call("batch", {"requests": [{"op": "memory.recall", "args": {"query": "word1"}}]})
        assert to_plain(made)["reports"]


def test_whether_a_call_is_brief_is_told_without_loading_its_handler(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh = Handlers()
    monkeypatch.setattr(opened.dispatcher, "_handlers", fresh)
    turns = [turn("t1", "hello")]
    call = Call("transcript.commit", {"conversation": CONVERSATION, "turns": turns}, CALLER)
    assert not opened.dispatcher.is_brief(call)
    assert not fresh._known
    opened.dispatcher.dispatch(call)
    assert opened.dispatcher.is_brief(call)
