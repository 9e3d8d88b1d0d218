"""The visibility table of the specification, row by row, through every view that a door may ask for."""

from __future__ import annotations

import pytest

from tests.building import CONVERSATION, contents, message, replay, step, talk, turn
from tests.conformance.doors import Door, Plain

KINDS = ("shared", "private", "soul", "backend", "operator")
VIEWS = ("raw_owner", "model_context", "host_ui", "operator_audit", "export")
CANARY = "canary-pelican"

# yes: the content · no: a marker with a reason · audit: digest, length · digest: a digest · own: the space's own agent
# · fact: that it was deleted, when and by whom
TABLE = {
    #            raw_owner, model_context, host_ui, operator_audit, export
    "shared": ("yes", "yes", "yes", "audit", "yes"),
    "private": ("yes", "own", "no", "digest", "no"),
    "soul": ("yes", "no", "no", "no", "no"),
    "backend": ("yes", "no", "no", "yes", "no"),
    "operator": ("yes", "no", "no", "yes", "no"),
    "masked": ("yes", "no", "no", "digest", "no"),
    "deleted": ("no", "no", "no", "fact", "no"),
}


def prepared(door: Door) -> None:
    """A turn for every visibility, and each of them masked and raw-deleted as well."""
    turns = [
        turn(f"{state}-{kind}", message(f"m-{state}-{kind}", f"{CANARY} {state} {kind}", visibility=kind))
        for state in ("live", "masked", "deleted")
        for kind in KINDS
    ]
    door.prepare("transcript.commit", talk(*turns))
    door.prepare("transcript.lifecycle", step("mask", *(f"masked-{kind}" for kind in KINDS)))
    door.prepare("transcript.lifecycle", step("delete_raw", *(f"deleted-{kind}" for kind in KINDS)))


def expected(row: str, view: str, door: Door) -> str:
    shown = TABLE[row][VIEWS.index(view)]
    return ("yes" if door.own_agent else "no") if shown == "own" else shown


def check(found: Plain, shown: str, content: str) -> None:
    """Whether a message stands as its cell of the table says."""
    if shown == "yes":
        assert found["content"] == content
        assert "redacted" not in found
        return
    assert "content" not in found
    assert found["actor"] is None
    marker = found["redacted"]
    assert marker.pop("reason")
    if shown == "audit":
        assert set(marker) == {"digest", "length"}
        assert marker["length"] == len(content)
    elif shown == "digest":
        assert set(marker) == {"digest"}
    elif shown == "fact":
        assert set(marker) == {"deleted_at", "deleted_by"}
    else:
        assert marker == {}


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_shows_of_each_message_what_its_row_of_the_table_says(door: Door, view: str) -> None:
    prepared(door)
    if view not in door.views:
        door.refused("privacy_denied", "transcript.replay", {"conversation": CONVERSATION, "view": view})
        return
    report = replay(door, view)
    assert report["view"] == view
    hidden = 0
    for one in report["turns"]:
        state, kind = one["turn_id"].split("-")
        (found,) = one["messages"]
        shown = expected(kind if state == "live" else state, view, door)
        if state == "masked" and kind == "soul" and shown == "digest":
            shown = "no"  # masking shows nothing that the live message would not
        check(found, shown, f"{CANARY} {state} {kind}")
        hidden += shown != "yes"
        assert found["role"] == "user" and found["at"] == "2024-05-01T10:00:00Z"
    assert report["audit"]["messages_redacted"] == hidden
    listed = [each for each in report["redactions"] if each["field"] == "content"]
    assert len(listed) == hidden
    assert all(each["reason"] and each["message_id"] == f"m-{each['turn_id']}" for each in listed)


def test_a_digest_tells_nothing_of_another_message_and_stays_as_it_is(door: Door) -> None:
    import hashlib

    door.prepare("transcript.commit", talk(turn("t1", "yes"), turn("t2", "yes"), turn("t3", "no")))
    marks = [one["messages"][0]["redacted"]["digest"] for one in replay(door, "operator_audit")["turns"]]
    assert len(set(marks)) == 3
    assert marks == [one["messages"][0]["redacted"]["digest"] for one in replay(door, "operator_audit")["turns"]]
    assert marks[0] not in {hashlib.new(name, b"yes").hexdigest() for name in ("sha256", "sha1", "md5")}


def test_what_recall_search_and_project_show_follows_the_same_table(door: Door) -> None:
    prepared(door)
    kinds = {"live shared"} | ({"live private"} if door.own_agent else set())
    recalled = door.call("memory.recall", {"query": CANARY, "limit": 50})
    assert {hit["excerpt"].removeprefix(f"{CANARY} ") for hit in recalled["hits"]} == kinds
    searched = door.call("transcript.search", {"query": CANARY, "view": "host_ui", "limit": 50})
    assert {hit["excerpt"].removeprefix(f"{CANARY} ") for hit in searched["hits"]} == {"live shared"}
    modelled = door.call("transcript.search", {"query": CANARY, "view": "model_context", "limit": 50})
    assert {hit["excerpt"].removeprefix(f"{CANARY} ") for hit in modelled["hits"]} == kinds
    block = door.call("memory.project", {"user_query": CANARY, "recent_messages_limit": 50})
    for state in ("live", "masked", "deleted"):
        for kind in KINDS:
            assert (f"{CANARY} {state} {kind}" in block["system_memory_block"]) is (f"{state} {kind}" in kinds)
    assert block["audit"]["withheld"] == 15 - len(kinds)


def test_a_view_without_content_cannot_be_searched(door: Door) -> None:
    door.prepare("transcript.commit", talk(turn("t1", "pelican")))
    door.refused("privacy_denied", "transcript.search", {"query": "pelican", "view": "operator_audit"})


REFS = [
    {"kind": "task", "ref_id": "host", "relation": "about", "label": "host label", "visibility": ["host_ui"]},
    {"kind": "task", "ref_id": "model", "label": "model label", "visibility": ["model_context", "export"]},
    {"kind": "task", "ref_id": "audit", "visibility": ["operator_audit"]},
    {"kind": "task", "ref_id": "none", "label": "nobody's label", "visibility": []},
]
SHOWN_REFS = {
    "raw_owner": {"host": "host label", "model": "model label", "audit": None, "none": "nobody's label"},
    "host_ui": {"host": "host label"},
    "model_context": {"model": None},
    "operator_audit": {"audit": None},
    "export": {"model": None},
}


@pytest.mark.parametrize("view", VIEWS)
def test_a_host_ref_stands_in_its_own_views_and_its_label_in_owner_approved_ones(door: Door, view: str) -> None:
    if view not in door.views:
        pytest.skip(f"{door.name} may not ask for {view}")
    door.prepare("transcript.commit", talk(turn("t1", "hello", host_refs=REFS)))
    report = replay(door, view)
    shown = {ref["ref_id"]: ref["label"] for ref in report["turns"][0]["host_refs"]}
    assert shown == SHOWN_REFS[view]
    withheld = [each["field"] for each in report["redactions"] if each["field"] != "content"]
    assert withheld.count("host_ref") == len(REFS) - len(shown) == report["audit"]["host_refs_redacted"]
    hidden = sum(1 for ref in REFS if ref["ref_id"] in shown and ref.get("label") and shown[ref["ref_id"]] is None)
    assert withheld.count("HostRefLabel") == hidden == report["audit"]["labels_redacted"]


ATTRS = [
    {"key": "ui", "value": "ui value", "visibility": ["host_ui"]},
    {"key": "model", "value": "model value", "visibility": ["model_context"], "target": {"message_id": "m1"}},
    {"key": "private", "value": "private value", "visibility": ["host_ui"], "target": {"message_id": "m2"}},
    {"key": "kept", "value": "kept in", "visibility": ["export"], "export_allowed": False},
    {"key": "out", "value": "taken out", "visibility": ["export"], "export_allowed": True},
]


@pytest.mark.parametrize(
    ("view", "keys"),
    [
        ("raw_owner", {"ui", "model", "private", "kept", "out"}),
        ("model_context", {"model"}),
        ("host_ui", set()),
        ("operator_audit", set()),
        ("export", set()),
    ],
)
def test_an_attr_is_as_private_as_what_it_hangs_on(door: Door, view: str, keys: set[str]) -> None:
    """The turn holds a private message, so what hangs on the whole turn is hidden where that message is."""
    if view not in door.views:
        pytest.skip(f"{door.name} may not ask for {view}")
    messages = (message("m1", "said aloud"), message("m2", "thought", visibility="private"))
    door.prepare("transcript.commit", talk(turn("t1", *messages, attrs=ATTRS)))
    report = replay(door, view)
    assert {attr["key"] for attr in report["turns"][0]["attrs"]} == keys
    assert report["audit"]["attrs_redacted"] == len(ATTRS) - len(keys)


@pytest.mark.parametrize(
    ("view", "keys"),
    [("host_ui", {"ui"}), ("model_context", {"model"}), ("export", {"out"}), ("operator_audit", set())],
)
def test_an_attr_of_shared_material_stands_in_its_own_views(door: Door, view: str, keys: set[str]) -> None:
    attrs = [each for each in ATTRS if each["key"] != "private"]
    door.prepare("transcript.commit", talk(turn("t1", message("m1", "said aloud"), attrs=attrs)))
    assert {attr["key"] for attr in replay(door, view)["turns"][0]["attrs"]} == keys


def test_a_label_and_an_attr_of_a_masked_turn_are_hidden_from_a_host(door: Door) -> None:
    attrs = [{"key": "k", "value": "v"}]
    refs = [{"kind": "task", "ref_id": "1", "label": "secret label"}]
    door.prepare("transcript.commit", talk(turn("t1", "hello", host_refs=refs, attrs=attrs)))
    door.prepare("transcript.lifecycle", step("mask", "t1"))
    report = replay(door)
    assert contents(report) == [None]
    assert report["turns"][0]["attrs"] == []
    assert [ref["label"] for ref in report["turns"][0]["host_refs"]] == [None]
    assert report["audit"] == {
        "messages_redacted": 1, "host_refs_redacted": 0, "labels_redacted": 1, "attrs_redacted": 1
    }  # fmt: skip


def test_speakers_of_material_that_a_caller_may_not_see_are_not_listed(door: Door) -> None:
    spoken = [
        message("a", "x", actor={"speaker": "Ana"}),
        message("b", "y", visibility="soul", actor={"speaker": "Ghost"}),
        message("c", "z", visibility="backend", actor={"speaker": "Engine"}),
    ]
    door.prepare("transcript.commit", talk(turn("t1", *spoken)))
    (listed,) = door.call("transcript.conversations", {})["conversations"]
    assert listed["speakers"] == ["Ana"]
