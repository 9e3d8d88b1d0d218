"""The private plane: what is kept sealed for its owner."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

from beetle.contracts.continuity_records import Here, PrivateRecord
from beetle.contracts.errors import IntegrityViolation, PrivacyDenied
from beetle.contracts.refs import format_ref
from beetle.contracts.transcript_repair import Problem
from beetle.named_tuple import NamedTuple
from beetle.runtime.host.identity import Keys, unseal
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes.forgetting import Forgetting, Forgotten, Gone, Kind, Known, Selecting
from beetle.runtime.planes.gathering import Gathering
from beetle.runtime.planes.plane import Exported, Named, Plane, Verified
from beetle.runtime.planes.sealed_items import content_of, of_item, of_space, of_waiting
from beetle.store import candidates, continuity, continuity_write, forgetting, private, repair
from beetle.store.engine.transaction import Reading
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.event_places import Matter
from beetle.store.private import ItemRow
from beetle.store.verify import Finding

NAME = "private"
FINDINGS = 100


def _items(invocation: Invocation, tx: Reading) -> tuple[int, list[Finding]]:
    """Open every item of every space, and every text that waits sealed: how many there are, and those that do not open.

    Without a usable identity nothing can be opened, and only items whose space has no key are found.
    """
    findings: list[Finding] = []
    if private.recorded_check(tx) == private.UNKNOWN_CHECK:
        findings.append(Finding("private", "the device identity", "what meta has recorded of it is damaged"))
    count = 0
    keys: Keys | None = None
    opened: dict[str, bytes | None] = {}
    for each in _sealed(tx):
        # Loads what opens a seal: only where there is one.
        keys = keys if count else invocation.shared.identity.keys()
        count += 1
        if (problem := _problem(keys, opened, each)) is not None and len(findings) < FINDINGS:
            findings.append(Finding("private", each.what, problem))
    return count, findings


class _Sealed(NamedTuple):
    """Something sealed: its name, its space and the space's key, what it is bound to."""

    what: str
    memory_space_id: str
    wrapped: bytes | None
    bound: bytes
    sealed: bytes


def _sealed(tx: Reading) -> Iterator[_Sealed]:
    for item in private.all_items(tx):
        bound = of_item(item.memory_space_id, item.record_id, item.plane)
        yield _Sealed(f"record {item.record_id}", item.memory_space_id, item.wrapped, bound, item.sealed)
    for text in candidates.sealed_texts(tx):
        bound = of_waiting(text.memory_space_id, text.waiting_id)
        yield _Sealed(f"candidate {text.waiting_id}", text.memory_space_id, text.wrapped, bound, text.sealed)


def _problem(keys: Keys | None, opened: dict[str, bytes | None], each: _Sealed) -> str | None:
    """Why something does not open; `opened` keeps the keys of the spaces that were met."""
    if each.wrapped is None:
        return "its space has no key"
    if keys is None:
        return None
    where = each.memory_space_id
    if where not in opened:
        opened[where] = unseal(keys.wrapping, each.wrapped, of_space(where))
    key = opened[where]
    return "does not open with its key" if key is None or unseal(key, each.sealed, each.bound) is None else None


def _closed(tx: Reading) -> dict[str, int]:
    """What former identities have sealed: it stays closed, and is no damage."""
    found = private.sealed_counts(tx)
    closed = found.closed_items + found.closed_texts
    return {"closed": closed} if closed else {}


def _record_problem(tx: Reading, space: int, derived: str) -> Problem | None:
    return None if repair.private_is_there(tx, space, derived.partition(":")[2]) else "record_gone"


def _matter(tx: Reading, space: int, derived: str) -> Matter:
    del tx, space, derived
    return "sealed"


def _gather(gathering: Gathering, space: int) -> dict[str, Any]:
    """Private items; the gathering knows which from then on."""
    rows = continuity.items(gathering.tx, space, gathering.conversation, of_chat=gathering.chat is not None)
    if gathering.sort == "public":
        gathering.leave_out("private_items", len(rows) * gathering.sight.sealed)
        return {}
    found: list[PrivateRecord] = []
    for row in rows:
        if row.closed and gathering.sort == "private":
            gathering.leave_out("closed")
            continue
        sources = [gathering.source(text) for text in continuity.item_derived(gathering.tx, space, row)]
        kept = tuple(each for each in sources if each is not None)
        if gathering.chat is not None and not any(isinstance(each, Here) for each in kept):
            # Nothing of what ties it to this chat goes along.
            gathering.leave_out("private_items")
            continue
        content = None if gathering.opened is None or row.closed else gathering.opened.item(row)
        gathering.spend(len(content or ""))
        gathering.items.append(row.record_id)
        found.append(
            PrivateRecord(
                record_id=row.record_id, candidate_id=row.candidate_id, plane=cast(Any, row.plane),
                privacy=cast(Any, row.privacy), authority=cast(Any, row.authority), state=cast(Any, row.state),
                at=row.at, content=content, derived=kept,
            )
        )  # fmt: skip
    return {"private": tuple(found)}


# Erasure.


def _select(asked: Forgetting) -> None:
    """The sealed items that go; what they say is read only for who may read it."""

    def is_meant(row: ItemRow) -> bool:
        if not asked.sight.sealed or asked.request.query is None:
            return asked.request.whole_space
        try:
            return asked.words.are_in(content_of(asked.invocation, asked.tx, asked.space, row))
        except (IntegrityViolation, PrivacyDenied):
            asked.found.keep(ITEM.counted_as, "unreadable", format_ref(row.plane, row.record_id))
            return False

    _take(asked, is_meant)


def _take(asked: Selecting, is_meant: Callable[[ItemRow], bool] = lambda row: False) -> None:
    found, resting, after = asked.found, asked.resting.alone, 0
    while rows := private.list_items(asked.tx, asked.space, after, None, 500):
        after = rows[-1].item
        for row in rows:
            if format_ref(row.plane, row.record_id) not in resting and not is_meant(row):
                continue
            if asked.sight.sealed:
                found.add(ITEM, row.item, _as_known(row.record_id, row.plane))
            else:
                found.hide()


def _known(invocation: Invocation, tx: Reading, space: int, key: int) -> Known | None:
    del invocation
    item = forgetting.item_by_key(tx, space, key)
    return None if item is None else _as_known(*item[:2])


def _as_known(record_id: str, plane: str) -> Known:
    return Known((record_id,), matter="sealed", ref=format_ref(plane, record_id))


def _erase(invocation: Invocation, tx: WriteTransaction, space: int, key: int, authority: str | None) -> Gone | None:
    del authority
    item = forgetting.item_by_key(tx, space, key)
    if item is None:
        return None
    record_id, plane, digest = item
    continuity_write.remove_item(tx, space, record_id, plane)
    tx.log(invocation.event("memory", "private_forgotten", "sealed", record_id=record_id, target=plane))
    return Gone([digest])


ITEM = Kind("private", "private_items", 80, _known, _erase)

PLANE = Plane(
    NAME,
    verified=Verified(rows=_closed, opened={"private_items": _items}),
    named=Named(("private_garden", "soul_candidate"), _record_problem, matter=_matter),
    forgotten=Forgotten(50, _select, (ITEM,), _take),
    exported=Exported(40, _gather),
)
