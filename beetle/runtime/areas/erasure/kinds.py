"""What memory.forget selects and erases: of every plane, and of what waits for a decision."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from beetle.contracts.forgetting import ForgetReason, MemoryForgetRequest
from beetle.domain.governance import STRENGTH
from beetle.named_tuple import NamedTuple
from beetle.runtime.areas.evolve import forgetting as evolve
from beetle.runtime.areas.evolve import proposals
from beetle.runtime.areas.governance import forgetting as governance
from beetle.runtime.areas.governance import judging
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes import table
from beetle.runtime.planes.forgetting import Forgetting, Forgotten, Gone, Kind, Known, Selecting, Selection, sight_of
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


class Step(NamedTuple):
    """What became of a record of a plan. `digests`: keyed digests of what went; None where nothing did.

    `stays`: why it is there still, where the caller may know; `ref`: what it is called. `hidden`: there it
    is still, and the caller may know no more of it than that.
    """

    counted_as: str
    digests: list[bytes] | None = None
    stays: ForgetReason | None = None
    ref: str = ""
    hidden: bool = False


def select_resting(invocation: Invocation, tx: Reading, space: int, turns: Iterable[int]) -> Selection:
    """Find what rests on some turns alone, and what rests on others too. Looks through the space."""
    asked = Selecting(invocation, tx, space, turns)
    for each in sorted(_forgotten(), key=lambda each: each.place):
        each.resting(asked)
    return asked.found


def erase(
    invocation: Invocation, tx: WriteTransaction, space: int, name: str, key: int, mark: int | None, authority: str
) -> Step:
    """Erase a record of a kind, drop what is proposed about it, and judge again what waits for it to go.

    Args:
        mark: what the record was when it was selected; another one, or one that has changed, stays. None in plans of
            earlier builds.
    """
    kind = next(each for each in _kinds() if each.name == name)
    known = kind.known(invocation, tx, space, key)
    if known is None or (mark is not None and not known.is_of(mark)):
        return Step(kind.counted_as)
    if mark is not None and known.mark != mark:
        return _kept(invocation, kind, known, authority)
    gone = _erase(invocation, tx, space, kind, key, authority)
    if gone is None:
        return Step(kind.counted_as)
    judging.judge_again(invocation, tx, space, reason="weaker_authority", topics=gone.topics)
    if gone.skill is not None:
        judging.judge_skill_again(invocation, tx, space, gone.skill)
    return Step(kind.counted_as, gone.digests, ref=known.ref)


def _kept(invocation: Invocation, kind: Kind, known: Known, authority: str) -> Step:
    """Of a record that has changed since: who may not know of it any more is told nothing."""
    sight = sight_of(invocation)
    if not sight.sees(known):
        return Step(kind.counted_as, hidden=sight.told)
    stronger = known.authority is not None and STRENGTH[known.authority] > STRENGTH[authority]
    return Step(kind.counted_as, stays="weaker_authority" if stronger else "changed", ref=known.ref)


def erase_again(invocation: Invocation, tx: WriteTransaction, space: int, name: str, key: int) -> None:
    """Erase a record of a kind in a copy of the store in which it was erased: who has removed it is known, and what
    waited for it to go was judged there.
    """
    kind = next(each for each in _kinds() if each.name == name)
    if kind.known(invocation, tx, space, key) is not None:
        _erase(invocation, tx, space, kind, key, None)


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
