"""A look around: every way of reading, by every caller, against what the model has."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from tests.sdk.model import Space, Turn
from tests.sdk.reopened import CALLERS, Plain

if TYPE_CHECKING:
    from tests.sdk.machine import Machine

RAW = {"owner": "raw_owner", "agent": "model_context", "worker": "model_context"}
"""The view through which a caller sees the most."""
LATEST_WORDS = 3
"""Words that are asked for: of those that are said again the newest ones, and as many of the older ones."""


def look_around(machine: Machine) -> None:
    """Compare everything that can be read with the model."""
    for owner, space in machine.spaces.items():
        for who in CALLERS:
            _transcripts(machine, owner, space, who)
            _facts(machine, owner, space, who)
            _recall(machine, owner, space, who)
        _skills(machine, owner, space)
        _private(machine, owner, space)
        _policies(machine, owner, space)
        _proposals(machine, owner, space)
        _registries(machine, owner, space)
        _waiting(machine, owner, space)
        contents(machine, owner, space)
        repair = machine.ask("transcript.repair", {"limit": 500}, owner)
        # A skill may cite what was never said; nothing else may be amiss.
        dangling = {each[:2] for each in space.derived if each[3] is None and each[2] == "cites"}
        assert {(each["derived"], each["ref"]) for each in repair["issues"]} == dangling, repair["issues"]
    verified = machine.ask("store.verify", {})
    assert verified["clean"], verified["findings"]


def _transcripts(machine: Machine, owner: str, space: Space, who: str) -> None:
    listed = machine.ask("transcript.conversations", {}, owner, who=who)["conversations"]
    assert {each["conversation_id"]: each["turns"] for each in listed} == {
        name: len(turns) for name, turns in space.conversations.items()
    }
    for name, turns in space.conversations.items():
        where = {"conversation_id": name}
        for view in CALLERS[who].views:
            args = {"conversation": where, "view": view, "limit": 500}
            shown = machine.ask("transcript.replay", args, owner, who=who)["turns"]
            _compare(shown, turns, view, machine.own_agent(who))
        whole = {"conversation": where, "view": RAW[who], "limit": 500}
        at_once = machine.ask("transcript.timeline", whole, owner, who=who)
        assert at_once["turns"] == machine.ask("transcript.replay", whole, owner, who=who)["turns"]
        if "export" in CALLERS[who].views:
            for private in (False, True):
                out = machine.ask("transcript.export", {"conversation": where, "include_private": private}, owner)
                _compare(out["turns"], turns, "export", private, soul=private)


def _compare(shown: list[Plain], turns: dict[str, Turn], view: str, own_agent: bool, soul: bool = False) -> None:
    assert [each["turn_id"] for each in shown] == list(turns)
    assert [each["sequence"] for each in shown] == list(range(1, len(turns) + 1))
    for one in shown:
        turn = turns[one["turn_id"]]
        assert one["archived"] == turn.archived
        for said, message in zip(one["messages"], turn.messages, strict=True):
            visible = message.seen_in(view, own_agent)
            if view == "export" and soul and message.state == "live":
                visible = message.visibility in ("shared", "private", "soul")
            assert (said["message_id"], said["role"], said["state"]) == (
                message.message_id, message.role, message.state)  # fmt: skip
            assert said.get("content") == (message.text if visible else None), (view, said, message)
        hidden = not all(message.seen_in(view, own_agent) for message in turn.messages)
        labels = [ref.get("label") for ref in one["host_refs"]]
        erased = turn.is_erased or turn.label is None
        told = view == "raw_owner" or (view == "host_ui" and not hidden)
        assert labels in ([], [None if erased or not told else turn.label]), (view, labels, turn)


def _facts(machine: Machine, owner: str, space: Space, who: str) -> None:
    sees = machine.own_agent(who)
    visible = {each.ref: each for each in space.facts.values() if sees or not each.private}
    listed = machine.ask("long_term.list", {"state": "all", "view": RAW[who], "limit": 500}, owner, who=who)
    assert listed["total"] == len(listed["records"]) == len(visible)
    assert {each["ref"] for each in listed["records"]} == set(visible)
    for each in listed["records"]:
        fact = visible[each["ref"]]
        gone, visibility = fact.state == "deleted", "private" if fact.private else "shared"
        assert (each["state"], each["revision"], each["target"], each["kind"], each["visibility"]) == (
            fact.state, fact.revision, fact.target, fact.kind, visibility), fact  # fmt: skip
        assert (each["topic"], each["content"]) == ((None, None) if gone else (fact.topic, fact.content)), fact
        assert each["authority"] == fact.authority, fact
    for ref, fact in visible.items():
        told = machine.ask("long_term.detail", {"ref": ref, "view": RAW[who]}, owner, who=who)
        assert [each["revision"] for each in told["revisions"]] == list(range(1, fact.revision + 1))
        by = fact.superseded_by if sees or fact.superseded_by in visible else None
        assert told["superseded_by"] == by
        wanted = {each[:3] for each in space.derived if each[0] == ref}
        wanted = {each for each in wanted if not each[1].startswith("long_term:") or each[1] in visible}
        assert {(each["derived"], each["evidence"], each["relation"]) for each in told["derived_refs"]} == wanted
    for ref in set(space.facts) - set(visible):
        machine.refused("not_found", "long_term.detail", {"ref": ref, "view": RAW[who]}, owner, who=who)


def _skills(machine: Machine, owner: str, space: Space) -> None:
    told = machine.ask("skill.list", {"limit": 500}, owner)
    assert {each["name"]: (each["enabled"], each["revision"], each["title"]) for each in told["runtime_skills"]} == {
        each.name: (each.enabled, each.revision, each.title) for each in space.skills.values()
    }
    assert (told["total"], told["active"]) == (len(space.skills), sum(each.enabled for each in space.skills.values()))
    for skill in space.skills.values():
        shown = machine.ask("skill.detail", {"name": skill.name}, owner)
        assert (shown["procedure"], shown["summary"], len(shown["lineage"])) == (
            skill.content, skill.summary, skill.revision)  # fmt: skip
        assert {(each["derived"], each["evidence"]) for each in shown["derived_refs"]} == {
            each[:2] for each in space.derived if each[0].startswith(skill.ref + "/")
        }


def _private(machine: Machine, owner: str, space: Space) -> None:
    machine.refused("forbidden", "private.list", {}, owner, who="worker")
    told = machine.ask("private.list", {"limit": 500}, owner)["items"]
    assert {each["record_id"]: (each["plane"], each["privacy"], each["state"]) for each in told} == {
        each.record_id: (each.plane, each.privacy, each.state) for each in space.items.values()
    }
    for item in space.items.values():
        assert machine.ask("private.get", {"record_id": item.record_id}, owner)["content"] == item.content


def _policies(machine: Machine, owner: str, space: Space) -> None:
    told = machine.ask("long_term.policy", {"action": "list"}, owner)["policies"]
    assert [(each["action"], each["kind"], each["topic"], each["chat_id"]) for each in told] == [
        (each.action, *each.over()) for each in space.policies
    ]


def _proposals(machine: Machine, owner: str, space: Space) -> None:
    for who, sees in (("owner", False), ("agent", True), ("worker", False)):
        told = machine.ask("evolve.list", {"state": "all", "limit": 500}, owner, who=who)
        wanted = [each for each in reversed(space.proposals) if space.sees(each, sees)]
        assert told["total"] == len(wanted)
        assert [(each["proposal_id"], each["state"], each["rationale"]) for each in told["proposals"]] == [
            (each.proposal_id, each.state, each.rationale or None) for each in wanted
        ]
        outcomes = [each.outcome for each in wanted if not each.is_open]
        assert [each["outcome"] for each in told["proposals"] if each["state"] != "open"] == outcomes


def _registries(machine: Machine, owner: str, space: Space) -> None:
    told = machine.ask("tool_registry.list", {}, owner)["registries"]
    assert [(each["registry_id"], each["fingerprint"], each["revision"]) for each in told] == [
        (name, each.fingerprint, each.revision) for name, each in sorted(space.registries.items())
    ]
    for name, registry in space.registries.items():
        tools = machine.ask("tool_registry.get", {"registry_id": name}, owner)["tools"]
        assert {each["tool_id"]: each["schema_fingerprint"] for each in tools} == registry.tools


def _waiting(machine: Machine, owner: str, space: Space) -> None:
    told = machine.ask("governance.report", {}, owner)
    waiting = [each.reason for each in space.waiting if each.claim.record_id is None]
    assert {each["reason"]: each["count"] for each in told["deferred"]["waiting"]} == {
        reason: waiting.count(reason) for reason in waiting
    }
    assert {each["job_id"] for each in told["deferred"]["open_jobs"]} == set(space.jobs.values())
    assert [each["action"] for each in told["policies"]] == [each.action for each in space.policies]


def contents(machine: Machine, owner: str, space: Space, *, built: bool = False) -> None:
    """The table of contents shows what is shared and live alone; once it was `built`, there is a node for all of it."""
    said = [each for turns in space.conversations.values() for turn in turns.values() for each in turn.messages]
    live = {each.word for each in said if (each.visibility, each.state) == ("shared", "live")}
    nodes = machine.ask("toc.root", {}, owner, who="agent")["nodes"]
    assert not built or bool(nodes) == any(each.visibility == "shared" for each in said)
    assert nodes == machine.ask("toc.root", {}, owner, who="worker")["nodes"]
    shown, segments = "", []
    while nodes:
        node = nodes.pop()
        shown += str(node)
        if node["level"] == "segment":
            segments.append(node)
            continue
        args = {"parent_id": node["node_id"], "limit": 500}
        nodes += machine.ask("toc.browse", args, owner, who="agent")["children"]
    assert {word for word in machine.words if word in shown} <= live
    assert not built or bool([each for each in segments if each["keywords"]]) == bool(live)
    for segment in segments[-1:]:
        assert machine.ask("toc.node", {"node_id": segment["node_id"]}, owner, who="agent")["node"] == segment
        for bullet in segment["bullets"][:1]:
            _grip(machine, owner, space, bullet)
    for word in machine.used[-1:]:
        found = machine.ask("toc.search_children", {"query": word, "child_level": "day"}, owner, who="agent")["nodes"]
        days = [each["node"]["node_id"] for each in found]
        assert not built or word not in live or days, word
        for day in days:
            told = machine.ask("toc.search_node", {"node_id": day, "query": word}, owner, who="agent")
            # The last two letters of a word are taken for its inflection.
            assert any(each[:-2] == word[:-2] for each in live) or not told["matched"], word


def _grip(machine: Machine, owner: str, space: Space, bullet: Plain) -> None:
    """What a bullet rests on, as every other page of events shows it."""
    (grip_id,) = bullet["grip_ids"]
    around = {"grip_id": grip_id, "events_before": 2, "events_after": 2}
    for who in CALLERS:
        told = machine.ask("grip.expand", around, owner, who=who)
        # The owner, too, asks through a host's view where a request names none.
        view, own = CALLERS[who].views[0], machine.own_agent(who)
        assert bullet["text"] in "\n".join(each["text"] or "" for each in told["excerpt_events"])
        for event in (*told["events_before"], *told["excerpt_events"], *told["events_after"]):
            turn = space.conversations[event["conversation"]["conversation_id"]][event["turn_id"]]
            message = next(each for each in turn.messages if each.message_id == event["message_id"])
            assert event["text"] == (message.text if message.seen_in(view, own) else None), (who, event)


def _recall(machine: Machine, owner: str, space: Space, who: str) -> None:
    sees = machine.own_agent(who)
    older = machine.used[:-LATEST_WORDS]
    words = (machine.words[-1:], machine.used[-LATEST_WORDS:], older[:: max(1, len(older) // LATEST_WORDS)])
    for word in dict.fromkeys(itertools.chain(*words)):
        wanted = space.hits(word, sees)
        assert found(machine, word, owner, who) == wanted, (word, owner, who)
        if who == "owner":
            continue  # it is the agent in these
        args = {"query": word, "view": "model_context", "limit": 200}
        hits = machine.ask("transcript.search", args, owner, who=who)["hits"]
        assert {hit["ref"] for hit in hits if word in (hit["excerpt"] or "").split()} == {
            ref for ref in wanted if ref.startswith("evidence:")
        }
        block = machine.ask("memory.project", {"user_query": word, "system_max_len": 20_000}, owner, who=who)
        if not wanted:
            assert word not in block["system_memory_block"], (word, owner, who)
    for chat in ("c1", "x"):
        told = machine.ask("memory.recall", {"query": "nothing"}, owner, who=who, chat=chat)
        working, status = told["working_recall"], told["tool_experience_status"]["reason"]
        hints = {(each["registry_id"], each["tool_id"]) for each in told["agent_tool_hints"]}
        assert hints == space.hints(sees), (owner, who)
        assert (status == "available") == bool(hints), status
        name, by = space.current(CALLERS[who].name, chat)
        current = working["current_conversation"]
        assert (current and current["conversation_id"], working["current_by"]) == (name, by), (who, chat)


def found(machine: Machine, word: str, owner: str, who: str, **more: Any) -> set[str]:
    """Refs of the hits that hold a word; a neighbour may stand among the hits for its neighbour's sake."""
    hits = machine.ask("memory.recall", {"query": word, "limit": 200, **more}, owner, who=who)["hits"]
    return {hit["ref"] for hit in hits if word in (hit["excerpt"] or "").split()}
