"""Every list ends at the profile's bytes, and its cursor leads to the rest."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import apsw
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from beetle.contracts.codec import replace, to_plain
from beetle.contracts.common import WireScope
from beetle.contracts.operations import OPERATIONS
from beetle.open import Opened, open_store
from beetle.runtime.pipeline.invocation import Call
from tests.adversary.twins import MARA, PROFILE
from tests.building import Plain, candidate, candidates, registry, skill, talk, turn, write
from tests.cases import PROPOSAL, TOOL
from tests.conformance.doors import embedded_caller

CALLER = embedded_caller(MARA)
LISTS = {
    "event_log.read": "rows", "transcript.repair": "issues", "long_term.list": "records", "private.list": "items",
    "skill_registry.list": "skills", "skill_registry.search": "skills", "skill_registry.versions": "versions",
    "device.list": "devices", "evolve.list": "proposals", "tool_registry.list": "registries",
    "agent_skill.list": "skills", "skill.list": "runtime_skills", "transcript.replay": "turns",
    "transcript.export": "turns", "transcript.timeline": "turns", "transcript.conversations": "conversations",
    "chain.list": "chains", "chain.export": "thoughts", "chain.agents": "agents", "chain.agent_registry": "agents",
    "chunk.list": "chunks", "chunk.stats": "groups",
    "snapshot.list": "snapshots", "memory.replay": "turns", "governance.list": "candidates",
    "host_key.list": "host_keys", "event.range": "events", "toc.root": "nodes",
}  # fmt: skip
"""What each operation with a cursor lists."""
TURNED = tuple(sorted(LISTS.keys() - {"transcript.timeline", "agent_skill.list"}))
"""Those whose cursor a page hands out here: a time line has its anchors, and no folder of Agent Skills is mounted."""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two of everything that is listed."""
    found = str(tmp_path_factory.mktemp("lists") / "store.db")
    opened = open_store(found, PROFILE)
    for n in range(2):
        said = talk(turn(f"t{n}", f"the lamp {n} is lit"))
        ask(opened, "transcript.commit", said)
        ask(opened, "transcript.commit", {**said, "conversation": {"conversation_id": f"c{n}"}})
        given = {"evidence_refs": [f"evidence:local/talk/t{n}"]}
        ask(opened, "memory.write", candidates(candidate(f"c{n}", f"the lamp {n} is lit", topic=f"lamp {n}", **given)))
        sealed = {"target": "private_garden", "privacy": "subject_private"}
        ask(opened, "memory.write", candidates(candidate(f"p{n}", f"afraid {n}", **sealed)))
        claim = candidate(f"w{n}", f"the lamp {n} was mended", topic=f"mended {n}", authority="assistant_claimed")
        ask(opened, "memory.write", candidates(claim))
        ask(opened, "memory.write", write(skill(f"s{n}")))
        ask(opened, "tool_registry.upsert", registry(f"r{n}", TOOL))
        for name in ("same", f"other {n}"):
            content = f"---\nname: {name}\ndescription: d\n---\n"
            ask(opened, "skill_registry.upload", {"agent_id": "agent-main", "content": content + "text"})
        for key in ("default", f"chain {n}"):
            ask(
                opened,
                "chain.append",
                {"chain_key": key, "agent_id": f"a{n}", "thought_type": "Plan", "content": f"s{n}"},
            )
        ask(opened, "chunk.create", {"content": f"note {n}", "conversation_id": f"c{n}"})
        ask(opened, "evolve.propose", {"proposals": [{**PROPOSAL, "proposal_id": f"e{n}", "target": f"s{n}"}]})
        ask(opened, "device.add", {"label": "pad", "device_id": f"d{n}", "capabilities": [], "owner_id": MARA})
        ask(opened, "snapshot.create", {})
        key = Ed25519PrivateKey.from_private_bytes(bytes([n]) * 32).public_key().public_bytes_raw()
        ask(opened, "host_key.enroll", {"host_pubkey_b64": b64encode(key).decode(), "label": f"host {n}"})
        event = {"event_id": f"v{n}", "session_id": "s", "timestamp_ms": n * 10**12, "event_type": "user_message"}
        ask(opened, "event.ingest", {"event": {**event, "text": f"the lamp {n}"}})
    ask(opened, "admin.rebuild_toc", {})
    opened.store.close()
    connection = apsw.Connection(found)
    connection.execute("UPDATE derived_ref SET turn = NULL")
    connection.close()
    return found


@pytest.fixture
def opened(path: str) -> Iterator[Opened]:
    found = open_store(path, PROFILE)
    yield found
    found.store.close()


def ask(opened: Opened, op: str, args: Any) -> Plain:
    return to_plain(opened.dispatcher.dispatch(Call(op, args, CALLER, WireScope(owner_id=MARA))).report)


def narrow(opened: Opened, size: int = 1) -> None:
    """From now on an answer may list so many bytes."""
    shared = opened.dispatcher.shared
    budgets = replace(shared.profile.budgets, message_content_bytes=1, answer_bytes=size)
    opened.dispatcher.shared = shared._replace(profile=replace(shared.profile, budgets=budgets))


def request(op: str) -> Plain:
    if op in ("transcript.replay", "transcript.export"):
        view = "export" if op == "transcript.export" else "host_ui"
        return {"conversation": {"conversation_id": "talk"}, "view": view}
    if op == "event.range":
        return {"from_timestamp_ms": 0, "to_timestamp_ms": 2 * 10**12}
    if op == "chunk.stats":
        return {"by": "conversation"}
    if op == "skill_registry.versions":
        return {"skill_id": "same"}
    return {"chat_id": "talk"} if op == "memory.replay" else {}


def test_every_operation_with_a_cursor_is_among_the_lists() -> None:
    paged = {row.name for row in OPERATIONS if "next_cursor" in row.report.__struct_fields__}
    # The place in a chain at which a walk goes on is no secret: any caller may name one.
    assert paged - {"chain.traverse"} == set(LISTS)


@pytest.mark.parametrize("op", TURNED)
def test_one_entry_larger_than_the_bytes_is_a_page_and_the_cursor_leads_through_all(opened: Opened, op: str) -> None:
    name, args = LISTS[op], request(op)
    whole = ask(opened, op, args)
    assert len(whole[name]) >= 2 and not whole["profile_budget_applied"]
    narrow(opened)
    found: list[Any] = []
    asked = args
    while True:
        page = ask(opened, op, asked)
        assert len(page[name]) == 1 and page["profile_budget_applied"] == page["has_more"]
        found += page[name]
        if not page["has_more"] or len(found) == len(whole[name]):
            break
        asked = {**args, "cursor": page["next_cursor"]}
    assert found == list(whole[name])


def test_a_page_holds_what_there_is_room_for(opened: Opened) -> None:
    for n in range(6):
        given = candidate(f"long{n}", f"{n} {'x' * 9_000}", topic=f"long {n}")
        ask(opened, "memory.write", candidates(given))
    narrow(opened, 32_000)
    page = ask(opened, "long_term.list", {})
    assert len(page["records"]) == 3 and page["has_more"] and page["profile_budget_applied"]
    hits = ask(opened, "memory.recall", {"query": "lamp"})["hits"]
    narrow(opened, 1_000)
    fewer = ask(opened, "memory.recall", {"query": "lamp"})
    assert 0 < len(fewer["hits"]) < len(hits) and fewer["profile_budget_applied"]


def test_histories_and_policies_end_too(opened: Opened) -> None:
    record = ask(opened, "long_term.list", {})["records"][-1]["ref"]
    for n in range(3):
        words = {"ref": record, "content": f"the lamp stands {n}", "reason": "seen"}
        ask(opened, "long_term.mutate", {"action": "correct", **words})
        ask(opened, "skill.edit", {"name": "s0", "procedure": f"step {n}", "edit_reason": "seen"})
        ask(opened, "long_term.policy", {"action": "suppress", "topic": f"topic {n}"})
    narrow(opened)
    fact = ask(opened, "long_term.detail", {"ref": record, "history": True})
    assert [bool(each["content"]) for each in fact["revisions"]] == [False, False, False, True]
    diffs = ask(opened, "skill.detail", {"name": "s0"})
    assert [each["to_revision"] for each in diffs["strategy_diffs"]] == [4]
    listed = ask(opened, "long_term.policy", {"action": "list"})
    assert len(listed["policies"]) == 1
    assert all(each["profile_budget_applied"] for each in (fact, diffs, listed))
