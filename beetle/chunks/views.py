"""The three indexes of a `ChunkStore`, answered by the store: their files may be a moment behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from beetle.chunk_tree.indexes import LINK_GRAPH, METADATA_INDEX, TAG_INDEX
from beetle.chunks.index import ChunkIndex

if TYPE_CHECKING:
    from beetle.chunks.store import ChunkStore


class StoreIndex(ChunkIndex):
    """An index that the store keeps. Its entries and lists are read; changing chunks changes them."""

    place: ClassVar[str]

    def __init__(self, store: ChunkStore) -> None:
        self._store = store
        super().__init__(store.base_path / self.place)

    def add(self, key: str, value: Any) -> None:
        self._refuse()

    def remove(self, key: str) -> None:
        self._refuse()

    def add_to_list(self, list_key: str, item: str) -> None:
        self._refuse()

    def remove_from_list(self, list_key: str, item: str) -> None:
        self._refuse()

    def _load(self) -> None:
        """The file is not read."""

    def _refuse(self) -> NoReturn:
        raise TypeError(f"{self.place} follows the store: create, update or delete a chunk instead")


class MetadataIndex(StoreIndex):
    """type, conversation_id, created and confidence by the id of a chunk."""

    place = METADATA_INDEX

    def get(self, key: str) -> Any | None:
        found = self._store.peek_chunk(key)
        if found is None:
            return None
        about = found.metadata
        return {
            "type": found.type,
            "conversation_id": about.conversation_id,
            "created": about.created,
            "confidence": about.confidence,
        }

    def get_all_keys(self) -> list[str]:
        return self._store.list_chunks()


class TagIndex(StoreIndex):
    """Ids of chunks by tag."""

    place = TAG_INDEX

    def get_list(self, list_key: str) -> list[str]:
        return self._store.list_chunks(tags=[list_key])


class LinkGraph(StoreIndex):
    """Where the links of a chunk lead, by its id, then by type."""

    place = LINK_GRAPH

    def get(self, key: str) -> Any | None:
        found = self._store.peek_chunk(key)
        return None if found is None else found.links.to_dict()

    def get_all_keys(self) -> list[str]:
        return self._store.list_chunks()
