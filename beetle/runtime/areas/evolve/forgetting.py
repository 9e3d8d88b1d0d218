"""What memory.forget takes of proposed changes: those that are open."""

from __future__ import annotations

from beetle.runtime.areas.evolve import proposals as evolve
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes.forgetting import Forgetting, Forgotten, Gone, Kind, Known
from beetle.store import forgetting, proposals
from beetle.store.engine.transaction import Reading
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.proposals import ProposalRow


def _select(asked: Forgetting) -> None:
    """Those about a record that goes, those that cite a turn that goes, and those that hold the words."""
    for row, text in evolve.open_texts(asked.tx, asked.space):
        linked = asked.request.whole_space or row.target in asked.targets or asked.cites(text.evidence)
        if not (linked or asked.words.are_in(*evolve.texts_of(row, text))):
            continue
        if evolve.is_seen(asked.tx, asked.space, row, private=asked.sight.private):
            asked.found.add(PROPOSAL, row.proposal, _as_known(asked.invocation, row))
        elif linked:
            asked.found.hide()


def _known(invocation: Invocation, tx: Reading, space: int, key: int) -> Known | None:
    name = forgetting.open_proposal(tx, space, key)
    row = None if name is None else proposals.find(tx, space, name)
    return None if row is None else _as_known(invocation, row)


def _as_known(invocation: Invocation, row: ProposalRow) -> Known:
    name = evolve.given_name(invocation, row.proposal_id)
    return Known((name, row.created_at), matter=evolve.matter_of(row))


def _erase(invocation: Invocation, tx: WriteTransaction, space: int, key: int, authority: str | None) -> Gone | None:
    del authority
    name = forgetting.open_proposal(tx, space, key)
    row = None if name is None else proposals.find(tx, space, name)
    if row is None:
        return None
    evolve.drop(invocation, tx, [row], "forgotten")
    return Gone([])


PROPOSAL = Kind("proposal", "proposals", 20, _known, _erase)
FORGOTTEN = Forgotten(40, _select, (PROPOSAL,))
