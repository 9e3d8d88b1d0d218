"""Rules over what a host brings: tool registries and feedback, delivered turns, devices; and the log of it all."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import rule

from tests.sdk.evolve_rules import EvolveRules
from tests.sdk.machine import OWNERS, callers, chats, owners, picks
from tests.sdk.model import Registry, Use
from tests.sdk.reopened import CALLERS, Plain
from tests.sdk.transcript_rules import conversations, shapes, wire

REGISTRIES = ("kitchen", "garden")
TOOLS = ("kettle", "hose")
SCHEMAS = ("s1", "s1", "s2")
OUTCOMES = ("succeeded", "succeeded", "succeeded", "failed")

registries = st.sampled_from(REGISTRIES)
tool_sets = st.dictionaries(st.sampled_from(TOOLS), st.sampled_from(SCHEMAS), max_size=2)


class ToolRules(EvolveRules):
    """Two registries, two tools, two schemas."""

    @rule(owner=owners, name=registries, tools=tool_sets, scope=st.sampled_from(("global", "global", "house")))
    def register_tools(self, owner: str, name: str, tools: dict[str, str], scope: str) -> None:
        known = self.spaces[owner].registries
        fingerprint = "f-" + "-".join(f"{tool}.{schema}" for tool, schema in sorted(tools.items()))
        before = known.get(name)
        entries = [{"tool_id": tool, "title": tool, "schema_fingerprint": tools[tool]} for tool in sorted(tools)]
        args = {"registry_id": name, "fingerprint": fingerprint, "scope": scope, "tools": entries}
        report = self.ask("tool_registry.upsert", args, owner)
        if before is None:
            known[name], outcome = Registry(fingerprint, scope, dict(tools)), "created"
        elif (before.scope, before.tools) == (scope, tools):
            outcome = "unchanged"
        else:
            drifted = {tool for tool in tools if before.tools.get(tool, tools[tool]) != tools[tool]}
            assert set(report["drifted"]) == drifted
            known[name], outcome = Registry(fingerprint, scope, dict(tools), before.revision + 1), "replaced"
        assert (report["outcome"], report["revision"]) == (outcome, known[name].revision)

    @rule(owner=owners, name=registries)
    def delete_registry(self, owner: str, name: str) -> None:
        if self.spaces[owner].registries.pop(name, None) is None:
            self.a_schema_is_refused(owner)
            self.refused("not_found", "tool_registry.delete", {"registry_id": name}, owner)
        else:
            assert self.ask("tool_registry.delete", {"registry_id": name}, owner)["outcome"] == "deleted"

    @rule(
        owner=owners, who=callers, chat=chats, name=registries, scope=st.sampled_from(("global", "global", "house")),
        used=st.lists(st.tuples(*map(st.sampled_from, (TOOLS, SCHEMAS, OUTCOMES))), min_size=1, max_size=3),
        pick=picks, named=st.sampled_from(("turn", "turn", "none", "next")),
    )  # fmt: skip
    def observe(
        self, owner: str, who: str, chat: str, name: str, scope: str, used: list[Any], pick: int, named: str
    ) -> None:
        space = self.spaces[owner]
        current, _ = space.current(CALLERS[who].name, chat)
        there = list(space.conversations.get(current or "", {}))
        turn_id = there[pick % len(there)] if named == "turn" and there else f"t{len(there)}"
        turn_id = None if named == "none" else turn_id
        turn = (current or "", turn_id) if current and turn_id in there else None
        observations = [
            {"tool_id": tool, "schema_fingerprint": schema, "outcome": outcome, "summary": f"used {self.word()} well"}
            for tool, schema, outcome in used
        ]
        ref = {"registry_id": name, "fingerprint": ("any", "")[pick % 2], "scope": scope}
        feedback: Plain = {"registry_ref": ref, "observations": observations}
        if turn_id is not None:
            feedback["turn_id"] = turn_id
        args = {"kind": "agent_tool_usage_feedback", "feedback": feedback}
        if turn_id is not None and turn is None:
            self.refused("invalid_request", "memory.write", args, owner, who=who, chat=chat)
            return
        assert self.ask("memory.write", args, owner, who=who, chat=chat)["accepted"] == len(used)
        told = (turn, turn_id, self.places.now, CALLERS[who].name, current or chat)
        space.uses += [Use(name, scope, tool, schema, outcome, *told) for tool, schema, outcome in used]

    def a_schema_is_refused(self, owner: str) -> None:
        schema = '{"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}'
        tool = {"tool_id": "t", "title": "t", "summary": schema, "schema_fingerprint": "s"}
        args = {"registry_id": "never", "fingerprint": "f", "tools": [tool]}
        self.refused("privacy_denied", "tool_registry.upsert", args, owner)


class TurnRules(ToolRules):
    """Delivered turns, where no model is configured."""

    @rule(owner=owners, who=callers, chat=chats, conversation=conversations, shape=shapes, pick=picks,
          maintain=st.booleans())  # fmt: skip
    def finalize(
        self, owner: str, who: str, chat: str, conversation: str, shape: list[Any], pick: int, maintain: bool
    ) -> None:
        space = self.spaces[owner]
        (turn,) = self.new_turns(space.conversations.get(conversation, {}), shape[:1], pick)
        args = {"conversation": {"conversation_id": conversation}, "turn": wire(turn), "maintain": maintain}
        name = CALLERS[who].name
        before = space.remembered.get((name, chat))
        report = self.ask("memory.finalize_turn", args, owner, who=who, chat=chat)
        self.committed(space, who, chat, conversation, [turn])
        assert report["transcript_commit"]["outcome"] == "committed"
        untrusted = space.current(name, chat)[1] == "untrusted"
        told = "alias_untrusted" if untrusted else "alias_current" if before == conversation else "alias_updated"
        assert report["session_commit"] == told
        self.left(space, report, name, conversation, maintain)
        self.maintain(owner, chat, conversation)
        again = self.ask("memory.finalize_turn", args, owner, who=who, chat=chat)
        assert again["transcript_commit"]["outcome"] == "unchanged"
        assert again["deferred_job_id"] == report["deferred_job_id"]

    @staticmethod
    def left(space: Any, report: Plain, name: str, conversation: str, maintain: bool) -> None:
        """At most one job waits for a caller's conversation."""
        if not maintain:
            assert (report["maintained"], report["deferred_job_id"]) == ("not_asked", None)
            return
        assert (report["maintained"], report["maintenance"]) == ("deferred", None)
        job = space.jobs.setdefault((name, conversation), report["deferred_job_id"])
        assert report["deferred_job_id"] == job

    def maintain(self, owner: str, chat: str, conversation: str) -> None:
        args = {"conversation": {"conversation_id": conversation}}
        self.refused("services_unavailable", "memory.maintain", args, owner, chat=chat)


class DeviceRules(TurnRules):
    """Devices with keys that no two places share, and requests that present them."""

    def begun(self) -> None:
        super().begun()
        self.devices: dict[str, str] = {}
        self.granted: dict[str, list[str]] = {}

    @rule(
        name=st.sampled_from(("panel", "phone")),
        what=st.sampled_from(("add", "change", "rotate", "remove", "ask", "ask")),
        grants=st.sampled_from((["recall"], ["recall", "console"], [])),
        state=st.sampled_from(("active", "suspended", "revoked")),
    )  # fmt: skip
    def device(self, name: str, what: str, grants: list[str], state: str) -> None:
        if what == "add":
            self.add_device(name, grants)
        elif what == "change":
            self.change_device(name, state)
        else:
            {"rotate": self.rotate, "remove": self.remove_device, "ask": self.device_asks}[what](name)

    def add_device(self, name: str, grants: list[str]) -> None:
        args = {"device_id": name, "label": "a device", "capabilities": grants, "owner_id": "ann"}
        if name in self.devices:
            self.refused("conflict", "device.add", args)
            return
        self.refused("forbidden", "device.add", args, who="agent")
        self.ask("device.add", args, keep={f"key of {name}": "appKeyOnce"})
        self.devices[name], self.granted[name] = "active", grants

    def change_device(self, name: str, state: str) -> None:
        args = {"device_id": name, "state": state}
        if name not in self.devices:
            self.refused("not_found", "device.update", args)
        elif self.devices[name] == "revoked" and state != "revoked":
            self.refused("conflict", "device.update", args)
        else:
            assert self.ask("device.update", args)["device"]["state"] == state
            self.devices[name] = state

    def rotate(self, name: str) -> None:
        args = {"device_id": name}
        if name not in self.devices:
            self.refused("not_found", "device.rotate_key", args)
        elif self.devices[name] == "revoked":
            self.refused("conflict", "device.rotate_key", args)
        else:
            for place in self.places.all:
                place.kept[f"old key of {name}"] = place.kept[f"key of {name}"]
            self.ask("device.rotate_key", args, keep={f"key of {name}": "appKeyOnce"})
            self.refused("unauthorized", "memory.recall", {"query": "w"}, device=name, device_key=f"old key of {name}")

    def remove_device(self, name: str) -> None:
        if self.devices.pop(name, None) is None:
            self.refused("not_found", "device.remove", {"device_id": name})
        else:
            self.ask("device.remove", {"device_id": name})

    def device_asks(self, name: str) -> None:
        listed = self.ask("device.list", {})["devices"]
        assert {each["device_id"]: each["state"] for each in listed} == self.devices
        if not any(f"key of {name}" in place.kept for place in self.places.all):
            return
        asks: Plain = {"device": name, "device_key": f"key of {name}"}
        if self.devices.get(name) != "active":
            self.refused("unauthorized", "memory.recall", {"query": "w"}, **asks)
            return
        assert self.ask("hello", {}, **asks)["principal"] == f"device:{name}"
        if "console" in self.granted[name]:
            own = self.ask("console.session", {}, **asks)
            assert (own["kind"], own["device"]["device_id"]) == ("device", name)
        self.refused("forbidden", "memory.recall", {"query": "w"}, OWNERS[1], **asks)
        self.refused("forbidden", "device.list", {}, **asks)
        if "recall" not in self.granted[name]:
            self.refused("forbidden", "memory.recall", {"query": "w"}, **asks)
            return
        space = self.spaces["ann"]
        for word in self.words[-3:]:
            hits = self.ask("memory.recall", {"query": word, "limit": 200}, **asks)["hits"]
            assert {hit["ref"] for hit in hits if word in (hit["excerpt"] or "").split()} == space.hits(word, False)


class LogRules(DeviceRules):
    """The event log of a space, and what an operator reads beside it."""

    @rule(owner=owners, who=callers, log=st.booleans())
    def watch(self, owner: str, who: str, log: bool) -> None:
        if log:
            self.read_the_log(owner, who)
        else:
            self.overview(who)

    def read_the_log(self, owner: str, who: str) -> None:
        seen: list[int] = []
        after = 0
        while True:
            page = self.ask("event_log.read", {"after": after, "limit": 200}, owner, who=who)
            assert page["verified"] and not page["broken"]
            seen += [row["seq"] for row in page["rows"]]
            assert who == "owner" or not any(row["daemon"] for row in page["rows"])
            if not page["has_more"]:
                break
            after = seen[-1]
        assert seen == sorted(set(seen))

    def overview(self, who: str) -> None:
        told = self.ask("console.overview", {}, who=who)
        wanted = self.spaces["ann"].counts(self.own_agent(who), sealed=who == "owner")
        assert {name: told["kernel"]["counts"][name] for name in wanted} == wanted
        assert (told["sessions"] is None) == (who != "owner")
        if who == "owner":
            states = list(self.devices.values())
            assert told["sessions"]["devices"] == {
                state: states.count(state) for state in ("active", "suspended", "revoked")
            }
