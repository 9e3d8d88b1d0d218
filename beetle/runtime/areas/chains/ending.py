"""chain.lifecycle: masking and erasing what thoughts say. Their places and hashes stay, and the chain verifies."""

from __future__ import annotations

from collections.abc import Mapping

from beetle.contracts.chain_writes import ChainLifecycleReport, ChainLifecycleRequest
from beetle.runtime.areas import receipts
from beetle.runtime.areas.chains import registering
from beetle.runtime.areas.chains.places import OpenChain, ThoughtLocator
from beetle.runtime.areas.evidence.lifecycle import settle
from beetle.runtime.pipeline.handlers import Apply, Handler, Write
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes.thought_erasing import hide, unindex
from beetle.runtime.planes.thought_rows import index_row
from beetle.store import recall_index, thoughts
from beetle.store.engine.write_transaction import WriteTransaction
from beetle.store.thoughts import ThoughtRow

EVENTS = {"mask": "masked", "unmask": "unmasked", "erase": "erased"}


def lifecycle(invocation: Invocation, request: ChainLifecycleRequest) -> Apply:
    """Mask, unmask or erase; what is so already stays as it is."""
    receipts.ready(invocation)

    def apply(tx: WriteTransaction) -> ChainLifecycleReport:
        chain = OpenChain(invocation, tx, request.chain_key)
        row = chain.existing()
        found = [chain.located(ThoughtLocator(position=each)) for each in dict.fromkeys(request.indexes)]
        for each in found:
            registering.speaks_for(invocation, each.agent_id, "$.args.indexes")
        touched = [each for each in found if _changes(each, request.action)]
        report = ChainLifecycleReport(
            chain_key=chain.key,
            action=request.action,
            dry_run=request.dry_run,
            changed=False,
            indexes=tuple(sorted(each.position for each in touched)),
        )
        if request.dry_run or not touched:
            return report
        for each in touched:
            _change(tx, row.space, chain.key, each, request.action)
        for of in {each.chain for each in touched}:
            hide(invocation, tx, of)
        event = invocation.event("chain", EVENTS[request.action], chain_key=chain.key, indexes=list(report.indexes))
        seq = tx.log(event)
        return ChainLifecycleReport(
            chain_key=chain.key,
            action=request.action,
            dry_run=False,
            changed=True,
            indexes=report.indexes,
            erasure="pending" if request.action == "erase" else None,
            audit_event_id=invocation.number_of(tx.logged[-1:]),
            receipt=receipts.make(
                invocation, tx, f"chain.{request.action}", seq, {"thoughts": len(touched)},
                [each.digest for each in touched],
            ),
        )  # fmt: skip

    return apply


def _changes(row: ThoughtRow, action: str) -> bool:
    if action == "erase":
        return row.mark != "erased"
    return row.mark == ("masked" if action == "unmask" else None)


def _change(tx: WriteTransaction, space: int, chain_key: str, row: ThoughtRow, action: str) -> None:
    if action == "unmask":
        thoughts.set_mark(tx, row.thought, None, tx.now)
        if row.body is not None:
            recall_index.add(tx, *index_row(space, row))
        return
    unindex(tx, space, chain_key, row)
    if action == "mask":
        thoughts.set_mark(tx, row.thought, "masked", tx.now)
    else:
        thoughts.erase(tx, row.thought, tx.now)


HANDLERS: Mapping[str, Handler] = {
    "chain.lifecycle": Write(lifecycle, settle),
}
