"""The redaction gate: what each view withholds, and that nothing marked slips past it in any report."""

from __future__ import annotations

import functools
import types
import typing
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET, Struct, UnsetType

from beetle.contracts.codec import pack, unpack
from beetle.contracts.common import Report
from beetle.contracts.control import HelloReport
from beetle.contracts.fields import Open, Secret
from beetle.contracts.memory import MemoryInspectionReport, MemoryRecallReport, RecallHit, StoreState
from beetle.contracts.operations import OPERATIONS
from beetle.contracts.store import StoreOpenReport
from beetle.contracts.transcript import (
    ActorView,
    AttrView,
    DeletedContent,
    HostRefView,
    MemoryTranscriptReplayReport,
    RedactedTranscriptSlice,
    TranscriptMessage,
    TranscriptTurn,
)
from beetle.runtime.pipeline.first_reports import kept_form
from beetle.runtime.pipeline.views import (
    Viewer,
    field_rules,
    reveal,
    sanitize_refs,
    visible_kinds,
    withheld,
)

MODEST = settings(deadline=None, max_examples=15)
KINDS = ("shared", "private", "soul", "backend", "operator")
STATES = ("live", "masked", "deleted")
VIEWS = ("raw_owner", "model_context", "host_ui", "operator_audit", "export")
CANARY = "canary"
MOST = 10_000

# Who sees live content of a kind, by view; own: the space's own agent, include: an export that includes private matter.
SEEN = {
    "shared": {"raw_owner", "model_context", "host_ui", "export"},
    "private": {"raw_owner", "model_context+own", "export+include"},
    "soul": {"raw_owner", "export+include"},
    "backend": {"raw_owner", "operator_audit"},
    "operator": {"raw_owner", "operator_audit"},
}
VIEWERS = [
    Viewer(view=view, own_agent=own, operator=operator, include_private=include)
    for view in VIEWS
    for own in (False, True)
    for operator in (False, True)
    for include in (False, True)
]
viewers = st.sampled_from(VIEWERS)


def may_see(kind: str, state: str, viewer: Viewer) -> bool:
    """The table of the specification, said again."""
    if state == "deleted":
        return False
    if state == "masked":
        return viewer.view == "raw_owner"
    ways = {viewer.view}
    ways |= {f"{viewer.view}+own"} if viewer.own_agent else set()
    ways |= {f"{viewer.view}+include"} if viewer.include_private else set()
    return bool(SEEN[kind] & ways)


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_withheld_follows_the_table(kind: str, state: str) -> None:
    for viewer in VIEWERS:
        assert (withheld(kind, state, viewer) is None) is may_see(kind, state, viewer), viewer
        assert (kind in visible_kinds(viewer)) is may_see(kind, "live", viewer)


@pytest.mark.parametrize(("kind", "state"), [("", "live"), ("public", "live"), ("shared", ""), ("shared", "archived")])
def test_what_cannot_be_placed_in_the_table_is_withheld(kind: str, state: str) -> None:
    for viewer in VIEWERS:
        if viewer.view != "raw_owner":
            assert withheld(kind, state, viewer) is not None


def filled(hint: Any, name: str, depth: int, draw: Any) -> Any:
    """A value of a type with a canary in every text; unions take their fullest side."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Annotated:
        return filled(args[0], name, depth, draw)
    if origin in (typing.Union, types.UnionType):
        return filled(next(each for each in args if each not in (types.NoneType, UnsetType)), name, depth, draw)
    if origin is typing.Literal:
        return draw(st.sampled_from(args))
    if origin is tuple:
        return tuple(filled(args[0], name, depth + 1, draw) for _ in range(2 if depth < 3 else 1))
    if origin is dict:
        return {"key": filled(args[1], name, depth + 1, draw)}
    if isinstance(hint, type) and issubclass(hint, Struct):
        return build(hint, depth + 1, draw)
    word = f"{CANARY}:{name}"
    plain = {str: word, bytes: word.encode(), bool: True, int: 7, float: 0.5, Any: word}
    return plain[hint]


@functools.cache
def hints_of(kind: type[Struct]) -> dict[str, Any]:
    return typing.get_type_hints(kind, include_extras=True)


def build(kind: type[Struct], depth: int, draw: Any) -> Struct:
    """A struct whose every text names its own struct and field."""
    hints = hints_of(kind)
    values = {name: filled(hints[name], f"{kind.__name__}.{name}", depth, draw) for name in kind.__struct_fields__}
    if kind is TranscriptMessage:
        values["redacted"] = UNSET
        values["message_id"] = f"m{draw(st.integers(0, 10**9))}"
    if kind is AttrView:
        values["message_id"] = None
    if kind in (AttrView, HostRefView):
        values["visibility"] = tuple(draw(st.lists(st.sampled_from(VIEWS[1:]), max_size=4)))
    return kind(**values)


REPORTS = sorted({row.report for row in OPERATIONS} | {StoreOpenReport}, key=lambda kind: kind.__name__)


def leaks(value: Any, viewer: Viewer) -> list[str]:
    """Marked fields that still hold something the viewer may not see."""
    found: list[str] = []
    if isinstance(value, Struct):
        for rule in field_rules(type(value)):
            held = getattr(value, rule.name)
            if held is None or held is UNSET:
                continue
            if forbidden(rule.sensitivity, value, viewer):
                found.append(f"{type(value).__name__}.{rule.name}")
            found += leaks(held, viewer)
    elif isinstance(value, tuple | list):
        found += [each for item in value for each in leaks(item, viewer)]
    elif isinstance(value, dict):
        found += [each for item in value.values() for each in leaks(item, viewer)]
    return found


def forbidden(sensitivity: str, holder: Struct, viewer: Viewer) -> bool:
    if sensitivity == "content":
        # The speaker of a message that may be seen stands in a turn, which is judged as a whole.
        return viewer.view == "operator_audit" and not isinstance(holder, ActorView)
    if sensitivity == "operator":
        return not viewer.operator
    if sensitivity != "evidence":
        return False
    if isinstance(holder, HostRefView):
        return viewer.view not in ("raw_owner", "host_ui")
    if isinstance(holder, AttrView):
        return viewer.view != "raw_owner" and viewer.view not in holder.visibility
    return not may_see(holder.visibility, holder.state, viewer)  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", REPORTS, ids=lambda kind: kind.__name__)
@MODEST
@given(data=st.data(), viewer=viewers)
def test_no_report_lets_a_marked_field_through_where_the_table_says_no(
    kind: type[Struct], data: st.DataObject, viewer: Viewer
) -> None:
    report = build(kind, 0, data.draw)
    shown = reveal(report, viewer, MOST)
    assert leaks(shown, viewer) == []
    assert type(shown) is kind
    # What was taken out leaves a report that a client can read.
    assert unpack(pack(shown), kind) == shown


@pytest.mark.parametrize("kind", REPORTS, ids=lambda kind: kind.__name__)
@MODEST
@given(data=st.data())
def test_open_fields_are_never_touched(kind: type[Struct], data: st.DataObject) -> None:
    report = build(kind, 0, data.draw)
    shown = reveal(report, Viewer(view="operator_audit"), MOST)
    gate = (
        {"turns", "redactions", "audit", "profile_budget_applied"}
        if isinstance(report, RedactedTranscriptSlice)
        else set()
    )
    for rule in field_rules(kind):
        if rule.sensitivity == "open" and not rule.nested and rule.name not in gate:
            assert getattr(shown, rule.name) == getattr(report, rule.name)


@MODEST
@given(data=st.data(), viewer=viewers)
def test_the_texts_of_a_turn_are_gone_where_its_message_may_not_be_seen(data: st.DataObject, viewer: Viewer) -> None:
    report = typing.cast(MemoryTranscriptReplayReport, build(MemoryTranscriptReplayReport, 0, data.draw))
    shown = reveal(report, viewer, MOST)
    hidden = 0
    for turn, before in zip(shown.turns, report.turns, strict=True):
        reasons = [withheld(m.visibility, m.state, viewer) for m in before.messages]
        for message, reason in zip(turn.messages, reasons, strict=True):
            assert (message.content is UNSET) is (reason is not None)
            assert (message.redacted is UNSET) is (reason is None)
            assert message.digest is UNSET and message.deletion is UNSET
            hidden += reason is not None
        if viewer.view != "raw_owner" and any(reasons):
            assert turn.attrs == ()
            assert all(ref.label is None for ref in turn.host_refs)
    assert shown.audit.messages_redacted == hidden
    total = shown.audit
    counted = total.messages_redacted + total.host_refs_redacted + total.labels_redacted + total.attrs_redacted
    assert len(shown.redactions) == counted


def message(message_id: str, **more: Any) -> TranscriptMessage:
    given: dict[str, Any] = {
        "role": "user", "at": "2024-05-01T10:00:00Z", "visibility": "shared", "state": "live", "content": CANARY,
        "length": len(CANARY), "digest": "d1", "actor": ActorView(speaker="Ana"), **more,
    }  # fmt: skip
    return TranscriptMessage(message_id=message_id, **given)


def slice_of(*messages: TranscriptMessage, **more: Any) -> MemoryTranscriptReplayReport:
    turn = TranscriptTurn(turn_id="t", sequence=1, at="2024-05-01T10:00:00Z", archived=False, messages=messages, **more)
    return MemoryTranscriptReplayReport(view="host_ui", turns=(turn,))


@pytest.mark.parametrize(
    ("kind", "state", "told"),
    [
        ("shared", "live", {"digest", "length"}),
        ("private", "live", {"digest"}),
        ("soul", "live", set()),
        ("shared", "masked", {"digest"}),
        ("backend", "masked", {"digest"}),
        ("soul", "masked", set()),
        ("shared", "deleted", {"deleted_at", "deleted_by"}),
    ],
)
def test_the_marker_tells_an_audit_what_its_cell_says_and_other_views_nothing(
    kind: str, state: str, told: set[str]
) -> None:
    gone = DeletedContent(at="2024-06-01T00:00:00Z", by="operator") if state == "deleted" else UNSET
    report = slice_of(message("m", visibility=kind, state=state, deletion=gone))
    for view, expected in (("operator_audit", told), ("host_ui", set()), ("model_context", set())):
        shown = reveal(report, Viewer(view=view), MOST).turns[0].messages[0]
        if shown.redacted is UNSET:
            assert may_see(kind, state, Viewer(view=view))
            continue
        marker = msgspec.to_builtins(shown.redacted)
        assert marker.pop("reason")
        assert set(marker) == expected, view
        assert shown.actor is None and shown.length is UNSET


def test_a_clipped_list_of_redactions_says_so_and_counts_everything() -> None:
    report = slice_of(*(message(f"m{n}", visibility="soul") for n in range(5)))
    shown = reveal(report, Viewer(view="host_ui"), 2)
    assert len(shown.redactions) == 2
    assert shown.audit.messages_redacted == 5
    assert shown.profile_budget_applied is True
    assert reveal(report, Viewer(view="host_ui"), 5).profile_budget_applied is False
    assert all(each.content is UNSET for each in shown.turns[0].messages)


def test_an_attr_of_a_message_is_judged_by_that_message_and_of_a_turn_by_its_worst() -> None:
    attrs = tuple(
        AttrView(key=f"k{n}", value="v", message_id=target, visibility=("host_ui",))
        for n, target in enumerate((None, "open", "closed", "of another turn"))
    )
    messages = (message("open"), message("closed", visibility="private"))
    shown = reveal(slice_of(*messages, attrs=attrs), Viewer(view="host_ui"), MOST).turns[0]
    assert [each.key for each in shown.attrs] == ["k1"]
    shown = reveal(slice_of(message("open"), attrs=attrs[:2]), Viewer(view="host_ui"), MOST).turns[0]
    assert [each.key for each in shown.attrs] == ["k0", "k1"]


def test_refs_that_a_lifecycle_report_lists_lose_their_labels_outside_owner_approved_views() -> None:
    refs = (
        HostRefView(kind="task", ref_id="1", label=CANARY, visibility=("host_ui", "model_context")),
        HostRefView(kind="task", ref_id="2", visibility=("export",)),
    )
    for view, labels in (("raw_owner", [CANARY, None]), ("host_ui", [CANARY]), ("model_context", [None])):
        seen, redactions = sanitize_refs(refs, "t", Viewer(view=view))
        assert [each.label for each in seen] == labels
        assert len(redactions) == 2 - len(seen) + (view == "model_context")


def test_operator_fields_are_for_operators() -> None:
    state = StoreState(path="/secret/path", bytes=1, wal_bytes=1, pages=1, ceiling_bytes=1, schema=1, backend="sqlite")
    for operator in (False, True):
        shown = reveal(state, Viewer(view="host_ui", operator=operator), MOST)
        assert shown.path == ("/secret/path" if operator else None)
        assert (shown.bytes, shown.ceiling_bytes) == (1 if operator else None, 1)


def test_evidence_without_a_visibility_beside_it_cannot_be_proven_visible() -> None:
    refs = HostRefView(kind="task", ref_id="1", label=CANARY, visibility=("host_ui",))
    for viewer in VIEWERS:
        assert reveal(refs, viewer, MOST).label is None


def test_a_report_with_nothing_to_hide_is_handed_on_as_it_is() -> None:
    hit = RecallHit(plane="evidence", ref="r", score=1.0, excerpt="x", why=())
    report = MemoryRecallReport(hits=(hit,))
    assert reveal(report, Viewer(view="model_context"), MOST) is report
    assert reveal(report, Viewer(view="operator_audit"), MOST).hits[0].excerpt is None


def test_a_one_time_secret_is_not_kept() -> None:
    class Minted(Report, frozen=True, kw_only=True):
        """A report that mints a key."""

        app_key: Secret[str | None]

    assert kept_form(Minted(app_key="k")).app_key is None
    assert reveal(Minted(app_key="k"), Viewer(view="host_ui"), MOST).app_key == "k"
    assert {MemoryInspectionReport, HelloReport} <= set(REPORTS)


@pytest.mark.parametrize(
    ("view", "kind", "state", "reason"),
    [
        ("operator_audit", "shared", "live", "digest_only"),
        ("operator_audit", "private", "live", "digest_only"),
        ("operator_audit", "soul", "live", "soul"),
        ("operator_audit", "soul", "masked", "masked"),
        ("host_ui", "private", "live", "private"),
        ("model_context", "soul", "live", "soul"),
        ("export", "backend", "live", "backend"),
        ("raw_owner", "shared", "deleted", "raw_deleted"),
        ("host_ui", "soul", "deleted", "raw_deleted"),
    ],
)
def test_what_is_withheld_says_why(view: str, kind: str, state: str, reason: str) -> None:
    assert withheld(kind, state, Viewer(view=view)) == reason


def test_structs_in_a_mapping_and_beside_each_other_are_judged_one_by_one() -> None:
    class Shelf(Report, frozen=True, kw_only=True):
        """Reports by name."""

        by_name: Open[dict[str, MemoryRecallReport]]
        rows: Open[tuple[MemoryRecallReport, ...]]

    bare = MemoryRecallReport(hits=())
    full = MemoryRecallReport(hits=(RecallHit(plane="evidence", ref="r", score=1.0, excerpt="secret", why=()),))
    shelf = Shelf(by_name={"bare": bare, "full": full}, rows=(bare, full))
    shown = reveal(shelf, Viewer(view="operator_audit"), MOST)
    assert shown.by_name["full"].hits[0].excerpt is None and shown.rows[1].hits[0].excerpt is None
    assert shown.by_name["bare"] == shown.rows[0] == bare
    assert "secret" not in str(shown) and "secret" in str(shelf)
