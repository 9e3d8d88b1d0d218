"""The handler of each operation, gathered from the areas.

An area's modules are imported when an operation of its prefix is looked up first: a daemon that serves recall and
commits holds no code of chains and snapshots in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping

from beetle.contracts.loading import load
from beetle.runtime.pipeline.handlers import Handler

AREAS: Mapping[str, tuple[str, ...]] = {
    "admin": ("admin", "operating", "toc.rebuilding"),
    "agent": ("capture.agents",),
    "agent_skill": ("skills.agent_skills",),
    "chain": ("chains.agents", "chains.ending", "chains.reading", "chains.walking", "chains.writing"),
    "chunk": (
        "chunks.answering", "chunks.ending", "chunks.exporting", "chunks.importing", "chunks.reading", "chunks.writing",
    ),
    "console": ("console",),
    "device": ("devices",),
    "episode": ("capture.episodes",),
    "event": ("capture.events",),
    "event_log": ("event_log",),
    "evolve": ("evolve.evolve",),
    "governance": ("governance.report", "governance.waiting", "governance.decide"),
    "grip": ("toc.expanding",),
    "harness": ("care",),
    "hello": ("daemon",),
    "host": ("capture.coverage",),
    "host_key": ("capture.host_keys",),
    "identity": ("renewing",),
    "long_term": ("facts.long_term", "facts.mutate", "facts.policy"),
    "memory": (
        "recall.recall", "recall.inspect", "recall.routing", "governance.write", "governance.remember", "daemon",
        "care", "maintain", "continuity.transfer", "erasure.forget",
    ),
    "private": ("governance.private_records", "private_items"),
    "replication": ("replication",),
    "scheduler": ("scheduled",),
    "skill": ("skills.runtime_skills",),
    "skill_registry": ("registry.finding", "registry.uploading"),
    "snapshot": ("snapshots.snapshots",),
    "store": ("care", "repairing"),
    "toc": ("toc.reading", "toc.searching"),
    "tool_registry": ("tools",),
    "transcript": ("evidence.transcript", "evidence.lifecycle", "evidence.repair"),
    "transfer": ("transfers",),
    "transport": ("devices",),
    "turn": ("capture.turns",),
}  # fmt: skip
"""The modules of each prefix of operations, the part before the dot. build.spec names them to PyInstaller."""
USUAL: Mapping[str, str] = {
    "memory.recall": "recall.recall",
    "memory.project": "recall.recall",
    "memory.inspect": "recall.inspect",
    "memory.write": "governance.write",
    "transcript.commit": "evidence.transcript",
    "memory.close": "daemon",
    "memory.recover": "care",
}
"""The module of what agents ask all day, or a process that asks little else: it is spared the rest of the prefix."""


class Handlers(MutableMapping[str, Handler]):
    """Handlers by the names of their operations; the area of a name is imported when it is looked up.

    Raises:
        Overloaded: the process has no file descriptor left to import by.
    """

    def __init__(self) -> None:
        self._known: dict[str, Handler] = {}

    def __getitem__(self, name: str) -> Handler:
        if name not in self._known:
            if name in USUAL:
                self._import(USUAL[name])
            if name not in self._known:
                self._import(*AREAS.get(name.partition(".")[0], ()))
        return self._known[name]

    def __setitem__(self, name: str, handler: Handler) -> None:
        self._known[name] = handler

    def __delitem__(self, name: str) -> None:
        del self._known[name]

    def __iter__(self) -> Iterator[str]:
        for areas in AREAS.values():
            self._import(*areas)
        return iter(tuple(self._known))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def load(self, *names: str) -> None:
        """Import the areas of these operations now, so that they are answered whatever becomes of the process."""
        for name in names:
            self[name]

    def _import(self, *areas: str) -> None:
        for area in areas:
            handlers: Mapping[str, Handler] = load(f"{__package__}.{area}").HANDLERS
            for name, handler in handlers.items():
                self._known.setdefault(name, handler)


HANDLERS = Handlers()
"""Every row of the table but batch, subscribe and unsubscribe, which are the dispatcher's and the connection's own."""
