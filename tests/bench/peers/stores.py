"""What stands side by side: one class for each store, all with the same few methods.

A library is imported when its store is opened, so that a process holds no other. Those that find by vectors alone get
`embed`, which needs neither a model nor a network; what it costs is in their figures.
"""

from __future__ import annotations

import math
import os
import re
import zlib
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, Protocol

LIMIT = 10
"""Turns that a question asks for."""
DIMENSIONS = 384
"""As many as the small sentence models have that these libraries come with."""
CONVERSATION_TURNS = 200
WORD = re.compile(r"\w+")


class Settings(NamedTuple):
    """How Beetle's daemon is started; the others take nothing of it."""

    profile: str
    command: str | None


class Store(Protocol):
    """A store that is open in this process."""

    version: str

    def add(self, number: int, text: str) -> None:
        """Append one turn; it is acknowledged when this returns."""

    def add_many(self, first: int, texts: Sequence[str]) -> None:
        """Append turns the way that suits the library best, to fill a store; not measured."""

    def find(self, question: str) -> list[str]:
        """The texts of the best turns, at most `LIMIT`; of long ones the part that it shows."""

    def close(self) -> None: ...


def embed(text: str) -> list[float]:
    """A unit vector of a text: how often each word is in it, at a place that the word's checksum tells."""
    vector = [0.0] * DIMENSIONS
    for word in WORD.findall(text.lower()):
        vector[zlib.crc32(word.encode()) % DIMENSIONS] += 1
    length = math.sqrt(sum(each * each for each in vector)) or 1.0
    return [each / length for each in vector]


class Row:
    """The floor of writing: the binding, one table, a sync for each row."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        import apsw

        self.version = f"SQLite {apsw.sqlite_lib_version()}"
        self._connection = apsw.Connection(str(folder / "row.db"))
        self._connection.pragma("journal_mode", "wal")
        self._connection.pragma("synchronous", 2)
        self._connection.execute("CREATE TABLE IF NOT EXISTS note (note INTEGER PRIMARY KEY, text TEXT NOT NULL)")

    def add(self, number: int, text: str) -> None:
        with self._connection:
            self._connection.execute("INSERT INTO note (text) VALUES (?)", (text,))

    def add_many(self, first: int, texts: Sequence[str]) -> None:
        with self._connection:
            self._connection.executemany("INSERT INTO note (text) VALUES (?)", [(each,) for each in texts])

    def find(self, question: str) -> list[str]:
        raise NotImplementedError

    def close(self) -> None:
        self._connection.close()


class RowAndIndex(Row):
    """The floor of recall as well: the same with a full-text index; a question is the OR of its words."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        super().__init__(folder, settings)
        tokens = "tokenize = 'porter unicode61 remove_diacritics 2'"
        self._connection.execute(f"CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5(text, content = '', {tokens})")

    def add(self, number: int, text: str) -> None:
        self.add_many(number, [text])

    def add_many(self, first: int, texts: Sequence[str]) -> None:
        with self._connection:
            for each in texts:
                self._connection.execute("INSERT INTO note (text) VALUES (?)", (each,))
                row = self._connection.last_insert_rowid()
                self._connection.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (row, each))

    def find(self, question: str) -> list[str]:
        from tests.bench.plain_fts import match_of

        sql = "SELECT note.text FROM words JOIN note ON note = words.rowid WHERE words MATCH ? ORDER BY rank LIMIT ?"
        match = match_of(question)
        return [row[0] for row in self._connection.execute(sql, (match, LIMIT))] if match else []


class Beetle:
    """A daemon and its client; a second one on the same folder speaks to the daemon of the first."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        from beetle import __version__
        from tests.running import Daemon

        self.version = __version__
        self._daemon = Daemon(profile=settings.profile, command=settings.command, folder=str(folder))
        self._own = not os.path.exists(self._daemon.socket)
        if self._own:
            self._daemon.start()
        self._client = self._daemon.client()
        self._batch = self._client.hello().limits["commit_turns"]

    def add(self, number: int, text: str) -> None:
        self._commit(number, [text])

    def add_many(self, first: int, texts: Sequence[str]) -> None:
        for start in range(0, len(texts), self._batch):
            self._commit(first + start, texts[start : start + self._batch])

    def _commit(self, first: int, texts: Sequence[str]) -> None:
        turns = [
            {
                "turn_id": f"t{number}",
                "at": f"2025-01-{1 + number // 1000 % 28:02d}T10:{number % 60:02d}:00Z",
                "messages": [{"message_id": f"m{number}", "role": "user", "content": text}],
            }
            for number, text in enumerate(texts, first)
        ]
        where = {"conversation_id": f"c{first // CONVERSATION_TURNS}"}
        self._client.commit_transcript(conversation=where, turns=turns)

    def find(self, question: str) -> list[str]:
        return [(hit.excerpt or "").strip("… ") for hit in self._client.recall(query=question, limit=LIMIT).hits]

    def close(self) -> None:
        self._client.close()
        if self._own:
            self._daemon.stop()


class LangGraph:
    """`SqliteStore` of langgraph-checkpoint-sqlite, with its index of vectors."""

    SPACE = ("memories",)

    def __init__(self, folder: Path, settings: Settings) -> None:
        from langgraph.store.sqlite import SqliteStore

        self.version = version("langgraph-checkpoint-sqlite")
        index: Any = {"dims": DIMENSIONS, "embed": lambda texts: [embed(each) for each in texts], "fields": ["text"]}
        self._context = SqliteStore.from_conn_string(str(folder / "store.db"), index=index)
        self._store = self._context.__enter__()
        self._store.setup()

    def add(self, number: int, text: str) -> None:
        self._store.put(self.SPACE, str(number), {"text": text})

    def add_many(self, first: int, texts: Sequence[str]) -> None:
        from langgraph.store.base import PutOp

        self._store.batch([PutOp(self.SPACE, str(n), {"text": text}) for n, text in enumerate(texts, first)])

    def find(self, question: str) -> list[str]:
        return [each.value["text"] for each in self._store.search(self.SPACE, query=question, limit=LIMIT)]

    def close(self) -> None:
        self._context.__exit__(None, None, None)


class Chroma:
    """`PersistentClient` of chromadb."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        import chromadb
        from chromadb.config import Settings as ChromaSettings

        self.version = version("chromadb")
        self._client = chromadb.PersistentClient(str(folder), settings=ChromaSettings(anonymized_telemetry=False))
        self._turns = self._client.get_or_create_collection("turns", embedding_function=None)

    def add(self, number: int, text: str) -> None:
        self.add_many(number, [text])

    def add_many(self, first: int, texts: Sequence[str]) -> None:
        ids = [str(number) for number in range(first, first + len(texts))]
        self._turns.add(ids=ids, documents=list(texts), embeddings=[embed(each) for each in texts])

    def find(self, question: str) -> list[str]:
        return self._turns.query(query_embeddings=[embed(question)], n_results=LIMIT)["documents"][0]

    def close(self) -> None:
        self._client.close()


class Mem0:
    """`Memory` of mem0ai on its local vector store. Texts are kept as they are: no model is asked for facts."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        from mem0 import Memory
        from mem0.embeddings.base import EmbeddingBase

        class Hashed(EmbeddingBase):
            def embed(self, text: str, memory_action: Any = None) -> list[float]:
                return embed(text)

        self.version = version("mem0ai")
        # It makes clients of a service for a model and for vectors, which connect to nothing until they are asked.
        service = {"provider": "openai", "config": {"api_key": "none"}}
        local = {"path": str(folder / "vectors"), "on_disk": True, "embedding_model_dims": DIMENSIONS}
        self._memory = Memory.from_config({
            "vector_store": {"provider": "qdrant", "config": local}, "llm": service, "embedder": service,
            "history_db_path": str(folder / "history.db"),
        })  # fmt: skip
        self._memory.embedding_model = Hashed(self._memory.embedding_model.config)

    def add(self, number: int, text: str) -> None:
        self._memory.add(text, user_id="ann", infer=False)

    def add_many(self, first: int, texts: Sequence[str]) -> None:
        for number, text in enumerate(texts, first):
            self.add(number, text)

    def find(self, question: str) -> list[str]:
        found = self._memory.search(question, filters={"user_id": "ann"}, top_k=LIMIT)
        return [each["memory"] for each in found["results"]]

    def close(self) -> None:
        self._memory.close()
        self._memory.vector_store.client.close()


class Tantivy:
    """The search library of that name, a commit for each turn."""

    HEAP_BYTES = 15_000_000
    """The least that its writer takes."""

    def __init__(self, folder: Path, settings: Settings) -> None:
        import tantivy

        self.version = version("tantivy")
        self._document = tantivy.Document
        schema = tantivy.SchemaBuilder()
        schema.add_text_field("text", stored=True, tokenizer_name="en_stem")
        self._index = tantivy.Index(schema.build(), path=str(folder))
        self._writer = self._index.writer(heap_size=self.HEAP_BYTES, num_threads=1)

    def add(self, number: int, text: str) -> None:
        self.add_many(number, [text])

    def add_many(self, first: int, texts: Sequence[str]) -> None:
        for each in texts:
            self._writer.add_document(self._document(text=each))
        self._writer.commit()

    def find(self, question: str) -> list[str]:
        self._index.reload()
        searcher = self._index.searcher()
        words = " ".join(WORD.findall(question.lower()))
        if not words:
            return []
        hits = searcher.search(self._index.parse_query(words, ["text"]), LIMIT).hits
        return [searcher.doc(address)["text"][0] for _, address in hits]

    def close(self) -> None:
        self._writer.wait_merging_threads()


class Kind(NamedTuple):
    """A store that takes part. `without` is what it does not do that Beetle or the floor does."""

    open: Callable[[Path, Settings], Store]
    library: str | None
    """What has to be installed; None for what the checkout's environment has."""
    finds: bool
    how: str
    without: str


KINDS = {
    "row": Kind(Row, None, False, "raw SQLite: a row", "search"),
    "index": Kind(RowAndIndex, None, True, "raw SQLite: a row and its full-text index", "anything but turns and words"),
    "beetle": Kind(Beetle, None, True, "a daemon asked over its socket", ""),
    "langgraph": Kind(
        LangGraph, "langgraph.store.sqlite", True, "vectors in SQLite, all compared", "search by words; who said what"
    ),
    "chromadb": Kind(Chroma, "chromadb", True, "a graph of vectors, texts in SQLite", "search by words; who said what"),
    "mem0": Kind(
        Mem0, "mem0", True, "vectors in memory, all compared; copies and a history in SQLite",
        "search by words without further models; facts, which a model would draw from the turns",
    ),
    "tantivy": Kind(Tantivy, "tantivy", True, "an inverted index, BM25", "anything but texts and words"),
}  # fmt: skip
"""By the name that `--only` takes, in the order in which they are shown."""
