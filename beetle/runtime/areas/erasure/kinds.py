"""What memory.forget selects and erases: of every plane, and of what waits for a decision."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from beetle.contracts.forgetting import MemoryForgetRequest
from beetle.runtime.areas.evolve import forgetting as evolve
from beetle.runtime.areas.evolve import proposals
from beetle.runtime.areas.governance import forgetting as governance
from beetle.runtime.areas.governance import judging
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes import table
from beetle.runtime.planes.forgetting import Forgetting, Forgotten, Gone, Kind, Selection, sight_of
from beetle.store import evidence
from beetle.store.engine.transaction import Reading
from beetle.store.engine.write_transaction import WriteTransaction


def select(invocation: Invocation, tx: Reading, request: MemoryForgetRequest) -> Selection:
    """Find what a request is about. Looks through the space."""
    space = evidence.find_space(tx, invocation.space_id)
    if space is None:
        return Selection(0, sight_of(invocation))
    asked = Forgetting(invocation, tx, request, space)
    for each in sorted(_forgotten(), key=lambda each: each.place):
        each.select(asked)
    return asked.found


def erase(
    invocation: Invocation, tx: WriteTransaction, space: int, name: str, key: int, authority: str
) -> tuple[str, list[bytes] | None]:
    """Erase a record of a kind, drop what is proposed about it, and judge again what waits for it to go.

    Returns what it is counted as, and keyed digests of what went; None where nothing was left.
    """
    kind = next(each for each in _kinds() if each.name == name)
    gone = _erase(invocation, tx, space, kind, key, authority)
    if gone is None:
        return kind.counted_as, None
    judging.judge_again(invocation, tx, space, reason="weaker_authority", topics=gone.topics)
    if gone.skill is not None:
        judging.judge_skill_again(invocation, tx, space, gone.skill)
    return kind.counted_as, gone.digests


def erase_again(invocation: Invocation, tx: WriteTransaction, space: int, name: str, key: int) -> None:
    """Erase a record of a kind in a copy of the store in which it was erased: who has removed it is known, and what
    waited for it to go was judged there.
    """
    _erase(invocation, tx, space, next(each for each in _kinds() if each.name == name), key, None)


def _erase(
    invocation: Invocation, tx: WriteTransaction, space: int, kind: Kind, key: int, authority: str | None
) -> Gone | None:
    if targets := kind.targets(tx, space, key):
        proposals.drop_about(invocation, tx, space, targets)
    return kind.erase(invocation, tx, space, key, authority)


def by_name() -> Mapping[str, Kind]:
    """Every kind of record, in the order in which they are erased. What waits goes first, so that nothing of it is
    judged again when what it waits for is gone.
    """
    return {kind.name: kind for kind in sorted(_kinds(), key=lambda kind: kind.place)}


def _kinds() -> Iterator[Kind]:
    return (kind for each in _forgotten() for kind in each.kinds)


def _forgotten() -> Iterator[Forgotten]:
    yield from (plane.forgotten for plane in table.PLANES if plane.forgotten is not None)
    yield from (governance.FORGOTTEN, evolve.FORGOTTEN)
