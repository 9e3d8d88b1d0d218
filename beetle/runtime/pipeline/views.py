"""The redaction gate: what a view may see, decided once, on every report.

The markers of `contracts/fields.py` say how a field is judged. Turns are judged as a whole, since a message, its attrs
and the turn's host refs hang together; everything else is walked field by field.
"""

from __future__ import annotations

import os
import re
import typing
from collections.abc import Iterable
from functools import lru_cache
from operator import is_
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

from msgspec import Struct

from beetle.contracts.codec import UNSET, replace
from beetle.contracts.common import Report
from beetle.contracts.errors import (
    BeetleError,
    SchemaMismatch,
    StorageFull,
    StoreCorrupt,
    StoreLocked,
    StoreReadOnly,
    from_wire,
)
from beetle.contracts.fields import Sensitivity
from beetle.contracts.names import ViewName
from beetle.contracts.transcript import (
    AttrView,
    HostRefView,
    Redacted,
    RedactedTranscriptSlice,
    TranscriptMessage,
    TranscriptRedactionReportItem,
    TranscriptReplayAudit,
    TranscriptTurn,
)
from beetle.named_tuple import NamedTuple
from beetle.runtime.host.caller import Caller

S = TypeVar("S", bound=Struct)

RawReport: TypeAlias = Report
"""What a handler makes: judged by no view yet."""
if TYPE_CHECKING:

    class RevealedReport(Report, frozen=True, kw_only=True):
        """A report as its caller may see it. `reveal` alone makes one, and nothing else may leave the dispatcher."""
else:
    # A type of its own for type checkers alone: it costs nothing at run time. A NewType of a struct crashes mypy 2.4.
    RevealedReport = Report

STORE = "the store"
PLACES = ("path", "store", "socket")
OF_THE_STORE = (StoreLocked, StorageFull, StoreReadOnly, StoreCorrupt, SchemaMismatch)
"""Errors that name the store's file, the `PLACES` among their details."""

OWNER_APPROVED: frozenset[ViewName] = frozenset({"raw_owner", "host_ui"})
"""Views in which a host ref's label may stand."""


class Viewer(NamedTuple):
    """Through what a report is seen: the view, whether the caller is the space's own agent, whether an operator."""

    view: ViewName
    own_agent: bool = False
    operator: bool = False
    include_private: bool = False


def withheld(visibility: str, state: str, viewer: Viewer) -> str | None:
    """Why a viewer may not see a message's content, or None when it may (the table of the specification)."""
    view = viewer.view
    if state == "deleted":
        return "raw_deleted"
    if view == "raw_owner":
        return None
    if state != "live":
        return "masked"
    if view == "operator_audit":
        if visibility in ("backend", "operator"):
            return None
        return "soul" if visibility == "soul" else "digest_only"
    if visibility == "shared":
        return None
    if view == "model_context" and visibility == "private" and viewer.own_agent:
        return None
    if view == "export" and visibility in ("private", "soul") and viewer.include_private:
        return None
    return visibility


def visible_kinds(viewer: Viewer) -> tuple[str, ...]:
    """Visibilities whose live content a viewer may see."""
    kinds = ("shared", "private", "soul", "backend", "operator")
    return tuple(kind for kind in kinds if withheld(kind, "live", viewer) is None)


def sees_all(
    kinds: Iterable[tuple[str, str]], refs: Iterable[tuple[tuple[str, ...], bool]], viewers: tuple[Viewer, ...]
) -> bool:
    """Whether each message and each host ref of a turn stands whole in the view of one of these viewers.

    Args:
        kinds: (visibility, state) of the messages.
        refs: the views of each ref, and whether it has a label.
    """
    kinds = list(kinds)
    if not all(any(withheld(*kind, viewer) is None for viewer in viewers) for kind in kinds):
        return False
    named = [viewer for viewer in viewers if all(withheld(*kind, viewer) is None for kind in kinds)]
    return all(
        any(_whole_ref(views, labelled, viewer, viewer in named) for viewer in viewers) for views, labelled in refs
    )


def _whole_ref(views: tuple[str, ...], labelled: bool, viewer: Viewer, shows_label: bool) -> bool:
    if viewer.view != "raw_owner" and viewer.view not in views:
        return False
    return not labelled or (shows_label and viewer.view in OWNER_APPROVED)


class _Withheld:
    """What the gate took out of one report."""

    def __init__(self) -> None:
        self.items: list[TranscriptRedactionReportItem] = []
        self.messages = 0
        self.refs = 0
        self.labels = 0
        self.attrs = 0
        self.clipped = False

    def add(self, turn_id: str, name: str, reason: str, message_id: str | None = None) -> None:
        self.items.append(
            TranscriptRedactionReportItem(turn_id=turn_id, field=name, reason=reason, message_id=message_id)
        )

    def audit(self) -> TranscriptReplayAudit:
        return TranscriptReplayAudit(
            messages_redacted=self.messages,
            host_refs_redacted=self.refs,
            labels_redacted=self.labels,
            attrs_redacted=self.attrs,
        )


def reveal(report: RawReport, viewer: Viewer, redaction_items: int, host_refs: int | None = None) -> RevealedReport:
    """The report as the viewer may see it.

    `redaction_items` bounds the list of redactions, never the redacting; `host_refs` the refs shown of each turn.
    """
    if not isinstance(report, RedactedTranscriptSlice):
        return cast(RevealedReport, _struct(report, viewer))
    taken = _Withheld()
    turns = tuple(_fewer_refs(_turn(turn, viewer, taken), host_refs, taken) for turn in report.turns)
    clipped = taken.clipped or len(taken.items) > redaction_items
    shown = replace(
        report,
        turns=turns,
        redactions=tuple(taken.items[:redaction_items]),
        audit=taken.audit(),
        profile_budget_applied=report.profile_budget_applied or clipped,
    )
    return cast(RevealedReport, shown)


def reveal_error(error: BeetleError, viewer: Caller, store: str) -> BeetleError:
    """The error as its caller may see it: where the store's files are, an operator alone is told."""
    if viewer.is_operator:
        return error
    # What stands in an error of the store as its file, and whatever else of its folder a reason may name.
    named = {error.details.get(name) for name in PLACES} if isinstance(error, OF_THE_STORE) else set[Any]()
    paths = {each for each in named if isinstance(each, str) and each not in ("", STORE)}
    for path in {os.path.abspath(store), os.path.realpath(store)} if os.path.isabs(store) else ():
        paths |= {path, os.path.dirname(path)} - {"/"}
    message, hint, details = (
        _without(each, sorted(paths, key=len, reverse=True)) for each in (error.message, error.hint, error.details)
    )
    if (message, hint, details) == (error.message, error.hint, error.details):
        return error
    return from_wire(error.key, message, hint, error.retryable, details)


def _without(value: Any, paths: list[str]) -> Any:
    """A value of an error with `the store` for each of these paths, and for what is named behind it."""
    if isinstance(value, str):
        for path in paths:
            value = re.sub(re.escape(path) + r"[^\s:;,'\"()]*", STORE, value)
        return value
    if isinstance(value, dict):
        return {name: _without(each, paths) for name, each in cast("dict[str, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_without(each, paths) for each in cast("list[Any]", value)]
    return value


def sanitize_turns(turns: Iterable[TranscriptTurn], viewer: Viewer) -> tuple[TranscriptTurn, ...]:
    """Turns as a view may see them, for what holds turns and is no report."""
    taken = _Withheld()
    return tuple(_turn(turn, viewer, taken) for turn in turns)


def sanitize_refs(
    refs: tuple[HostRefView, ...], turn_id: str, viewer: Viewer
) -> tuple[tuple[HostRefView, ...], tuple[TranscriptRedactionReportItem, ...]]:
    """Host refs as a view may see them, and what was taken out."""
    taken = _Withheld()
    seen = _refs(refs, turn_id, viewer, taken, hidden=None)
    return seen, tuple(taken.items)


def _turn(turn: TranscriptTurn, viewer: Viewer, taken: _Withheld) -> TranscriptTurn:
    judged = [(m, withheld(m.visibility, m.state, viewer)) for m in turn.messages]
    reasons: dict[str, str | None] = {}
    for message, reason in judged:
        # Should an id stand twice, what hangs on it is as private as the more private of the two.
        reasons[message.message_id] = reasons.get(message.message_id) or reason
    messages = tuple(_message(m, reason, turn.turn_id, viewer, taken) for m, reason in judged)
    # What hangs on the whole turn is as private as the most private of its messages.
    worst = next((reason for reason in reasons.values() if reason is not None), None)
    return replace(
        turn,
        messages=messages,
        host_refs=_refs(turn.host_refs, turn.turn_id, viewer, taken, hidden=worst),
        attrs=_attrs(turn, reasons, worst, viewer, taken),
    )


def _fewer_refs(turn: TranscriptTurn, most: int | None, taken: _Withheld) -> TranscriptTurn:
    """A turn that was written under a larger profile may have more refs than this one shows."""
    if most is None or len(turn.host_refs) <= most:
        return turn
    taken.clipped = True
    return replace(turn, host_refs=turn.host_refs[:most])


def _message(
    message: TranscriptMessage, reason: str | None, turn_id: str, viewer: Viewer, taken: _Withheld
) -> TranscriptMessage:
    if reason is None and message.content is UNSET:
        reason = "damaged"
    if reason is None:
        return replace(message, digest=UNSET, deletion=UNSET)
    taken.messages += 1
    taken.add(turn_id, "content", reason, message.message_id)
    audit = viewer.view == "operator_audit"
    # Soul material tells nothing of itself, masked or not; only what is shared tells its length as well.
    told = audit and message.state != "deleted" and message.visibility != "soul"
    deletion = message.deletion if audit else UNSET
    marker = Redacted(
        reason=reason,
        digest=message.digest if told else UNSET,
        length=message.length if told and (message.visibility, message.state) == ("shared", "live") else UNSET,
        deleted_at=UNSET if deletion is UNSET else deletion.at,
        deleted_by=UNSET if deletion is UNSET else deletion.by,
    )
    return replace(
        message,
        content=UNSET,
        tool_calls=UNSET,
        tool_result=UNSET,
        redacted=marker,
        actor=None,
        length=UNSET,
        digest=UNSET,
        deletion=UNSET,
    )


def _refs(
    refs: tuple[HostRefView, ...], turn_id: str, viewer: Viewer, taken: _Withheld, hidden: str | None
) -> tuple[HostRefView, ...]:
    seen: list[HostRefView] = []
    for ref in refs:
        if viewer.view != "raw_owner" and viewer.view not in ref.visibility:
            taken.refs += 1
            taken.add(turn_id, "host_ref", "not_in_view")
            continue
        if ref.label is not None and (viewer.view not in OWNER_APPROVED or hidden is not None):
            taken.labels += 1
            taken.add(turn_id, "HostRefLabel", hidden or "not_in_view")
            ref = replace(ref, label=None)
        seen.append(ref)
    return tuple(seen)


def _attrs(
    turn: TranscriptTurn, reasons: dict[str, str | None], worst: str | None, viewer: Viewer, taken: _Withheld
) -> tuple[AttrView, ...]:
    if viewer.view == "raw_owner":
        return turn.attrs
    seen: list[AttrView] = []
    for attr in turn.attrs:
        reason = worst if attr.message_id is None else reasons.get(attr.message_id, worst)
        if viewer.view not in attr.visibility or (viewer.view == "export" and not attr.export_allowed):
            reason = reason or "not_in_view"
        if reason is None:
            seen.append(attr)
            continue
        taken.attrs += 1
        taken.add(turn.turn_id, "attr", reason, attr.message_id)
    return tuple(seen)


class FieldRule(NamedTuple):
    """How one field of a report is judged; `nested` when structs may stand in it."""

    name: str
    sensitivity: Sensitivity
    nested: bool


@lru_cache(maxsize=512)
def field_rules(kind: type[Struct]) -> tuple[FieldRule, ...]:
    """The rules of a struct's fields, from their markers.

    Raises:
        TypeError: a field has no marker; a test calls this for every report.
    """
    hints = typing.get_type_hints(kind, include_extras=True)
    return tuple(
        FieldRule(name, _marker(kind, name, hints[name]), _holds_struct(hints[name]))
        for name in hints
        if name in kind.__struct_fields__
    )


def _marker(kind: type[Struct], name: str, hint: Any) -> Sensitivity:
    for extra in reversed(getattr(hint, "__metadata__", ())):
        marked: dict[str, Any] | None = getattr(extra, "extra", None)
        if marked and "sensitivity" in marked:
            return marked["sensitivity"]
    raise TypeError(f"{kind.__name__}.{name} has no sensitivity marker")


def _holds_struct(hint: Any) -> bool:
    if isinstance(hint, type) and issubclass(hint, Struct):
        return True
    return any(_holds_struct(part) for part in typing.get_args(hint))


@lru_cache(maxsize=512)
def _watched(kind: type[Struct]) -> tuple[FieldRule, ...]:
    """The fields that need a look: marked other than open, or holding structs."""
    return tuple(rule for rule in field_rules(kind) if rule.nested or rule.sensitivity != "open")


def _struct(value: S, viewer: Viewer) -> S:
    changes: dict[str, Any] = {}
    for rule in _watched(type(value)):
        found = getattr(value, rule.name)
        if found is None or found is UNSET:
            continue
        shown = None if _hidden(rule.sensitivity, value, viewer) else _value(found, viewer) if rule.nested else found
        if shown is not found:
            changes[rule.name] = shown
    return replace(value, **changes) if changes else value


def _hidden(sensitivity: Sensitivity, holder: Struct, viewer: Viewer) -> bool:
    if sensitivity == "content":
        return viewer.view == "operator_audit"
    if sensitivity == "operator":
        return not viewer.operator
    if sensitivity == "evidence":
        visibility, state = getattr(holder, "visibility", None), getattr(holder, "state", None)
        # A holder that does not say what it holds cannot be proven visible.
        return not isinstance(visibility, str) or withheld(visibility, state or "", viewer) is not None
    return False


def _value(value: Any, viewer: Viewer) -> Any:
    if isinstance(value, Struct):
        return _struct(value, viewer)
    if isinstance(value, tuple):
        items = typing.cast("tuple[Any, ...]", value)
        shown = tuple([_value(item, viewer) for item in items])
        return items if all(map(is_, items, shown)) else shown
    if isinstance(value, dict):
        entries = typing.cast("dict[str, Any]", value)
        return {key: _value(item, viewer) for key, item in entries.items()}
    return value
