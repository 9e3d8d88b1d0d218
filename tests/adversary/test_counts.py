"""A report counts and names what its caller may know: nothing of another owner, and no private record."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from beetle.contracts.codec import to_plain
from beetle.contracts.common import WireScope
from beetle.contracts.errors import Conflict
from beetle.open import Opened, open_store
from beetle.runtime.areas.governance import report
from beetle.runtime.host.caller import Caller
from beetle.runtime.pipeline.invocation import Call
from tests.building import candidate, candidates, step, talk, turn
from tests.conformance.doors import PROFILE, REPOSITORY, Plain, embedded_caller
from tests.governance.material import ASKERS, OWNER

BOB = Caller(
    "bob", "principal", frozenset({"transcript", "write", "recall", "inspect", "export", "import", "console"}),
    ("model_context", "host_ui", "export"), "unix_socket", "owner-bob", "agent-bob",
)  # fmt: skip
DEVICE = BOB._replace(name="device:pad", kind="device", owner_id=OWNER, agent_id="agent-main")
OWN = ASKERS["owner"].caller
OPERATOR = ASKERS["operator"].caller


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "store.db")


@pytest.fixture
def opened(path: str) -> Iterator[Opened]:
    found = open_store(path, PROFILE)
    yield found
    found.store.close()


def call(opened: Opened, caller: Caller, op: str, args: Plain | None = None) -> Plain:
    asked = Call(op, args or {}, caller, WireScope(owner_id=caller.owner_id or OWNER))
    report = json.loads(json.dumps(to_plain(opened.dispatcher.dispatch(asked).report), default=repr))
    return {name: value for name, value in report.items() if name != "lifecycle"}


def remember(opened: Opened, caller: Caller, content: str, **more: str) -> None:
    given = candidate("c1", content, evidence_refs=["evidence:local/talk/t1"], **more)
    (outcome,) = call(opened, caller, "memory.write", candidates(given))["outcomes"]
    assert outcome["outcome"] == "accepted", outcome


def prepare(opened: Opened) -> None:
    """A space with one turn and one shared fact of it."""
    call(
        opened, OWN, "transcript.commit", talk(turn("t1", "the key is blue\nafraid of water\ncannot swim\nMara sings"))
    )
    remember(opened, OWN, "the key is blue", topic="key")


def hide(opened: Opened) -> None:
    """What only the owner may know: sealed, private, waiting."""
    remember(opened, OWN, "afraid of water", topic="", target="private_garden", privacy="subject_private")
    remember(opened, OWN, "cannot swim", topic="swimming", privacy="subject_private")
    waiting = candidate("c2", "sings", topic="song", privacy="subject_private", authority="assistant_claimed")
    call(opened, OWN, "memory.write", candidates(waiting))


def told(opened: Opened, caller: Caller) -> dict[str, Plain]:
    inspected = call(opened, caller, "memory.inspect")
    return {
        "counts": inspected["counts"],
        "verify": {**call(opened, caller, "store.verify"), "event_log_head": None},
        "overview": call(opened, caller, "console.session")["owner"],
        "step": call(opened, caller, "transcript.lifecycle", step("mask", "t1", dry_run=True)),
    }


def test_private_records_change_no_count_and_no_list(opened: Opened) -> None:
    prepare(opened)
    device, owner = told(opened, DEVICE), told(opened, OWN)
    hide(opened)
    assert told(opened, DEVICE) == device
    assert device["counts"]["facts"] == 1 and len(device["step"]["derived_refs"]) == 1
    after = told(opened, OWN)
    assert after["counts"]["facts"] == 2 and after["counts"]["derived_refs"] == 3
    assert len(after["step"]["derived_refs"]) == 3 > len(owner["step"]["derived_refs"])


def test_verify_tells_an_owner_nothing_of_another(opened: Opened) -> None:
    call(opened, BOB, "transcript.commit", talk(turn("t1", "hello")))
    before = {**call(opened, BOB, "store.verify"), "event_log_head": None}
    prepare(opened)
    hide(opened)
    assert {**call(opened, BOB, "store.verify"), "event_log_head": None} == before
    assert before["clean"] and before["checked"]["turns"] == 1
    whole = call(opened, OPERATOR, "store.verify")
    assert whole["checked"]["turns"] == 2 and whole["checked"]["event_log"] > 2


def test_verify_finds_the_damage_of_the_own_space_alone(path: str) -> None:
    opened = open_store(path, PROFILE)
    call(opened, BOB, "transcript.commit", talk(turn("t1", "hello")))
    prepare(opened)
    opened.store.close()
    connection = apsw.Connection(path)
    connection.execute("UPDATE derived_ref SET turn = NULL")
    connection.execute("UPDATE fact SET state = 'superseded'")
    connection.execute("UPDATE body SET content = 'the key is gold' WHERE content LIKE 'the key%'")
    connection.close()
    opened = open_store(path, PROFILE)
    assert call(opened, BOB, "store.verify")["clean"]
    found = call(opened, DEVICE, "store.verify")["findings"]
    assert {each["problem"] for each in found} >= {"digest_mismatch", "not_linked"}
    assert any(each["check"] == "long_term" for each in found)
    assert not call(opened, OPERATOR, "store.verify")["clean"]
    opened.store.close()


def test_an_import_conflict_counts_no_private_record(opened: Opened) -> None:
    archive = opened.dispatcher.dispatch(Call("memory.export_space", {}, BOB, WireScope())).report
    asked = {"archive": archive.archive, "mode": "bootstrap_import"}  # type: ignore[attr-defined]

    def refused(caller: Caller, **more: object) -> Conflict:
        with pytest.raises(Conflict) as caught:
            scope = WireScope(owner_id=OWNER)
            opened.dispatcher.dispatch(Call("memory.import_space", {**asked, **more}, caller, scope))
        return caught.value

    prepare(opened)
    before = [refused(DEVICE), refused(DEVICE, mode="full_restore")]
    hide(opened)
    after = [refused(DEVICE), refused(DEVICE, mode="full_restore")]
    assert [each.message for each in after] == [each.message for each in before]
    assert [each.details for each in after] == [each.details for each in before]
    assert "private 1" in refused(embedded_caller(OWNER)).message


def test_what_others_write_neither_ends_nor_changes_a_governance_report(
    opened: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A report reads so many events back; those of other spaces, and those that the caller may not know of, are none
    of them."""
    monkeypatch.setattr(report, "ROWS_READ", 12)
    asked = {"since": "2020-01-01T00:00:00Z"}
    prepare(opened)
    before = {caller.name: call(opened, caller, "governance.report", asked) for caller in (DEVICE, OWN, OPERATOR)}
    for n in range(20):
        call(opened, BOB, "transcript.commit", talk(turn(f"t{n}", "hello")))
        call(opened, BOB, "memory.write", candidates(candidate("b1", f"fact {n}", topic=f"topic {n}")))
    assert {
        caller.name: call(opened, caller, "governance.report", asked) for caller in (DEVICE, OWN, OPERATOR)
    } == before
    for _ in range(6):
        hide(opened)
    assert call(opened, DEVICE, "governance.report", asked) == before[DEVICE.name]
    assert before[DEVICE.name]["complete"] and before[DEVICE.name]["decisions"]
    for n in range(12):
        call(opened, OWN, "transcript.commit", talk(turn(f"own{n}", "hello")))
    after = call(opened, DEVICE, "governance.report", asked)
    assert not after["complete"] and not after["decisions"], "and its own events end it"


def test_an_export_counts_no_link_to_a_private_fact(path: str) -> None:
    """A shared fact that rests on a private one: that something of it stays behind tells of that one."""
    opened = open_store(path, PROFILE)
    prepare(opened)
    before = call(opened, DEVICE, "memory.export_space")["left_out"]
    hide(opened)
    known = call(opened, OWN, "memory.export_space")["left_out"]
    opened.store.close()
    connection = apsw.Connection(path)
    connection.execute("""
        INSERT INTO derived_ref (space, derived, evidence, relation, fact, at)
        SELECT shown.space, 'long_term:' || shown.record_id, 'long_term:' || hidden.record_id, 'supersedes',
          shown.fact, 0
        FROM fact shown, fact hidden WHERE shown.visibility = 'shared' AND hidden.visibility = 'private'
    """)
    assert connection.changes() == 1
    connection.close()
    opened = open_store(path, PROFILE)
    assert call(opened, DEVICE, "memory.export_space")["left_out"] == before
    assert call(opened, OWN, "memory.export_space")["left_out"] == {
        **known,
        "derived_refs": known.get("derived_refs", 0) + 1,
    }
    opened.store.close()


def test_a_repair_neither_tells_nor_counts_links_of_private_records(path: str) -> None:
    opened = open_store(path, PROFILE)
    prepare(opened)
    hide(opened)
    device = DEVICE._replace(capabilities=DEVICE.capabilities | {"event_log"})
    asked = {"topics": ["transcript"]}
    before = call(opened, device, "event_log.read", asked)["rows"]
    opened.store.close()
    connection = apsw.Connection(path)
    connection.execute("UPDATE derived_ref SET turn = NULL")
    assert connection.changes() == 3
    connection.close()
    opened = open_store(path, PROFILE)
    assert call(opened, device, "transcript.repair_safe", {"dry_run": True})["counts"]["relinked"] == 1
    assert len(call(opened, OWN, "transcript.repair_safe", {"dry_run": True})["mended"]) == 3
    mended = call(opened, OWN, "transcript.repair_safe")
    assert mended["counts"]["relinked"] == 3 and call(opened, OWN, "store.verify")["clean"]
    after = call(opened, device, "event_log.read", asked)["rows"]
    assert [each["subject"]["relinked"] for each in after[len(before) :]] == [1]
    rows = call(opened, OWN, "event_log.read", asked)["rows"]
    assert [each["subject"]["relinked"] for each in rows if each["event"] == "repaired"] == [1, 1, 1]
    opened.store.close()


def test_a_repair_by_who_may_not_know_of_a_link_leaves_it_to_others(path: str) -> None:
    opened = open_store(path, PROFILE)
    prepare(opened)
    hide(opened)
    opened.store.close()
    connection = apsw.Connection(path)
    connection.execute("UPDATE derived_ref SET turn = NULL WHERE fact IS NULL OR derived NOT IN ("
                       "SELECT 'long_term:' || record_id FROM fact WHERE visibility = 'shared')")  # fmt: skip
    assert connection.changes() == 2
    connection.close()
    opened = open_store(path, PROFILE)
    seen = call(opened, DEVICE, "transcript.repair_safe")
    assert not seen["changed"] and not seen["mended"] and not any(seen["left"].values()) and seen["receipt"] is None
    assert len(call(opened, OPERATOR, "transcript.repair_safe")["mended"]) == 2
    assert call(opened, OPERATOR, "store.verify")["clean"]
    opened.store.close()


@pytest.mark.parametrize("view", ["host_ui", "model_context"])
def test_what_a_fact_came_from_is_counted_without_what_its_reader_may_not_know(tmp_path: Path, view: str) -> None:
    """A list is narrowed to what the caller may see before it is cut: else its length would tell of the rest."""
    small = (REPOSITORY / "profiles/profile-server-linux-dev-full.toml").read_text()
    profile = tmp_path / "small.toml"
    profile.write_text(re.sub(r"(?m)^derived_refs = .*$", "derived_refs = 1", small))
    reader = DEVICE._replace(capabilities=frozenset({"long_term"}))
    said: list[Plain] = []
    for name in ("without", "with"):
        opened = open_store(str(tmp_path / f"{name}.db"), str(profile))
        call(opened, OWN, "transcript.commit", talk(turn("t1", "cannot swim\nswims well"), turn("t2", "swims well")))
        if name == "with":
            remember(opened, OWN, "cannot swim", topic="swimming", privacy="subject_private")
        outcomes = [
            call(opened, OWN, "memory.write", candidates(given))["outcomes"][0]
            for given in (
                candidate("c1", "swims well", topic="swimming", authority="operator", evidence_refs=[ref])
                for ref in ("evidence:local/talk/t1", "evidence:local/talk/t2")
            )
        ]
        assert {each["outcome"] for each in outcomes} == {"accepted"}
        told = call(opened, reader, "long_term.detail", {"ref": outcomes[0]["ref"], "view": view})
        said.append({field: told[field] for field in ("derived_refs", "profile_budget_applied", "supersedes")})
        own = call(opened, OWN, "long_term.detail", {"ref": outcomes[0]["ref"], "view": "raw_owner"})
        assert bool(own["supersedes"]) is (name == "with")
        opened.store.close()
    for each in said:
        for one in each["derived_refs"]:
            one.pop("derived")
    assert said[0] == said[1]
    assert said[0]["profile_budget_applied"] and len(said[0]["derived_refs"]) == 1
