"""What memory.forget takes of governance: candidates that wait; policies stay."""

from __future__ import annotations

from beetle.runtime.areas.governance import queue
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes.forgetting import Forgetting, Forgotten, Gone, Kind, Known
from beetle.store import candidates, policies
from beetle.store.candidates import Waiting
from beetle.store.engine.transaction import Reading
from beetle.store.engine.write_transaction import WriteTransaction


def _select(asked: Forgetting) -> None:
    found, everything = asked.found, asked.request.whole_space
    for row in candidates.every(asked.tx, asked.space):
        level = queue.level_of(row.target, row.privacy)
        cites = asked.cites(row.evidence)
        if not (level == "shared" or (asked.sight.sealed if level == "sealed" else asked.sight.private)):
            # By its words nothing is told of what may not be seen, not even that it has them.
            if everything or cites:
                found.hide()
            continue
        body = queue.body_of(asked.invocation, asked.tx, asked.space, row) or candidates.NOTHING
        if not (everything or cites or asked.words.are_in(body.topic, body.content, *body.keywords)):
            continue
        if asked.is_stronger(row.authority) and not cites:
            found.keep(CANDIDATE.counted_as, "weaker_authority")
        else:
            found.add(CANDIDATE, row.candidate, _as_known(row))
    for each in policies.policies(asked.tx, asked.space):
        if everything or asked.words.are_in(each.topic or "", each.reason or ""):
            found.keep("policies", "policy")


def _known(invocation: Invocation, tx: Reading, space: int, key: int) -> Known | None:
    del invocation
    row = candidates.by_key(tx, space, key)
    return None if row is None else _as_known(row)


def _as_known(row: Waiting) -> Known:
    return Known((row.waiting_id,), matter=queue.level_of(row.target, row.privacy))


def _known_policy(invocation: Invocation, tx: Reading, space: int, key: int) -> Known | None:
    del invocation
    number = policies.number_of(tx, space, key)
    return None if number is None else Known((number,))


def _erase(invocation: Invocation, tx: WriteTransaction, space: int, key: int, authority: str | None) -> Gone | None:
    del authority
    row = candidates.by_key(tx, space, key)
    if row is None:
        return None
    queue.drop(invocation, tx, space, row, "forgotten")
    return Gone([row.content_mac] if row.content_mac is not None else [])


def _erase_policy(
    invocation: Invocation, tx: WriteTransaction, space: int, key: int, authority: str | None
) -> Gone | None:
    del invocation, space, authority
    policies.remove_policy(tx, key)
    return Gone([])


CANDIDATE = Kind("candidate", "candidates", 10, _known, _erase)
POLICY = Kind("policy", "policies", 110, _known_policy, _erase_policy)
"""Erased again alone, in a snapshot: no request forgets one."""
FORGOTTEN = Forgotten(30, _select, (CANDIDATE, POLICY))
