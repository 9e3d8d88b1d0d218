"""One table of cases: for every operation a request that it answers, and what there is to say of it.

Every suite that asks each operation walks this table: conformance, scope, isolation, the privacy matrix, modes, the
tour, the fault sweep. An operation without a case fails in all of them; a new operation is one case here.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from beetle.chunk_tree.archive import Member, packed
from beetle.contracts.operations import BY_NAME, Operation
from tests.building import CONVERSATION, Plain, candidate, candidates, message, registry, skill, step, talk, turn, write

WORD = "zanzibar"
"""Stands in all that is prepared, and is what all of it is called."""
TALK: Plain = {"conversation": CONVERSATION}
HOST: Plain = {**TALK, "view": "host_ui"}
SAID = talk(turn("t1", f"the {WORD} secret", host_refs=[{"kind": "task", "ref_id": WORD}]), turn("t2", "thank you"))
SAID_DAY = "toc:day:2024-05-01"
"""The day that `SAID` was said."""
SKILL = write(skill(WORD, content=f"the {WORD} way"))
FACT = candidates(candidate("c", f"the {WORD} secret", topic=WORD))
CLAIM = candidates(candidate("w", f"the {WORD} secret waits", topic=f"{WORD} waits", authority="assistant_claimed"))
RECORD = candidates(candidate("p", f"the {WORD} secret", target="private_garden", privacy="subject_private"))
TOOL = {"tool_id": WORD, "title": "T", "summary": f"the {WORD} secret", "schema_fingerprint": "s1"}
REGISTRY = registry(WORD, TOOL)
CHAIN: Plain = {"chain_key": WORD}
THOUGHT: Plain = {**CHAIN, "thought_type": "Plan", "content": f"the {WORD} secret", "tags": [WORD], "agent_id": WORD}
AGENT: Plain = {**CHAIN, "agent_id": WORD}
KEY: Plain = {**AGENT, "key_id": "k1"}
CHUNK: Plain = {"content": f"the {WORD} secret", "conversation_id": WORD, "tags": [WORD]}
TREE = packed([Member("chunks/2026-02/chunk-2026-02-10-a1b2c3d4.json", json.dumps({
    "id": "chunk-2026-02-10-a1b2c3d4", "content": "a note of a tree", "tokens": 5, "type": "note",
    "metadata": {"created": "2026-02-10T21:37:00Z", "conversation_id": "tree"}, "links": {}, "tags": [],
}).encode())])  # fmt: skip
UPLOAD = {
    "agent_id": "agent-main",
    "content": f"---\nname: {WORD}\ndescription: the way\n---\n# Steps\n\nthe {WORD} secret\n",
}
PROPOSAL = {"proposal_id": "p1", "kind": "skill_edit", "target": WORD, "change": {"title": "T"}, "rationale": "shorter"}
NEW_TURN: Plain = {**TALK, "turn": turn("t3", "the door is blue")}
CAPTURED: Plain = {"host_session_id": WORD, "host_turn_index": 0, "role": "user", "content": f"the {WORD} secret"}
EVENT: Plain = {"event_id": WORD, "session_id": WORD, "timestamp_ms": 1738281600000, "event_type": "user_message"}
INGESTED: Plain = {"event": {**EVENT, "text": f"the {WORD} secret"}}
EPISODE: Plain = {"task": f"the {WORD} secret", "agent_id": "agent-main"}
ACTION: Plain = {"action_type": "look", "input": "under the pot", "result_status": "success", "result_detail": "a key"}
BETWEEN: Plain = {"from_timestamp_ms": 0, "to_timestamp_ms": 1738281600000}
HOST_KEY = base64.b64encode(bytes.fromhex("d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a")).decode()
ENROLLED: Plain = {"host_pubkey_b64": HOST_KEY, "label": "laptop"}
NOBODY = "nothing-of-this-name"
NO_SNAPSHOT = "s-0000000000000000"


class Prepared:
    """What a space was prepared with: the report of each preparation, made when it is first needed."""

    def __init__(self, ask: Callable[[str, Plain], Plain]) -> None:
        self._ask = ask
        self._reports: dict[str, Plain] = {}

    def __getitem__(self, name: str) -> Plain:
        if name not in self._reports:
            made = PREPARATIONS[name]
            for needed in made.needs:
                self[needed]
            self._reports[name] = self._ask(made.op, made.args)
        return self._reports[name]

    @property
    def fact(self) -> str:
        return self["fact"]["outcomes"][0]["ref"]

    @property
    def waiting(self) -> str:
        return self["waiting"]["outcomes"][0]["waiting_id"]

    @property
    def record(self) -> str:
        return self["private record"]["outcomes"][0]["record_id"]

    @property
    def device(self) -> str:
        return self["device"]["device"]["device_id"]

    @property
    def grip(self) -> str:
        return self["day"]["node"]["bullets"][0]["grip_ids"][0]

    @property
    def episode(self) -> str:
        return self["episode"]["episode_id"]

    @property
    def other_episode(self) -> str:
        return self["other episode"]["episode_id"]

    @property
    def chunk(self) -> str:
        return self["chunk"]["chunk"]["id"]

    @property
    def snapshot(self) -> str:
        return self["snapshot"]["snapshot"]["snapshot_id"]

    def taken_out(self, name: str, field: str) -> bytes:
        """The bytes of an export, which are text in a plain report."""
        return base64.b64decode(self[name][field])


Args = Plain | Callable[[Prepared], Plain]


class Preparation(NamedTuple):
    """A request that a case needs answered first, and the preparations that it needs itself."""

    op: str
    args: Plain
    needs: tuple[str, ...] = ()


CHAT: Plain = {"chat_id": "talk"}
NOTHING: Plain = {}
PREPARATIONS: Mapping[str, Preparation] = {
    "conversation": Preparation("transcript.commit", SAID),
    "skill": Preparation("memory.write", SKILL),
    "fact": Preparation("memory.write", FACT),
    "private record": Preparation("memory.write", RECORD),
    "waiting": Preparation("memory.write", CLAIM),
    "registry": Preparation("tool_registry.upsert", REGISTRY),
    "thought": Preparation("chain.append", THOUGHT),
    "agent key": Preparation(
        "chain.add_agent_key", {**KEY, "algorithm": "ed25519", "public_key_bytes": [7] * 32}, ("thought",)
    ),
    "chunk": Preparation("chunk.create", CHUNK),
    "archived chunk": Preparation("chunk.create", {**CHUNK, "tags": []}),
    "uploaded": Preparation("skill_registry.upload", UPLOAD),
    "proposal": Preparation("evolve.propose", {"proposals": [PROPOSAL]}, ("skill",)),
    "captured": Preparation("turn.capture", CAPTURED),
    "event": Preparation("event.ingest", INGESTED),
    "episode": Preparation("episode.start", EPISODE),
    "other episode": Preparation("episode.start", EPISODE),
    "table of contents": Preparation("admin.rebuild_toc", {}, ("conversation",)),
    "day": Preparation("toc.node", {"node_id": SAID_DAY}, ("table of contents",)),
    "host key": Preparation("host_key.enroll", ENROLLED),
    "device": Preparation("device.add", {"label": "a panel", "capabilities": ["recall"]}),
    "paused job": Preparation("scheduler.pause", {"job_name": "retention"}),
    "resumed job": Preparation("scheduler.resume", {"job_name": "optimize"}),
    "snapshot": Preparation("snapshot.create", {"label": "of a case"}),
    "chat taken out": Preparation("memory.export", CHAT, ("conversation",)),
    "space taken out": Preparation("memory.export_space", NOTHING, ("skill",)),
}


class Asked(NamedTuple):
    """A request, and the key of the error that answers it; None where a report does."""

    args: Args
    key: str | None = None

    def request(self, got: Prepared) -> Plain:
        return self.args(got) if callable(self.args) else self.args


Bad = tuple[Any, str]
"""Arguments, and the path of what is to blame in them."""


class Case(NamedTuple):
    """One operation.

    `changes`: it changes the store, so its report says so, and a mode that only reads refuses it.
    `who`: everyone who has its capability, operators alone, or the owner alone.
    `says`: what its answer may hold of what was said: ids, kinds and counts alone, or words. For words the privacy
    matrix has cells of its own, or it is shown the texts that `shows` names in every view but operator_audit.
    `hidden`: the profile of the conformance doors hides it.
    `key`: the error that answers it where no model is configured.
    `stranger`: what another owner asks about what was prepared here. Where it is left out, that is the case's own
    request, and the answer a report about nothing.
    `quiet`: what the privacy matrix asks of an operation whose answers say no words; it leaves the store as it is.
    Where it is left out, that is the case's own request.
    `once`: fields that only the first answer to an idempotency key shows.
    `wrong` is refused with `invalid_request`, `over` with `payload_too_large`.
    """

    op: str
    args: Args = NOTHING
    needs: tuple[str, ...] = ()
    changes: bool = False
    who: Literal["everyone", "operator", "owner"] = "everyone"
    says: Literal["ids", "words"] = "ids"
    hidden: bool = False
    key: str | None = None
    stranger: tuple[Asked, ...] | None = None
    quiet: tuple[Asked, ...] | None = None
    shows: tuple[str, ...] = ()
    once: tuple[str, ...] = ()
    wrong: tuple[Bad, ...] = ()
    over: tuple[Bad, ...] = ()

    @property
    def row(self) -> Operation:
        return BY_NAME[self.op]

    def request(self, got: Prepared) -> Plain:
        """The case's request, once what it needs is prepared."""
        for name in self.needs:
            got[name]
        return Asked(self.args).request(got)

    @property
    def probes(self) -> tuple[Asked, ...]:
        """What a stranger asks."""
        return (Asked(self.args, self.key),) if self.stranger is None else self.stranger

    @property
    def quietly(self) -> tuple[Asked, ...]:
        """What the privacy matrix asks."""
        if self.says == "words":
            return self.quiet or ()
        return (Asked(self.args, self.key),) if self.quiet is None else self.quiet


def _where(**more: Any) -> Plain:
    return {**TALK, **more}


def _deep(turn_: Plain, path: str) -> Bad:
    """A commit of one turn in which something is wrong."""
    return talk(turn_), f"turns[0]{path}"


LONG_QUERY = "x" * 8193
NOT_THERE = (Asked({"device_id": NOBODY}, "not_found"),)

CASES: tuple[Case, ...] = (
    Case("hello", wrong=(({"who": "me"}, "who"),)),
    Case("memory.capabilities"),
    Case("transcript.commit", SAID, changes=True, says="words",
         stranger=(Asked(talk(turn("t1", "another's words"))),),
         wrong=((talk(), "turns"),
                _deep({**turn("t1", "x"), "messages": []}, ".messages"),
                _deep(turn("", "x"), ".turn_id"),
                _deep(turn("a\nb", "x"), ".turn_id"),
                _deep(turn("x" * 257, message("m", "x")), ".turn_id"),
                _deep(turn("t", message("m", "x", role="robot")), ".messages[0].role"),
                _deep(turn("t", message("m", "x"), message("n", "x", visibility="public")), ".messages[1].visibility"),
                _deep(turn("t", message("m", b"bytes")), ".messages[0].content"),  # type: ignore[arg-type]
                _deep(turn("t", "x", at="2024-05-01"), ".at"),
                _deep(turn("t", "x", host_refs=[{"kind": "k"}]), ".host_refs[0].ref_id")),
         over=(_deep(turn("t", "x" * (2**18 + 1)), ".messages[0].content"),
               _deep(turn("t", "é" * (2**17 + 1)), ".messages[0].content"),
               (talk(*(turn(f"t{n}", "x") for n in range(201))), "turns"),
               _deep(turn("t", "x", host_refs=[{"kind": "k", "ref_id": f"{n}"} for n in range(33)]), ".host_refs"))),
    Case("memory.write", SKILL, changes=True, says="words",
         stranger=(Asked(write(skill(WORD, content="another way"))),),
         wrong=(({"kind": "procedural", "source": "manual", "writes": []}, "writes"),
                ({"kind": "other", "source": "manual", "writes": []}, "kind"),
                ({**write(skill("x")), "source": "guess"}, "source"),
                (write({**skill("x"), "name": "a/b"}), "writes[0].name"),
                (write(skill("y"), {**skill("x"), "more": 1}), "writes[1].more")),
         over=((write(skill("x", content="x" * 1_000_001)), "writes[0].content"),)),
    Case("memory.remember", {"text": "The door is blue.", "said": "The door is blue."}, changes=True,
         stranger=(Asked({"text": "another's words", "conversation": CONVERSATION}),), quiet=(),
         wrong=(({"text": " "}, "text"), ({"text": "x", "said": ""}, "said"), ({"text": "x", "speaker": "Ana"}, ""),
                ({"text": "x", "topic": "x" * 257}, "topic"), ({"text": "x", "kind": "rumour"}, "kind"),
                ({"text": "x", "conversation": "c"}, "conversation")),
         over=(({"text": "x" * (2**18 + 1)}, "text"), ({"text": "x", "said": "x" * (2**18 + 1)}, "said"))),
    Case("memory.classify", {"query": WORD}, stranger=(Asked({"query": WORD}),),
         wrong=(({"query": " "}, "query"), ({}, "query"), ({"query": "x", "timeout_ms": 0}, "timeout_ms")),
         over=(({"query": LONG_QUERY}, "query"),)),
    Case("memory.recall", {"query": WORD}, ("conversation", "skill"), says="words",
         stranger=(Asked({"query": WORD}), Asked(_where(query=WORD))),
         wrong=(({"query": "x", "limit": "ten"}, "limit"), ({"query": "x", "limit": 1.5}, "limit"),
                ({"query": "x", "limit": 0}, "limit"), ({"query": "x", "limit": -1}, "limit"),
                ({"query": "x", "limit": True}, "limit"), ({"query": "x", "limit": None}, "limit"),
                ({"query": "x", "limit": 2**63}, "limit"), ({"query": "x", "limit": float("nan")}, "limit"),
                ({"query": "x", "limit": float("inf")}, "limit"), ({"query": 5}, "query"), ({"query": ["x"]}, "query"),
                ({}, "query"), ({"query": "x", "limits": 3}, "limits"),
                ({"query": "x", "conversation": "c"}, "conversation"),
                ({"query": "x", "conversation": {}}, "conversation.conversation_id"),
                ({"query": "x", "since": "yesterday"}, "since"),
                ({"query": "x", "since": "2024-05-01T10:00:00"}, "since"),
                ({"query": "x", "since": 1714557600}, "since"), ({"query": "x", "planes": "evidence"}, "planes"),
                ([], ""), ("query", "")),
         over=(({"query": LONG_QUERY}, "query"),)),
    Case("memory.project", {"user_query": WORD, "system_max_len": 2000}, ("conversation",), says="words",
         stranger=(Asked({"user_query": WORD}), Asked(_where(user_query=""))),
         wrong=(({"user_query": "x", "recent_messages_limit": -1}, "recent_messages_limit"),
                ({"user_query": "x", "mode_input": {"mode": "normal", "x": 1}}, "mode_input.x")),
         over=(({"user_query": LONG_QUERY}, "user_query"),)),
    Case("memory.inspect", {"query": WORD}, ("conversation",), says="words",
         over=(({"query": LONG_QUERY}, "query"),)),
    Case("memory.maintain", TALK, ("conversation",), key="services_unavailable"),
    Case("memory.finalize_turn", NEW_TURN, changes=True, says="words",
         stranger=(Asked({**TALK, "turn": turn("t1", "another's words")}),)),
    Case("governance.report", {"since": "2000-01-01T00:00:00Z"}, ("fact",)),
    Case("governance.list", {}, ("waiting",), says="words",
         wrong=(({"what": "jobs", "reason": "policy_paused"}, ""), ({"reason": "soul_handoff"}, "reason"))),
    Case("governance.decide", lambda got: {"ids": [got.waiting], "decision": "reject", "reason": "a joke"},
         changes=True,
         stranger=(Asked(lambda got: {"ids": [got.waiting], "decision": "reject", "reason": "a joke"}, "not_found"),),
         quiet=(Asked({"ids": [NOBODY], "decision": "accept"}, "not_found"),),
         wrong=(({"ids": [], "decision": "accept"}, "ids"), ({"ids": ["w"], "decision": "reject"}, ""),
                ({"ids": ["w", "w"], "decision": "accept"}, ""), ({"ids": ["j"], "decision": "maybe"}, "decision"))),
    Case("skill.list", {"include_disabled": True, "include_retired": True}, ("skill",),
         stranger=(Asked({}), Asked({"query": WORD})), wrong=(({"limit": 0}, "limit"),)),
    Case("skill.detail", {"name": WORD}, ("skill",), says="words", shows=("skill live",),
         stranger=(Asked({"name": WORD}, "not_found"),)),
    Case("skill.edit", {"name": WORD, "title": "Another title", "edit_reason": "wider"}, ("skill",), changes=True,
         stranger=(Asked({"name": WORD, "title": "T", "edit_reason": "r"}, "not_found"),),
         quiet=(Asked({"name": WORD, "title": f"Title of {WORD}", "edit_reason": "r"}),)),
    Case("skill.set_enabled", {"name": WORD, "enabled": False}, ("skill",), changes=True,
         stranger=(Asked({"name": WORD, "enabled": False}, "not_found"),),
         quiet=(Asked({"name": WORD, "enabled": True}),),
         wrong=(({"name": "x", "enabled": "yes"}, "enabled"), ({"name": "x"}, "enabled"))),
    Case("skill.delete", {"name": WORD}, ("skill",), changes=True, stranger=(Asked({"name": WORD}, "not_found"),),
         quiet=(Asked({"name": NOBODY}, "not_found"),)),
    Case("agent_skill.list", says="words", stranger=(Asked({}), Asked({"query": WORD})),
         wrong=(({"limit": 0}, "limit"),)),
    Case("skill_registry.md"),
    Case("skill_registry.manifest"),
    Case("skill_registry.upload", UPLOAD, changes=True, says="words",
         stranger=(Asked({**UPLOAD, "content": "---\nname: another\ndescription: way\n---\nhere"}),),
         wrong=(({**UPLOAD, "format": "yaml"}, "format"), ({**UPLOAD, "content": "\n "}, "content"),
                ({**UPLOAD, "content": "# Title\n\nno description"}, "content"),
                ({**UPLOAD, "content": "---\nname: &a x\ndescription: *a\n---\n"}, "content"),
                ({**UPLOAD, "content": "a\0b"}, "content"), ({**UPLOAD, "skill_id": "../.."}, "skill_id"),
                ({**UPLOAD, "signing_key_id": "k"}, ""), ({"content": "x"}, "agent_id"),
                ({**UPLOAD, "skill_signature": [1], "signing_key_id": "k"}, "skill_signature")),
         over=(({**UPLOAD, "content": "x" * 1_000_001}, "content"),)),
    Case("skill_registry.list", {}, ("uploaded",), says="words", stranger=(Asked({}),),
         wrong=(({"limit": 0}, "limit"),)),
    Case("skill_registry.search", {"text": WORD}, ("uploaded",), says="words",
         stranger=(Asked({"text": WORD}), Asked({"skill_ids": [WORD]})),
         wrong=(({"statuses": ["gone"]}, "statuses"), ({"formats": ["yaml"]}, "formats"),
                ({"since": "yesterday"}, "since"), ({"limit": 0}, "limit"))),
    Case("skill_registry.read", {"skill_id": WORD}, ("uploaded",), says="words",
         stranger=(Asked({"skill_id": WORD}, "not_found"),)),
    Case("skill_registry.versions", {"skill_id": WORD}, ("uploaded",),
         stranger=(Asked({"skill_id": WORD}, "not_found"),), wrong=(({"skill_id": WORD, "limit": 0}, "limit"),)),
    Case("skill_registry.deprecate", {"skill_id": WORD, "reason": "a better one"}, ("uploaded",), changes=True,
         says="words", stranger=(Asked({"skill_id": WORD}, "not_found"),)),
    Case("skill_registry.revoke", {"skill_id": WORD, "reason": "it harms"}, ("uploaded",), changes=True,
         says="words", stranger=(Asked({"skill_id": WORD}, "not_found"),)),
    Case("tool_registry.upsert", REGISTRY, changes=True, quiet=()),
    Case("tool_registry.list", {}, ("registry",)),
    Case("tool_registry.get", {"registry_id": WORD}, ("registry",), says="words",
         stranger=(Asked({"registry_id": WORD}, "not_found"),)),
    Case("tool_registry.delete", {"registry_id": WORD}, ("registry",), changes=True,
         stranger=(Asked({"registry_id": WORD}, "not_found"),), quiet=(Asked({"registry_id": NOBODY}, "not_found"),)),
    Case("chain.bootstrap", {**CHAIN, "content": f"the {WORD} secret"}, changes=True,
         stranger=(Asked({"chain_key": "own", "content": "another's chain"}),),
         quiet=(Asked({**CHAIN, "content": "the chain is there"}),),
         wrong=(({}, "content"),)),
    Case("chain.append", THOUGHT, changes=True, says="words",
         stranger=(Asked({"chain_key": "own", "thought_type": "Plan", "content": "another's words"}),),
         wrong=(({**THOUGHT, "refs": [-1]}, "refs[0]"),
                ({**THOUGHT, "relations": [{"kind": "supports"}]}, "relations[0]"),
                ({"content": "x"}, "thought_type"), ({**THOUGHT, "agent_id": "a\nb"}, "agent_id")),
         over=(({**THOUGHT, "content": "x" * (2**18 + 1)}, "content"),)),
    Case("chain.append_retrospective", {**CHAIN, "content": f"the {WORD} lesson"}, changes=True, says="words",
         stranger=(Asked({"chain_key": "own", "content": "another's lesson"}),),
         wrong=(({"content": "x", "role": "Memory"}, "role"),)),
    Case("chain.branch", {**CHAIN, "new_chain_key": f"{WORD} two"}, ("thought",), changes=True,
         stranger=(Asked({**CHAIN, "new_chain_key": "not yours"}, "not_found"),),
         quiet=(Asked({"chain_key": NOBODY, "new_chain_key": "x"}, "not_found"),),
         wrong=(({"new_chain_key": "x", "anchor_index": 0, "anchor_id": "y"}, ""),)),
    Case("chain.lifecycle", {**CHAIN, "action": "mask", "indexes": [0], "reason": "r"}, ("thought",), changes=True,
         stranger=(Asked({**CHAIN, "action": "erase", "indexes": [0], "reason": "r"}, "not_found"),),
         quiet=(Asked({"chain_key": NOBODY, "action": "unmask", "indexes": [0], "reason": "r"}, "not_found"),),
         wrong=(({"action": "erase", "indexes": [], "reason": "r"}, "indexes"),)),
    Case("chain.search", {**CHAIN, "text": WORD}, ("thought",), says="words",
         stranger=(Asked(CHAIN), Asked({**CHAIN, "text": WORD})),
         wrong=(({"since": "yesterday"}, "since"), ({"limit": -1}, "limit")),
         over=(({"text": LONG_QUERY}, "text"),)),
    Case("chain.list", {}, ("thought",)),
    Case("chain.head", CHAIN, ("thought",), says="words"),
    Case("chain.genesis", CHAIN, ("thought",), says="words"),
    Case("chain.get_thought", {**CHAIN, "thought_index": 0}, ("thought",), says="words",
         stranger=(Asked({**CHAIN, "thought_index": 0}, "not_found"),),
         wrong=(({}, ""), ({"thought_index": 0, "thought_id": "x"}, ""), ({"thought_hash": "x"}, "thought_hash"))),
    Case("chain.traverse", CHAIN, ("thought",), says="words",
         wrong=(({"direction": "up"}, "direction"), ({"chunk_size": 0}, "chunk_size"),
                ({"anchor_index": 0, "anchor_boundary": "head"}, ""),
                ({"time_window": {"start": 0, "delta": 1, "unit": "days"}}, "time_window.unit"))),
    Case("chain.recent_context", CHAIN, ("thought",), says="words"),
    Case("chain.memory_markdown", CHAIN, ("thought",), says="words"),
    Case("chain.export", CHAIN, ("thought",), says="words", stranger=(Asked(CHAIN, "not_found"),)),
    Case("chain.merge_report", {**CHAIN, "other_chain_key": WORD}, ("thought",), says="words",
         stranger=(Asked({**CHAIN, "other_chain_key": WORD}, "not_found"),)),
    Case("chain.agents", CHAIN, ("thought",)),
    Case("chain.agent_registry", CHAIN, ("thought",)),
    Case("chain.get_agent", AGENT, ("thought",), stranger=(Asked(AGENT, "not_found"),), quiet=()),
    Case("chain.upsert_agent", {**AGENT, "description": "plans"}, ("thought",), changes=True,
         stranger=(Asked({"chain_key": "own", "agent_id": "another"}),),
         quiet=(Asked({**AGENT, "agent_id": " "}, "invalid_request"),)),
    Case("chain.set_agent_description", {**AGENT, "description": "plans releases"}, ("thought",), changes=True,
         stranger=(Asked({**AGENT, "description": "another"}, "not_found"),),
         quiet=(Asked({**AGENT, "agent_id": NOBODY}, "not_found"),)),
    Case("chain.add_agent_alias", {**AGENT, "alias": "the planner"}, ("thought",), changes=True,
         stranger=(Asked({**AGENT, "alias": "another"}, "not_found"),),
         quiet=(Asked({**AGENT, "agent_id": NOBODY, "alias": WORD}, "not_found"),),
         wrong=(({**AGENT, "alias": " "}, "alias"),)),
    Case("chain.add_agent_key", {**KEY, "algorithm": "ed25519", "public_key_bytes": [7] * 32}, ("thought",),
         changes=True,
         stranger=(Asked({**KEY, "algorithm": "ed25519", "public_key_bytes": [7] * 32}, "not_found"),),
         quiet=(Asked({**KEY, "agent_id": NOBODY, "algorithm": "ed25519", "public_key_bytes": [7] * 32}, "not_found"),),
         wrong=(({**KEY, "algorithm": "ed25519", "public_key_bytes": [7] * 4}, "public_key_bytes"),)),
    Case("chain.revoke_agent_key", KEY, ("agent key",), changes=True, stranger=(Asked(KEY, "not_found"),),
         quiet=(Asked({**KEY, "key_id": NOBODY}, "not_found"),)),
    Case("chain.disable_agent", AGENT, ("thought",), changes=True, stranger=(Asked(AGENT, "not_found"),),
         quiet=(Asked({**AGENT, "agent_id": NOBODY}, "not_found"),)),
    Case("chunk.create", CHUNK, changes=True, says="words",
         stranger=(Asked({"content": "another's note", "conversation_id": "own"}),),
         wrong=(({"content": "x"}, "conversation_id"), ({**CHUNK, "content": " "}, "content"),
                ({**CHUNK, "tokens": 0}, "tokens"), ({**CHUNK, "type": "idea"}, "type"),
                ({**CHUNK, "confidence": 1.1}, "confidence"), ({**CHUNK, "tags": [""]}, "tags[0]"),
                ({**CHUNK, "links": {"likes": []}}, "links.likes")),
         over=(({**CHUNK, "content": "x" * (2**18 + 1)}, "content"),)),
    Case("chunk.get", lambda got: {"id": got.chunk}, says="words",
         stranger=(Asked(lambda got: {"id": got.chunk}), Asked({"id": "../etc/passwd"})),
         wrong=(({}, "id"),)),
    Case("chunk.list", {"tags": [WORD]}, ("chunk",), says="words",
         stranger=(Asked({"state": "all"}), Asked({"changed_since": 0})),
         wrong=(({"state": "gone"}, "state"), ({"created_after": "2026-01-01"}, "created_after"),
                ({"changed_since": -1}, "changed_since"))),
    Case("chunk.stats", {"by": "tag"}, ("chunk",), says="words", stranger=(Asked({"by": "conversation"}),),
         wrong=(({"by": "type"}, "by"),)),
    Case("chunk.update", lambda got: {"id": got.chunk, "confidence": 0.5}, changes=True, says="words",
         stranger=(Asked(lambda got: {"id": got.chunk, "confidence": 0.1}, "not_found"),),
         wrong=(({"id": "x", "confidence": -0.1}, "confidence"), ({"id": "x", "content": ""}, "content"))),
    Case("chunk.link", lambda got: {"id": got.chunk, "kind": "context_of", "target": "elsewhere"}, changes=True,
         says="words",
         stranger=(Asked(lambda got: {"id": got.chunk, "kind": "context_of", "target": "mine"}, "not_found"),),
         wrong=(({"id": "x", "kind": "likes", "target": "y"}, "kind"),
                ({"id": "x", "kind": "supports", "target": ""}, "target"))),
    Case("chunk.delete", lambda got: {"id": got.chunk}, changes=True,
         stranger=(Asked(lambda got: {"id": got.chunk, "permanent": True}, "not_found"),),
         quiet=(Asked({"id": NOBODY}, "not_found"),)),
    Case("chunk.restore", lambda got: {"id": got["archived chunk"]["chunk"]["id"]}, says="words",
         stranger=(Asked(lambda got: {"id": got["archived chunk"]["chunk"]["id"]}, "not_found"),)),
    Case("chunk.remember", {"content": f"the {WORD} secret", "conversation_id": WORD}, changes=True,
         stranger=(Asked({"content": "another's text", "conversation_id": "own"}),),
         quiet=(Asked({"content": " ", "conversation_id": "own"}),),
         wrong=(({"content": "x"}, "conversation_id"), ({"content": "x", "conversation_id": ""}, "conversation_id"))),
    Case("chunk.recall", {"query": WORD}, ("chunk",), says="words",
         wrong=(({"query": " "}, "query"), ({"query": "x", "min_confidence": 2.0}, "min_confidence")),
         over=(({"query": LONG_QUERY}, "query"),)),
    Case("chunk.reason", {"query": WORD, "analysis_type": "pattern"}, ("chunk",), says="words",
         stranger=(Asked(lambda got: {"query": "x", "context_chunks": [got.chunk]}),),
         wrong=(({"query": "x", "analysis_type": "guess"}, "analysis_type"),)),
    # An operator's: what another owner's agent would ask is forbidden.
    Case("chunk.export_tree", {}, ("chunk",), who="operator", says="words"),
    Case("chunk.import_tree", {"archive": TREE}, changes=True, who="operator",
         quiet=(Asked({"archive": TREE, "dry_run": True}),), wrong=(({"archive": b""}, "archive"),)),
    Case("long_term.list", {"state": "all"}, ("fact",), says="words",
         stranger=(Asked({"state": "all"}), Asked({"query": WORD}))),
    Case("long_term.detail", lambda got: {"ref": got.fact}, says="words",
         stranger=(Asked(lambda got: {"ref": got.fact}, "not_found"),)),
    Case("long_term.mutate",
         lambda got: {"action": "correct", "ref": got.fact, "content": "it is elsewhere", "reason": "it moved"},
         changes=True, says="words",
         stranger=(Asked(lambda got: {"action": "delete", "ref": got.fact}, "not_found"),
                   Asked(lambda got: {"action": "correct", "ref": got.fact, "content": "another's", "reason": "r"},
                         "not_found"),
                   Asked({"action": "forget_by_query", "query": WORD, "dry_run": True}))),
    # What it takes away is tried in tests/governance/test_forget.py: a case has no token of a dry run.
    Case("memory.forget", {"query": WORD, "dry_run": True}, ("conversation", "fact"),
         stranger=(Asked({"query": WORD, "dry_run": True}), Asked({**TALK, "dry_run": True}),
                   Asked({"subject": "Ana", "dry_run": True})),
         wrong=(({"query": "x"}, ""), ({"dry_run": True}, ""))),
    Case("long_term.policy", {"action": "suppress", "topic": "the door's colour", "reason": "of no use"}, changes=True,
         says="words", stranger=(Asked({"action": "list"}), Asked({"action": "suppress", "topic": "another's"}))),
    Case("transcript.replay", HOST, ("conversation",), says="words",
         stranger=(Asked({**TALK, "view": "operator_audit"}, "not_found"),),
         wrong=(({**HOST, "view": "everything"}, "view"), (TALK, "view"), ({**HOST, "limit": 0}, "limit"))),
    Case("transcript.export", TALK, ("conversation",), says="words", stranger=(Asked(TALK, "not_found"),)),
    Case("transcript.conversations", {}, ("conversation",), stranger=(Asked({}), Asked({"query": "talk"}))),
    Case("transcript.timeline", {**HOST, "anchor": "latest"}, ("conversation",), says="words",
         stranger=(Asked(HOST, "not_found"),)),
    Case("transcript.search", {"query": WORD, "view": "host_ui"}, ("conversation",), says="words",
         over=(({"query": "鳥" * 8193, "view": "host_ui"}, "query"),)),
    Case("transcript.lifecycle", step("mask", "t2"), ("conversation",), changes=True, says="words",
         stranger=(Asked(step("delete_raw", "t1")), Asked(step("mask", before="2099-01-01T00:00:00Z")))),
    Case("transcript.repair", {}, ("conversation",), stranger=(Asked({}), Asked(TALK, "not_found"))),
    # There is nothing to mend, so nothing changes: tests/governance/test_repair.py breaks things.
    Case("transcript.repair_safe", {}, ("conversation",), stranger=(Asked({}), Asked(TALK, "not_found")),
         quiet=(Asked({"dry_run": True}),)),
    Case("turn.capture", CAPTURED, changes=True, says="words",
         stranger=(Asked({**CAPTURED, "content": "another's words"}),),
         wrong=(({**CAPTURED, "role": "robot"}, "role"), ({**CAPTURED, "host_turn_index": -1}, "host_turn_index"),
                ({**CAPTURED, "host_turn_index": 2**63}, "host_turn_index"), ({**CAPTURED, "metadata": []}, "metadata"),
                ({**CAPTURED, "host_session_id": "a\0b"}, "host_session_id"),
                ({**CAPTURED, "host_pubkey_b64": HOST_KEY}, "host_signature_b64")),
         over=(({**CAPTURED, "content": "x" * (2**18 + 1)}, "content"),)),
    Case("host.coverage", {}, ("captured",), wrong=(({"limit": 0}, "limit"),)),
    Case("host_key.enroll", ENROLLED, changes=True, who="operator",
         wrong=(({**ENROLLED, "host_pubkey_b64": "AA=="}, "host_pubkey_b64"), ({"label": "x"}, "host_pubkey_b64"))),
    Case("host_key.list", {}, ("host key",)),
    Case("host_key.revoke", {"host_key": HOST_KEY}, ("host key",), changes=True, who="operator",
         stranger=(Asked({"host_key": "0" * 16}, "not_found"),), quiet=(Asked({"host_key": "0" * 16}, "not_found"),)),
    Case("event.ingest", INGESTED, changes=True, says="words",
         stranger=(Asked({"event": {**EVENT, "text": "another's words"}}),),
         wrong=(({"event": {**EVENT, "event_id": ""}}, "event.event_id"), ({}, "event"),
                ({"event": {**EVENT, "session_id": ""}}, "event.session_id"),
                ({"event": {**EVENT, "timestamp_ms": 2**60}}, "event.timestamp_ms"),
                ({"event": {**EVENT, "event_type": "unspecified"}}, "event.event_type")),
         over=(({"event": {**EVENT, "text": "x" * (2**18 + 1)}}, "event.text"),)),
    Case("event.range", BETWEEN, ("event",), says="words", stranger=(Asked(BETWEEN),),
         wrong=(({"from_timestamp_ms": 0}, "to_timestamp_ms"),)),
    Case("agent.list", {}, ("event",), stranger=(Asked({}),), wrong=(({"limit": 0}, "limit"),)),
    Case("agent.activity", {"from_ms": 0}, ("event",), stranger=(Asked({}),),
         wrong=(({"bucket": "year"}, "bucket"), ({"from_ms": 2**60}, "from_ms"), ({"agent_id": ""}, "agent_id"))),
    Case("episode.start", EPISODE, changes=True, stranger=(Asked({"task": "another's words"}),), quiet=(),
         wrong=(({}, "task"), ({"task": " "}, "task"), ({"task": "x", "plan": ["y", ""]}, "plan[1]")),
         over=(({"task": "x" * (2**18 + 1)}, "task"),)),
    Case("episode.record", lambda got: {"episode_id": got.episode, "action": ACTION}, changes=True,
         stranger=(Asked(lambda got: {"episode_id": got.episode, "action": ACTION}, "not_found"),),
         quiet=(Asked({"episode_id": NOBODY, "action": ACTION}, "not_found"),),
         wrong=(({"episode_id": "e"}, "action"), ({"episode_id": "", "action": ACTION}, "episode_id"),
                ({"episode_id": "e", "action": {**ACTION, "result_status": "maybe"}}, "action.result_status"))),
    Case("episode.complete", lambda got: {"episode_id": got.other_episode, "outcome_score": 0.8}, changes=True,
         stranger=(Asked(lambda got: {"episode_id": got.other_episode}, "not_found"),),
         quiet=(Asked({"episode_id": NOBODY}, "not_found"),),
         wrong=(({}, "episode_id"), ({"episode_id": "e", "outcome_score": 1.5}, "outcome_score"),
                ({"episode_id": "e", "lessons_learned": [""]}, "lessons_learned[0]"))),
    Case("episode.similar", {"query": WORD}, ("episode",), says="words",
         stranger=(Asked({"query": WORD}),),
         wrong=(({"query": " "}, "query"), ({"query": "x", "min_score": 2}, "min_score")),
         over=(({"query": LONG_QUERY}, "query"),)),
    Case("toc.root", {}, ("table of contents",), says="words", stranger=(Asked({}),), wrong=(({"limit": 0}, "limit"),)),
    Case("toc.node", {"node_id": SAID_DAY}, ("table of contents",), says="words",
         stranger=(Asked({"node_id": SAID_DAY}),), wrong=(({"node_id": ""}, "node_id"),)),
    Case("toc.browse", {"parent_id": SAID_DAY}, ("table of contents",), says="words",
         stranger=(Asked({"parent_id": SAID_DAY}),), wrong=(({"parent_id": ""}, "parent_id"),)),
    Case("toc.search_node", {"node_id": SAID_DAY, "query": WORD}, ("table of contents",), says="words",
         stranger=(Asked({"node_id": SAID_DAY, "query": WORD}, "not_found"),),
         wrong=(({"node_id": SAID_DAY, "query": " "}, "query"),
                ({"node_id": SAID_DAY, "query": "x", "fields": ["text"]}, "fields[0]")),
         over=(({"node_id": SAID_DAY, "query": LONG_QUERY}, "query"),)),
    Case("toc.search_children", {"query": WORD}, ("table of contents",), says="words",
         stranger=(Asked({"query": WORD}), Asked({"query": WORD, "parent_id": SAID_DAY}, "not_found")),
         wrong=(({"query": "x", "child_level": "hour"}, "child_level"),), over=(({"query": LONG_QUERY}, "query"),)),
    Case("grip.expand", lambda got: {"grip_id": got.grip}, says="words",
         stranger=(Asked(lambda got: {"grip_id": got.grip}),), wrong=(({"grip_id": ""}, "grip_id"),)),
    Case("admin.rebuild_toc", {}, ("conversation",), changes=True, who="operator",
         stranger=(Asked({"dry_run": True}),), wrong=(({"from_date": "2026-02-30"}, "from_date"),)),
    # Over the socket nobody is the owner whom the configuration does not name.
    Case("private.list", {}, ("private record",), who="owner", stranger=(Asked({}, "forbidden"),)),
    Case("private.get", lambda got: {"record_id": got.record}, who="owner", says="words",
         stranger=(Asked({"record_id": "p-1"}, "forbidden"),)),
    Case("private.delete", lambda got: {"record_id": got.record}, changes=True, who="owner",
         stranger=(Asked({"record_id": "p-1"}, "forbidden"),), quiet=(Asked({"record_id": NOBODY}, "not_found"),)),
    Case("memory.replay", CHAT, ("conversation",), says="words", stranger=(Asked(CHAT, "not_found"),)),
    Case("memory.export", CHAT, ("conversation",), says="words", stranger=(Asked(CHAT, "not_found"),)),
    # What a stranger brings belongs to the stranger: test_continuity.py.
    Case("memory.import", lambda got: {"snapshot": got.taken_out("chat taken out", "snapshot"),
                                       "target_chat_id": "copy", "mode": "full_restore"},
         changes=True, says="words", once=("state_fingerprint",), stranger=()),
    Case("memory.export_space", {}, ("skill",), says="words"),
    Case("memory.import_space", lambda got: {"archive": got.taken_out("space taken out", "archive"),
                                             "mode": "full_restore"},
         changes=True, says="words", once=("state_fingerprint",), stranger=()),
    # Whoever has a handle: tests/transports/test_transfers.py.
    Case("transfer.begin", {"total_bytes": 2_000_000}, wrong=(({"total_bytes": 0}, "total_bytes"),),
         over=(({"total_bytes": 2**50}, "total_bytes"),)),
    Case("transfer.put", {"transfer_id": NOBODY, "offset": 0, "data": b"a piece"}, key="not_found",
         wrong=(({"transfer_id": NOBODY, "offset": -1, "data": b"x"}, "offset"),
                ({"transfer_id": NOBODY, "offset": 0, "data": b""}, "data"))),
    Case("transfer.get", {"transfer_id": NOBODY, "offset": 0}, key="not_found"),
    # Two owners of proposals meet in tests/sdk/test_evolve.py.
    Case("evolve.propose", {"proposals": [PROPOSAL]}, ("skill",), changes=True, hidden=True),
    Case("evolve.list", {"state": "all"}, ("proposal",), hidden=True),
    Case("evolve.preview", {"proposal_id": "p1"}, ("proposal",), hidden=True),
    Case("evolve.submit", {"proposal_ids": ["p1"]}, ("proposal",), changes=True, hidden=True),
    Case("console.overview"),
    Case("console.session"),
    Case("device.add", {"label": "a device", "capabilities": ["recall"]}, changes=True, who="operator",
         once=("appKeyOnce",)),
    Case("device.list", {}, ("device",)),
    Case("device.update", lambda got: {"device_id": got.device, "label": "in the hall"}, changes=True, who="operator",
         stranger=(Asked({"device_id": NOBODY, "label": "x"}, "not_found"),),
         quiet=(Asked({"device_id": NOBODY, "label": "x"}, "not_found"),)),
    Case("device.rotate_key", lambda got: {"device_id": got.device}, changes=True, who="operator",
         once=("appKeyOnce",), stranger=NOT_THERE, quiet=NOT_THERE),
    Case("device.remove", lambda got: {"device_id": got.device}, changes=True, who="operator", stranger=NOT_THERE,
         quiet=NOT_THERE),
    Case("transport.list"),
    # It is open before: closing it would shut the others out.
    Case("transport.update", {"name": "unix_socket", "enabled": True}, who="operator"),
    Case("event_log.read", {"limit": 100}, ("conversation",),
         stranger=(Asked({}), Asked({"topics": ["skill", "memory", "transcript"], "newest_first": True})),
         quiet=(Asked({"limit": 100}), Asked({"limit": 100, "newest_first": True}))),
    Case("harness.run", {"suite": "memory", "backends": ["in-memory"]}, hidden=True),
    Case("store.verify", {}, ("conversation", "skill")),
    Case("batch", {"requests": [{"op": "transcript.commit", "args": talk(turn("t9", "in a batch"))}]}, changes=True,
         stranger=(Asked({"requests": [{"op": "memory.recall", "args": {"query": WORD}}]}),),
         quiet=(Asked({"requests": [{"op": "transcript.conversations", "args": {}},
                                    {"op": "skill.list", "args": {}}]}),)),
    # They need a connection that stays open: test_cases.py asks one connection for both.
    Case("subscribe", {"topics": ["transcript"]}, stranger=(), quiet=()),
    Case("unsubscribe", {"sub": "s1"}, stranger=(), quiet=()),
    # The jobs are the daemon's own: another owner's agents see the same ones.
    Case("admin.stats"),
    Case("admin.health"),
    Case("admin.metrics"),
    Case("admin.compact", {"cf": "events"}, changes=True, who="operator", wrong=(({"cf": "bullets"}, "cf"),)),
    Case("scheduler.status"),
    Case("scheduler.pause", {"job_name": "optimize"}, ("resumed job",), changes=True, who="operator",
         stranger=(Asked({"job_name": WORD}, "not_found"),), quiet=(Asked({"job_name": NOBODY}, "not_found"),),
         wrong=(({"job_name": ""}, "job_name"), ({}, "job_name"))),
    Case("scheduler.resume", {"job_name": "retention"}, ("paused job",), changes=True, who="operator",
         stranger=(Asked({"job_name": WORD}, "not_found"),), quiet=(Asked({"job_name": NOBODY}, "not_found"),),
         wrong=(({"job_name": "a\nb"}, "job_name"),)),
    Case("scheduler.run", {"job_name": "optimize", "wait": True}, changes=True, who="operator",
         stranger=(Asked({"job_name": WORD}, "not_found"),), quiet=(Asked({"job_name": NOBODY}, "not_found"),),
         wrong=(({"job_name": "optimize", "wait": 1}, "wait"),)),
    Case("replication.status"),
    Case("replication.restore", {}, who="operator", key="services_unavailable",
         quiet=(Asked({}, "services_unavailable"),), wrong=(({"at": "yesterday"}, "at"), ({"to": ""}, "to"))),
    Case("replication.forget", {}, who="operator", key="services_unavailable",
         quiet=(Asked({}, "services_unavailable"),)),
    Case("snapshot.create", {"label": "of a stranger"}, changes=True, who="operator"),
    Case("snapshot.list", {}, ("snapshot",)),
    Case("snapshot.verify", lambda got: {"snapshot_id": got.snapshot},
         stranger=(Asked({"snapshot_id": WORD}, "not_found"),),
         quiet=(Asked({"snapshot_id": NO_SNAPSHOT}, "not_found"),)),
    Case("snapshot.restore", lambda got: {"snapshot_id": got.snapshot}, changes=True, who="operator",
         stranger=(Asked({"snapshot_id": WORD, "dry_run": True}, "not_found"),),
         quiet=(Asked({"snapshot_id": NO_SNAPSHOT}, "not_found"),)),
    Case("snapshot.prune", {"keep": 0}, ("snapshot",), changes=True, who="operator",
         stranger=(Asked({"keep": 100_000}),), quiet=(Asked({"keep": 0}),)),
    # It is not lost, so that it is only looked at: tests/governance/test_renew.py loses it.
    Case("identity.renew", {"dry_run": True}, who="operator",
         wrong=(({"dry_run": 1}, "dry_run"), ({"dry_run": True, "token": "t"}, ""))),
    # Nothing is damaged, so nothing is gone: tests/faults/test_bit_flips.py damages things.
    Case("store.repair", changes=True, who="operator", stranger=(Asked({"dry_run": True}),),
         quiet=(Asked({"dry_run": True}),), wrong=(({"dry_run": 1}, "dry_run"),)),
    Case("memory.recover", changes=True, who="operator"),
    # It ends the runtime, so it is the last; another owner has none of its own to end.
    Case("memory.close", {"reason": "the cases are over"}, changes=True, who="operator", stranger=(),
         quiet=(Asked({"reason": ""}, "invalid_request"),)),
)  # fmt: skip

OF: Mapping[str, Case] = {case.op: case for case in CASES}
