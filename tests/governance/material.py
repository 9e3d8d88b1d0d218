"""One store that holds every class of material, each with a canary of its own, and who asks for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from beetle.contracts.common import DEFAULT_AGENT
from beetle.open import open_store
from beetle.runtime.host.caller import Caller
from beetle.runtime.host.dependencies import Dependencies
from beetle.runtime.host.principals import OPERATOR_CAPABILITIES
from tests.building import CONVERSATION, candidate, candidates, message, skill, talk, turn, write
from tests.cases import SAID_DAY, WORD
from tests.conformance.doors import PROFILE, InProcess, Plain, embedded_caller
from tests.sdk.skill_folders import write_skill

OWNER = "owner-one"
KINDS = ("shared", "private", "soul", "backend", "operator")
VIEWS = ("raw_owner", "model_context", "host_ui", "operator_audit", "export")
STAGES = ("live", "masked", "unmasked", "deleted")
"""What was done to every turn before the operations are asked."""


def canary(name: str) -> str:
    """A word that stands for one class of material, and in nothing else."""
    return "zq" + name.replace(" ", "").replace("_", "") + "qz"


REGISTRY: Plain = {
    "registry_id": "host-tools", "fingerprint": "f",
    "tools": [
        {"tool_id": "tool", "title": canary("registry title"), "summary": canary("registry summary"),
         "schema_fingerprint": "f"},
    ],
}  # fmt: skip


UPLOAD: Plain = {
    "agent_id": DEFAULT_AGENT, "skill_id": WORD,
    "content": f"---\nname: {canary('uploaded name')}\ndescription: d\n---\n# Steps\n\n{canary('uploaded text')}\n",
}  # fmt: skip


class Asker(NamedTuple):
    """A caller, and what of it decides."""

    caller: Caller
    own_agent: bool
    """Whether it is the space's own agent."""

    @property
    def view(self) -> str:
        return self.caller.views[0]


def _principal(name: str, agent: str | None, *views: Any, more: frozenset[str] = frozenset()) -> Caller:
    return Caller(
        name=name, kind="principal", capabilities=OPERATOR_CAPABILITIES | more, views=views, transport="unix_socket",
        owner_id=OWNER, agent_id=agent,
    )  # fmt: skip


ASKERS: dict[str, Asker] = {
    "owner": Asker(embedded_caller(OWNER), True),
    "operator": Asker(
        Caller(
            name="operator", kind="operator", capabilities=OPERATOR_CAPABILITIES,
            views=("host_ui", "model_context", "operator_audit", "export"), transport="unix_socket",
        ),
        False,
    ),
    "agent": Asker(_principal("agent", DEFAULT_AGENT, "model_context", "host_ui"), True),
    "panel": Asker(_principal("panel", None, "host_ui", "model_context"), False),
    "auditor": Asker(_principal("auditor", None, "operator_audit"), False),
    "exporter": Asker(_principal("exporter", None, "export"), False),
}  # fmt: skip


class Store:
    """The store of one stage, and its records' refs."""

    def __init__(self, folder: Path, stage: str) -> None:
        self.stage = stage
        self.path = folder / "material.db"
        self.door = InProcess(OWNER, self.path)
        self.skills = folder.with_name(f"{folder.name}-skills")
        self._mount(self.skills)
        self.refs: dict[str, str] = {}
        self.records: dict[str, str] = {}
        self._say()
        self._learn()
        self._keep()
        self._think()
        self._note()
        self.grips = self._index()
        steps = {"live": (), "masked": ("mask",), "unmasked": ("mask", "unmask"), "deleted": ("delete_raw",)}[stage]
        for action in steps:
            self.ask("transcript.lifecycle", self.step(action))

    def ask(self, op: str, args: Any, asker: str = "owner") -> Plain:
        """One operation's report."""
        return self.door.ask(op, args, caller=ASKERS[asker].caller).report

    def step(self, action: str, **more: Any) -> Plain:
        reason = canary("lifecycle reason")
        return {
            "conversation": CONVERSATION,
            "action": action,
            "before": "2030-01-01T00:00:00Z",
            "reason": reason,
            **more,
        }

    def _say(self) -> None:
        """A turn for each visibility, with a label, an attr and what a tool did in it."""
        turns = []
        for minute, kind in enumerate(KINDS):
            label = {
                "kind": "task", "ref_id": f"r-{kind}", "label": canary(f"label {kind}"),
                "visibility": ["host_ui", "model_context", "operator_audit", "export"],
            }  # fmt: skip
            attr = {
                "key": "note", "value": canary(f"attr {kind}"), "target": {"message_id": f"m-{kind}"},
                "visibility": ["host_ui", "model_context", "operator_audit", "export"], "export_allowed": True,
            }  # fmt: skip
            said = message(f"m-{kind}", canary(f"said {kind}"), visibility=kind)
            turns.append(turn(f"t-{kind}", said, at=f"2024-05-01T10:0{minute}:00Z", host_refs=[label], attrs=[attr]))
        self.ask("transcript.commit", talk(*turns))
        observation = {
            "tool_id": "tool",
            "schema_fingerprint": "f",
            "outcome": "succeeded",
            "summary": canary("tool brief"),
        }
        feedback = {
            "registry_ref": {"registry_id": "host-tools", "fingerprint": "f"}, "turn_id": "t-shared",
            "observations": [observation], "user_visible_result_summary": canary("tool result"),
            "reuse_outcome": "succeeded", "operator_note": canary("tool note"),
        }  # fmt: skip
        self.ask("memory.write", {"kind": "agent_tool_usage_feedback", "feedback": feedback})
        self.ask("tool_registry.upsert", REGISTRY)
        self.ask("skill_registry.upload", UPLOAD)

    def _mount(self, folder: Path) -> None:
        """One Agent Skill, beside the store's own folder; its file's words are never to be told."""
        write_skill(folder / "one", "one", canary("agent skill"), reference=canary("agent file"))
        self.door.opened.store.close()
        self.door.opened = open_store(str(self.path), PROFILE, dependencies=Dependencies(skill_dirs=(str(folder),)))

    def _learn(self) -> None:
        """Facts in every state, skills, a suppressed topic."""
        for name, privacy in (
            ("fact shared", "shared_with_subject"), ("fact private", "subject_private"),
            ("fact old", "shared_with_subject"), ("fact stale", "shared_with_subject"),
            ("fact superseded", "shared_with_subject"), ("fact gone", "shared_with_subject"),
        ):  # fmt: skip
            outcome = self.judge("long_term", privacy, canary(name), topic=f"topic of {name}")
            assert (outcome["outcome"], outcome["reason"]) == ("accepted", "created"), outcome
            self.refs[name] = outcome["ref"]
        self.mutate("fact old", "correct", content=canary("fact new"))
        self.mutate("fact stale", "mark_stale")
        self.mutate("fact superseded", "supersede", content=canary("fact successor"))
        self.mutate("fact gone", "delete")
        self.ask(
            "memory.write",
            write(skill(WORD, content=canary("skill live")), skill("off", content=canary("skill off"))),
        )
        self.ask("memory.write", write(skill("gone", content=canary("skill gone"))))
        self.ask("skill.set_enabled", {"name": "off", "enabled": False})
        self.ask("skill.delete", {"name": "gone"})

    def _keep(self) -> None:
        """Private material, and what waits to be judged."""
        for name, target, privacy in (
            ("garden", "private_garden", "subject_private"), ("soul candidate", "soul_candidate", "soul_private")
        ):  # fmt: skip
            self.records[name] = self.judge(target, privacy, canary(name), authority="operator")["record_id"]
        waiting = self.judge("long_term", "shared_with_subject", canary("waiting"), authority="assistant_claimed")
        assert (waiting["outcome"], waiting["reason"]) == ("deferred", "needs_assertion")
        self.ask(
            "long_term.policy",
            {"action": "suppress", "topic": canary("policy topic"), "reason": canary("policy reason")},
        )

    def _think(self) -> None:
        """Thoughts of a chain: live, masked, erased."""
        for name in ("thought", "thought masked", "thought gone"):
            said = {"chain_key": "told", "thought_type": "Plan", "content": canary(name), "agent_id": "writer"}
            self.ask("chain.append", {**said, "agent_name": canary("thought agent")})
        for action, index in (("mask", 1), ("erase", 2)):
            step = {"chain_key": "told", "action": action, "indexes": [index], "reason": "because"}
            self.ask("chain.lifecycle", step)

    def _note(self) -> None:
        """Chunks: live, archived, deleted."""
        for name in ("chunk", "chunk archived", "chunk gone"):
            said = {"content": canary(name), "conversation_id": "noted", "tags": [canary("chunk tag")]}
            self.refs[f"id of {name}"] = self.ask("chunk.create", {**said, "link": False})["chunk"]["id"]
        for name, permanent in (("chunk archived", False), ("chunk gone", True)):
            self.ask("chunk.delete", {"id": self.refs[f"id of {name}"], "permanent": permanent})

    def _index(self) -> tuple[str, ...]:
        """Have the table of contents built; what its bullets rest on."""
        self.ask("admin.rebuild_toc", {})
        day = self.ask("toc.node", {"node_id": SAID_DAY})["node"]
        found = tuple(grip_id for bullet in day["bullets"] for grip_id in bullet["grip_ids"])
        assert found
        return found

    def judge(
        self, target: str, privacy: str, content: str, authority: str = "user_asserted", topic: str = ""
    ) -> Plain:
        """The outcome of one candidate."""
        # The id is the host's own, and is given back: it must not look like the content.
        one = candidate(f"c-{len(self.refs)}-{len(self.records)}", content, authority=authority, target=target,
                        privacy=privacy, topic=topic)  # fmt: skip
        return self.ask("memory.write", candidates(one))["outcomes"][0]

    def mutate(self, name: str, action: str, **more: Any) -> None:
        """One step over a fact, as its owner."""
        reason = {} if action == "delete" else {"reason": canary("fact reason")}
        self.ask("long_term.mutate", {"action": action, "ref": self.refs[name], **reason, **more}, "owner")

    def close(self) -> None:
        self.door.close()


ALL = tuple(
    canary(name)
    for name in (
        *(f"said {kind}" for kind in KINDS), *(f"label {kind}" for kind in KINDS), *(f"attr {kind}" for kind in KINDS),
        "lifecycle reason", "tool brief", "tool result", "tool note",
        "fact shared", "fact private", "fact old", "fact new", "fact stale", "fact superseded", "fact successor",
        "fact gone", "fact reason", "skill live", "skill off", "skill gone", "garden", "soul candidate", "waiting",
        "policy topic", "policy reason", "agent skill", "agent file", "registry title", "registry summary",
        "thought", "thought masked", "thought gone", "thought agent",
        "chunk", "chunk archived", "chunk gone", "chunk tag",
        "uploaded name", "uploaded text",
    )
)  # fmt: skip
"""Every canary that was planted."""
