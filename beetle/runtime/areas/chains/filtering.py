"""A request's filters, as the domain compares them and as the store reads fewer rows by them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from beetle.contracts.chains import ThoughtFilter
from beetle.contracts.codec import to_us
from beetle.contracts.errors import InvalidRequest, nearest
from beetle.domain.chains import kinds, matching
from beetle.domain.chains.matching import Filter
from beetle.runtime.areas.chains.places import OpenChain
from beetle.runtime.host.thought_values import thought_of
from beetle.store.thoughts import Prefilter, ThoughtRow


def read_word(word: str, path: str, read: Callable[[str], str | None], kind: str, known: tuple[str, ...]) -> str:
    """A word of a closed set, whatever its case and punctuation.

    Raises:
        InvalidRequest: it is none of them.
    """
    found = read(word)
    if found is None:
        raise InvalidRequest(reason=f"Unknown {kind} '{word}'", hint=nearest(word, known), path=path)
    return found


def read_type(word: str, path: str = "$.args.thought_type") -> str:
    """A thought type. Raises as `read_word`."""
    return read_word(word, path, kinds.read_type, "ThoughtType", kinds.THOUGHT_TYPES)


def read_role(word: str, path: str = "$.args.role") -> str:
    """A role. Raises as `read_word`."""
    return read_word(word, path, kinds.read_role, "ThoughtRole", kinds.THOUGHT_ROLES)


def filter_of(request: ThoughtFilter) -> Filter:
    """What a request looks for. Raises as `read_word`."""
    types = (read_type(each, f"$.args.thought_types[{place}]") for place, each in enumerate(request.thought_types))
    roles = (read_role(each, f"$.args.roles[{place}]") for place, each in enumerate(request.roles))
    return Filter(
        text=request.text or None,
        thought_types=tuple(types),
        roles=tuple(roles),
        tags_any=_parts(request.tags_any),
        concepts_any=_parts(request.concepts_any),
        agent_ids=request.agent_ids,
        agent_names=_parts(request.agent_names),
        agent_owners=_parts(request.agent_owners),
        min_importance=request.min_importance,
        min_confidence=request.min_confidence,
        since=None if request.since is None else to_us(request.since),
        until=None if request.until is None else to_us(request.until),
    )


def _parts(given: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(each for each in (one.strip() for one in given) if each)


class Wanted(NamedTuple):
    """A filter in one chain."""

    chain: OpenChain
    filter: Filter
    prefilter: Prefilter

    def matches(self, first: int, until: int, *, backwards: bool) -> Iterator[ThoughtRow]:
        """The thoughts between two places that fit, in their order or the other way round."""
        for row in self.chain.walk(first, until, self.prefilter, backwards=backwards):
            agent = self.chain.agent(row.agent_id)
            if matching.fits(self.filter, thought_of(row), self.chain.body(row), agent):
                yield row


def wanted_in(chain: OpenChain, wanted: Filter) -> Wanted:
    """A filter with what the chain's registry says of the names in it."""
    ids = wanted.agent_ids or None
    saying: tuple[str, ...] = ()
    if wanted.agent_names or wanted.agent_owners or wanted.text:
        agents = chain.every_agent()
        if wanted.agent_names or wanted.agent_owners:
            ids = tuple(each.agent_id for each in agents if matching.fits_agent(wanted, each))
        if wanted.text:
            saying = tuple(each.agent_id for each in agents if matching.agent_says(wanted.text, each))
    prefilter = Prefilter(
        wanted.thought_types or None,
        wanted.roles or None,
        ids,
        wanted.min_importance,
        wanted.min_confidence,
        wanted.since,
        wanted.until,
        _pattern(wanted.text),
        saying,
    )
    return Wanted(chain, wanted, prefilter)


def _pattern(text: str | None) -> str | None:
    """The LIKE pattern of a text; None where it would miss some: LIKE folds ASCII alone, and JSON escapes quotes."""
    if text is None or not text.isascii() or not text.isprintable() or '"' in text or "\\" in text:
        return None
    return f"%{text.replace('%', chr(92) + '%').replace('_', chr(92) + '_')}%"
