"""transcript.export: what may leave the device, in pages; private material only for who may see the raw view."""

from __future__ import annotations

from typing import Any

import pytest

from tests.building import CONVERSATION, contents, lifecycle, message, talk, turn
from tests.conformance.doors import Door, InProcess, Plain

REFS = [
    {"kind": "task", "ref_id": "out", "label": "out label", "visibility": ["export"]},
    {"kind": "task", "ref_id": "in", "label": "in label", "visibility": ["host_ui", "model_context"]},
]
ATTRS = [
    {"key": "out", "value": "may go", "visibility": ["export"], "export_allowed": True},
    {"key": "stays", "value": "may not", "visibility": ["export"], "export_allowed": False},
    {"key": "ui", "value": "nor this", "visibility": ["host_ui"], "export_allowed": True},
]
KINDS = ("shared", "private", "soul", "backend", "operator")


def export(door: Door, **more: Any) -> Plain:
    return door.call("transcript.export", {"conversation": CONVERSATION, **more})


def prepared(door: Door) -> None:
    every = [message(kind, f"{kind} words", visibility=kind) for kind in KINDS]
    door.prepare(
        "transcript.commit",
        talk(turn("t1", "said aloud", host_refs=REFS, attrs=ATTRS), turn("t2", *every), turn("t3", "masked words")),
    )
    door.prepare("transcript.lifecycle", {
        "conversation": CONVERSATION, "action": "mask", "turn_ids": ["t3"], "reason": "a case asked for it",
    })  # fmt: skip


def test_an_export_shows_what_is_export_visible_and_nothing_else(door: Door) -> None:
    prepared(door)
    report = export(door)
    assert (report["view"], report["include_private"], report["has_more"]) == ("export", False, False)
    assert contents(report) == ["said aloud", "shared words", None, None, None, None, None]
    first = report["turns"][0]
    assert [(each["ref_id"], each["label"]) for each in first["host_refs"]] == [("out", None)]
    assert [(each["key"], each["value"]) for each in first["attrs"]] == [("out", "may go")]
    fields = sorted(each["field"] for each in report["redactions"] if each["turn_id"] == "t1")
    assert fields == ["HostRefLabel", "attr", "attr", "host_ref"]
    audit = {"messages_redacted": 5, "host_refs_redacted": 1, "labels_redacted": 1, "attrs_redacted": 2}
    assert report["audit"] == audit
    assert export(door, view="export")["turns"] == report["turns"]


@pytest.mark.parametrize("view", ["raw_owner", "host_ui", "operator_audit", "model_context"])
def test_an_export_has_no_other_view(door: Door, view: str) -> None:
    prepared(door)
    error = door.refused("invalid_request", "transcript.export", {"conversation": CONVERSATION, "view": view})
    assert "$.args.view" in error.message


def test_private_material_leaves_only_with_who_may_see_the_raw_view(door: Door) -> None:
    prepared(door)
    if "raw_owner" not in door.views:
        args = {"conversation": CONVERSATION, "include_private": True}
        error = door.refused("privacy_denied", "transcript.export", args)
        assert error.hint and "words" not in error.message
        return
    report = export(door, include_private=True)
    assert report["include_private"] is True
    assert contents(report) == ["said aloud", "shared words", "private words", "soul words", None, None, None]
    assert [each["reason"] for each in report["redactions"] if each["field"] == "content"] == [
        "backend", "operator", "masked"
    ]  # fmt: skip
    lifecycle(door, "delete_raw", "t2")
    assert contents(export(door, include_private=True)) == ["said aloud"] + [None] * 6


def test_an_export_comes_in_pages_that_join_without_a_seam(door: Door) -> None:
    door.prepare("transcript.commit", talk(*(turn(f"t{n}", f"number {n}") for n in range(7))))
    seen: list[str | None] = []
    more: dict[str, str] = {}
    while True:
        page = export(door, limit=3, **more)
        seen += contents(page)
        assert page["has_more"] is (page["next_cursor"] is not None)
        if not page["has_more"]:
            break
        more = {"cursor": page["next_cursor"]}
    assert seen == [f"number {n}" for n in range(7)]
    other = {"channel_id": "local", "conversation_id": "nowhere"}
    door.refused("not_found", "transcript.export", {"conversation": other})


def test_a_cursor_of_a_public_export_does_not_open_a_private_one(in_process: InProcess) -> None:
    in_process.prepare("transcript.commit", talk(*(turn(f"t{n}", f"number {n}") for n in range(3))))
    cursor = export(in_process, limit=1)["next_cursor"]
    args = {"conversation": CONVERSATION, "limit": 1, "cursor": cursor, "include_private": True}
    in_process.refused("invalid_request", "transcript.export", args)
