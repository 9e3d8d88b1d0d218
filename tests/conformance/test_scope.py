"""Two owners never see each other: every operation of the table, asked by the one about what the other has."""

from __future__ import annotations

import pytest

from beetle.contracts.operations import OPERATIONS
from tests.building import contents, replay, skill, step, talk, turn, write
from tests.cases import CASES, SAID, SKILL, WORD, Prepared
from tests.conformance.doors import Door, InProcess, Plain, Socket

OWN = {
    "long_term.policy",
    "tool_registry.upsert",
    "transcript.commit",
    "turn.capture",
    "event.ingest",
    "memory.write",
    "memory.finalize_turn",
    "memory.remember",
    "chain.bootstrap",
    "chain.append",
    "chain.append_retrospective",
    "chain.upsert_agent",
    "chunk.create",
    "chunk.import_tree",
    "chunk.remember",
    "skill_registry.upload",
}
"""Of these the stranger has records of its own afterwards; they come last, for the others to find nothing."""


def test_a_stranger_meets_nothing_of_another_owner(door: Door) -> None:
    stranger = {"owner_id": f"{door.owner}-stranger"}
    got = Prepared(door.prepare)
    for name in ("conversation", "skill", "registry", "fact"):
        got[name]

    def held() -> tuple[Plain, ...]:
        return replay(door), door.call("skill.detail", {"name": WORD}), door.call("long_term.detail", {"ref": got.fact})

    before = held()
    for case in sorted(CASES, key=lambda case: case.op in OWN):
        for probe in case.probes if case.row.effect != "stream" else ():
            args = {} if case.hidden else probe.request(got)
            key = "capability_hidden" if case.hidden else probe.key
            if case.who == "owner" and door.own_agent:
                # In process, the stranger is the owner of a private plane of its own, which is empty.
                key = {"private.list": None, "private.get": "not_found", "private.delete": "not_found"}[case.op]
            if key is not None:
                assert "secret" not in door.refused(key, case.op, args, stranger).message
                continue
            report = door.call(case.op, args, stranger)
            assert "secret" not in str(report), case.op
            if case.op in OWN:
                continue
            # What the stranger said itself may come back.
            told = {name: value for name, value in report.items() if value not in args.values()}
            if case.op != "chain.memory_markdown":  # whose text begins with the name that was asked for
                assert WORD not in str(told).replace(str(args), ""), case.op
            assert report.get("affected_turns", 0) == 0, case.op
            assert set(report.get("counts", {}).values()) <= {0}, (case.op, report["counts"])
    after = held()
    for old, new in zip(before, after, strict=True):
        assert {**old, "lifecycle": None} == {**new, "lifecycle": None}
    assert contents(replay(door)) == [f"the {WORD} secret", "thank you"]


def test_two_owners_keep_the_same_names_apart(door: Door) -> None:
    other = {"owner_id": f"{door.owner}-other"}
    door.prepare("transcript.commit", SAID)
    door.prepare("memory.write", SKILL)
    theirs = door.call("transcript.commit", talk(turn("t1", f"their {WORD}")), other)
    assert theirs["turns"][0] == {"turn_id": "t1", "sequence": 1, "outcome": "committed"}
    made = door.call("memory.write", write(skill(WORD, content="their way")), other)
    assert made["writes"][0]["outcome"] == "created"
    door.call("transcript.lifecycle", step("delete_raw", "t1"), other)
    door.call("skill.delete", {"name": WORD}, other)
    assert contents(replay(door)) == [f"the {WORD} secret", "thank you"]
    assert door.call("skill.detail", {"name": WORD})["procedure"] == f"the {WORD} way"
    found = door.call("memory.recall", {"query": WORD})
    assert {hit["plane"] for hit in found["hits"]} == {"evidence", "procedural"}


def test_a_citation_of_another_owner_s_evidence_does_not_resolve(door: Door) -> None:
    other = {"owner_id": f"{door.owner}-other"}
    door.prepare("transcript.commit", SAID)
    ref = "evidence:local/talk/t1"
    refused = [
        door.refused("invalid_request", "memory.write", write(skill("x", citations=[each])), scope=other)
        for each in (ref, "evidence:local/talk/never")
    ]
    assert len({(each.message, each.hint, str(each.details)) for each in refused}) == 1
    door.prepare("memory.write", {**write(skill("x", citations=[ref])), "source": "import"}, other)
    cited = door.call("skill.detail", {"name": "x"}, other)["citations"][0]
    assert (cited["ref"], cited["resolves"]) == (ref, False)
    assert door.call("transcript.lifecycle", step("review", "t1"))["derived_refs"] == []


def test_agents_channels_and_chats_of_one_owner_share_its_memory(door: Door) -> None:
    door.prepare("transcript.commit", SAID)
    scope = {"channel": "mail", "chat_id": "elsewhere"}
    assert door.call("memory.recall", {"query": WORD}, scope)["hits"]
    if isinstance(door, Socket):
        assert door.call("memory.recall", {"query": WORD}, {"agent_id": "another"})["hits"]


def test_a_principal_that_is_bound_to_an_owner_may_name_no_other(in_process: InProcess) -> None:
    from tests.conformance.doors import embedded_caller

    bound = embedded_caller("owner-one")
    for scope in ({"owner_id": "owner-two"}, {"agent_id": "agent-two"}):
        for row in OPERATIONS:
            if "in_process" not in row.exposed:
                continue
            # What the profile hides is hidden before anybody's scope is looked at.
            if row.capability and row.capability not in in_process.opened.profile.capabilities.allowed:
                continue
            with pytest.raises(Exception, match="bound to") as caught:
                in_process.ask(row.name, {}, scope, caller=bound)
            assert getattr(caught.value, "key", None) == "forbidden", row.name


@pytest.mark.parametrize("field", ["owner_id", "agent_id", "channel", "chat_id"])
@pytest.mark.parametrize("value", ["", "a\nb", "x" * 257, "\x85"], ids=["empty", "newline", "long", "c1"])
def test_a_scope_holds_ids_and_nothing_else(door: Door, field: str, value: str) -> None:
    refused: Plain = {field: value}
    error = door.refused("invalid_request", "memory.recall", {"query": "x"}, refused)
    assert "scope" in error.message
