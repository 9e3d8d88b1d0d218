"""One damaged text is one damaged record: left out, found and erasable, and every other answer goes on."""

from __future__ import annotations

import json
from pathlib import Path

import apsw
import pytest

from beetle.contracts.codec import to_plain
from beetle.contracts.common import WireScope
from beetle.contracts.errors import BeetleError
from beetle.open import Opened, open_store
from beetle.runtime.pipeline.invocation import Call
from tests.building import CONVERSATION, candidate, candidates, contents, message, skill, step, talk, turn, write
from tests.conformance.doors import PROFILE, Plain
from tests.governance.material import ASKERS, OWNER

OWN = ASKERS["owner"].caller
WORDS = "the spare key hangs by the door"
REFS = [{"kind": "file", "ref_id": "f1", "label": "labelled", "visibility": ["host_ui"]}]
ATTRS = [{"key": "mood", "value": "valued", "target": "turn", "visibility": ["host_ui"], "export_allowed": True}]
READS: list[tuple[str, Plain]] = [
    ("memory.recall", {"query": "spare key"}),
    ("memory.recall", {"query": "neighbours"}),
    ("memory.project", {"user_query": "spare key", "system_max_len": 2000, "recent_messages_limit": 10}),
    ("memory.inspect", {"query": "spare key"}),
    ("transcript.replay", {"conversation": CONVERSATION, "view": "host_ui"}),
    ("transcript.timeline", {"conversation": CONVERSATION, "view": "raw_owner", "anchor": "latest"}),
    ("transcript.export", {"conversation": CONVERSATION}),
    ("transcript.search", {"query": "spare key", "view": "host_ui"}),
    ("transcript.conversations", {}),
    ("transcript.repair", {}),
    ("transcript.repair_safe", {}),
    ("memory.replay", {"chat_id": "talk"}),
    ("memory.export_space", {}),
    ("long_term.list", {}),
    ("skill.list", {}),
    ("skill.detail", {"name": "runtime_skill__tea"}),
    ("governance.report", {}),
    ("store.verify", {}),
]
RECOVER = ("memory.recover", {"trigger": "operator_requested"})
TEXTS = {
    "content": "UPDATE body SET content = {} WHERE message = 2",
    "label": "UPDATE host_ref_label SET label = {}",
    "attr": "UPDATE attr SET value = {}",
    "speaker": "UPDATE message SET speaker = {} WHERE message = 2",
    "message id": "UPDATE message SET message_id = {} WHERE message = 2",
    "fact": "UPDATE fact_body SET content = {}",
    "skill": "UPDATE skill_revision SET content = {}",
}


def prepared(path: str) -> None:
    opened = open_store(path, PROFILE)
    call(opened, "transcript.commit", talk(
        turn("t1", message("m1", "the neighbours are fine")),
        turn("t2", message("m2", WORDS, actor={"speaker": "Mara"}), host_refs=REFS, attrs=ATTRS),
        turn("t3", message("m3", "another spare key is in the box")),
    ))  # fmt: skip
    call(
        opened,
        "memory.write",
        candidates(candidate("c1", WORDS, topic="key", evidence_refs=["evidence:local/talk/t3"])),
    )
    call(opened, "memory.write", write(skill("tea")))
    opened.store.close()


def damage(path: str, sql: str, text: bytes = b"the spare \xff key") -> None:
    connection = apsw.Connection(path)
    connection.execute(sql.format(f"CAST(x'{text.hex()}' AS TEXT)"))
    connection.close()


def call(opened: Opened, op: str, args: Plain) -> Plain:
    report = opened.dispatcher.dispatch(Call(op, args, OWN, WireScope(owner_id=OWNER))).report
    return json.loads(json.dumps(to_plain(report), default=repr))


@pytest.mark.parametrize("what", TEXTS)
def test_every_answer_goes_on(tmp_path: Path, what: str) -> None:
    path = str(tmp_path / "store.db")
    prepared(path)
    damage(path, TEXTS[what])
    opened = open_store(path, PROFILE)
    failed: dict[str, str] = {}
    for op, args in [
        *READS,
        ("memory.recover", {"trigger": "operator_requested"}),
        ("transcript.lifecycle", step("delete_raw", "t2")),
    ]:
        try:
            call(opened, op, args)
        except BeetleError as error:
            failed[op] = error.key
    assert not failed
    opened.store.close()


@pytest.mark.parametrize(
    "text", [b"the spare \xff key", b"the spare kez hangs by the door"], ids=["no text", "altered"]
)
def test_a_damaged_message_is_left_out_found_and_erased(tmp_path: Path, text: bytes) -> None:
    path = str(tmp_path / "store.db")
    prepared(path)
    damage(path, TEXTS["content"], text)
    opened = open_store(path, PROFILE)
    shown = call(opened, "transcript.replay", {"conversation": CONVERSATION, "view": "host_ui"})
    assert contents(shown) == ["the neighbours are fine", None, "another spare key is in the box"]
    assert shown["turns"][1]["messages"][0]["redacted"]["reason"] == "damaged"
    hits = call(opened, "memory.recall", {"query": "spare key hangs", "planes": ["evidence"]})["hits"]
    assert [hit["message_id"] for hit in hits if "key" in hit["excerpt"]] == ["m3"]
    block = call(opened, "memory.project", {"user_query": "spare", "system_max_len": 2000, "recent_messages_limit": 10})
    assert "\ufffd" not in block["system_memory_block"] and "kez" not in block["system_memory_block"]
    verified = call(opened, "store.verify", {})
    assert not verified["clean"] and [each["subject"] for each in verified["findings"]].count("message 2") >= 1
    (issue,) = call(opened, "transcript.repair", {})["issues"]
    assert (issue["problem"], issue["message_id"]) == ("digest_mismatch", "m2")
    call(opened, *RECOVER)
    report = call(opened, "transcript.lifecycle", step("delete_raw", "t2"))
    assert report["erasure"] == "done"
    assert call(opened, "store.verify", {})["clean"]
    opened.store.close()
