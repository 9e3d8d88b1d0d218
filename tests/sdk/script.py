"""One fixed run that asks every operation of the table, so that what each backend answers can be laid side by side."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.sdk.places import Plain
from tests.sdk.recorded import DAY_US, Kept, Step

TALK = {"channel_id": "local", "conversation_id": "talk"}
ALL_VIEWS = ["host_ui", "model_context", "operator_audit", "export"]
PASSPHRASE = "a passphrase of a test"
AT = "2024-05-01T10:00:00Z"
SKILL_MD = "---\nname: {name}\ndescription: How to {name}, in short.\n---\nStep by step.\n"


def mount_skills(folder: Path) -> tuple[str, ...]:
    """A folder of Agent Skills: two of them, and one that is broken."""
    for name in ("descale", "prune"):
        (folder / name).mkdir(parents=True)
        (folder / name / "SKILL.md").write_text(SKILL_MD.format(name=name))
    (folder / "broken").mkdir()
    (folder / "broken" / "SKILL.md").write_text("no front matter")
    return (str(folder),)


def said(turn_id: str, *contents: str, role: str = "user", visibility: str = "shared", **more: Any) -> Plain:
    """A turn of so many messages."""
    messages = [
        {"message_id": f"{turn_id}.{n}", "role": role, "content": text, "visibility": visibility,
         "actor": {"speaker": "Mara"}}
        for n, text in enumerate(contents)
    ]  # fmt: skip
    return {"turn_id": turn_id, "at": AT, "messages": messages, **more}


def claim(candidate_id: str, content: str, authority: str = "user_asserted", **more: Any) -> Plain:
    """A candidate."""
    return {"candidate_id": candidate_id, "authority": authority, "target": "long_term",
            "privacy": "shared_with_subject", "content": content, **more}  # fmt: skip


def candidates(*given: Plain) -> Plain:
    return {"kind": "candidates", "candidates": list(given)}


def steps() -> Iterator[Step]:
    """The run, in its order."""
    yield from _talk()
    yield from _skills()
    yield from _facts()
    yield from _tools()
    yield from _proposals()
    yield from _out_and_in()
    yield from _operator()
    yield from _erasing()
    yield from _looking()


def _talk() -> Iterator[Step]:
    label = {"kind": "task", "ref_id": "7", "label": "the pump", "visibility": ALL_VIEWS}
    attr = {"key": "mood", "value": "calm", "visibility": ALL_VIEWS, "export_allowed": True}
    turns = [
        said("t1", "The pump is loud.", "It leaks as well.", host_refs=[label], attrs=[attr]),
        said("t2", "I will clean the strainer of the pump.", role="assistant"),
        said("t3", "My code for the shed is known to me alone.", visibility="private"),
        said("t4", "A trace of the pump's tool.", role="tool", visibility="backend"),
        said("t5", "The pump is quiet now, after the strainer was cleaned.", role="tool"),
    ]
    yield Step("transcript.commit", {"conversation": TALK, "turns": turns}, key="first")
    yield Step("transcript.commit", {"conversation": TALK, "turns": turns}, key="first")
    yield Step("transcript.commit", {"conversation": TALK, "turns": [said("t1", "Another thing.")]})
    one = said("t6", "Thank you for the pump.")
    yield Step("memory.finalize_turn", {"conversation": TALK, "turn": one})
    yield Step("memory.finalize_turn", {"conversation": TALK, "turn": one}, who="agent")
    yield Step("memory.maintain", {"conversation": TALK})
    requests = [
        {"op": "transcript.commit", "args": {"conversation": TALK, "turns": [said("t7", "One more for the pump.")]}},
        {"op": "memory.recall", "args": {"query": "pump"}},
    ]
    yield Step("batch", {"requests": requests})


def _skills() -> Iterator[Step]:
    skill = {
        "name": "pump",
        "topic": "pumps",
        "title": "Quiet a pump",
        "summary": "When a pump is loud.",
        "content": "1. Stop it.\n2. Clean the strainer.",
        "citations": ["evidence:local/talk/t1/t1.0", "a book"],
    }
    yield Step("memory.write", {"kind": "procedural", "source": "manual", "writes": [skill, {**skill, "name": "two"}]})
    yield Step("skill.edit", {"name": "pump", "procedure": "1. Stop it.\n2. Drain it.", "edit_reason": "shorter"})
    yield Step("skill.edit", {"name": "pump", "title": "T", "edit_reason": "r", "expected_revision": 1})
    yield Step("skill.set_enabled", {"name": "two", "enabled": False})
    yield Step("skill.list", {})
    yield Step("skill.detail", {"name": "pump"})


def _facts() -> Iterator[Step]:
    garden = claim("c4", "The shed's code is 7.", target="private_garden", privacy="subject_private")
    soul = claim("c5", "Be kind.", target="soul_candidate", privacy="soul_private", authority="operator")
    yield Step("memory.write", candidates(
        claim("c1", "The pump is on line 2.", topic="pump", evidence_refs=["evidence:local/talk/t1"]),
        claim("c2", "The pump is on line 3.", topic="pump", authority="host"),
        claim("c3", "The lamp is green.", topic="lamp", authority="assistant_claimed"),
        garden, soul, claim("c6", "Clean the strainer first.", topic="strainer", target="procedural"),
    ))  # fmt: skip
    yield Step("memory.write", candidates(claim("c7", "The pump is on line 4.", topic="pump")))
    item = {"kind": "preference", "topic": "tea", "content": "Mara takes tea, no sugar.", "keywords": ["drink"],
            "confidence": 0.75, "evidence_refs": ["evidence:local/talk/t5"]}  # fmt: skip
    yield Step("memory.write", {"kind": "long_term_extraction", "extraction": {"items": [item], "extractor": "x 1"}})
    yield Step("long_term.policy", {"action": "pause", "topic": "lamp", "reason": "not now"})
    yield Step("memory.write", candidates(claim("c8", "The lamp is red.", topic="lamp")))
    yield Step("long_term.policy", {"action": "resume", "topic": "lamp"})
    yield Step("long_term.policy", {"action": "suppress", "kind": "goal"})
    yield Step("long_term.policy", {"action": "list"})
    yield Step("long_term.list", {"state": "all", "view": "raw_owner"}, keep={"fact": "records.0.ref"})
    yield Step("long_term.detail", {"ref": Kept("fact"), "history": True, "view": "raw_owner"})
    yield Step("long_term.mutate", {"action": "correct", "ref": Kept("fact"), "content": "Mara takes tea, with milk.",
                                    "reason": "a test asks", "view": "raw_owner"})  # fmt: skip
    yield Step("long_term.mutate", {"action": "supersede", "ref": Kept("fact"), "content": "Mara takes tea at four.",
                                    "reason": "a test asks", "view": "raw_owner"})  # fmt: skip
    yield Step("long_term.list", {"query": "pump", "view": "operator_audit"})
    yield Step("private.list", {}, keep={"item": "items.0.record_id"})
    yield Step("private.get", {"record_id": Kept("item")})
    yield Step("private.list", {}, who="agent")


def _tools() -> Iterator[Step]:
    tool = {"tool_id": "kettle", "title": "Kettle", "schema_fingerprint": "s1", "permission_tags": ["power"]}
    registry = {"registry_id": "kitchen", "fingerprint": "f1", "tools": [tool]}
    yield Step("tool_registry.upsert", registry)
    for turn_id in ("t1", "t5"):
        used = {"tool_id": "kettle", "schema_fingerprint": "s1", "outcome": "succeeded", "summary": "boiled water"}
        feedback = {"registry_ref": {"registry_id": "kitchen", "fingerprint": "f1"}, "turn_id": turn_id,
                    "observations": [used], "reuse_outcome": "succeeded"}  # fmt: skip
        yield Step("memory.write", {"kind": "agent_tool_usage_feedback", "feedback": feedback})
    refs = [{"registry_id": "kitchen", "fingerprint": "f1"}, {"registry_id": "gone", "fingerprint": "f"}]
    yield Step("memory.recall", {"query": "descale the kettle", "tool_registry_refs": refs})
    yield Step("memory.project", {"user_query": "prune and descale", "tool_registry_refs": refs})
    yield Step("tool_registry.list", {})
    yield Step("tool_registry.get", {"registry_id": "kitchen"})
    yield Step("tool_registry.upsert", {**registry, "tools": [{**tool, "schema_fingerprint": "s2"}]})
    yield Step("memory.recall", {"query": "the kettle"})
    yield Step("tool_registry.delete", {"registry_id": "kitchen"})
    yield Step("agent_skill.list", {})
    yield Step("agent_skill.list", {"query": "prune"}, who="worker")


def _proposals() -> Iterator[Step]:
    proposals = [
        {"proposal_id": "one", "kind": "skill_edit", "target": "pump", "change": {"procedure": "1. Ask."},
         "rationale": "safer", "evidence_refs": ["evidence:local/talk/t1"]},
        {"kind": "fact_write", "change": {"content": "The hose is long.", "topic": "hose"}, "rationale": "it was said"},
        {"proposal_id": "three", "kind": "skill_disable", "target": "pump", "rationale": "not now"},
    ]  # fmt: skip
    yield Step("evolve.propose", {"proposals": proposals})
    yield Step("evolve.list", {})
    yield Step("evolve.preview", {"proposal_id": "one"})
    yield Step("evolve.submit", {"proposal_ids": ["one"]})
    yield Step("evolve.submit", {"proposal_ids": ["three"], "decision": "withdraw"})
    yield Step("evolve.list", {"state": "all"}, who="worker")


def _out_and_in() -> Iterator[Step]:
    private = {"include_private": True, "passphrase": PASSPHRASE}
    yield Step("memory.replay", {"chat_id": "c1"})
    yield Step("memory.export", {"chat_id": "c1", **private}, keep={"chat": "snapshot"})
    yield Step("memory.import", {"snapshot": Kept("chat"), "target_chat_id": "c9", "mode": "bootstrap_import",
                                 "passphrase": PASSPHRASE}, owner="carl")  # fmt: skip
    yield Step("memory.import", {"snapshot": Kept("chat"), "target_chat_id": "c9", "mode": "bootstrap_import",
                                 "passphrase": "another passphrase"}, owner="dora")  # fmt: skip
    yield Step("memory.export_space", private, keep={"space": "archive"})
    archive = {"archive": Kept("space"), "passphrase": PASSPHRASE}
    yield Step("memory.import_space", {**archive, "mode": "bootstrap_import"}, owner="emil")
    yield Step("memory.import_space", {**archive, "mode": "full_restore"}, owner="emil")
    yield Step("memory.recall", {"query": "pump"}, owner="emil")
    yield Step("memory.export_space", {}, owner="emil")


def _operator() -> Iterator[Step]:
    device = {"device_id": "panel", "label": "the panel", "capabilities": ["recall"], "owner_id": "ann"}
    yield Step("device.add", device, keep={"panel": "appKeyOnce"})
    yield Step("device.add", device, who="worker")
    yield Step("memory.recall", {"query": "pump"}, device="panel", device_key="panel")
    yield Step("device.update", {"device_id": "panel", "state": "suspended"})
    yield Step("memory.recall", {"query": "pump"}, device="panel", device_key="panel")
    yield Step("device.update", {"device_id": "panel", "state": "active", "label": "a panel"})
    yield Step("device.rotate_key", {"device_id": "panel"})
    yield Step("memory.recall", {"query": "pump"}, device="panel", device_key="panel")
    yield Step("device.list", {})
    yield Step("device.remove", {"device_id": "panel"})
    yield Step("transport.update", {"name": "unix_socket", "enabled": False})
    yield Step("transport.list", {})
    yield Step("console.overview", {})
    yield Step("console.session", {}, who="agent")
    yield Step("hello", {})
    yield Step("memory.capabilities", {}, who="worker")


def _erasing() -> Iterator[Step]:
    where = {"conversation": TALK, "reason": "a test asks"}
    yield Step("transcript.lifecycle", {**where, "action": "mask", "turn_ids": ["t2"]})
    yield Step("transcript.lifecycle", {**where, "action": "delete_raw", "turn_ids": ["t1"], "dry_run": True})
    yield Step("transcript.lifecycle", {**where, "action": "delete_raw", "turn_ids": ["t1", "t3"]})
    yield Step("transcript.repair", {})
    yield Step("transcript.repair_safe", {})
    forget = {"action": "forget_by_query", "query": "tea", "view": "raw_owner"}
    yield Step("long_term.mutate", {**forget, "dry_run": True}, keep={"token": "confirm_token"})
    yield Step("long_term.mutate", {**forget, "confirm": Kept("token")})
    yield Step("long_term.mutate", {"action": "delete", "ref": "long_term:f-0"})
    yield Step("skill.delete", {"name": "two"}, after=100 * DAY_US)


def _looking() -> Iterator[Step]:
    for view in (*ALL_VIEWS, "raw_owner"):
        yield Step("transcript.replay", {"conversation": TALK, "view": view})
    yield Step("transcript.export", {"conversation": TALK, "include_private": True})
    yield Step("transcript.timeline", {"conversation": TALK, "view": "host_ui", "anchor": {"around": 3}})
    yield Step("transcript.conversations", {})
    yield Step("transcript.search", {"query": "pump strainer", "view": "host_ui"})
    for who in ("owner", "agent", "worker"):
        yield Step("memory.recall", {"query": "what about the loud pump?", "limit": 50}, who=who)
        yield Step("memory.project", {"user_query": "the pump", "system_max_len": 1500}, who=who)
    yield Step("memory.inspect", {"query": "pump"})
    yield Step("governance.report", {})
    yield Step("event_log.read", {"limit": 200, "topics": ["memory", "transcript", "skill"]})
    yield Step("long_term.list", {"state": "all", "view": "raw_owner"})
    yield Step("store.verify", {})
    yield Step("memory.recover", {})
