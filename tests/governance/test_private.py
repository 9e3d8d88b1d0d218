"""The private plane: sealed at rest, opened for its owner alone, never searched, never elsewhere."""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile
from pathlib import Path
from typing import Any

import pytest

from beetle import MemoryRuntime
from beetle.client import Client
from beetle.contracts.errors import (
    BeetleError,
    Forbidden,
    IntegrityViolation,
    InvalidRequest,
    NotFound,
    PrivacyDenied,
)
from beetle.contracts.names import ViewName
from beetle.contracts.private import PrivateGetReport
from beetle.domain.digest import keyed
from beetle.open import Embedded
from beetle.runtime.host.caller import Caller
from beetle.runtime.host.config import Principal
from beetle.runtime.pipeline.views import Viewer, reveal
from beetle.runtime.planes import sealed_items
from beetle.sdk import MemoryRuntime as Runtime
from beetle.store.engine.store import Store
from beetle.store.private import find_item
from tests.governance.keeping import CANARY, SPOILED, invocation_of, keep, key_file
from tests.store.conftest import (
    DISK_BACKENDS,
    assert_clean,
    bytes_of,
    commit,
    lifecycle,
    open_runtime,
    store_of,
    turn,
)
from tests.transports.serving import Served

VIEWS: tuple[ViewName, ...] = ("raw_owner", "model_context", "host_ui", "operator_audit", "export")


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "store.db")


def change(store: Store, sql: str, *values: Any) -> None:
    store.write(lambda tx: tx.run(sql, *values))


def of_owner(memory: MemoryRuntime, owner: str) -> MemoryRuntime:
    """The same store for another owner."""
    embedded = memory._opened
    return Runtime(Embedded(embedded._opened, embedded._caller, embedded._scope.__class__(owner_id=owner)))


def asking_as(memory: MemoryRuntime, capabilities: set[str], views: tuple[ViewName, ...], kind: Any) -> MemoryRuntime:
    embedded = memory._opened
    caller = Caller("someone", kind, frozenset(capabilities), views, "in_process", agent_id="agent-a")
    return Runtime(Embedded(embedded._opened, caller, embedded._scope))


@pytest.mark.parametrize("backend", [*DISK_BACKENDS, "in-memory"])
def test_what_is_kept_is_listed_without_its_content_and_read_with_it(path: str, backend: str) -> None:
    with open_runtime(path, backend) as memory:
        garden = keep(memory, f"the {CANARY} 🪲", candidate_id="c-1")
        soul = keep(memory, "of the soul", "soul_candidate", authority="host", candidate_id="c-2")
        listed = memory.list_private()
        assert (listed.total, [each.record_id for each in listed.items]) == (2, [garden, soul])
        first, second = listed.items
        assert (first.plane, first.privacy, first.state) == ("private_garden", "subject_private", "kept")
        assert (second.plane, second.privacy, second.state) == ("soul_candidate", "soul_private", "handoff")
        assert (first.length, first.candidate_id, second.authority) == (len(f"the {CANARY} 🪲"), "c-1", "host")
        assert CANARY not in str(listed)
        found = memory.get_private(record_id=garden)
        assert (found.content, found.visibility) == (f"the {CANARY} 🪲", "private")
        assert memory.get_private(record_id=soul).visibility == "soul"
        assert garden != soul and garden.startswith("p-") and len(garden) == 18
        report = memory.verify_store()
        assert (report.clean, report.checked["private_items"]) == (True, 2)


def test_no_byte_of_it_is_in_any_file_event_or_log_nor_a_digest_that_could_be_guessed(
    path: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG), open_runtime(path) as memory:
        for place in range(300):
            keep(memory, f"{CANARY} number {place}")
        keep(memory, CANARY, "soul_candidate")
        memory.get_private(record_id=memory.list_private().items[0].record_id)
        for ask in (
            lambda: memory.recall(query=CANARY),
            lambda: memory.project(user_query=CANARY, system_max_len=2000, recent_messages_limit=10, pressure="normal"),
            lambda: memory.inspect(query=CANARY),
            lambda: memory.search_transcript(query="heliotrope", view="raw_owner"),
        ):
            assert CANARY not in str(ask())
        open_bytes = bytes_of(path)
        store = store_of(memory)
        digests = [keyed(store.key, "message", CANARY.encode()), hashlib.sha256(CANARY.encode()).digest()]
        digests += [keyed(store.key, purpose, CANARY.encode()) for purpose in ("content", "private content")]
        with store.read() as tx:
            rows = [str(row) for row in tx.rows("SELECT * FROM event_log")]
    for held in (open_bytes, bytes_of(path)):
        for secret in (CANARY.encode(), b"heliotrope", *digests):
            assert secret not in held
    assert "heliotrope" not in "".join(rows) + caplog.text


def test_the_same_text_in_the_same_plane_is_kept_once(path: str) -> None:
    with open_runtime(path) as memory:
        first = keep(memory, CANARY)
        assert keep(memory, CANARY, candidate_id="another") == first
        assert keep(memory, CANARY, "soul_candidate") != first
        assert keep(memory, CANARY, privacy="soul_private") != first
        assert keep(of_owner(memory, "owner-b"), CANARY) != first
        assert memory.list_private().total == 3
        invocation = invocation_of(memory)
        with store_of(memory).read() as tx:
            assert sealed_items.saying(invocation, tx, 1, "private_garden", "subject_private", CANARY) == first
            assert sealed_items.saying(invocation, tx, 1, "private_garden", "subject_private", "other") is None
            macs = [row[0] for row in tx.rows("SELECT content_mac FROM private_item")]
        assert len(set(macs)) == 2, "one for each space's own key"


def test_each_space_has_a_key_of_its_own_and_sees_its_own_records(path: str) -> None:
    with open_runtime(path) as memory:
        mine = keep(memory, "mine")
        other = of_owner(memory, "owner-b")
        theirs = keep(other, "theirs")
        assert [each.record_id for each in other.list_private().items] == [theirs]
        with pytest.raises(NotFound):
            other.get_private(record_id=mine)
        with pytest.raises(NotFound):
            of_owner(memory, "nobody").get_private(record_id=mine)
        assert of_owner(memory, "nobody").list_private().items == ()
        with store_of(memory).read() as tx:
            assert tx.value("SELECT count(DISTINCT wrapped) FROM space_key") == 2


SEALED_OF = "(SELECT sealed FROM private_item WHERE record_id = ?2)"
KEY_OF_ANOTHER = "(SELECT wrapped FROM space_key WHERE space = 2)"
MOVED = {
    "its content is another's": f"UPDATE private_item SET sealed = {SEALED_OF} WHERE record_id = ?1",
    "it goes by another plane": "UPDATE private_item SET plane = 'soul_candidate' WHERE record_id = ?1 AND ?2 <> ''",
    "it goes by another id": "UPDATE private_item SET record_id = record_id || '0' WHERE record_id = ?1 AND ?2 <> ''",
    "it is empty": "UPDATE private_item SET sealed = x'' WHERE record_id = ?1 AND ?2 <> ''",
    "the key is changed": "UPDATE space_key SET wrapped = zeroblob(60) WHERE ?1 <> ?2",
    "the key is another space's": f"UPDATE space_key SET wrapped = {KEY_OF_ANOTHER} WHERE space = 1 AND ?1 <> ?2",
}


@pytest.mark.parametrize("how", MOVED)
def test_a_record_that_was_changed_or_moved_does_not_open(path: str, how: str) -> None:
    with open_runtime(path) as memory:
        record, another = keep(memory, CANARY), keep(memory, "another")
        keep(of_owner(memory, "owner-b"), "theirs")
        change(store_of(memory), MOVED[how], record, another)
        if how == "it goes by another id":
            record += "0"
        with pytest.raises(IntegrityViolation) as caught:
            memory.get_private(record_id=record)
        assert CANARY not in f"{caught.value}{caught.value.details}"
        report = memory.verify_store()
        assert not report.clean
        assert {each.check for each in report.findings} == {"private"}


def test_every_changed_byte_of_a_record_and_every_cut_is_seen(path: str) -> None:
    with open_runtime(path) as memory:
        record = keep(memory, CANARY)
        invocation = invocation_of(memory)
        with store_of(memory).read() as tx:
            item = find_item(tx, 1, record)
            assert item is not None and sealed_items.content_of(invocation, tx, 1, item) == CANARY
            sealed = item.sealed
            flipped = [sealed[:n] + bytes([sealed[n] ^ 1]) + sealed[n + 1 :] for n in range(len(sealed))]
            for changed in (*flipped, *(sealed[:n] for n in range(len(sealed))), sealed + b"\0"):
                with pytest.raises(IntegrityViolation):
                    sealed_items.content_of(invocation, tx, 1, item._replace(sealed=changed))


def test_a_record_moved_to_another_space_does_not_open_there(path: str) -> None:
    with open_runtime(path) as memory:
        record = keep(memory, CANARY)
        other = of_owner(memory, "owner-b")
        keep(other, "theirs")
        change(store_of(memory), "UPDATE private_item SET space = 2 WHERE record_id = ?", record)
        with pytest.raises(IntegrityViolation):
            other.get_private(record_id=record)
        # Not even with the key that it was sealed with: that does not unwrap for another space.
        change(store_of(memory), "UPDATE space_key SET wrapped = (SELECT wrapped FROM space_key WHERE space = 1)")
        with pytest.raises(IntegrityViolation):
            other.get_private(record_id=record)


def test_a_record_whose_space_has_no_key_is_found_without_an_identity_too(path: str) -> None:
    with open_runtime(path) as memory:
        keep(memory, CANARY)
        change(store_of(memory), "DELETE FROM space_key")
        key_file(path).unlink()
        report = memory.verify_store()
        assert [(each.check, each.problem) for each in report.findings] == [("private", "its space has no key")]


@pytest.mark.parametrize("how", SPOILED)
def test_a_write_that_began_before_the_key_file_was_spoiled_leaves_nothing(path: str, how: str) -> None:
    with open_runtime(path) as memory:
        assert sealed_items.available(invocation_of(memory)) is None
        SPOILED[how][1](key_file(path))
        assert sealed_items.available(invocation_of(memory))
        with pytest.raises(BeetleError):
            keep(memory, CANARY)
        with store_of(memory).read() as tx:
            assert tx.value("SELECT (SELECT count(*) FROM private_item) + (SELECT count(*) FROM space_key)") == 0


OWNER = {"private.read", "transcript.raw"}


@pytest.mark.parametrize(
    ("capabilities", "views", "kind"),
    [
        (set(), VIEWS, "operator"),
        ({"transcript.raw"}, VIEWS, "operator"),
        ({"private.read"}, VIEWS, "operator"),
        (OWNER, VIEWS[1:], "operator"),
        (OWNER, VIEWS, "principal"),
        (OWNER, VIEWS, "device"),
    ],
    ids=["nothing", "no private.read", "no transcript.raw", "no raw_owner", "no operator", "a device"],
)
def test_who_is_not_the_owner_is_refused_and_the_refusal_logged(
    path: str, capabilities: set[str], views: tuple[ViewName, ...], kind: str
) -> None:
    with open_runtime(path) as memory:
        record = keep(memory, CANARY)
        other = asking_as(memory, capabilities, views, kind)
        for ask in (other.list_private, lambda: other.get_private(record_id=record)):
            with pytest.raises(Forbidden):
                ask()
        visible = {each.name: each.visible for each in other.hello().operations}
        assert not visible["private.list"] and not visible["private.get"]
        owner = asking_as(memory, OWNER, ("host_ui", "raw_owner"), "operator")
        assert owner.get_private(record_id=record).content == CANARY
        assert memory._opened._opened.dispatcher.refusals.flush(30)
        with store_of(memory).read() as tx:
            refused = list(tx.rows("SELECT operation FROM event_log WHERE event = 'refused'"))
        assert refused == [("private.list",), ("private.get",)]


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("plane", ["private_garden", "soul_candidate"])
def test_the_gate_takes_the_content_out_of_every_view_but_the_owner_s(path: str, view: ViewName, plane: str) -> None:
    with open_runtime(path) as memory:
        report = memory.get_private(record_id=keep(memory, CANARY, plane))
    assert isinstance(report, PrivateGetReport)
    for viewer in (Viewer(view), Viewer(view, own_agent=True, operator=True, include_private=True)):
        shown = reveal(report, viewer, 10, 10)
        assert shown.content == (CANARY if view == "raw_owner" else None)


def test_pages_hold_every_record_once_while_others_are_kept(path: str) -> None:
    with open_runtime(path) as memory:
        records = [keep(memory, f"number {n}", "soul_candidate" if n % 3 == 0 else "private_garden") for n in range(20)]
        seen: list[str] = []
        cursor = None
        while True:
            page = memory.list_private(limit=3, cursor=cursor)
            seen += [each.record_id for each in page.items]
            if not page.has_more:
                break
            cursor = page.next_cursor
            if len(records) < 24:
                records.append(keep(memory, f"late {len(records)}"))
        assert seen == records
        garden = memory.list_private(plane="private_garden", limit=2)
        assert garden.total == 17 and {each.plane for each in garden.items} == {"private_garden"}
        following = memory.list_private(plane="private_garden", limit=2, cursor=garden.next_cursor)
        assert following.items[0].record_id not in {each.record_id for each in garden.items}
        for other in ({"plane": "soul_candidate"}, {}):
            with pytest.raises(InvalidRequest):
                memory.list_private(cursor=garden.next_cursor, **other)


def test_an_unknown_record_is_not_found(path: str) -> None:
    with open_runtime(path) as memory:
        with pytest.raises(NotFound):
            memory.get_private(record_id="p-0000000000000000")
        keep(memory, CANARY)
        with pytest.raises(NotFound):
            memory.get_private(record_id="p-0000000000000000")


def test_the_rest_of_the_store_knows_nothing_of_it(path: str) -> None:
    with open_runtime(path) as memory:
        commit(memory, turn("t1", f"{CANARY} is shared here"))
        keep(memory, f"{CANARY} is private here")
        assert {hit.plane for hit in memory.recall(query=CANARY, limit=50).hits} == {"evidence"}
        lifecycle(memory, "delete_raw", "t1")
        assert memory.list_private().total == 1
        assert_clean(memory)


def test_over_the_socket_the_plane_is_open_to_a_principal_that_was_granted_it_all(tmp_path: Path) -> None:
    granted = ("admin", "inspect", "private.read", "transcript.raw")
    owner = Principal(uid=os.getuid(), capabilities=granted, views=("host_ui", "raw_owner"))
    with tempfile.TemporaryDirectory(prefix="bp-") as folder:
        served = Served(Path(folder), principals={"owner": owner})
        try:
            with Client(served.path) as client:
                with pytest.raises(NotFound):
                    client.get_private(record_id="p-0000000000000000")
                assert client.list_private().items == ()
                Path(f"{folder}/b.db.identity").unlink()
                with pytest.raises(PrivacyDenied) as refused:
                    client.list_private()
                assert refused.value.details["state"] == "missing"
                assert folder not in f"{refused.value}{refused.value.hint}"
                assert client.inspect().operator.identity.state == "missing"
        finally:
            served.stop()


def bytes_of_files(path: str) -> bytes:
    """Everything beside a store; a key file that is a pipe or a folder now holds nothing."""
    return b"".join(each.read_bytes() for each in Path(path).parent.iterdir() if each.is_file())


PLANES = {"private_garden": "subject_private", "soul_candidate": "soul_private"}


def judged(memory: MemoryRuntime, target: str, content: str) -> tuple[str, str]:
    """Outcome and reason of a candidate for the private plane."""
    given = {"candidate_id": "c", "authority": "user_asserted", "target": target, "privacy": PLANES[target]}
    outcome = memory.write(kind="candidates", candidates=[{**given, "content": content}]).outcomes[0]
    return outcome.outcome, outcome.reason


@pytest.mark.parametrize("paused", [False, True], ids=["open", "paused"])
@pytest.mark.parametrize("target", PLANES)
@pytest.mark.parametrize("how", SPOILED)
def test_a_candidate_for_the_plane_is_not_written_without_a_usable_key(
    path: str, how: str, target: str, paused: bool, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG), open_runtime(path) as memory:
        if paused:
            memory.long_term_policy(action="pause")
        SPOILED[how][1](key_file(path))
        try:
            assert judged(memory, target, CANARY) == ("rejected", "private_unavailable")
        except PrivacyDenied as error:
            assert paused and CANARY not in f"{error}{error.hint}{error.details}"
        with pytest.raises(PrivacyDenied):
            memory.list_private()
        with store_of(memory).read() as tx:
            assert tx.value("SELECT (SELECT count(*) FROM private_item) + (SELECT count(*) FROM candidate_body)") == 0
        commit(memory, turn("t1", "the ferry leaves at noon"))
        held = bytes_of_files(path)
    assert CANARY.encode() not in held + bytes_of_files(path)
    assert CANARY not in caplog.text


@pytest.mark.parametrize("target", PLANES)
def test_a_candidate_that_waits_for_a_pause_to_end_waits_sealed(path: str, target: str) -> None:
    with open_runtime(path) as memory:
        memory.long_term_policy(action="pause")
        assert judged(memory, target, CANARY) == ("deferred", "policy_paused")
        assert memory.list_private().items[0].state == "waiting"
        assert CANARY.encode() not in bytes_of(path)
        memory.long_term_policy(action="resume")
        assert memory.list_private().items[0].state != "waiting"
        assert CANARY.encode() not in bytes_of(path)
        assert_clean(memory)
