"""One fixed run that asks every operation of the table, so that what each backend answers can be laid side by side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from beetle.contracts.operations import OPERATIONS
from tests.building import candidate, candidates
from tests.cases import CASES, PREPARATIONS, Prepared
from tests.sdk.recorded import DAY_US, Earlier, Request
from tests.sdk.reopened import Plain

TALK = {"channel_id": "local", "conversation_id": "talk"}
ALL_VIEWS = ["host_ui", "model_context", "operator_audit", "export"]
PASSPHRASE = "a passphrase of a test"
AT = "2024-05-01T10:00:00Z"
OF_CASES = "zoe"
"""Whose space holds what cases need."""
DAY = "toc:day:2024-05-01"
SKILL_MD = "---\nname: {name}\ndescription: How to {name}, in short.\n---\nStep by step.\n"


NOT_IN_THE_SCRIPT: dict[str, str] = {
    "memory.close": "it ends the runtime, and in memory the store with it; the machine of stores on disk closes by it",
    "harness.run": "it runs in stores of its own, on every backend by itself; tests/harness runs it",
    "snapshot.create": "a store in memory has none; the machine of stores on disk takes them",
    "snapshot.list": "likewise",
    "snapshot.verify": "likewise",
    "snapshot.restore": "likewise",
    "snapshot.prune": "likewise",
    "store.repair": "a store in memory has no file to repair: tests/faults/test_bit_flips.py",
    "transfer.begin": "a handle of one caller in the daemon's memory, which no backend holds: "
    "tests/transports/test_transfers.py",
    "transfer.put": "likewise",
    "admin.health": "of the daemon, not of what it holds: tests/runtime/test_operating.py",
    "admin.metrics": "likewise",
    "transfer.get": "likewise",
    **dict.fromkeys(
        (row.name for row in OPERATIONS if row.name.startswith("chain.")), "tests/chains, on a store of disk"
    ),
    **dict.fromkeys(
        (row.name for row in OPERATIONS if row.name.startswith("chunk.")), "tests/chunks, in memory and on disk"
    ),
    **dict.fromkeys(
        (row.name for row in OPERATIONS if row.name.startswith("skill_registry.")), "tests/registry, on a store of disk"
    ),
    **dict.fromkeys(
        (row.name for row in OPERATIONS if row.name.startswith(("turn.", "host.", "host_key.", "event.r"))),
        "tests/capture, on stores in memory and on disk",
    ),
    "subscribe": "it needs a connection; tests/transports follows events",
    "unsubscribe": "likewise",
}
"""Operations that no step asks. What is neither here nor in a step is asked by its case: see `cases`."""


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


def steps() -> Iterator[Request]:
    """The run, in its order."""
    yield from _talk()
    yield Request("admin.rebuild_toc", {"dry_run": True}, who="worker")
    yield Request("admin.rebuild_toc", {"dry_run": True})
    yield Request("admin.rebuild_toc", {"from_date": "2024-01-01"})
    yield Request("toc.node", {"node_id": DAY}, keep={"grip": "node.bullets.0.grip_ids.0"})
    yield from _contents()
    yield from _skills()
    yield from _facts()
    yield from _tools()
    yield from _proposals()
    yield from _out_and_in()
    yield from _operator()
    yield from _erasing()
    yield from _contents()
    yield from _looking()
    yield from _jobs()
    yield from _contents()


def _talk() -> Iterator[Request]:
    label = {"kind": "task", "ref_id": "7", "label": "the pump", "visibility": ALL_VIEWS}
    attr = {"key": "mood", "value": "calm", "visibility": ALL_VIEWS, "export_allowed": True}
    turns = [
        said("t1", "The pump is loud.", "It leaks as well.", host_refs=[label], attrs=[attr]),
        said("t2", "I will clean the strainer of the pump.", role="assistant"),
        said("t3", "My code for the shed is known to me alone.", visibility="private"),
        said("t4", "A trace of the pump's tool.", role="tool", visibility="backend"),
        said("t5", "The pump is quiet now, after the strainer was cleaned.", role="tool"),
    ]
    yield Request("transcript.commit", {"conversation": TALK, "turns": turns}, key="first")
    yield Request("transcript.commit", {"conversation": TALK, "turns": turns}, key="first")
    yield Request("transcript.commit", {"conversation": TALK, "turns": [said("t1", "Another thing.")]})
    one = said("t6", "Thank you for the pump.")
    yield Request("memory.finalize_turn", {"conversation": TALK, "turn": one})
    yield Request("memory.finalize_turn", {"conversation": TALK, "turn": one}, who="agent")
    yield Request("memory.maintain", {"conversation": TALK})
    requests = [
        {"op": "transcript.commit", "args": {"conversation": TALK, "turns": [said("t7", "One more for the pump.")]}},
        {"op": "memory.recall", "args": {"query": "pump"}},
    ]
    yield Request("batch", {"requests": requests})


def _contents() -> Iterator[Request]:
    """What the table of contents shows, to each caller."""
    for who in ("owner", "agent", "worker"):
        yield Request("toc.root", {}, who=who)
        yield Request("toc.browse", {"parent_id": DAY}, who=who)
        yield Request("toc.search_node", {"node_id": DAY, "query": "pump strainer"}, who=who)
        yield Request("toc.search_children", {"query": "the loud pump", "child_level": "segment"}, who=who)
        yield Request("grip.expand", {"grip_id": Earlier("grip"), "events_after": 10}, who=who)
    yield Request("toc.browse", {"parent_id": "toc:year:2024", "limit": 1})
    yield Request("toc.search_children", {"query": "pump", "parent_id": "toc:year:1999"})
    yield Request("grip.expand", {"grip_id": "grip:0"})
    yield Request("toc.node", {"node_id": DAY}, owner="dora")


def _jobs() -> Iterator[Request]:
    """The scheduler's jobs, which nobody starts here but who asks."""
    retention = {"job_name": "retention"}
    yield Request("scheduler.pause", retention, who="worker")
    yield Request("scheduler.pause", retention)
    yield Request("scheduler.pause", retention)
    yield Request("scheduler.run", {"job_name": "retention", "wait": True})
    yield Request("scheduler.resume", retention)
    yield Request("scheduler.resume", {"job_name": "retain"})
    for name in ("outbox-processor", "segment-summarizer", "hourly-rollup", "verification"):
        yield Request("scheduler.run", {"job_name": name})
    for who in ("owner", "worker"):
        yield Request("scheduler.status", {}, who=who)
        yield Request("admin.stats", {}, who=who)
    yield Request("admin.compact", {"cf": "toc"}, who="worker")
    yield Request("admin.compact", {"cf": "toc"})
    yield Request("admin.compact", {})


def _skills() -> Iterator[Request]:
    skill = {
        "name": "pump",
        "topic": "pumps",
        "title": "Quiet a pump",
        "summary": "When a pump is loud.",
        "content": "1. Stop it.\n2. Clean the strainer.",
        "citations": ["evidence:local/talk/t1/t1.0", "a book"],
    }
    yield Request(
        "memory.write", {"kind": "procedural", "source": "manual", "writes": [skill, {**skill, "name": "two"}]}
    )
    yield Request("skill.edit", {"name": "pump", "procedure": "1. Stop it.\n2. Drain it.", "edit_reason": "shorter"})
    yield Request("skill.edit", {"name": "pump", "title": "T", "edit_reason": "r", "expected_revision": 1})
    yield Request("skill.set_enabled", {"name": "two", "enabled": False})
    yield Request("skill.list", {})
    yield Request("skill.detail", {"name": "pump"})


def _facts() -> Iterator[Request]:
    garden = candidate("c4", "The shed's code is 7.", target="private_garden", privacy="subject_private")
    soul = candidate("c5", "Be kind.", target="soul_candidate", privacy="soul_private", authority="operator")
    yield Request("memory.write", candidates(
        candidate("c1", "The pump is on line 2.", topic="pump", evidence_refs=["evidence:local/talk/t1"]),
        candidate("c2", "The pump is on line 3.", topic="pump", authority="host"),
        candidate("c3", "The lamp is green.", topic="lamp", authority="assistant_claimed"),
        garden, soul, candidate("c6", "Clean the strainer first.", topic="strainer", target="procedural"),
    ))  # fmt: skip
    yield Request("memory.write", candidates(candidate("c7", "The pump is on line 4.", topic="pump")))
    item = {"kind": "preference", "topic": "tea", "content": "Mara takes tea, no sugar.", "keywords": ["drink"],
            "confidence": 0.75, "evidence_refs": ["evidence:local/talk/t5"]}  # fmt: skip
    yield Request("memory.write", {"kind": "long_term_extraction", "extraction": {"items": [item], "extractor": "x 1"}})
    yield Request("long_term.policy", {"action": "pause", "topic": "lamp", "reason": "not now"})
    yield Request("memory.write", candidates(candidate("c8", "The lamp is red.", topic="lamp")))
    yield Request("long_term.policy", {"action": "resume", "topic": "lamp"})
    yield Request("long_term.policy", {"action": "suppress", "kind": "goal"})
    yield Request("long_term.policy", {"action": "list"})
    yield Request("long_term.list", {"state": "all", "view": "raw_owner"}, keep={"fact": "records.0.ref"})
    yield Request("long_term.detail", {"ref": Earlier("fact"), "history": True, "view": "raw_owner"})
    yield Request("long_term.mutate", {"action": "correct", "ref": Earlier("fact"), "reason": "a test asks",
                                    "content": "Mara takes tea, with milk.", "view": "raw_owner"})  # fmt: skip
    yield Request("long_term.mutate", {"action": "supersede", "ref": Earlier("fact"), "reason": "a test asks",
                                    "content": "Mara takes tea at four.", "view": "raw_owner"})  # fmt: skip
    yield Request("long_term.list", {"query": "pump", "view": "operator_audit"})
    yield Request("private.list", {}, keep={"item": "items.0.record_id"})
    yield Request("private.get", {"record_id": Earlier("item")})
    yield Request("private.list", {}, who="agent")
    hose = {"text": "The hose is green.", "said": "The hose is green.", "topic": "hose"}
    yield Request("memory.remember", hose, key="hose")
    yield Request("memory.remember", hose, key="hose")
    yield Request("memory.remember", {**hose, "text": "The hose is red.", "speaker": "Mara"}, who="agent")
    yield Request("memory.remember", {"text": "The hose is old.", "conversation": TALK}, who="worker")
    yield Request("governance.list", {}, keep={"first": "candidates.0.waiting_id", "last": "candidates.1.waiting_id"})
    yield Request("governance.list", {"what": "candidates", "reason": "needs_assertion"}, who="worker")
    decide = {"ids": [Earlier("first")], "decision": "reject", "reason": "a test asks"}
    yield Request("governance.decide", {**decide, "dry_run": True})
    yield Request("governance.decide", decide)
    yield Request("governance.decide", decide)
    yield Request("governance.decide", {"ids": [Earlier("last")], "decision": "accept"}, who="worker")


def _tools() -> Iterator[Request]:
    tool = {"tool_id": "kettle", "title": "Kettle", "schema_fingerprint": "s1", "permission_tags": ["power"]}
    registry = {"registry_id": "kitchen", "fingerprint": "f1", "tools": [tool]}
    yield Request("tool_registry.upsert", registry)
    for turn_id in ("t1", "t5"):
        used = {"tool_id": "kettle", "schema_fingerprint": "s1", "outcome": "succeeded", "summary": "boiled water"}
        feedback = {"registry_ref": {"registry_id": "kitchen", "fingerprint": "f1"}, "turn_id": turn_id,
                    "observations": [used], "reuse_outcome": "succeeded"}  # fmt: skip
        yield Request("memory.write", {"kind": "agent_tool_usage_feedback", "feedback": feedback})
    refs = [{"registry_id": "kitchen", "fingerprint": "f1"}, {"registry_id": "gone", "fingerprint": "f"}]
    yield Request("memory.recall", {"query": "descale the kettle", "tool_registry_refs": refs})
    yield Request("memory.project", {"user_query": "prune and descale", "tool_registry_refs": refs})
    yield Request("tool_registry.list", {})
    yield Request("tool_registry.get", {"registry_id": "kitchen"})
    yield Request("tool_registry.upsert", {**registry, "tools": [{**tool, "schema_fingerprint": "s2"}]})
    yield Request("memory.recall", {"query": "the kettle"})
    yield Request("tool_registry.delete", {"registry_id": "kitchen"})
    yield Request("agent_skill.list", {})
    yield Request("agent_skill.list", {"query": "prune"}, who="worker")


def _proposals() -> Iterator[Request]:
    proposals = [
        {"proposal_id": "one", "kind": "skill_edit", "target": "pump", "change": {"procedure": "1. Ask."},
         "rationale": "safer", "evidence_refs": ["evidence:local/talk/t1"]},
        {"kind": "fact_write", "change": {"content": "The hose is long.", "topic": "hose"}, "rationale": "it was said"},
        {"proposal_id": "three", "kind": "skill_disable", "target": "pump", "rationale": "not now"},
    ]  # fmt: skip
    yield Request("evolve.propose", {"proposals": proposals})
    yield Request("evolve.list", {})
    yield Request("evolve.preview", {"proposal_id": "one"})
    yield Request("evolve.submit", {"proposal_ids": ["one"]})
    yield Request("evolve.submit", {"proposal_ids": ["three"], "decision": "withdraw"})
    yield Request("evolve.list", {"state": "all"}, who="worker")


def _out_and_in() -> Iterator[Request]:
    private = {"include_private": True, "passphrase": PASSPHRASE}
    yield Request("memory.replay", {"chat_id": "c1"})
    yield Request("memory.export", {"chat_id": "c1", **private}, keep={"chat": "snapshot"})
    yield Request("memory.import", {"snapshot": Earlier("chat"), "target_chat_id": "c9", "mode": "bootstrap_import",
                                 "passphrase": PASSPHRASE}, owner="carl")  # fmt: skip
    yield Request("memory.import", {"snapshot": Earlier("chat"), "target_chat_id": "c9", "mode": "bootstrap_import",
                                 "passphrase": "another passphrase"}, owner="dora")  # fmt: skip
    yield Request("memory.export_space", private, keep={"space": "archive"})
    archive = {"archive": Earlier("space"), "passphrase": PASSPHRASE}
    yield Request("memory.import_space", {**archive, "mode": "bootstrap_import"}, owner="emil")
    yield Request("memory.import_space", {**archive, "mode": "full_restore"}, owner="emil")
    yield Request("memory.recall", {"query": "pump"}, owner="emil")
    yield Request("memory.export_space", {}, owner="emil")


def _operator() -> Iterator[Request]:
    device = {"device_id": "panel", "label": "the panel", "capabilities": ["recall"], "owner_id": "ann"}
    yield Request("device.add", device, keep={"panel": "appKeyOnce"})
    yield Request("device.add", device, who="worker")
    yield Request("memory.recall", {"query": "pump"}, device="panel", device_key="panel")
    yield Request("device.update", {"device_id": "panel", "state": "suspended"})
    yield Request("memory.recall", {"query": "pump"}, device="panel", device_key="panel")
    yield Request("device.update", {"device_id": "panel", "state": "active", "label": "a panel"})
    yield Request("device.rotate_key", {"device_id": "panel"})
    yield Request("memory.recall", {"query": "pump"}, device="panel", device_key="panel")
    yield Request("device.list", {})
    yield Request("device.remove", {"device_id": "panel"})
    yield Request("transport.update", {"name": "unix_socket", "enabled": False})
    yield Request("transport.list", {})
    yield Request("console.overview", {})
    yield Request("console.session", {}, who="agent")
    yield Request("hello", {})
    yield Request("memory.capabilities", {}, who="worker")


def _erasing() -> Iterator[Request]:
    where = {"conversation": TALK, "reason": "a test asks"}
    yield Request("transcript.lifecycle", {**where, "action": "mask", "turn_ids": ["t2"]})
    yield Request("transcript.lifecycle", {**where, "action": "delete_raw", "turn_ids": ["t1"], "dry_run": True})
    yield Request("transcript.lifecycle", {**where, "action": "delete_raw", "turn_ids": ["t1", "t3"]})
    yield Request("transcript.repair", {})
    yield Request("transcript.repair_safe", {})
    forget = {"action": "forget_by_query", "query": "tea", "view": "raw_owner"}
    yield Request("long_term.mutate", {**forget, "dry_run": True}, keep={"token": "confirm_token"})
    yield Request("long_term.mutate", {**forget, "confirm": Earlier("token")})
    yield Request("long_term.mutate", {"action": "delete", "ref": "long_term:f-0"})
    yield Request("private.delete", {"record_id": Earlier("item"), "dry_run": True})
    yield Request("private.delete", {"record_id": Earlier("item")}, who="worker")
    yield Request("private.delete", {"record_id": Earlier("item")})
    yield Request("memory.forget", {"query": "hose", "dry_run": True}, keep={"all": "token"})
    yield Request("memory.forget", {"query": "pump", "token": Earlier("all")})
    yield Request("memory.forget", {"query": "hose", "token": Earlier("all")})
    yield Request("skill.delete", {"name": "two"}, after=100 * DAY_US)


def _looking() -> Iterator[Request]:
    for view in (*ALL_VIEWS, "raw_owner"):
        yield Request("transcript.replay", {"conversation": TALK, "view": view})
    yield Request("transcript.export", {"conversation": TALK, "include_private": True})
    yield Request("transcript.timeline", {"conversation": TALK, "view": "host_ui", "anchor": {"around": 3}})
    yield Request("transcript.conversations", {})
    yield Request("transcript.search", {"query": "pump strainer", "view": "host_ui"})
    for who in ("owner", "agent", "worker"):
        yield Request("memory.recall", {"query": "what about the loud pump?", "limit": 50}, who=who)
        yield Request("memory.project", {"user_query": "the pump", "system_max_len": 1500}, who=who)
    yield Request("memory.inspect", {"query": "pump"})
    yield Request("governance.report", {})
    yield Request("event_log.read", {"limit": 200, "topics": ["memory", "transcript", "skill"]})
    yield Request("long_term.list", {"state": "all", "view": "raw_owner"})
    yield Request("store.verify", {})
    yield Request("memory.recover", {})


@dataclass(frozen=True)
class Answered:
    """What a preparation will have answered at a path of its report."""

    name: str
    path: str = ""

    def __getitem__(self, part: str | int) -> Any:
        return Answered(self.name, f"{self.path}.{part}".removeprefix("."))


class Foreseen(Prepared):
    """Preparations that were not asked yet: a step that stands on one is given it when it is asked."""

    def __init__(self) -> None:
        super().__init__(lambda op, args: {})

    def __getitem__(self, name: str) -> Any:
        return Answered(name)


def cases() -> Iterator[Request]:
    """The operations that no step asks, each by its case, with what the case needs."""
    asked = {each.op for each in steps()}
    for case in CASES:
        if case.op not in asked and case.op not in NOT_IN_THE_SCRIPT:
            args = case.args(Foreseen()) if callable(case.args) else case.args
            answered = [each for each in args.values() if isinstance(each, Answered)]
            for name in dict.fromkeys((*case.needs, *(each.name for each in answered))):
                yield from _prepared(name, {each.path: each.path for each in answered if each.name == name})
            given = {name: Earlier(each.path) if isinstance(each, Answered) else each for name, each in args.items()}
            yield Request(case.op, given, owner=OF_CASES)


def _prepared(name: str, keep: Plain) -> Iterator[Request]:
    made = PREPARATIONS[name]
    for needed in made.needs:
        yield from _prepared(needed, {})
    yield Request(made.op, made.args, owner=OF_CASES, keep=keep)
