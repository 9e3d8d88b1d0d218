"""Taking away what a thought says: its body and salt, and its row of the recall index."""

from __future__ import annotations

from beetle.contracts.errors import IntegrityViolation
from beetle.domain.chains import ledger
from beetle.runtime.host.thought_values import body_of
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes.thought_rows import index_row, ref_of
from beetle.store import chains, recall_index, thoughts
from beetle.store.chains import JSONL
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.thoughts import ThoughtRow


def hide(invocation: Invocation, tx: WriteTransaction, chain: int) -> None:
    """Remove the mirrors that show thoughts of a chain before they change: they are written anew behind the commit.

    Raises:
        StoreReadOnly: one cannot be removed.
    """
    invocation.shared.mirrors.withdraw(chains.with_branches(tx, chain, JSONL))


def unindex(tx: WriteTransaction, space: int, chain_key: str, row: ThoughtRow) -> None:
    """Take a live thought out of the recall index.

    Raises:
        IntegrityViolation: it was changed by another program, so that nobody knows what the index holds of it.
    """
    body = body_of(row)
    if row.mark is not None or body is None:
        return
    if ledger.body_digest(body) != row.digest.hex():
        raise IntegrityViolation(
            reason=f"the content of {ref_of(chain_key, row.position)} is not what was written, and stays as it is",
            hint="`beetle memory recover` makes the index anew without it; then try again",
        )
    recall_index.remove(tx, *index_row(space, row))


def erase(invocation: Invocation, tx: WriteTransaction, space: int, chain_key: str, row: ThoughtRow) -> None:
    """Erase what a thought says, also one that is masked, in the mirrors too. Raises as `hide` and `unindex`."""
    hide(invocation, tx, row.chain)
    unindex(tx, space, chain_key, row)
    thoughts.erase(tx, row.thought, tx.now)
