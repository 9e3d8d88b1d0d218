"""Rules over what leaves a store and enters another: the ledger, archives of a space, snapshots of a chat."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import rule

from tests.sdk.host_rules import LogRules
from tests.sdk.looking import found
from tests.sdk.machine import CHATS, callers, chats, owners
from tests.sdk.model import Space, Turn
from tests.sdk.recorded import Earlier
from tests.sdk.reopened import CALLERS, Plain, differences

PASSPHRASE = "a passphrase of a test"
TELLING = ("kind", "target", "topic", "content", "authority", "visibility")
"""Fields of a fact that an archive keeps."""
REFUSED = {"invalid_request", "integrity_violation", "schema_mismatch"}
"""What a changed archive may be refused with."""


class ContinuityRules(LogRules):
    """Every archive is taken in by another backend than it comes from."""

    def begun(self) -> None:
        super().begun()
        self.copies = 0

    def hand_over(self, name: str) -> None:
        """Give each place what another one took out."""
        given = [place.kept[name] for place in self.places.all]
        for place, other in zip(self.places.all, [*given[1:], given[0]], strict=True):
            place.kept[name] = other

    def new_owner(self) -> str:
        self.copies += 1
        return f"copy-{self.copies}"

    @rule(owner=owners, who=callers, chat=chats, pick=st.integers(0, 10**6), what=st.sampled_from(
        ("ledger", "space", "space", "sealed space", "chat", "changed")))  # fmt: skip
    def carry(self, owner: str, who: str, chat: str, pick: int, what: str) -> None:
        if what == "ledger":
            self.ledger(owner, who, chat)
        elif what == "chat":
            self.copy_a_chat(owner, chat)
        elif what == "changed":
            self.a_changed_archive_is_refused(owner, pick)
        else:
            self.copy_a_space(owner, what == "sealed space", pick % 2 == 1)

    def ledger(self, owner: str, who: str, chat: str) -> None:
        space = self.spaces[owner]
        name, by = space.current(CALLERS[who].name, chat)
        key = {"untrusted": "conflict", "withheld": "privacy_denied", "nothing": "not_found"}.get(by)
        if key is not None:
            self.refused(key, "memory.replay", {"chat_id": chat}, owner, who=who)
            return
        report = self.ask("memory.replay", {"chat_id": chat, "limit": 200}, owner, who=who)
        turns = space.conversations[name or ""]
        assert [(each["turn_id"], each["archived"]) for each in report["turns"]] == [
            (each.turn_id, each.archived) for each in turns.values()
        ]
        for told, turn in zip(report["turns"], turns.values(), strict=True):
            assert [each["state"] for each in told["messages"]] == [each.state for each in turn.messages]
            wanted = _told_of(space, space.derived_from(name or "", turn.turn_id), who == "agent")
            assert {(each["derived"], each["evidence"], each["relation"]) for each in told["derived_refs"]} == wanted

    def copy_a_space(self, owner: str, private: bool, again: bool) -> None:
        """What is taken in is what was taken out, and taken out once more it is the same."""
        words: Plain = {"include_private": True, "passphrase": PASSPHRASE} if private else {}
        out = self.ask("memory.export_space", words, owner, keep={"archive": "archive"})
        self.hand_over("archive")
        copy = self.new_owner()
        args = {"archive": Earlier("archive"), "mode": "bootstrap_import", **_opened(private)}
        came = self.ask("memory.import_space", args, copy)
        assert (came["counts"], came["state_fingerprint"]) == (out["counts"], out["state_fingerprint"])
        once_more = self.ask("memory.export_space", words, copy)
        assert (once_more["counts"], once_more["state_fingerprint"]) == (out["counts"], out["state_fingerprint"])
        self.says_the_same(owner, copy, private)
        if again and any(came["counts"].values()):
            self.refused("conflict", "memory.import_space", args, copy)
            args |= {"mode": "full_restore"}
            if len(self.places.all) > 1:  # each of them was handed what another one signed
                args |= {"other_store": True}
            assert self.ask("memory.import_space", args, copy)["state_fingerprint"] == out["state_fingerprint"]
            self.says_the_same(owner, copy, private)

    def says_the_same(self, owner: str, copy: str, private: bool) -> None:
        """A copy with everything that can leave answers like the original; another one answers nothing besides."""
        for word in self.words[-4:]:
            was, now = len(found(self, word, owner, "owner")), len(found(self, word, copy, "owner"))
            assert now == was if private else now <= was, (word, owner, copy)
        if private:
            was, now = self.seen(owner), self.seen(copy)
            if not all(_leaves(turns) for turns in self.spaces[owner].conversations.values()):
                # A conversation of which nothing may leave is not there, and a chat stands for it no more.
                del was["chats"], now["chats"]
            assert now == was, "\n".join(differences(was, now))

    def seen(self, owner: str) -> Plain:
        """What a space answers whatever its records are called."""
        facts = self.ask("long_term.list", {"limit": 500, "view": "raw_owner"}, owner)["records"]
        items = self.ask("private.list", {"limit": 500}, owner)["items"]
        skills = self.ask("skill.list", {"limit": 500}, owner)["runtime_skills"]
        recalled = [self.ask("memory.recall", {"query": "nothing"}, owner, chat=chat) for chat in CHATS]
        return {
            "facts": sorted(str([each[name] for name in TELLING]) for each in facts),
            "items": sorted(
                self.ask("private.get", {"record_id": each["record_id"]}, owner)["content"] for each in items
            ),
            "skills": [(each["name"], each["enabled"], each["revision"], each["summary"]) for each in skills],
            "policies": [
                (each["action"], each["kind"], each["topic"], each["chat_id"])
                for each in self.ask("long_term.policy", {"action": "list"}, owner)["policies"]
            ],
            "waiting": [
                (each["reason"], each["count"])
                for each in self.ask("governance.report", {}, owner)["deferred"]["waiting"]
            ],
            "tools": self.ask("tool_registry.list", {}, owner)["total"],
            "hints": [[(h["tool_id"], h["reason"]) for h in each["agent_tool_hints"]] for each in recalled],
            "chats": [each["working_recall"]["current_by"] for each in recalled],
        }

    def a_changed_archive_is_refused(self, owner: str, pick: int) -> None:
        self.ask("memory.export_space", {}, owner, keep={"archive": "archive"})
        changed = bytearray(self.places.first.kept["archive"])
        changed[pick % len(changed)] ^= 1 << pick % 8
        copy = self.new_owner()
        for place in self.places.all:
            place.kept["archive"] = bytes(changed)
        answer = self.put("memory.import_space", {"archive": Earlier("archive"), "mode": "bootstrap_import"}, copy)
        assert answer.error is not None and answer.error.key in REFUSED, answer
        assert not any(self.ask("memory.inspect", {}, copy)["counts"].values())

    def copy_a_chat(self, owner: str, chat: str) -> None:
        space = self.spaces[owner]
        _, by = space.current(CALLERS["owner"].name, chat)
        key = {"untrusted": "conflict", "withheld": "privacy_denied"}.get(by)
        if key is not None:
            self.refused(key, "memory.export", {"chat_id": chat}, owner)
            return
        answer = self.put("memory.export", {"chat_id": chat}, owner, keep={"snapshot": "snapshot"})
        if answer.error is not None:
            assert (by, answer.error.key) == ("nothing", "not_found"), answer.error
            return
        out = answer.report
        assert out is not None
        self.hand_over("snapshot")
        copy = self.new_owner()
        args = {"snapshot": Earlier("snapshot"), "mode": "bootstrap_import", "target_chat_id": "other"}
        came = self.ask("memory.import", args, copy)
        assert (came["counts"], came["state_fingerprint"]) == (out["counts"], out["state_fingerprint"])
        if not any(came["counts"].values()):
            return
        once_more = self.ask("memory.export", {"chat_id": "other"}, copy)
        assert (once_more["counts"], once_more["state_fingerprint"]) == (out["counts"], out["state_fingerprint"])
        self.refused("conflict", "memory.import", args, copy)
        self.says_the_same(owner, copy, False)


def _opened(private: bool) -> Plain:
    return {"passphrase": PASSPHRASE} if private else {}


def _leaves(turns: dict[str, Turn]) -> bool:
    messages = (message for turn in turns.values() for message in turn.messages)
    return any(each.state == "live" and each.visibility in ("shared", "private", "soul") for each in messages)


def _told_of(space: Space, derived: set[tuple[str, str, str]], sees_private: bool) -> set[tuple[str, str, str]]:
    """Private facts are told of to whom they are; private records to nobody here."""
    facts = {ref for ref, fact in space.facts.items() if fact.private and not sees_private}
    return {each for each in derived if each[0] not in facts and each[0].partition(":")[0] not in
            ("private_garden", "soul_candidate")}  # fmt: skip
