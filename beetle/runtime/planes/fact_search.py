"""Facts by their words, as whoever looks may know them."""

from __future__ import annotations

from beetle.domain.lexical import all_words_expression
from beetle.named_tuple import NamedTuple
from beetle.runtime.planes.query_words import QueryWords
from beetle.store import long_term, recall_index
from beetle.store.engine.transaction import Reading
from beetle.store.long_term import FactRow
from beetle.store.plane_long_term import FACTS, PAST_TEXTS
from beetle.store.search_scope import SearchScope


class Eyes(NamedTuple):
    """Who looks at facts: what a private one is to them, and whether they see digests for words.

    `writer` is an operator's name: of the private facts it sees those that say what it wrote itself, and no other.
    """

    private: bool
    audit: bool
    key: bytes
    writer: str | None = None

    def see(self, tx: Reading, row: FactRow) -> bool:
        """Whether the record is there for them."""
        return self.private or row.visibility == "shared" or self.wrote(tx, row)

    def wrote(self, tx: Reading, row: FactRow) -> bool:
        """Whether what the record says now, or its deletion, is their own."""
        return self.writer is not None and long_term.is_word_of(tx, row, self.writer)


def saying(
    tx: Reading, space: int | None, query: str, seen: Eyes, states: tuple[str, ...], *, ever: bool = False
) -> list[FactRow]:
    """The records in these states that hold every word of a query in what they say, the newest first.

    Args:
        ever: also those that said so once, or were changed for a reason that does.
    """
    keys = keys_saying(tx, space, query, seen, states, ever=ever)
    if ever and space is not None:
        keys |= _keys_changed_for(tx, space, query, seen)
    return [row for row in long_term.facts_by_key(tx, space, keys) if row.state in states and seen.see(tx, row)]


def keys_saying(
    tx: Reading, space: int | None, query: str, seen: Eyes, states: tuple[str, ...], *, ever: bool
) -> set[int]:
    expression = all_words_expression(query)
    if space is None or expression is None:
        return set()
    found = _keys_holding(tx, space, expression, states, private=seen.private, ever=ever)
    if seen.writer is not None:
        hidden = _keys_holding(tx, space, expression, states, private=True, ever=ever) - found
        found |= {row.fact for row in long_term.facts_by_key(tx, space, hidden) if seen.wrote(tx, row)}
    return found


def _keys_changed_for(tx: Reading, space: int, query: str, seen: Eyes) -> set[int]:
    words = QueryWords(tx, query)
    found = long_term.reasons(tx, space, private=seen.private, writer=seen.writer) if words else ()
    return {fact for fact, reason in found if words.are_in(reason)}


def _keys_holding(
    tx: Reading, space: int, expression: str, states: tuple[str, ...], *, private: bool, ever: bool
) -> set[int]:
    past = ever or bool(set(states) - {"current"})
    tables = (*((FACTS,) if "current" in states else ()), *((PAST_TEXTS,) if past else ()))
    scope = SearchScope(space=space, tables=tables, private=private)
    keys: dict[str, list[int]] = {FACTS.name: [], PAST_TEXTS.name: []}
    for name, key in recall_index.matching(tx, expression, scope):
        keys[name].append(key)
    facts = set(keys[FACTS.name])
    facts.update(fact for fact, last in long_term.facts_of_bodies(tx, keys[PAST_TEXTS.name]) if last or ever)
    return facts
