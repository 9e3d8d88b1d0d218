"""What is cited is there: a ref of evidence names a turn of the space, and a message of it where it names one."""

from __future__ import annotations

from collections.abc import Iterable

from beetle.contracts.errors import InvalidRequest
from beetle.contracts.refs import evidence_named
from beetle.store import skills
from beetle.store.engine.transaction import Reading

HINT = "commit the turn first, or leave the citation out; text that is not an evidence ref may be cited as well"


def refuse_absent(tx: Reading, space: int, refs: Iterable[str], path: str) -> None:
    """Refuse a request for its first ref of evidence that names nothing; they stand in the list at `path`.

    Raises:
        InvalidRequest: `details.path` names the place.
    """
    for place, text in enumerate(refs):
        ref = evidence_named(text)
        if ref is not None and skills.turn_of_ref(tx, space, ref) is None:
            here = f"{path}[{place}]"
            what = "turn" if ref.message_id is None else "turn with such a message"
            raise InvalidRequest(reason=f"it names a {what} that does not exist - at {here}", hint=HINT, path=here)
