"""What callers of `beetle.chunks` give, as requests have it. What is wrong with a value itself, the operation says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, cast

from beetle.chunks.records import ChunkLinks
from beetle.contracts.chunks import LINK_KINDS
from beetle.contracts.errors import InvalidRequest


def as_list(given: object, name: str) -> list[Any]:
    """Several texts; none where nothing was given.

    Raises:
        InvalidRequest: it is one text, whose letters nobody means, or no series of things.
    """
    if given is None:
        return []
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
        raise InvalidRequest(
            reason=f"{name} is a list of texts, not {type(given).__name__}",
            hint=f"give a list, such as {name}=['one', 'two']",
            path=f"$.args.{name}",
        )
    return list(cast("Iterable[Any]", given))


def links_input(given: object) -> dict[str, list[Any]]:
    """Links by their kind, from a `ChunkLinks` or a mapping that has some of its fields.

    Raises:
        InvalidRequest: it is neither.
    """
    if given is None:
        return {}
    if isinstance(given, ChunkLinks):
        return {kind: list(getattr(given, kind)) for kind in LINK_KINDS}
    if isinstance(given, Mapping):
        kinds = cast("Mapping[object, object]", given)
        return {str(kind): as_list(ids, f"links.{kind}") for kind, ids in kinds.items()}
    raise InvalidRequest(
        reason=f"links is a ChunkLinks, not {type(given).__name__}",
        hint="give ChunkLinks(supports=[id]), or a dictionary with some of its fields",
        path="$.args.links",
    )


def in_utc(given: object) -> object:
    """A time; one without a zone is one of UTC."""
    return given.replace(tzinfo=UTC) if isinstance(given, datetime) and given.tzinfo is None else given
