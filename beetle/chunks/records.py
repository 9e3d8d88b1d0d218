"""A chunk as callers hold it: plain dataclasses that become dictionaries and JSON as the files of a tree have them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from beetle.chunk_tree.document import ChunkDocument, parse_chunk, plain
from beetle.contracts.chunks import LINK_KINDS, MOST_LINKS

if TYPE_CHECKING:
    from beetle.contracts.chunks import Chunk as StoredChunk

_INDENT = 2


class ChunkType(StrEnum):
    """The types of a chunk; each equals its name."""

    FACT = "fact"
    PREFERENCE = "preference"
    PATTERN = "pattern"
    NOTE = "note"
    DECISION = "decision"


@dataclass
class ChunkMetadata:
    """Where a chunk comes from and how it was used. Times are ISO 8601 in UTC, with a Z.

    `extra` are keys of an imported file that no chunk has; they are kept.
    """

    created: str
    conversation_id: str
    source: str = "interaction"
    confidence: float = 0.7
    access_count: int = 0
    last_accessed: str | None = None
    extra: dict[str, Any] = field(default_factory=dict, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """As the file has it."""
        return _with_extra(
            self, ("created", "conversation_id", "source", "confidence", "access_count", "last_accessed")
        )

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ChunkMetadata:
        """From what a file has.

        Raises:
            ValueError: `created` or `conversation_id` is missing.
        """
        return cls(**_known(cls, data, ("created", "conversation_id")))


@dataclass
class ChunkLinks:
    """Ids by type of link. `context_of` holds the conversation's id; of other writers it may hold ids of chunks."""

    context_of: list[str] = field(default_factory=list)
    follows: list[str] = field(default_factory=list)
    related_to: list[str] = field(default_factory=list)
    supports: list[str] = field(default_factory=list)
    contradicts: list[str] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """As the file has it."""
        lists = {kind: list(getattr(self, kind)) for kind in LINK_KINDS}
        return {**lists, **self.extra}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ChunkLinks:
        """From what a file has; a type that is missing has no links."""
        return cls(**_known(cls, data, ()))


@dataclass
class Chunk:
    """One chunk. Changing it changes nothing in the store: `ChunkStore.update_chunk` does."""

    id: str
    content: str
    tokens: int
    type: str
    metadata: ChunkMetadata
    links: ChunkLinks
    tags: list[str] = field(default_factory=list)
    extra: dict[str, Any] = field(default_factory=dict, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """As the file has it, keys in its order."""
        return {
            "id": self.id,
            "content": self.content,
            "tokens": self.tokens,
            "type": str(self.type),
            "metadata": self.metadata.to_dict(),
            "links": self.links.to_dict(),
            "tags": list(self.tags),
            **self.extra,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Chunk:
        """From what a file has; keys that no chunk has are kept.

        Raises:
            ValueError: a required key is missing, or a value is not as the schema says.
        """
        parse_chunk(dict(data))
        return cls(
            **{
                **_known(cls, data, ()),
                "metadata": ChunkMetadata.from_dict(data["metadata"]),
                "links": ChunkLinks.from_dict(data["links"]),
                "tags": list(data.get("tags", [])),
            }
        )

    def to_json(self, indent: int = _INDENT) -> str:
        """As the file's text."""
        return json.dumps(self.to_dict(), indent=indent, ensure_ascii=False)

    @classmethod
    def from_json(cls, json_str: str) -> Chunk:
        """From a file's text.

        Raises:
            json.JSONDecodeError: it is no JSON.
            ValueError: it is no chunk, with the reason.
        """
        data = json.loads(json_str)
        if not isinstance(data, dict):
            raise ValueError(f"a chunk is an object, not {type(data).__name__}")
        return cls.from_dict(data)


def document_of(stored: StoredChunk) -> ChunkDocument:
    """What the file of a chunk in the store says."""
    extra = stored.extra
    return parse_chunk(
        {
            "id": stored.id,
            "content": stored.content,
            "tokens": stored.tokens,
            "type": stored.type,
            "metadata": {
                "created": stored.metadata.created,
                "conversation_id": stored.metadata.conversation_id,
                "source": stored.metadata.source,
                "confidence": stored.metadata.confidence,
                "access_count": stored.metadata.access_count,
                "last_accessed": stored.metadata.last_accessed,
                **(extra.metadata if extra else {}),
            },
            "links": {
                **{kind: list(getattr(stored.links, kind))[:MOST_LINKS] for kind in LINK_KINDS},
                **(extra.links if extra else {}),
            },
            "tags": list(stored.tags or ()),
            **(extra.chunk if extra else {}),
        }
    )


def record_of(document: ChunkDocument) -> Chunk:
    """A chunk as callers hold it."""
    found = plain(document)
    return Chunk(
        id=document.id,
        content=document.content,
        tokens=document.tokens,
        type=document.type,
        metadata=ChunkMetadata.from_dict(found["metadata"]),
        links=ChunkLinks.from_dict(found["links"]),
        tags=list(document.tags),
        extra=dict(document.extra),
    )


def _with_extra(record: ChunkMetadata, names: tuple[str, ...]) -> dict[str, Any]:
    return {**{name: getattr(record, name) for name in names}, **record.extra}


def _known(kind: type[Any], data: Mapping[str, Any], needed: tuple[str, ...]) -> dict[str, Any]:
    """The fields of a record out of what a file has, the others as its `extra`."""
    for name in needed:
        if name not in data:
            raise ValueError(f"Missing required field: {name}")
    names = [name for name in kind.__dataclass_fields__ if name != "extra"]
    extra = {name: value for name, value in data.items() if name not in names}
    return {**{name: data[name] for name in names if name in data}, "extra": extra}
