"""What a chunk says and names, for the detector of secrets: the same of a file, of a request and of a record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from beetle.contracts.chunks import LINK_KINDS, ChunkLinksInput
from beetle.runtime.areas.secrets import Said

APART = "\n.\n"
"""Between two texts of one: no pattern of the detector goes past a lone full stop, so none is made of two texts."""


def texts(path: str, content: str, tags: tuple[str, ...], extra: Mapping[str, Any] | None) -> Iterator[Said]:
    """What is said. `extra` is what a file had besides: of it a value stands behind its name."""
    yield from ((f"{path}.content", content), (f"{path}.tags", tags))
    if extra:
        yield f"{path}.extra", APART.join(_besides(extra))


def names(path: str, conversation_id: str, targets: Iterable[str], chunk_id: str = "") -> Iterator[Said]:
    """The ids that were given, for `names` of the detector; the links' as one text, since there may be thousands."""
    yield from ((f"{path}.chunk_id", chunk_id), (f"{path}.conversation_id", conversation_id))
    yield f"{path}.links", APART.join(targets)


def targets_of(links: ChunkLinksInput) -> Iterator[str]:
    """Where the links of a request lead to."""
    return (target for kind in LINK_KINDS for target in getattr(links, kind) or ())


def _besides(value: object, name: str = "") -> Iterator[str]:
    if isinstance(value, Mapping):
        yield name
        for key, each in cast("Mapping[str, Any]", value).items():
            yield from _besides(each, key)
    elif isinstance(value, list):
        yield name
        for each in cast("list[Any]", value):
            yield from _besides(each)
    else:
        yield f"{name}: {value}" if name else str(value)
