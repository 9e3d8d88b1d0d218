"""Text of a proposal leaves every file of the store when the proposal is closed, or what it is about is erased."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from beetle.open import open_store
from tests.governance.judging import PROFILE, JudgedStore, Plain, candidate, message, ref

CANARY = "zqproposalqz"


class OnDisk(JudgedStore):
    """A place whose store is a file."""

    def __init__(self, folder: Path, backend: str) -> None:
        self.folder = folder
        super().__init__()
        self.opened.store.close()
        self.opened = open_store(str(folder / "beetle.db"), PROFILE, backend, dependencies=self.dependencies)

    def holds(self, text: str) -> bool:
        return any(text.encode() in file.read_bytes() for file in self.folder.iterdir() if file.is_file())


@pytest.fixture(params=["sqlite", "file", "embedded"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OnDisk]:
    found = OnDisk(tmp_path, request.param)
    yield found
    found.close()


def prepared(place: JudgedStore) -> Plain:
    """A skill, a turn and a fact, and a proposal about each, every one with the canary in its text."""
    skill = {"name": "pump", "topic": "pump", "title": "Pump", "summary": "When loud.", "content": "1. Stop it."}
    place.call("memory.write", {"kind": "procedural", "source": "manual", "writes": [skill]})
    place.talk(message("m1", content="I drink tea."))
    (kept,) = place.judge(candidate("c1", "Mara drinks tea.", topic="drink"))
    made = [
        {"proposal_id": "skill", "kind": "skill_edit", "target": "pump", "rationale": f"why {CANARY}",
         "change": {"procedure": f"1. {CANARY}."}},
        {"proposal_id": "fact", "kind": "fact_correct", "target": kept["ref"], "rationale": f"why {CANARY}",
         "change": {"content": f"Mara drinks {CANARY}."}},
        {"proposal_id": "new", "kind": "fact_write", "rationale": f"why {CANARY}", "evidence_refs": [ref("m1")],
         "change": {"content": f"Mara said {CANARY}.", "authority": "user_asserted"}},
    ]  # fmt: skip
    place.call("evolve.propose", {"proposals": made})
    return {"fact": kept["ref"]}


def left(place: JudgedStore) -> set[str]:
    return {each["proposal_id"] for each in place.call("evolve.list", {})["proposals"]}


def test_text_of_an_open_proposal_is_in_the_store_so_that_the_search_can_find_it(place: OnDisk) -> None:
    prepared(place)
    assert place.holds(CANARY)


def test_what_is_withdrawn_leaves_no_byte(place: OnDisk) -> None:
    prepared(place)
    request = {"proposal_ids": ["skill", "fact", "new"], "decision": "withdraw"}
    assert place.call("evolve.submit", request)["erasure"] == "done"
    assert not place.holds(CANARY)


def forget_fact(place: JudgedStore, made: Plain) -> Plain:
    return place.call("long_term.mutate", {"action": "delete", "ref": made["fact"]})


def delete_skill(place: JudgedStore, made: Plain) -> Plain:
    return place.call("skill.delete", {"name": "pump"})


def delete_evidence(place: JudgedStore, made: Plain) -> Plain:
    talk = {"channel_id": "local", "conversation_id": "talk"}
    step = {"conversation": talk, "action": "delete_raw", "turn_ids": ["t1"], "reason": "asked"}
    return place.call("transcript.lifecycle", step)


Erase = Callable[[JudgedStore, Plain], Plain]


@pytest.mark.parametrize(
    ("erase", "dropped", "why"),
    [
        (forget_fact, "fact", "target_erased"),
        (delete_skill, "skill", "target_erased"),
        (delete_evidence, "new", "evidence_erased"),
    ],
    ids=["fact", "skill", "evidence"],
)
def test_what_is_proposed_about_something_goes_with_it(place: OnDisk, erase: Erase, dropped: str, why: str) -> None:
    made = prepared(place)
    others = {"skill", "fact", "new"} - {dropped}
    place.call("evolve.submit", {"proposal_ids": sorted(others), "decision": "withdraw"})
    assert place.holds(CANARY)
    erase(place, made)
    assert left(place) == set()
    closed = {each["proposal_id"]: each for each in place.call("evolve.list", {"state": "dropped"})["proposals"]}
    assert (closed[dropped]["outcome"], closed[dropped]["rationale"]) == (why, None)
    assert place.opened.store.writer.finish_erasures(10)
    assert not place.holds(CANARY)


@pytest.mark.parametrize("erase", [forget_fact, delete_skill, delete_evidence])
def test_what_is_proposed_about_something_else_stays(place: OnDisk, erase: Erase) -> None:
    made = prepared(place)
    erase(place, made)
    assert len(left(place)) == 2


def test_what_a_query_forgets_comes_back_from_no_proposal(place: OnDisk) -> None:
    prepared(place)
    asked: Plain = {"action": "forget_by_query", "query": CANARY}
    found = place.call("long_term.mutate", {**asked, "dry_run": True})
    assert (found["affected"], found["proposals"], found["outcome"]) == (0, 3, "forgotten")
    assert left(place) == {"skill", "fact", "new"}
    done = place.call("long_term.mutate", {**asked, "confirm": found["confirm_token"]})
    assert (done["proposals"], done["erasure"]) == (3, "done")
    assert left(place) == set()
    assert not place.holds(CANARY)


def test_a_proposal_since_the_dry_run_makes_its_token_worthless(place: OnDisk) -> None:
    prepared(place)
    asked: Plain = {"action": "forget_by_query", "query": CANARY}
    token = place.call("long_term.mutate", {**asked, "dry_run": True})["confirm_token"]
    made: dict[str, Any] = {"kind": "skill_disable", "target": "pump", "rationale": f"again {CANARY}"}
    place.call("evolve.propose", {"proposals": [made]})
    place.refused("conflict", "long_term.mutate", {**asked, "confirm": token})


def test_a_submitted_forgetting_takes_every_proposal_about_the_fact_with_it(place: OnDisk) -> None:
    made = prepared(place)
    forget = {"proposal_id": "forget", "kind": "fact_forget", "target": made["fact"], "rationale": "asked"}
    place.call("evolve.propose", {"proposals": [forget]})
    report = place.call("evolve.submit", {"proposal_ids": ["forget"]})
    assert report["outcomes"][0]["outcome"] == "deleted" and report["erasure"] == "done"
    assert left(place) == {"skill", "new"}
    assert not place.holds(f"Mara drinks {CANARY}")
    assert not place.holds("Mara drinks tea")


def test_a_proposal_that_expired_leaves_no_byte(place: OnDisk) -> None:
    prepared(place)
    place.sleep(place.days + 1)
    place.call("evolve.propose", {"proposals": [{"kind": "skill_disable", "target": "pump", "rationale": "r"}]})
    assert place.opened.store.writer.finish_erasures(10)
    assert not place.holds(CANARY)


def test_proposals_outlive_a_reopening_and_can_then_be_submitted(place: OnDisk) -> None:
    prepared(place)
    backend = place.opened.store.settings.backend
    place.close()
    place.opened = open_store(str(place.folder / "beetle.db"), PROFILE, backend, dependencies=place.dependencies)
    assert left(place) == {"skill", "fact", "new"}
    assert place.call("evolve.submit", {"proposal_ids": ["skill"]})["submitted"] == 1
    assert CANARY in place.call("skill.detail", {"name": "pump"})["procedure"]
