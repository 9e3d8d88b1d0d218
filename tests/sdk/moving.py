"""Shared by the tests of continuity: stores of any backend and profile, one filled with everything, how two compare."""

from __future__ import annotations

import base64
import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from beetle.contracts.common import DEFAULT_AGENT, WireScope
from beetle.contracts.errors import ERRORS, BeetleError
from beetle.open import open_store
from beetle.runtime.areas.continuity.gather import state_fingerprint
from beetle.runtime.host.caller import Caller
from beetle.runtime.pipeline.invocation import Call, Outcome
from beetle.runtime.planes.gathering import Chat
from beetle.store.engine.transaction import Row
from tests.building import candidate, candidates, message, skill, talk, turn, write
from tests.conformance.doors import Plain, embedded_caller, plain

DEV = "profile-server-linux-dev-full"
COMPACT = "profile-linux-device-compact-memory"
WORDS = "correct horse battery"
HERE = {"channel_id": "local", "conversation_id": "chat-1"}
THERE = {"channel_id": "mail", "conversation_id": "inbox"}


class Home:
    """An open store of one backend and profile, asked as the owner of one space."""

    def __init__(
        self, folder: Path, name: str, backend: str = "sqlite", profile: str = DEV, owner: str = "mara"
    ) -> None:
        self.path = folder / f"{name}.db"
        self.owner = owner
        self._numbers = itertools.count()
        self.opened = open_store(str(self.path), profile, backend, env={})

    def outcome(
        self, op: str, args: Any, *, key: str | None = None, caller: Caller | None = None, **scope: str
    ) -> Outcome:
        where = WireScope(**{"owner_id": self.owner, **scope})
        asker = caller or embedded_caller(where.owner_id or self.owner, agent=scope.get("agent_id", DEFAULT_AGENT))
        return self.opened.dispatcher.dispatch(Call(op, args, asker, where, key))

    def ask(self, op: str, args: Any, *, key: str | None = None, caller: Caller | None = None, **scope: str) -> Plain:
        return plain(self.outcome(op, args, key=key, caller=caller, **scope).report)

    def refused(self, error: str, op: str, args: Any, **more: Any) -> BeetleError:
        with pytest.raises(BeetleError) as caught:
            self.ask(op, args, **more)
        assert isinstance(caught.value, ERRORS[error]) and caught.value.key == error, caught.value
        return caught.value

    def snapshot(self, chat: str = "chat-1", private: bool = False) -> tuple[bytes, Plain]:
        sealed = {"include_private": True, "passphrase": WORDS} if private else {}
        report = self.ask("memory.export", {"chat_id": chat, **sealed})
        return base64.b64decode(report["snapshot"]), report

    def archive(self, private: bool = False) -> tuple[bytes, Plain]:
        sealed = {"include_private": True, "passphrase": WORDS} if private else {}
        report = self.ask("memory.export_space", sealed)
        return base64.b64decode(report["archive"]), report

    def take(
        self, data: bytes, chat: str = "chat-1", mode: str = "bootstrap_import", private: bool = False, **more: Any
    ) -> Plain:
        return self.ask("memory.import", taking(data, chat, mode, private, **more))

    def take_space(self, data: bytes, mode: str = "bootstrap_import", private: bool = False, **more: Any) -> Plain:
        words = {"passphrase": WORDS} if private else {}
        return self.ask("memory.import_space", {"archive": data, "mode": mode, **given(mode), **words, **more})

    def fingerprint(self, chat: Chat | None = None) -> str:
        with self.opened.store.read() as tx:
            return state_fingerprint(tx, f"space:{self.owner}", chat)

    def head(self) -> Any:
        self.opened.dispatcher.refusals.flush(30)
        return self.opened.store.head

    def rows(self, sql: str, *values: Any) -> list[Row]:
        self.opened.dispatcher.refusals.flush(30)
        with self.opened.store.read() as tx:
            return list(tx.rows(sql, *values))

    def is_sound(self) -> None:
        """Every check of the store finds it clean."""
        assert self.ask("store.verify", {})["findings"] == []
        assert self.ask("transcript.repair", {})["issues"] == []

    def bytes_on_disk(self) -> bytes:
        return b"".join(
            file.read_bytes() for file in self.path.parent.iterdir() if file.name.startswith(self.path.name)
        )

    def judge(self, content: str, **more: Any) -> Plain:
        one = candidate(f"c-{next(self._numbers)}", content, **more)
        return self.ask("memory.write", candidates(one))["outcomes"][0]

    def close(self) -> None:
        self.opened.store.close()


def taking(data: bytes, chat: str, mode: str, private: bool = False, **more: Any) -> Plain:
    words = {"passphrase": WORDS} if private else {}
    return {"snapshot": data, "target_chat_id": chat, "mode": mode, **given(mode), **words, **more}


def given(mode: str) -> Plain:
    """What else a restore is given: homes take what others have exported."""
    return {"other_store": True} if mode == "full_restore" else {}


def ref(turn_id: str, message_id: str | None = None, where: Mapping[str, str] = HERE) -> str:
    tail = "" if message_id is None else f"/{message_id}"
    return f"evidence:{where['channel_id']}/{where['conversation_id']}/{turn_id}{tail}"


PUMP = "The coolant pump is loud again. The pump is quiet. The pump is loud. The tank is full."
INVOICE = "The invoice of the pump came. The invoice is paid. The pump is quiet. The tank is empty."
KNEE = "My knee hurts. Mara's knee hurts. The roses by the wall."


def talk_shared(home: Home) -> None:
    """Two conversations, all of it shared."""
    spoken = message("m1", "The spare key hangs in the boiler room.", actor={"speaker": "Mara", "subject_id": "s"})
    answer = message("m2", "Noted: the boiler room.", role="assistant", at="2024-05-01T10:00:30.25Z")
    home.ask(
        "transcript.commit",
        talk(
            turn("t1", spoken, answer, host_refs=[
                {"kind": "task", "ref_id": "42", "relation": "about", "visibility": ["export", "host_ui"]}
            ], attrs=[
                {"key": "mood", "value": "calm", "visibility": ["export"], "export_allowed": True,
                 "target": {"message_id": "m1"}}
            ]),
            turn("t2", PUMP, at="2024-05-02T10:00:00Z"),
            turn("t3", "Bleed the line, then restart the pump.", at="2024-05-03T10:00:00Z"),
            conversation=HERE,
        ),
    )  # fmt: skip
    home.ask("transcript.commit", talk(turn("t1", INVOICE), conversation=THERE), channel="mail",
             chat_id="inbox")  # fmt: skip
    step = {"conversation": HERE, "action": "archive", "turn_ids": ["t3"], "reason": "done"}
    home.ask("transcript.lifecycle", step)


def learn_shared(home: Home) -> None:
    """Facts in every state that holds words, skills of several revisions, from that chat and from another."""
    key = home.judge("The spare key hangs in the boiler room.", topic="spare key", evidence_refs=[ref("t1", "m1")])
    home.ask("long_term.mutate", {"action": "correct", "ref": key["ref"], "content": "The key is in the shed.",
                                  "keywords": ["spare", "shed"], "reason": "it moved"})  # fmt: skip
    old = home.judge("The pump is quiet.", topic="pump", evidence_refs=[ref("t2")])
    new = home.judge("The pump is loud.", topic="pump", evidence_refs=[ref("t2")])
    assert new["superseded_ref"] == old["ref"]
    stale = home.judge("The line holds pressure.", topic="line")
    home.ask("long_term.mutate", {"action": "mark_stale", "ref": stale["ref"], "reason": "unsure"})
    elsewhere = home.judge("The invoice is paid.", topic="invoice", evidence_refs=[ref("t1", where=THERE)])
    assert elsewhere["outcome"] == "accepted"
    text = "1. Stop the pump.\n2. Bleed the line."
    home.ask("memory.write", write(skill("pump", content=text, citations=[ref("t2"), key["ref"], "the manual"])))
    home.ask("memory.write", write(skill("pump", content=f"{text}\n3. Restart.", citations=[ref("t3")])))
    home.ask("skill.edit", {"name": "pump", "title": "Quiet a pump", "edit_reason": "clearer"})
    home.ask("memory.write", write(skill("off")))
    home.ask("skill.set_enabled", {"name": "off", "enabled": False})
    home.ask("memory.write", write(skill("mail", source_chat_id="inbox")))


def keep_more(home: Home) -> None:
    """What only a space has, and what is private."""
    home.ask("long_term.policy", {"action": "suppress", "topic": "health", "reason": "asked"})
    home.ask("long_term.policy", {"action": "pause", "kind": "goal", "chat_id": "inbox"})
    registry = {"registry_id": "host", "fingerprint": "f1", "scope": "global"}
    home.ask("tool_registry.upsert", {**registry, "tools": [
        {"tool_id": "valve", "title": "Valve", "summary": "Opens a valve.", "schema_fingerprint": "s1",
         "permission_tags": ["hands"], "risk_tags": ["water"]}
    ]})  # fmt: skip
    for turn_id in ("t1", "t2"):
        home.ask("memory.write", {"kind": "agent_tool_usage_feedback", "feedback": {
            "registry_ref": registry, "turn_id": turn_id, "user_visible_result_summary": "It is open.",
            "observations": [{"tool_id": "valve", "schema_fingerprint": "s1", "outcome": "succeeded",
                              "summary": "The valve opened.", "duration_ms": 12}],
        }})  # fmt: skip
    home.judge("The assistant is good with pumps.", authority="assistant_claimed", topic="assistant")
    home.ask("transcript.commit", talk(
        turn("t4", message("p1", KNEE, visibility="private"), at="2024-05-04T10:00:00Z"),
        turn("t5", message("p2", "What I fear.", visibility="soul"), message("s2", "Good night."),
             at="2024-05-05T10:00:00Z"),
        conversation=HERE,
    ))  # fmt: skip
    home.judge("Mara's knee hurts.", privacy="subject_private", topic="knee", evidence_refs=[ref("t4")])
    home.judge("The roses by the wall.", target="private_garden", privacy="subject_private", evidence_refs=[ref("t4")])
    home.judge("A quiet fear.", target="soul_candidate", privacy="soul_private")


def fill(home: Home) -> None:
    """Everything that a space may hold and an export with private material carries."""
    talk_shared(home)
    learn_shared(home)
    keep_more(home)


QUERIES = ("spare key", "pump", "invoice paid", "knee", "bleed the line", "quiet a pump", "boiler room Mara")


def seen(home: Home) -> list[Any]:
    """What recall, the skills and the facts are, without the names that a store gives by itself."""
    found: list[Any] = []
    for query in QUERIES:
        report = home.ask("memory.recall", {"query": query, "limit": 50})
        found.append([
            (hit["plane"], hit["ref"] if hit["plane"] != "long_term" else None, round(hit["score"], 9), hit["excerpt"],
             hit["why"], hit["at"], hit["title"])
            for hit in report["hits"]
        ])  # fmt: skip
        found.append(report["agent_tool_hints"])
    for name in ("pump", "off", "mail"):
        shown = home.ask("skill.detail", {"name": name})
        found.append({key: shown[key] for key in ("procedure", "lineage", "strategy_diffs", "enabled", "updated_at")})
    listed = home.ask("long_term.list", {"state": "all", "limit": 100, "view": "raw_owner"})["records"]
    named = ("target", "kind", "topic", "content", "keywords", "authority", "state", "revision", "created_at",
             "updated_at", "evidence", "visibility", "confidence")  # fmt: skip
    found.append([{name: each[name] for name in named} for each in listed])
    for each in listed:
        shown = home.ask("long_term.detail", {"ref": each["ref"], "history": True, "view": "raw_owner"})
        found.append([{**one, "by": None} for one in shown["revisions"]])
    return found
