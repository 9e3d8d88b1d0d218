"""turn.capture, host_key.* and host.coverage: each turn of a host once, byte for byte, signed or not."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from beetle import MemoryRuntime
from beetle.contracts.common import MemoryIdentity
from beetle.contracts.errors import (
    BeetleError,
    Conflict,
    HostPubkeyNotEnrolled,
    InvalidRequest,
    NotFound,
    PayloadTooLarge,
    SignatureInvalid,
)
from tests.building import talk, turn

Plain = dict[str, Any]
VECTORS = json.loads(Path(__file__).with_name("vectors.json").read_text())
SIGNED: list[Plain] = [{**each, "host_turn_index": int(each["host_turn_index"])} for each in VECTORS["turns"]]
AT = "2026-05-17T09:30:00Z"
MOST = 2**63 - 1


@pytest.fixture
def memory() -> Iterator[MemoryRuntime]:
    with MemoryRuntime.open(":memory:") as opened:
        yield opened


def spoken(index: int = 0, content: str = "The key is under the pot", **more: Any) -> Plain:
    return {"host_session_id": "s1", "host_turn_index": index, "role": "user", "content": content, **more}


def capture(memory: MemoryRuntime, given: Plain, **how: Any) -> Plain:
    return memory.call("turn.capture", given, **how).to_dict()


def refused(memory: MemoryRuntime, given: Plain, kind: type[BeetleError] = InvalidRequest) -> BeetleError:
    with pytest.raises(kind) as caught:
        memory.call("turn.capture", given)
    return caught.value


def kept(memory: MemoryRuntime, channel: str = "unknown", session: str = "s1") -> list[Plain]:
    asked = {"conversation": {"channel_id": channel, "conversation_id": session}, "view": "host_ui"}
    turns: list[Plain] = memory.call("transcript.replay", asked).to_dict()["turns"]
    return turns


def attrs(turn_: Plain) -> Plain:
    return {each["key"]: each["value"] for each in turn_["attrs"]}


def coverage(memory: MemoryRuntime, **asked: Any) -> Plain:
    return memory.call("host.coverage", asked).to_dict()


def enroll(memory: MemoryRuntime, key: str, **more: Any) -> Plain:
    return memory.call("host_key.enroll", {"host_pubkey_b64": key, "label": "laptop", **more}).to_dict()


def captured_events(memory: MemoryRuntime) -> int:
    return len([e for e in memory.read_event_log(limit=500).rows if e.event == "captured"])


def test_all_twelve_fields_are_kept(memory: MemoryRuntime) -> None:
    enroll(memory, SIGNED[0]["host_pubkey_b64"], host_kind="claude-code")
    calls = [{"tool": "Read", "brief": "main.rs"}, {"tool": "Bash", "brief": ""}, {"tool": "Read", "brief": "main.rs"}]
    given = {
        **SIGNED[0], "host_kind": "claude-code", "host_version": "2.1.0", "tool_calls": calls, "timestamp_iso": AT,
        "namespace": "team/api", "metadata": {"cwd": "/src", "n": [1, {"x": None}], "entity_id": "user:1"},
    }  # fmt: skip
    report = capture(memory, given)
    (turn_,) = kept(memory, "claude-code")
    (message,) = turn_["messages"]
    assert report["memory_id"] == "evidence:claude-code/s1/turn-0/turn-0"
    assert (report["dedup_hit"], report["layer"], report["attest_level"]) == (False, "L4", "signed_by_peer")
    assert (message["role"], message["content"], message["at"]) == ("user", "What is Rust?", AT)
    assert [{"tool": c["tool"], "brief": c["brief"]} for c in message["tool_calls"]] == calls
    said = attrs(turn_)
    assert json.loads(said["metadata"]) == {**given["metadata"], "agent_id": "agent-main"}
    assert said["namespace"] == "team/api"
    how = json.loads(said["capture"])
    assert how == {
        **{name: given[name] for name in ("host_session_id", "host_turn_index", "host_kind", "host_version")},
        **{name: given[name] for name in ("host_signature_b64", "host_pubkey_b64")},
        "agent_id": "agent-main", "attest_level": "signed_by_peer",
    }  # fmt: skip
    (logged,) = [e for e in memory.read_event_log(limit=100).rows if e.event == "captured"]
    assert {**logged.subject}.items() >= {
        "host_version": "2.1.0",
        "attest_level": "signed_by_peer",
        "channel_id": "claude-code",
    }.items()  # type: ignore[dict-item]


def test_a_turn_needs_four_fields_alone(memory: MemoryRuntime) -> None:
    optional = ("host_kind", "host_version", "tool_calls", "timestamp_iso", "host_signature_b64", "host_pubkey_b64",
                "namespace", "metadata")  # fmt: skip
    before = datetime.now(UTC)
    report = capture(memory, {**spoken(), **dict.fromkeys(optional)})
    (turn_,) = kept(memory)
    assert report["attest_level"] == "self_signed"
    assert before.timestamp() - 1 <= datetime.fromisoformat(turn_["at"]).timestamp() <= datetime.now(UTC).timestamp()
    for missing in spoken():
        given = spoken()
        del given[missing]
        assert missing in refused(memory, given).message


@pytest.mark.parametrize("content", [
    "", "\0", "a\0b\0", "lone \r and \r\n", "trailing  \n", "\ufeffbom", "e\u0301 is not é", "日本語 👩‍👩‍👧",
    "x" * (1 << 20),
], ids=["empty", "nul", "nuls", "cr", "trailing", "bom", "nfd", "wide", "mebibyte"])  # fmt: skip
def test_content_is_kept_byte_for_byte(memory: MemoryRuntime, content: str) -> None:
    for role in ("user", "assistant", "tool_use", "tool_result", "system", "other"):
        capture(memory, spoken(content=content, role=role, host_session_id=role))
        (turn_,) = kept(memory, session=role)
        assert [(m["role"], m["content"]) for m in turn_["messages"]] == [(role, content)]
    assert memory.call("store.verify").to_dict()["findings"] == ()


def test_multi_byte_text_is_recalled_whatever_its_length(memory: MemoryRuntime) -> None:
    text = "zanzibar " + "é鳥👩‍👩‍👧" * 100
    for n in range(40):
        capture(memory, spoken(n, "x" * n + " " + text))
    for hit in memory.recall("zanzibar", limit=8).hits:
        assert hit.excerpt is not None and hit.excerpt.encode().decode() == hit.excerpt


def test_the_first_delivery_of_a_turn_is_kept(memory: MemoryRuntime) -> None:
    first = capture(memory, spoken())
    again = capture(memory, spoken(host_kind="codex", namespace="other"))
    other = capture(memory, spoken(content="The key is gone"))
    assert again["memory_id"] == other["memory_id"] == first["memory_id"]
    assert [(r["dedup_hit"], r["content_mismatch"], r["lifecycle"]["changed"]) for r in (first, again, other)] == [
        (False, False, True), (True, False, False), (True, True, False),
    ]  # fmt: skip
    assert [m["content"] for t in kept(memory) for m in t["messages"]] == ["The key is under the pot"]
    assert captured_events(memory) == 1
    (host,) = coverage(memory)["hosts"]
    assert (host["turns"], host["duplicates"], host["content_mismatches"]) == (1, 2, 1)


def test_titles_that_would_collide_are_turns_of_their_own(memory: MemoryRuntime) -> None:
    for kind, session in (("a b", "c"), ("a", "b c")):
        assert not capture(memory, spoken(host_kind=kind, host_session_id=session))["dedup_hit"]


def test_another_agent_is_not_told_of_a_turn(tmp_path: Path) -> None:
    store = str(tmp_path / "b.db")
    with MemoryRuntime.open(store) as memory:
        capture(memory, spoken())
    with MemoryRuntime.open(store, identity=MemoryIdentity(agent_id="another")) as memory:
        error = refused(memory, spoken(), Conflict)
        assert "evidence:" not in str(error) + json.dumps(error.details)
        assert error.details["code"] == "INVALID_INPUT"
    with MemoryRuntime.open(store, identity=MemoryIdentity(owner_id="another")) as memory:
        assert memory.call("host_key.list", {}).to_dict()["host_keys"] == ()
        assert not capture(memory, spoken())["dedup_hit"]


def test_what_was_deleted_stays_so(memory: MemoryRuntime) -> None:
    capture(memory, spoken(tool_calls=[{"tool": "Read", "brief": "zanzibar"}], metadata={"secret": "zanzibar"}))
    where = {
        "conversation": {"channel_id": "unknown", "conversation_id": "s1"},
        "turn_ids": ["turn-0"],
        "reason": "asked",
    }
    memory.call("transcript.lifecycle", {**where, "action": "mask"})
    masked = capture(memory, spoken(content="a guess"))
    assert (masked["dedup_hit"], masked["memory_deleted"]) == (True, False)
    memory.call("transcript.lifecycle", {**where, "action": "delete_raw"})
    gone = capture(memory, spoken())
    assert (gone["dedup_hit"], gone["content_mismatch"], gone["memory_deleted"]) == (True, False, True)
    (turn_,) = kept(memory)
    assert turn_["attrs"] == () and "content" not in turn_["messages"][0]
    assert memory.call("store.verify").to_dict()["findings"] == ()


def test_forgetting_reaches_captured_turns(memory: MemoryRuntime) -> None:
    capture(memory, spoken(content="zanzibar is far"))
    dry = memory.call("memory.forget", {"query": "zanzibar", "dry_run": True}).to_dict()
    memory.call("memory.forget", {"query": "zanzibar", "token": dry["token"]})
    assert memory.recall("zanzibar").hits == ()
    assert capture(memory, spoken(content="zanzibar is far"))["memory_deleted"]


@pytest.mark.parametrize(("wrong", "path"), [
    ({"host_session_id": ""}, "host_session_id"), ({"host_session_id": "x" * 257}, "host_session_id"),
    ({"host_session_id": "a\0b"}, "host_session_id"), ({"host_turn_index": -1}, "host_turn_index"),
    ({"host_turn_index": 1.5}, "host_turn_index"), ({"host_turn_index": "1"}, "host_turn_index"),
    ({"host_turn_index": True}, "host_turn_index"), ({"role": "robot"}, "role"), ({"role": "user\0"}, "role"),
    ({"timestamp_iso": "2026-05-17T09:30:00"}, "timestamp_iso"), ({"timestamp_iso": "soon"}, "timestamp_iso"),
    ({"timestamp_iso": "2026-12-31T23:59:60Z"}, "timestamp_iso"), ({"metadata": []}, "metadata"),
    ({"metadata": "x"}, "metadata"), ({"metadata": {"agent_id": "forged"}}, "metadata.agent_id"),
    ({"metadata": {"agent_id": 7}}, "metadata.agent_id"), ({"metadata": {"agent_id": None}}, "metadata.agent_id"),
    ({"metadata": {"entity_id": ""}}, "metadata.entity_id"), ({"metadata": {"entity_id": "/x"}}, "metadata.entity_id"),
    ({"metadata": {"mentioned_entity_id": ["x"]}}, "metadata.mentioned_entity_id"),
    ({"metadata": {"x": "y" * 65_536}}, "metadata"), ({"namespace": "a/../b"}, "namespace"),
    ({"namespace": ""}, "namespace"), ({"namespace": "a//b"}, "namespace"), ({"namespace": "a b"}, "namespace"),
    ({"namespace": "a\\b"}, "namespace"), ({"namespace": "a/b/c/d/e/f/g/h/i"}, "namespace"),
    ({"tool_calls": [{"tool": "x"}]}, "tool_calls[0].brief"), ({"tool_calls": [{"brief": "x"}]}, "tool_calls[0].tool"),
    ({"tool_calls": [{"tool": "x", "brief": "y" * 201}]}, "tool_calls[0].brief"), ({"more": 1}, "more"),
])  # fmt: skip
def test_what_is_wrong_with_a_turn_is_told_by_its_path(memory: MemoryRuntime, wrong: Plain, path: str) -> None:
    assert refused(memory, {**spoken(), **wrong}).details["path"] == f"$.args.{path}"
    assert coverage(memory)["hosts"] == ()


def test_the_ends_of_each_field_are_taken(memory: MemoryRuntime) -> None:
    deep: Plain = {}
    for _ in range(30):
        deep = {"x": deep}
    ends = {
        "host_session_id": "x" * 256, "host_turn_index": MOST, "metadata": {"deep": deep, "agent_id": "agent-main"},
        "namespace": "a/b/c/d/e/f/g/h", "timestamp_iso": "2026-05-17T23:30:00.123456-05:30",
        "tool_calls": [{"tool": "x", "brief": "y" * 200}],
    }  # fmt: skip
    capture(memory, {**spoken(), **ends})
    (turn_,) = kept(memory, session="x" * 256)
    assert turn_["at"] == "2026-05-18T05:00:00.123456Z"
    (host,) = coverage(memory)["hosts"]
    assert (host["turns"], host["gaps"]) == (1, MOST)
    (worst,) = coverage(memory)["incomplete"]
    assert worst["missing"] == ({"first": 0, "last": MOST - 1},)


def test_content_over_the_profiles_budget_is_refused(memory: MemoryRuntime) -> None:
    refused(memory, spoken(content="x" * ((1 << 20) + 1)), PayloadTooLarge)
    most = [{"tool": "x", "brief": "y" * 200}] * 128
    refused(memory, spoken(content="x" * ((1 << 20) - 1000), tool_calls=most), PayloadTooLarge)


@pytest.mark.parametrize("given", SIGNED, ids=range(len(SIGNED)))
def test_signatures_by_another_implementation_are_verified(memory: MemoryRuntime, given: Plain) -> None:
    error = refused(memory, given, HostPubkeyNotEnrolled)
    assert error.details["code"] == "HOST_PUBKEY_NOT_ENROLLED"
    enroll(memory, given["host_pubkey_b64"])
    for name, value in (("content", given["content"] + " "), ("role", "user" if given["role"] != "user" else "other"),
                        ("host_turn_index", given["host_turn_index"] ^ 1), ("host_session_id", "another")):  # fmt: skip
        tampered = refused(memory, {**given, name: value}, SignatureInvalid)
        assert (tampered.details["code"], tampered.details["problem"]) == (
            "INVALID_INPUT",
            "signature_verification_failed",
        )
    assert capture(memory, given)["attest_level"] == "signed_by_peer"
    again = capture(memory, given)
    assert (again["dedup_hit"], again["attest_level"]) == (True, "signed_by_peer")
    refused(memory, {**given, "content": "tampered"}, SignatureInvalid)
    unsigned = {name: given[name] for name in ("host_session_id", "host_turn_index", "role", "content")}
    assert capture(memory, unsigned)["attest_level"] == "signed_by_peer"


def test_what_is_not_signed_stays_open_to_change_and_says_so(memory: MemoryRuntime) -> None:
    enroll(memory, SIGNED[0]["host_pubkey_b64"])
    assert capture(memory, {**SIGNED[0], "host_version": "9"})["attest_level"] == "signed_by_peer"
    index_00 = {**SIGNED[0], "host_session_id": "s1", "host_signature_b64": VECTORS["index_with_a_leading_zero"]}
    refused(memory, index_00, SignatureInvalid)


def test_keys_and_signatures_that_are_none_are_refused(memory: MemoryRuntime) -> None:
    given = SIGNED[0]
    enroll(memory, given["host_pubkey_b64"])
    key, signature = (base64.b64decode(given[f"host_{name}_b64"]) for name in ("pubkey", "signature"))
    order = 2**252 + 27742317777372353535851937790883648493
    s = int.from_bytes(signature[32:], "little") + order
    malleable = base64.b64encode(signature[:32] + s.to_bytes(32, "little")).decode()
    for name in ("host_pubkey_b64", "host_signature_b64"):
        assert refused(memory, {**given, name: None}).details["code"] == "INVALID_INPUT"
        short = base64.b64encode((key if "key" in name else signature)[:-1]).decode()
        for wrong in (short, given[name].rstrip("="), "*" * 44, base64.urlsafe_b64encode(b"\xff" * 32).decode()):
            assert name in refused(memory, {**given, name: wrong}).details["path"]
    refused(memory, {**given, "host_signature_b64": malleable}, SignatureInvalid)
    for point in (bytes(32), b"\x01" + bytes(31), b"\xff" * 32, b"\x02" + bytes(31)):
        with pytest.raises(InvalidRequest):
            enroll(memory, base64.b64encode(point).decode())


def test_enrolled_keys_are_rows(memory: MemoryRuntime) -> None:
    first, second = SIGNED[0]["host_pubkey_b64"], SIGNED[3]["host_pubkey_b64"]
    made = enroll(memory, first, host_kind="claude-code")
    assert made["lifecycle"]["changed"] and not enroll(memory, first, host_kind="claude-code")["lifecycle"]["changed"]
    refused(memory, {**SIGNED[0], "host_kind": "codex"}, HostPubkeyNotEnrolled)
    enroll(memory, second)
    listed = memory.call("host_key.list", {}).to_dict()["host_keys"]
    assert [(k["host_pubkey_b64"], k["label"], k["host_kind"]) for k in listed] == [
        (first, "laptop", "claude-code"), (second, "laptop", None),
    ]  # fmt: skip
    capture(memory, {**SIGNED[0], "host_kind": "claude-code"})
    gone = memory.call("host_key.revoke", {"host_key": made["host_key"]["fingerprint"]}).to_dict()
    assert gone["host_key"]["revoked_at"] is not None
    assert not memory.call("host_key.revoke", {"host_key": first}).lifecycle.changed  # type: ignore[union-attr]
    refused(memory, {**SIGNED[1], "host_kind": "claude-code"}, HostPubkeyNotEnrolled)
    with pytest.raises(Conflict):
        enroll(memory, first)
    for unknown in ("0" * 16, base64.b64encode(b"\x07" * 32).decode()):
        with pytest.raises(NotFound):
            memory.call("host_key.revoke", {"host_key": unknown})
    live = memory.call("host_key.list", {"include_revoked": False}).to_dict()["host_keys"]
    assert [k["host_pubkey_b64"] for k in live] == [second]
    page = memory.call("host_key.list", {"limit": 1}).to_dict()
    assert memory.call("host_key.list", {"limit": 1, "cursor": page["next_cursor"]}).to_dict()["host_keys"] == (
        listed[1],
    )


def test_coverage_counts_gaps_duplicates_and_signatures_by_host_and_version(memory: MemoryRuntime) -> None:
    enroll(memory, SIGNED[0]["host_pubkey_b64"])
    for index in (7, 0, 1, 4, 7):
        capture(memory, spoken(index, f"turn {index}", host_kind="codex", host_version="1", host_session_id="gappy",
                               timestamp_iso=f"2026-05-17T09:0{index}:00Z"))  # fmt: skip
    for version, given in zip(("1", "2"), SIGNED[:2], strict=True):
        capture(memory, {**given, "host_kind": "codex", "host_version": version, "timestamp_iso": AT})
    capture(memory, spoken(0, host_session_id="plain", role="assistant"))
    codex, unknown = coverage(memory)["hosts"]
    assert (codex["host_kind"], codex["sessions"], codex["turns"], codex["gaps"]) == ("codex", 2, 6, 4)
    assert (codex["coverage"], codex["signed"], codex["duplicates"]) == (0.6, 2, 1)
    assert (codex["self_signed"], codex["signed_share"], codex["agents"]) == (4, 0.333333, ("agent-main",))
    assert codex["roles"] == {"assistant": 1, "user": 5}
    assert (codex["first_at"], codex["last_at"]) == ("2026-05-17T09:00:00Z", AT)
    assert [(v["host_version"], v["turns"], v["signed"]) for v in codex["versions"]] == [("1", 5, 1), ("2", 1, 1)]
    assert (unknown["host_kind"], unknown["gaps"], unknown["coverage"]) == ("unknown", 0, 1.0)
    (worst,) = coverage(memory)["incomplete"]
    assert (worst["host_session_id"], worst["last_index"], worst["gaps"]) == ("gappy", 7, 4)
    assert worst["missing"] == ({"first": 2, "last": 3}, {"first": 5, "last": 6})
    assert [h["host_kind"] for h in coverage(memory, host_kind="unknown")["hosts"]] == ["unknown"]
    assert coverage(memory, host_session_id="gappy")["hosts"][0]["turns"] == 4
    assert coverage(memory, host_kind="nobody")["hosts"] == ()


def test_times_that_go_back_or_stand_still_change_no_order_of_delivery(memory: MemoryRuntime) -> None:
    for index, at in enumerate(("2026-05-17T09:30:00Z", "2026-05-17T08:30:00Z", "2026-05-17T08:30:00Z")):
        capture(memory, spoken(index, str(index), timestamp_iso=at))
    assert [t["turn_id"] for t in kept(memory)] == ["turn-0", "turn-1", "turn-2"]
    events = memory.call("event.range", {"from_timestamp_ms": 0, "to_timestamp_ms": 2**41}).to_dict()["events"]
    assert [e["turn_id"] for e in events] == ["turn-1", "turn-2", "turn-0"]
    assert (events[0]["role"], events[0]["session_id"]) == ("user", "s1")


def test_a_turn_id_of_another_door_is_not_taken_for_the_turn(memory: MemoryRuntime) -> None:
    memory.call(
        "transcript.commit", talk(turn("turn-0", "x"), conversation={"channel_id": "unknown", "conversation_id": "s1"})
    )
    refused(memory, spoken(), Conflict)


def test_captured_turns_go_through_an_archive_with_their_keys(tmp_path: Path) -> None:
    with MemoryRuntime.open(":memory:") as memory:
        enroll(memory, SIGNED[0]["host_pubkey_b64"])
        first = capture(memory, {**SIGNED[0], "host_version": "2", "namespace": "n"})
        capture(memory, spoken(3, "unsigned"))
        memory.call("event.ingest", {"event": {"event_id": "e", "session_id": "s", "timestamp_ms": 5,
                                               "event_type": "session_end", "role": "system"}})  # fmt: skip
        archive = memory.call("memory.export_space", {"include_private": True, "passphrase": "a long pass phrase"})
    with MemoryRuntime.open(str(tmp_path / "b.db")) as memory:
        memory.call("memory.import_space", {"archive": archive.archive, "mode": "full_restore",  # type: ignore[attr-defined]
                                            "passphrase": "a long pass phrase"})  # fmt: skip
        again = capture(memory, spoken(content="What is Rust?"))
        assert (again["dedup_hit"], again["memory_id"]) == (True, first["memory_id"])
        assert again["attest_level"] == "self_signed", "nobody has enrolled the key here"
        assert capture(memory, spoken(3, "unsigned"))["dedup_hit"]
        (host,) = coverage(memory)["hosts"]
        assert (host["turns"], host["gaps"], [v["host_version"] for v in host["versions"]]) == (2, 2, [None, "2"])
        (found,) = memory.call("event.range", {"from_timestamp_ms": 5, "to_timestamp_ms": 5}).to_dict()["events"]
        assert (found["event_id"], found["event_type"]) == ("e", "session_end")
        assert memory.call("store.verify").to_dict()["findings"] == ()
