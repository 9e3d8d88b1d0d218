"""One request of every operation, in an order in which each of them works: from an empty store to a closed one."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tests.conformance.cases import CONVERSATION, skill, step, talk, turn, write

Plain = dict[str, Any]
Said = Mapping[str, Plain]
"""The last report of each operation so far."""

PASSPHRASE = "a passphrase of some length"
TOOL = {"tool_id": "valve.open", "title": "Open a valve", "schema_fingerprint": "v1"}


class Step(NamedTuple):
    """One request. `needs` are operations whose reports its arguments are made of."""

    op: str
    args: Callable[[Said], Plain] = lambda said: {}
    needs: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    """Error keys that count as an answer: what it works with is not there."""


def plainly(op: str, **args: Any) -> Step:
    return Step(op, lambda said: args)


def candidate(place: str, target: str, privacy: str, content: str) -> Plain:
    return {"candidate_id": place, "authority": "user_asserted", "target": target, "privacy": privacy,
            "topic": "" if target == "private_garden" else "spare key", "content": content}  # fmt: skip


def carried(said: Said, op: str, field: str) -> bytes:
    """Bytes of a report, which are text in its plain form."""
    return base64.b64decode(said[op][field])


WORDS = plainly(
    "memory.write",
    kind="candidates",
    candidates=[
        candidate("c1", "long_term", "shared_with_subject", "The spare key is under the pot."),
        candidate("c2", "private_garden", "subject_private", "Nobody is to know of the pot."),
    ],
)

TOUR: tuple[Step, ...] = (
    plainly("hello"),
    plainly("memory.capabilities"),
    Step("transcript.commit", lambda said: talk(turn("t1", "The spare key is under the pot"), turn("t2", "Thank you"))),
    Step("memory.write", lambda said: write(skill("find-keys"))),
    WORDS,
    plainly("memory.recall", query="spare key"),
    plainly("memory.project", user_query="where is the key", system_max_len=2000),
    plainly("memory.inspect", query="key"),
    Step("memory.maintain", lambda said: {"conversation": CONVERSATION}, answers=("services_unavailable",)),
    Step("memory.finalize_turn", lambda said: {"conversation": CONVERSATION, "turn": turn("t3", "The door is blue")}),
    plainly("governance.report"),
    plainly("skill.list"),
    plainly("skill.detail", name="find-keys"),
    plainly("skill.edit", name="find-keys", title="Find any key", edit_reason="wider"),
    plainly("skill.set_enabled", name="find-keys", enabled=True),
    plainly("agent_skill.list"),
    plainly("tool_registry.upsert", registry_id="house", fingerprint="f1", tools=[TOOL]),
    plainly("tool_registry.list"),
    plainly("tool_registry.get", registry_id="house"),
    plainly("long_term.list"),
    Step("long_term.detail", lambda said: {"ref": said["memory.write"]["outcomes"][0]["ref"]}, ("memory.write",)),
    Step("long_term.mutate", lambda said: {"action": "correct", "ref": said["memory.write"]["outcomes"][0]["ref"],
                                           "content": "The spare key is in the shed.", "reason": "it moved"},
         ("memory.write",)),
    plainly("long_term.policy", action="suppress", topic="door colour", reason="of no use"),
    plainly("transcript.replay", conversation=CONVERSATION, view="host_ui"),
    plainly("transcript.export", conversation=CONVERSATION),
    plainly("transcript.conversations"),
    plainly("transcript.timeline", conversation=CONVERSATION, view="host_ui", anchor="latest"),
    plainly("transcript.search", query="key", view="host_ui"),
    plainly("transcript.repair"),
    plainly("transcript.repair_safe"),
    plainly("private.list"),
    Step("private.get", lambda said: {"record_id": said["private.list"]["items"][0]["record_id"]}, ("private.list",)),
    plainly("memory.replay", chat_id="talk"),
    plainly("memory.export", chat_id="talk", include_private=True, passphrase=PASSPHRASE),
    Step("memory.import", lambda said: {"snapshot": carried(said, "memory.export", "snapshot"), "mode": "full_restore",
                                        "target_chat_id": "copy", "passphrase": PASSPHRASE}, ("memory.export",)),
    plainly("memory.export_space", include_private=True, passphrase=PASSPHRASE),
    Step("memory.import_space", lambda said: {"archive": carried(said, "memory.export_space", "archive"),
                                              "mode": "full_restore", "passphrase": PASSPHRASE},
         ("memory.export_space",)),
    plainly("evolve.propose", proposals=[
        {"proposal_id": "p1", "kind": "skill_edit", "target": "find-keys", "change": {"title": "Find a key"},
         "rationale": "shorter"}]),
    plainly("evolve.list"),
    plainly("evolve.preview", proposal_id="p1"),
    plainly("evolve.submit", proposal_ids=["p1"]),
    plainly("console.overview"),
    plainly("console.session"),
    plainly("device.add", device_id="panel", label="Panel", capabilities=["recall"]),
    plainly("device.list"),
    plainly("device.update", device_id="panel", label="Panel in the hall"),
    plainly("device.rotate_key", device_id="panel"),
    plainly("device.remove", device_id="panel"),
    plainly("transport.list"),
    plainly("transport.update", name="unix_socket", enabled=True),
    plainly("event_log.read"),
    plainly("harness.run", suite="memory", backends=["in-memory"]),
    Step("transcript.lifecycle", lambda said: step("mask", "t2")),
    plainly("store.verify"),
    plainly("batch", requests=[{"op": "memory.recall", "args": {"query": "key"}}]),
    plainly("snapshot.create", label="before the move"),
    plainly("snapshot.list"),
    Step("snapshot.verify", lambda said: {"snapshot_id": said["snapshot.create"]["snapshot"]["snapshot_id"]},
         ("snapshot.create",)),
    Step("snapshot.restore", lambda said: {"snapshot_id": said["snapshot.create"]["snapshot"]["snapshot_id"]},
         ("snapshot.create",)),
    plainly("snapshot.prune", keep=1),
    plainly("skill.delete", name="find-keys"),
    plainly("tool_registry.delete", registry_id="house"),
    plainly("memory.recover"),
    plainly("memory.close", reason="the tour is over"),
)  # fmt: skip
