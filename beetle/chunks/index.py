"""An index file: entries by key and lists by key, kept in one JSON file that a reader always finds whole."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from beetle.chunk_tree.document import time_text
from beetle.chunk_tree.folder import TreeFolder

_log = logging.getLogger("beetle.chunks")


class ChunkIndex:
    """Lookups in an index file; each change writes the file anew, in one step.

    The three indexes of a `ChunkStore` are written by it, from the store. A file that is missing or cannot be read is
    an empty index.
    """

    def __init__(self, index_path: str | os.PathLike[str]) -> None:
        self.index_path = Path(index_path)
        self._entries: dict[str, Any] = {}
        self._lists: dict[str, list[str]] = {}
        self._load()

    def add(self, key: str, value: Any) -> None:
        """Set an entry."""
        self._entries[key] = value
        self._save()

    def get(self, key: str) -> Any | None:
        """An entry, or None."""
        return self._entries.get(key)

    def remove(self, key: str) -> None:
        """Remove an entry; one that is not there is no error."""
        if key in self._entries:
            del self._entries[key]
            self._save()

    def get_all_keys(self) -> list[str]:
        """The keys of all entries, in the order in which they came."""
        return list(self._entries)

    def add_to_list(self, list_key: str, item: str) -> None:
        """Append to a list what is not in it yet."""
        found = self._lists.setdefault(list_key, [])
        if item not in found:
            found.append(item)
        self._save()

    def remove_from_list(self, list_key: str, item: str) -> None:
        """Remove from a list."""
        if item in self._lists.get(list_key, ()):
            self._lists[list_key].remove(item)
            self._save()

    def get_list(self, list_key: str) -> list[str]:
        """A list, empty where there is none."""
        return list(self._lists.get(list_key, ()))

    def _load(self) -> None:
        try:
            found = json.loads(self.index_path.read_bytes())
        except FileNotFoundError:
            return
        except (OSError, ValueError) as error:
            _log.warning("Could not load index %s: %s", self.index_path, error)
            return
        if not isinstance(found, Mapping):
            _log.warning("Could not load index %s: it is no object", self.index_path)
            return
        entries, lists = found.get("entries"), found.get("lists")
        if isinstance(entries, dict):
            self._entries = entries
        if isinstance(lists, dict):
            self._lists = {key: list(ids) for key, ids in lists.items() if isinstance(ids, list)}

    def _save(self) -> None:
        updated = time_text(time.time_ns() // 1000)
        text = json.dumps({"entries": self._entries, "lists": self._lists, "updated": updated}, indent=2)
        folder = TreeFolder(os.fspath(self.index_path.parent), make=False)
        with folder:
            folder.write(self.index_path.name, text.encode())
