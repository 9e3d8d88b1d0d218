"""Verifying a whole store: the event log, what each plane checks of its own, the recall index, the pages."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Final

from beetle.contracts.errors import IntegrityViolation
from beetle.contracts.progress import ProgressStep
from beetle.contracts.transcript_repair import Problem
from beetle.domain.chain import chain_hash
from beetle.runtime.areas.evidence import damage
from beetle.runtime.areas.evidence.damage import Issue
from beetle.runtime.host import log_head
from beetle.runtime.host.sealing import sealer_of
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes import table
from beetle.runtime.planes.plane import IndexRow
from beetle.store import (
    columns,
    common_words,
    erasures,
    evidence,
    index_terms,
    own_seals,
    place_checks,
    recover,
    seal_checks,
    turn_seals,
    verify,
)
from beetle.store.engine import exchange
from beetle.store.engine.progress import Progress
from beetle.store.engine.transaction import Reading
from beetle.store.event_log import read_head
from beetle.store.indexed import INDEXED
from beetle.store.verify import CHAIN, INDEX, PAGES, SCHEMA, Finding

ROWS_AT_ONCE = 500
MOST = 1000
"""Findings of a space's evidence that a report holds."""
LINKS: Final = "derived_refs"
"""The step that looks at the links between planes."""
SEALS: Final = "seals"
PLACES, TERMS, TURN_SEALS, TRANSCRIPTS = "event_places", "index_terms", "turn_seals", "transcripts"
GENUINE = (SEALS, TURN_SEALS, TRANSCRIPTS)
"""The steps of `row_seals` and `not_genuine`."""
WAITED_LONG_US = 60_000_000
"""What the daemon does by itself is done within a minute."""
TOLD_OF_THE_WHOLE: frozenset[Problem] = frozenset((
    "digest_mismatch", "length_mismatch", "body_missing", "body_left", "turn_empty", "counts_disagree", "not_indexed",
    "indexed_though_withheld", "turn_digest_mismatch", "turn_gone", "message_gone",
))  # fmt: skip
"""Problems of a space's transcripts that are found by looking through the tables or the seals of all.

Of a citation that was never linked nobody can say that its turn was here: as in a recovery, that is no damage; a turn
that was here leaves its link, its seal or its number in the event log."""


def run(invocation: Invocation, tx: Reading, *, pages: bool) -> tuple[dict[str, int], list[Finding]]:
    """Rows that each check looked at, and what they found."""
    progress = invocation.progress
    planes = [plane.verified for plane in table.PLANES if plane.verified is not None]
    checks = {step: check for each in planes for step, check in each.checks.items()}
    opened = {step: check for each in planes for step, check in each.opened.items()}
    last = (*((PAGES,) if pages else ()), *opened, SEALS, TURN_SEALS, TRANSCRIPTS)
    progress.plan((SCHEMA, CHAIN, PLACES, *checks, LINKS, INDEX, TERMS, *last))
    checked: dict[str, int] = {}
    looked = verify.Looked()

    def counted(name: str, found: tuple[int, Iterable[Finding]]) -> Iterable[Finding]:
        checked[name] = found[0]
        return found[1]

    for each in planes:
        looked.at("counts", partial(_counted, checked, each.rows, tx))
    progress.step(SCHEMA)
    looked.at(SCHEMA, partial(verify.schema, tx))
    looked.at("numbers", partial(verify.numbers, tx))
    looked.at("numbers", partial(verify.revisions, tx))
    broken = looked.at(CHAIN, lambda: counted(CHAIN, verify.chain(tx, chain_hash, progress)))
    looked.at(verify.HEAD, lambda: _signed(invocation, tx)[1])
    looked.at(PLACES, partial(_of_log, tx, progress, whole=not broken))
    for step, check in checks.items():
        progress.step(step)
        looked.at(step, partial(check, tx))
    progress.step(LINKS)
    for each in planes:
        looked.at(LINKS, partial(each.links, tx))
    looked.at("texts", partial(columns.damaged, tx))
    looked.at("times", partial(columns.damaged_times, tx))
    looked.at("foreign_keys", partial(verify.foreign_keys, tx))
    missing = looked.at(INDEX, lambda: counted(INDEX, verify.index(tx, table.indexed_tables(), progress)))
    looked.at(TERMS, partial(_terms, invocation, tx, checked.get(INDEX, 0), whole=not missing))
    looked.at(INDEX, partial(verify.index_tables, tx))
    if pages:
        progress.step(PAGES)
        looked.at(PAGES, lambda: counted(PAGES, (tx.value("PRAGMA page_count"), verify.pages(tx))))
    for step, opens in opened.items():
        progress.step(step)
        looked.at(step, lambda step=step, opens=opens: counted(step, opens(invocation, tx)))
    looked.at(SEALS, lambda: counted(SEALS, (seal_checks.rows(tx), _seals(invocation, tx))))
    looked.at(TRANSCRIPTS, partial(_transcripts, invocation, tx))
    looked.at("waiting work", partial(_waiting, invocation, tx))
    return checked, looked.findings


def _counted(checked: dict[str, int], rows: Callable[[Reading], dict[str, int]], tx: Reading) -> tuple[Finding, ...]:
    checked |= rows(tx)
    return ()


def _terms(invocation: Invocation, tx: Reading, entries: int, *, whole: bool) -> Iterator[Finding]:
    """What of the index is not its record's words. Of a damaged record nobody knows them; that is found elsewhere."""
    invocation.progress.step(TERMS, of=entries)
    with suppress(IntegrityViolation):
        if whole:
            yield from index_terms.wrong(tx, partial(_index_rows, invocation, tx), invocation.progress)
    yield from islice((finding for _, finding in common_words.wrong(tx, invocation.work.rest)), index_terms.MOST)


def not_genuine(invocation: Invocation, tx: Reading) -> list[Finding]:
    """What in a copy of this very store its runtime has not written, as far as its identity can tell, but for what
    `row_seals` tells. What follows from other records, and can be made anew, is left out."""
    looked = verify.Looked()
    looked.at(verify.HEAD, lambda: _signed(invocation, tx)[1])
    for plane in table.PLANES:
        if plane.verified is not None:
            for step, check in plane.verified.checks.items():
                looked.at(step, partial(check, tx))
    looked.at("texts", partial(columns.damaged, tx))
    looked.at(TURN_SEALS, partial(_turn_seals, invocation, tx))
    looked.at(TRANSCRIPTS, partial(_transcripts, invocation, tx))
    return looked.findings


def _index_rows(invocation: Invocation, tx: Reading) -> Iterator[IndexRow]:
    """Every row that the recall index should hold.

    Raises:
        IntegrityViolation: a record is damaged.
    """
    for indexed in [plane.indexed for plane in table.PLANES if plane.indexed is not None]:
        after = 0
        while keys := indexed.keys(tx, after, ROWS_AT_ONCE):
            for key in keys:
                rows = indexed.rows(invocation.key, tx, key)
                if rows is None:
                    raise IntegrityViolation(reason="a record of the recall index is damaged", hint="verify the store")
                yield from rows
            after = keys[-1]


def _of_log(tx: Reading, progress: Progress, *, whole: bool) -> Iterator[Finding]:
    """What follows from the event log, where that itself is whole."""
    progress.step(PLACES, of=read_head(tx).seq)
    if not whole:
        return
    yield from place_checks.places(tx, progress.at)
    for space, named, problem in place_checks.missing_turns(tx):
        where = f"conversation {named.channel_id}/{named.conversation_id} of {space}"
        yield Finding("committed_turns", where, problem)


def _seals(invocation: Invocation, tx: Reading) -> Iterator[Finding]:
    """Rows that are not what the runtime wrote."""
    yield from row_seals(invocation, tx)
    yield from _turn_seals(invocation, tx)


def row_seals(invocation: Invocation, tx: Reading) -> Iterator[Finding]:
    """Those of all tables but the turns', also in a copy of an older schema, before it is migrated."""
    progress, sealer = invocation.progress, sealer_of(invocation.key, invocation.shared.identity)
    progress.step(SEALS, of=seal_checks.rows(tx))
    for each in seal_checks.broken(tx, sealer, progress):
        row = "" if each.row is None else f" row {each.row.hex() if isinstance(each.row, bytes) else each.row}"
        yield Finding(SEALS, f"{each.table}{row}", each.problem)


def _turn_seals(invocation: Invocation, tx: Reading) -> Iterator[Finding]:
    """Turns that are not."""
    progress, sealer = invocation.progress, sealer_of(invocation.key, invocation.shared.identity)
    progress.step(TURN_SEALS, of=turn_seals.last(tx))
    for turn in seal_checks.broken_turns(tx, sealer, progress):
        yield Finding(SEALS, f"turn row {turn.turn}", turn.problem)


def _transcripts(invocation: Invocation, tx: Reading) -> Iterator[Finding]:
    """What a repair of each space would find, besides what the checks of the whole store tell of."""
    every, before = recover.all_messages(tx), 0
    invocation.progress.step(TRANSCRIPTS, of=every)
    space, proof = 0, damage.proof_of(invocation, tx)
    while (found := recover.space_after(tx, space)) is not None:
        space = found[0]
        inner = Progress(partial(_looked, invocation, before, every))
        inner.plan(damage.STEPS)
        for issue in islice(damage.issues(tx, proof, space, None, INDEXED, inner), MOST):
            if issue.problem not in TOLD_OF_THE_WHOLE:
                yield Finding(LINKS if issue.derived else "evidence", _named(issue), issue.problem)
        before += recover.messages_of(tx, space)


def _looked(invocation: Invocation, before: int, every: int, step: ProgressStep) -> None:
    if step.name == "messages":
        invocation.progress.at(before + step.done, every)


def _waiting(invocation: Invocation, tx: Reading) -> Iterator[Finding]:
    """What a recovery would do besides mending damage."""
    shared = invocation.shared
    most = shared.profile.budgets.idempotency_keys
    # A clock that was put forward has nobody waiting for as long as it says.
    now = min(invocation.now, shared.started_at + round(shared.uptime_s * 1e6))
    writer = shared.store.writer
    erased_before = writer.erasure_clock() - WAITED_LONG_US - round(writer.erasures_put_off_s * 1e6)
    yield from recover.waiting(tx, most, now - WAITED_LONG_US, erased_before)
    yield from _unreadable_plans(tx)
    for name, reason in sorted(shared.mirrors.failed.items()):
        yield Finding("chain_mirrors", name, f"is behind its chain: {reason}")
    if shared.store.settings.backend != "in-memory":
        # A disk of snapshots that cannot be read is no fault of the store.
        left: list[str] = []
        with suppress(OSError):
            left = exchange.abandoned(shared.store.settings.snapshot_folder)
        for path in left:
            yield Finding("leftovers", os.path.basename(path), "is incomplete, and no process is writing it")


def _unreadable_plans(tx: Reading) -> Iterator[Finding]:
    """Erasures of which nobody can tell what they have left."""
    if not erasures.every(tx):
        return
    # The code of all planes is loaded where an erasure is open.
    from beetle.runtime.areas.erasure import plans

    for each in plans.damaged(tx):
        begun = f"{each.operation} of {each.principal} in {each.memory_space_id}"
        yield Finding("pending_erasures", f"erasure row {each.erasure}", f"what is left of {begun} cannot be read")


def run_space(invocation: Invocation, tx: Reading) -> tuple[dict[str, int], list[Finding]]:
    """As `run`, of what the caller may know of its own space: what another owner keeps is neither counted nor named.

    The event log's chain runs through all spaces: of it is told only that it is broken. Pages belong to no space.
    """
    planes = [plane.verified for plane in table.PLANES if plane.verified is not None]
    invocation.progress.plan(damage.STEPS)
    _, broken = verify.chain(tx, chain_hash, _silent())
    findings = [found._replace(subject="the log", problem="the hash chain is broken") for found in broken]
    findings += [
        found._replace(subject="the log", problem="is not what was signed") for found in _signed(invocation, tx)[1]
    ]
    space = evidence.find_space(tx, invocation.space_id)
    counts = table.counts(invocation, tx, space)
    checked = {name: getattr(counts, name) for name in ("turns", "messages", "derived_refs")}
    checked["skills"] = counts.runtime_skills
    checked["facts"] = counts.facts + counts.stale_facts + counts.superseded_facts + counts.deleted_facts
    if not broken:
        findings += [
            Finding("committed_turns", f"conversation {named.channel_id}/{named.conversation_id}", problem)
            for of, named, problem in place_checks.missing_turns(tx)
            if of == invocation.space_id
        ]
    if space is None:
        return checked, findings
    looked = verify.Looked()
    looked.at(TRANSCRIPTS, partial(_issues_of, invocation, tx, space))
    for each in planes:
        looked.at("planes", partial(each.of_space, tx, space, invocation.sight))
        looked.at("planes", partial(each.owned, invocation, tx, space))
    looked.at(SEALS, partial(_own_seals, invocation, tx, space))
    findings += looked.findings
    return checked, findings


def _issues_of(invocation: Invocation, tx: Reading, space: int) -> Iterator[Finding]:
    """What a repair of the caller's space would find, of records that it may know of."""
    issues = damage.issues(tx, damage.proof_of(invocation, tx), space, None, INDEXED, invocation.progress)
    known = (each for each in issues if each.derived is None or table.is_known(invocation, tx, space, each.derived))
    for issue in islice(known, MOST):
        yield Finding(LINKS if issue.derived else "evidence", _named(issue), issue.problem)


def _own_seals(invocation: Invocation, tx: Reading, space: int) -> Iterator[Finding]:
    sealer = sealer_of(invocation.key, invocation.shared.identity)
    for ref, problem in own_seals.broken(tx, sealer, space, invocation.sight):
        yield Finding(SEALS, ref, problem)


def unsigned_events(invocation: Invocation, tx: Reading) -> int | None:
    """How many of the event log's last rows no signature covers yet; None where none can be relied on."""
    return _signed(invocation, tx)[0]


def _signed(invocation: Invocation, tx: Reading) -> tuple[int | None, list[Finding]]:
    return log_head.check(invocation.shared.identity, invocation.shared.store.store_id, tx)


def _silent() -> Progress:
    """How far the walk is would tell how much others have written."""
    progress = Progress()
    progress.plan((CHAIN,))
    return progress


def _named(issue: Issue) -> str:
    """What an issue is about: a ref, or a conversation."""
    if issue.derived is not None:
        return issue.derived
    where = issue.where
    if issue.ref is not None or where is None:
        return issue.ref or issue.message_id or ""
    return f"conversation {where.channel_id}/{where.conversation_id}"
