"""What proposals show to whom: as much as of the facts that they are about, and no text in logs and stored answers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from beetle.contracts.codec import to_plain
from beetle.contracts.errors import BeetleError
from beetle.runtime.areas.evolve import proposals
from beetle.runtime.host.caller import Caller
from beetle.runtime.host.principals import OPERATOR_CAPABILITIES
from beetle.runtime.pipeline.invocation import Call
from tests.governance.judging import JudgedStore, Plain, candidate, message, ref

WORD = "zqsecretqz"
VIEWS: dict[str, tuple[Any, ...]] = {
    "agent": ("model_context", "host_ui"), "panel": ("host_ui", "model_context"), "auditor": ("operator_audit",),
    "exporter": ("export",),
}  # fmt: skip
WORDLESS = ("proposal", "event_log", "idempotency")


def asker(name: str) -> Caller:
    agent = "agent-main" if name == "agent" else None
    return Caller(name, "principal", OPERATOR_CAPABILITIES, VIEWS[name], "unix_socket", "owner", agent)


@pytest.fixture
def place() -> Iterator[JudgedStore]:
    found = JudgedStore()
    yield found
    found.close()


def ask(place: JudgedStore, who: str, op: str, args: Plain, key: str | None = None) -> Plain:
    call = Call(op, args, asker(who), idempotency_key=key)
    return json.loads(json.dumps(to_plain(place.opened.dispatcher.dispatch(call).report)))


def refused(place: JudgedStore, who: str, op: str, args: Plain) -> str:
    with pytest.raises(BeetleError) as caught:
        ask(place, who, op, args)
    assert WORD not in f"{caught.value.message} {caught.value.hint} {caught.value.details}"
    return caught.value.key


def proposed(place: JudgedStore) -> Plain:
    """A shared and a private fact, and proposals: about each of them, and for a new private one."""
    kept = place.judge(
        candidate("s", "Mara rows.", topic="sport"),
        candidate("p", f"Mara has {WORD}.", topic="health", privacy="subject_private"),
    )
    shared, private = (each["ref"] for each in kept)
    made = [
        {"proposal_id": "shared", "kind": "fact_correct", "target": shared, "rationale": f"shared {WORD}",
         "change": {"content": f"Mara rows with {WORD}."}},
        {"proposal_id": "private", "kind": "fact_correct", "target": private, "rationale": f"private {WORD}",
         "change": {"content": f"Mara had {WORD}."}},
        {"proposal_id": "new", "kind": "fact_write", "rationale": f"new {WORD}",
         "change": {"content": f"Mara gets {WORD}.", "privacy": "subject_private", "authority": "user_asserted"}},
    ]  # fmt: skip
    place.call("evolve.propose", {"proposals": made, "view": "raw_owner"})
    return {"shared": shared, "private": private}


@pytest.mark.parametrize(("who", "seen"), [("agent", {"shared", "private", "new"}), ("panel", {"shared"}),
                                           ("auditor", {"shared"}), ("exporter", {"shared"})])  # fmt: skip
def test_a_proposal_is_there_for_whoever_sees_the_facts_that_it_is_about(
    place: JudgedStore, who: str, seen: set[str]
) -> None:
    proposed(place)
    listed = ask(place, who, "evolve.list", {"state": "all"})
    assert {each["proposal_id"] for each in listed["proposals"]} == seen
    assert listed["total"] == len(seen)
    for name in ("shared", "private", "new"):
        if name in seen:
            shown = json.dumps(ask(place, who, "evolve.preview", {"proposal_id": name}))
            assert (WORD in shown) == (who != "auditor"), name
        else:
            assert refused(place, who, "evolve.preview", {"proposal_id": name}) == "not_found"
            assert refused(place, who, "evolve.submit", {"proposal_ids": [name]}) == "not_found"


def test_an_audit_sees_that_something_is_proposed_and_not_what(place: JudgedStore) -> None:
    proposed(place)
    shown = ask(place, "auditor", "evolve.preview", {"proposal_id": "shared"})
    assert [(each["field"], each["diff"]) for each in shown["diffs"]] == [("content", None)]
    assert shown["proposal"]["rationale"] is None
    listed = ask(place, "auditor", "evolve.list", {})["proposals"]
    assert [each["rationale"] for each in listed] == [None]


def test_nobody_sees_through_a_view_that_is_not_theirs(place: JudgedStore) -> None:
    proposed(place)
    args = {"proposal_id": "shared", "view": "raw_owner"}
    assert refused(place, "panel", "evolve.preview", args) == "privacy_denied"
    as_host = place.call("evolve.preview", {"proposal_id": "private", "view": "raw_owner"})
    assert WORD in json.dumps(as_host["diffs"])
    place.refused("not_found", "evolve.preview", {"proposal_id": "private", "view": "host_ui"})


def test_a_fact_that_becomes_private_takes_its_proposals_out_of_sight(place: JudgedStore) -> None:
    refs = proposed(place)
    scope = {"action": "change_scope", "ref": refs["shared"], "privacy": "subject_private", "reason": "asked"}
    place.call("long_term.mutate", scope)
    assert ask(place, "panel", "evolve.list", {"state": "all"})["proposals"] == []
    assert refused(place, "panel", "evolve.preview", {"proposal_id": "shared"}) == "not_found"
    assert ask(place, "agent", "evolve.preview", {"proposal_id": "shared"})["moved"]


def test_nobody_submits_another_proposal_than_the_one_that_was_previewed(place: JudgedStore) -> None:
    refs = proposed(place)
    assert ask(place, "panel", "evolve.preview", {"proposal_id": "shared"})["proposal"]["target"] == refs["shared"]
    scope = {"action": "change_scope", "ref": refs["shared"], "privacy": "subject_private", "reason": "asked"}
    place.call("long_term.mutate", scope)
    for content in ("Mara rows no more.", f"Mara rows with {WORD}."):
        assert refused(place, "exporter", "evolve.propose", fact("shared", content)) == "conflict"
    for decision in ("submit", "withdraw"):
        given = {"proposal_ids": ["shared"], "decision": decision}
        assert refused(place, "panel", "evolve.submit", given) == "not_found"
    assert ask(place, "agent", "evolve.preview", {"proposal_id": "shared"})["proposal"]["state"] == "open"
    place.call("long_term.mutate", {**scope, "privacy": "shared_with_subject", "view": "raw_owner"})
    assert ask(place, "panel", "evolve.preview", {"proposal_id": "shared"})["proposal"]["target"] == refs["shared"]


def test_a_new_fact_of_the_panel_s_is_judged_as_if_the_private_one_were_not_there(place: JudgedStore) -> None:
    """Neither verdict nor diff tells that a private fact of the topic is known."""
    proposed(place)
    change = {"content": "Mara is well.", "topic": "health", "authority": "user_asserted"}
    made = {
        "proposal_id": "mine",
        "kind": "fact_write",
        "rationale": "r",
        "change": change,
        "evidence_refs": [ref("u9", "t9")],
    }
    place.talk(message("u9", content="Mara is well."), turn_id="t9")
    ask(place, "panel", "evolve.propose", {"proposals": [made]})
    shown = ask(place, "panel", "evolve.preview", {"proposal_id": "mine"})
    assert shown["verdict"] == {"outcome": "changes", "reason": "created", "superseded_ref": None}
    assert WORD not in json.dumps(shown)
    assert ask(place, "agent", "evolve.preview", {"proposal_id": "mine"})["verdict"]["reason"] == "superseded"


def fact(name: str, content: str, **more: Any) -> Plain:
    change = {"content": content, "topic": "health", **more}
    return {"proposals": [{"proposal_id": name, "kind": "fact_write", "rationale": "r", "change": change}]}


def test_an_id_that_a_hidden_proposal_has_is_there_to_be_given(place: JudgedStore) -> None:
    """Whoever may not see a proposal is answered, and shown, as if it were not there."""

    def hidden(name: str) -> Plain:
        return fact(name, f"Mara gets {WORD}.", privacy="subject_private")

    def told(name: str) -> list[Plain]:
        asked = [
            ask(place, "panel", "evolve.propose", fact(name, "Mara is well.")),
            ask(place, "panel", "evolve.propose", fact(name, "Mara is well.")),
            ask(place, "panel", "evolve.list", {"state": "all"})["proposals"][0],
            ask(place, "panel", "evolve.preview", {"proposal_id": name}),
        ]
        assert refused(place, "panel", "evolve.propose", fact(name, "Mara is ill.")) == "conflict"
        asked.append(ask(place, "panel", "evolve.submit", {"proposal_ids": [name]}))
        asked.append(ask(place, "panel", "governance.list", {"what": "candidates"})["candidates"][-1])
        return [json.loads(steady(each).replace(name, "NAME")) for each in asked]

    ask(place, "agent", "evolve.propose", hidden("p1"))
    guesses = [ask(place, "panel", "evolve.propose", hidden(name)) for name in ("p1", "p2", "p2")]
    assert [each["proposals"][0]["outcome"] for each in guesses] == ["proposed"] * 3
    assert len({steady(each).replace("p1", "p2") for each in guesses}) == 1
    first = told("p1")
    assert [each["proposals"][0]["outcome"] for each in first[:2]] == ["proposed", "unchanged"]
    assert first == told("p2") == told("p3")
    rows = ask(place, "panel", "event_log.read", {"topics": ["memory"]})["rows"]
    assert {each["subject"].get("proposal_id") for each in rows} - {None} == {"p1", "p2", "p3"}


def steady(report: Plain) -> str:
    """Without times, numbers of events and what is drawn at random."""
    return re.sub(r'"(\w*_at|at|event_id|waiting_id|since)": ("[^"]*"|\d+)', '"\\1": 0', json.dumps(report))


def test_who_sees_both_proposals_of_a_name_has_one_for_each(place: JudgedStore) -> None:
    ask(place, "agent", "evolve.propose", fact("p1", f"Mara gets {WORD}.", privacy="subject_private"))
    ask(place, "panel", "evolve.propose", fact("p1", "Mara is well."))
    listed = ask(place, "agent", "evolve.list", {"state": "all"})["proposals"]
    later, first = (each["proposal_id"] for each in listed)
    assert first == "p1" and later.startswith("p1~")
    assert WORD in json.dumps(ask(place, "agent", "evolve.preview", {"proposal_id": "p1"})["diffs"])
    assert "is well" in json.dumps(ask(place, "agent", "evolve.preview", {"proposal_id": later})["diffs"])
    assert refused(place, "agent", "evolve.propose", fact("p1", "Mara is well.")) == "conflict"
    ask(place, "agent", "evolve.submit", {"proposal_ids": [later], "decision": "withdraw"})
    (mine,) = ask(place, "panel", "evolve.list", {"state": "all"})["proposals"]
    assert (mine["proposal_id"], mine["state"]) == ("p1", "dropped")
    long = "x" * 256
    ask(place, "agent", "evolve.propose", fact(long, f"Mara gets {WORD}.", privacy="subject_private"))
    ask(place, "panel", "evolve.propose", fact(long, "Mara is well."))
    (later, first) = (each["proposal_id"] for each in ask(place, "agent", "evolve.list", {"limit": 2})["proposals"])
    shown = ask(place, "agent", "evolve.preview", {"proposal_id": later})["proposal"]
    assert (first, shown["proposal_id"]) == (long, later)


def test_a_hidden_proposal_that_expires_is_not_counted(place: JudgedStore) -> None:
    ask(place, "agent", "evolve.propose", fact("p1", f"Mara gets {WORD}.", privacy="subject_private"))
    ask(place, "panel", "evolve.propose", fact("p2", "Mara is well."))
    place.sleep(place.days + 1)
    assert ask(place, "panel", "evolve.propose", fact("p3", "Mara is well."))["expired"] == 1


def test_a_write_drops_so_many_expired_proposals_and_hidden_ones_take_no_room(
    place: JudgedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(proposals, "MOST_DROPPED", 2, raising=False)
    for who, name, privacy in (("agent", "h", "subject_private"), ("panel", "p", "shared_with_subject")):
        for number in range(3):
            ask(place, who, "evolve.propose", fact(f"{name}{number}", f"Mara gets {WORD}.", privacy=privacy))
    place.sleep(place.days + 1)
    left: list[set[str]] = []
    for number, expired in enumerate((2, 1, 0)):
        assert ask(place, "panel", "evolve.propose", fact(f"new{number}", "Mara is well."))["expired"] == expired
        left.append({each["proposal_id"] for each in ask(place, "agent", "evolve.list", {})["proposals"]})
    assert left == [{"p2", "h2", "new0"}, {"new0", "new1"}, {"new0", "new1", "new2"}]


def test_a_diff_shows_no_more_of_the_fact_beside_a_new_one_than_the_view_does(place: JudgedStore) -> None:
    proposed(place)
    change = {"content": "Mara is well.", "topic": "health", "authority": "user_asserted"}
    made = {"proposal_id": "mine", "kind": "fact_write", "rationale": "r", "change": change}
    ask(place, "agent", "evolve.propose", {"proposals": [made]})
    assert WORD in json.dumps(ask(place, "agent", "evolve.preview", {"proposal_id": "mine"}))
    as_host = ask(place, "agent", "evolve.preview", {"proposal_id": "mine", "view": "host_ui"})
    assert WORD not in json.dumps(as_host) and as_host["verdict"]["superseded_ref"] is None


def test_proposals_leave_no_word_in_the_log_the_stored_answers_and_their_own_table(place: JudgedStore) -> None:
    proposed(place)
    made = {"proposal_id": "again", "kind": "fact_write", "rationale": WORD,
            "change": {"content": f"x {WORD}", "authority": "user_asserted"}}  # fmt: skip
    ask(place, "agent", "evolve.propose", {"proposals": [made]}, key="k1")
    ask(place, "agent", "evolve.submit", {"proposal_ids": ["again"]}, key="k2")
    ask(place, "agent", "evolve.submit", {"proposal_ids": ["new"], "decision": "withdraw"}, key="k3")
    for table in WORDLESS:
        for row in place.rows(f"SELECT * FROM {table}"):
            text = " ".join(each.decode("latin-1") if isinstance(each, bytes) else str(each) for each in row)
            assert WORD not in text, table


def test_a_repeated_submission_is_answered_as_the_first_was(place: JudgedStore) -> None:
    proposed(place)
    first = ask(place, "agent", "evolve.submit", {"proposal_ids": ["shared"]}, key="k")
    again = ask(place, "agent", "evolve.submit", {"proposal_ids": ["shared"]}, key="k")
    assert again["outcomes"] == first["outcomes"]
    assert place.facts()[0]["revision"] <= 2
