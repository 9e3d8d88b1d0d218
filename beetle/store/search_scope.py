"""Where a search looks: a scope, and the expressions of FTS5 that narrow a search to it."""

from __future__ import annotations

from collections.abc import Iterable

from beetle.contracts.codec import json_text
from beetle.contracts.names import INDEX_CODES
from beetle.named_tuple import NamedTuple
from beetle.store.engine.transaction import Reading
from beetle.store.indexed import Tables

PAST = "long_term_past"
OF_CONVERSATIONS = ("evidence",)
"""Whose rows name their conversation in `scope`."""
SPACES_SQL = "SELECT count(*) FROM (SELECT 1 FROM space LIMIT 2)"
HELD_CODES_SQL = """
SELECT value FROM json_each(?) j WHERE EXISTS (
  SELECT 1 FROM recall_index WHERE recall_index MATCH '{scope} : "p' || j.value || '"'
)
"""


class SearchScope(NamedTuple):
    """Where to look: in the rows of `tables`. `private` says whether private rows count.

    Times are microseconds, both ends included. With `as_of` counts what was current then, as each table says of itself.
    `label`: only rows that were added with this one.
    """

    space: int
    tables: Tables
    conversation: int | None = None
    private: bool = False
    since: int | None = None
    until: int | None = None
    as_of: int | None = None
    label: int | None = None

    @property
    def is_part(self) -> bool:
        """Whether it is one conversation's, or narrowed by a label."""
        return self.conversation is not None or self.label is not None


class Parts(NamedTuple):
    """A scope as FTS5 expressions, each empty for all rows: of the rows `within`; of those `around`, of any plane and
    whoever may see them; and of those around that are not within, empty where there are none or where they are likely
    to be most: all messages. `token` is what the rows around have in `scope`, where that is one token."""

    within: str
    around: str
    beside: str
    token: str


def parts_of(tx: Reading, scope: SearchScope) -> Parts:
    """The expressions of a scope.

    A token that every row carries is left out, since its postings cost time. What was current once is left out by its
    row number: NOT would cost FTS5 the scores of the words behind it (measured: a third of the right hits lost).
    """
    around: list[str] = []
    if tx.value(SPACES_SQL) > 1:
        around.append(f'"s{scope.space}"')
    if scope.conversation is not None:
        # What belongs to no conversation stays in view.
        around.append(_any_of([f"c{scope.conversation}", *(f"p{code}" for code in _held_apart(tx))]))
    if scope.label is not None:
        around.append(f'"l{scope.label}"')
    token = f"s{scope.space}" if around and not scope.is_part else ""
    within, beside = [*around], list[str]()
    if not scope.private:
        within.append('"vshared"')
        beside.append("vprivate")
    names = {each.name for each in scope.tables}
    if others := set(INDEX_CODES) - names - {PAST}:
        within.append(_any_of(f"p{code}" for code in sorted(INDEX_CODES[name] for name in names)))
        beside += [f"p{code}" for code in sorted(INDEX_CODES[name] for name in others)]
    if not beside or names.isdisjoint(OF_CONVERSATIONS):
        return Parts(_in_scope(within), _in_scope(around), "", token)
    return Parts(_in_scope(within), _in_scope(around), _in_scope([*around, _any_of(beside)]), token)


def _any_of(tokens: Iterable[str]) -> str:
    return "(" + " OR ".join(f'"{each}"' for each in tokens) + ")"


def _in_scope(wanted: list[str]) -> str:
    return "{scope} : (" + " AND ".join(wanted) + ")" if wanted else ""


def _held_apart(tx: Reading) -> list[int]:
    """The codes of planes without conversations of which the index holds rows. To look for one that it has no row of
    takes FTS5 as long as to look for a word, with each word of a query."""
    codes = [code for plane, code in INDEX_CODES.items() if plane not in OF_CONVERSATIONS]
    return [row[0] for row in tx.rows(HELD_CODES_SQL, json_text(codes))]


def in_planes(tx: Reading) -> str:
    """The expression of all rows that are no messages, empty where the index has none."""
    codes = _held_apart(tx)
    return _in_scope([_any_of(f"p{code}" for code in codes)]) if codes else ""


def both(expression: str, within: str) -> str:
    """The expression of the rows of an expression that are of another too, which may be empty."""
    return f"({expression}) AND {within}" if within else expression


def left_out_of(scope: SearchScope) -> int:
    """The code whose rows do not count, or one that no row has: what was current once is looked for by name alone."""
    return -1 if any(each.name == PAST for each in scope.tables) else INDEX_CODES[PAST]
