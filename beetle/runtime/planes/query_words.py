"""Whether a text holds the words of a query, as the recall index decides it: what is found is what is forgotten."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, cast

from beetle.contracts.errors import InvalidRequest
from beetle.domain.lexical import MAX_QUERY_CHARS, indexed_text, word_phrases
from beetle.store.engine.transaction import Reading
from beetle.store.indexed import tokens_of


class QueryWords:
    """A query's words, as phrases of the index's terms: whole words without accents and endings. Scripts without
    spaces are looked for by pairs of characters. False where a query has no word."""

    def __init__(self, tx: Reading, query: str) -> None:
        self._tx = tx
        self._phrases = [tokens_of(tx, each) for each in word_phrases(query)]
        self._is_cut = len(query) > MAX_QUERY_CHARS

    def __bool__(self) -> bool:
        return bool(self._phrases)

    def check(self, path: str) -> None:
        """Before something is forgotten by them: `done` would tell of words that nobody looked for.

        Args:
            path: where the query stands in the request.

        Raises:
            InvalidRequest: the index makes no term of one, or there is none, or there are more than are read.
        """
        if self._is_cut:
            reason = f"a query of more than {MAX_QUERY_CHARS} characters is not read to its end"
            raise InvalidRequest(reason=f"{reason} - at {path}", hint="give fewer words", path=path)
        if self._phrases and all(self._phrases):
            return
        found = "a word that cannot" if any(self._phrases) else "no word that can"
        reason = f"the query has {found} be looked for"
        raise InvalidRequest(reason=f"{reason} - at {path}", hint="give words of letters or digits", path=path)

    def are_in(self, *texts: str) -> bool:
        """Whether every one of them is in one of some texts."""
        left = self._phrases
        for text in texts if left else ():
            terms = tokens_of(self._tx, indexed_text(text))
            known = set(terms)
            left = [each for each in left if not _is_in(each, terms, known)]
            if not left:
                return True
        return False


def _is_in(phrase: list[str], terms: list[str], known: set[str]) -> bool:
    """Whether the terms of a phrase stand side by side; one of which the index makes no term is nowhere."""
    if not phrase or not known.issuperset(phrase):
        return False
    if len(phrase) == 1:
        return True
    size = len(phrase)
    return any(terms[at : at + size] == phrase for at, term in enumerate(terms) if term == phrase[0])


def said_in(value: str) -> str:
    """What a value says: of JSON the texts and numbers in it, for its keys stand in every one of its kind."""
    if not value.lstrip().startswith(("{", "[")):
        return value
    try:
        return "\n".join(leaves(json.loads(value)))
    except (ValueError, RecursionError):
        return value


def leaves(data: Any, *, keys: bool = False) -> Iterator[str]:
    """The texts and numbers in what JSON can say; with the keys of its objects where nobody has agreed on them."""
    if isinstance(data, dict):
        for key, each in cast("dict[str, Any]", data).items():
            if keys:
                yield key
            yield from leaves(each, keys=keys)
    elif isinstance(data, list | tuple):
        for each in cast("list[Any]", data):
            yield from leaves(each, keys=keys)
    elif isinstance(data, str | int | float) and not isinstance(data, bool):
        yield str(data)
