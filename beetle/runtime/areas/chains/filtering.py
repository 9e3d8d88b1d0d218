"""A request's filters, as the domain compares them and as the store reads fewer rows by them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from beetle.contracts.chains import ThoughtFilter
from beetle.contracts.codec import to_us
from beetle.contracts.errors import InvalidRequest, nearest
from beetle.domain.chains import kinds, matching
from beetle.domain.chains.matching import Filter
from beetle.named_tuple import NamedTuple
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
    like = _pattern(wanted.text)
    prefilter = Prefilter(
        thought_types=wanted.thought_types or None,
        roles=wanted.roles or None,
        agent_ids=ids,
        min_importance=wanted.min_importance,
        min_confidence=wanted.min_confidence,
        since=wanted.since,
        until=wanted.until,
        tags=_screens(wanted.tags_any),
        concepts=_screens(wanted.concepts_any),
        like=like,
        glob=matching.screen(wanted.text) if wanted.text and like is None else None,
        saying=saying,
    )
    return Wanted(chain, wanted, prefilter)


def _pattern(text: str | None) -> str | None:
    """The LIKE pattern of a text; None where it would miss some: LIKE folds ASCII alone, and JSON escapes quotes.

    It is read faster than what `matching.screen` makes. Of "k" and a last "i" there are other capitals than ASCII's.
    """
    if text is None or not text.isascii() or not text.isprintable() or '"' in text or "\\" in text:
        return None
    text = text[: matching.MOST_SCREENED].lower()
    text = text.replace("%", "\\%").replace("_", "\\_").replace("k", "_")
    return f"%{text[:-1]}_%" if text.endswith("i") else f"%{text}%"


def _screens(parts: tuple[str, ...]) -> tuple[str, ...] | None:
    """Patterns of which a label that has one of the parts fits one; None where there is none of one of them."""
    found = [matching.screen(each) for each in parts]
    known = tuple(each for each in found if each is not None)
    return known if known and len(known) == len(found) else None
