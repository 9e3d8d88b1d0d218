"""What a row of the table of operations says. The rows stand beside their structs, in the file of their area.

`rows.py` is the whole table, written from those by packaging/gen_reference.py: it names the structs, and the file of an
area is imported when one of them is asked for. So who serves or calls a few operations loads the structs of those.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import UnionType
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from beetle.contracts.loading import load
from beetle.contracts.names import TransportName
from beetle.named_tuple import NamedTuple

if TYPE_CHECKING:
    from beetle.contracts.common import Report
    from beetle.contracts.fields import Request

AREAS = (
    "memory", "routing", "maintain", "remembering", "forgetting", "continuity", "transfer", "skills", "agent_skills",
    "skill_registry", "tool_registries", "long_term", "governance", "waiting", "chain_writes", "chains", "chain_agents",
    "chunks", "chunk_reasoning", "chunk_trees", "transcript", "transcript_repair", "capture", "events", "agents", "toc",
    "private", "evolve", "console", "devices", "event_log", "harness", "lifecycle", "scheduler", "replication",
    "snapshots", "admin", "repairing", "control",
)  # fmt: skip
"""The files beside this one that have rows, in the order in which hello, help and docs show them."""

Effect = Literal["read", "write", "admin", "stream"]
EVERYWHERE = frozenset[TransportName]({"in_process", "unix_socket", "cli"})
RPC = EVERYWHERE | frozenset[TransportName]({"grpc"})
SOCKET = frozenset[TransportName]({"unix_socket"})
NO_FIELDS: Mapping[str, Any] = {}

Section = Literal["Daemon", "Memory", "Any operation", "Installation", "Access", "Maintenance"]
SECTIONS: tuple[Section, ...] = get_args(Section)
"""Headings of `beetle --help`, in its order."""


class Group(NamedTuple):
    """Commands that share their first word: where that word stands in `beetle --help`, and what it says there.

    Without a word it holds commands of one word, each of which stands there itself.
    """

    section: Section
    word: str = ""
    help: str = ""


DAEMON = Group("Daemon")
MEMORY = Group("Memory", "memory", "write, recall, project and inspect governed memory")
SKILL = Group("Memory", "skill", "runtime skills: learned procedures")
AGENT_SKILL = Group("Memory", "agent-skill", "Agent Skills in the mounted folders")
REGISTRY = Group("Memory", "registry", "skills that agents upload for one another, version by version")
TOOL_REGISTRY = Group("Memory", "tool-registry", "registered tools of the host")
CHAIN = Group("Memory", "chain", "thought chains: append, search, walk, verify; their agents")
CHUNK = Group("Memory", "chunk", "linked notes: store, list, link, recall and analyse them")
LONG_TERM = Group("Memory", "long-term", "learned facts: read, correct, forget, set policies")
TRANSCRIPT = Group("Memory", "transcript", "conversations as evidence: commit, read, search, govern")
CAPTURE = Group("Memory", "host", "turns that hosts deliver: capture one, report their coverage")
AGENT = Group("Memory", "agent", "the agents that evidence came from: list them, count what each brought")
EPISODE = Group("Memory", "episode", "tasks that agents worked at: start, record, complete, find similar ones")
EVENT = Group("Memory", "event", "events of sessions: ingest them")
QUERY = Group("Memory", "query", "the past by time: the table of contents, events between two times")
GOVERNANCE = Group("Memory", "governance", "candidates and jobs that wait: list, accept, reject, retry")
PRIVATE = Group("Memory", "private", "the private plane, for its owner")
EVOLVE = Group("Memory", "evolve", "proposed changes: preview, then apply or withdraw them")
ANY = Group("Any operation")
DEVICE = Group("Access", "device", "devices that authenticate with their own key")
HOST_KEY = Group("Access", "host-key", "keys with which hosts sign the turns that they capture")
TRANSPORT = Group("Access", "transport", "transports and their state")
CARE = Group("Maintenance")
ADMIN = Group("Maintenance", "admin", "the store itself: count, compact, rebuild what is derived")
CONSOLE = Group("Maintenance", "console", "the machine, the runtime and its sessions")
IDENTITY = Group("Maintenance", "identity", "the device identity: the key that seals and signs")
HARNESS = Group("Maintenance", "harness", "fixtures in temporary stores, and their gates")
SCHEDULER = Group("Maintenance", "scheduler", "background jobs: status, pause, resume, run")
REPLICA = Group("Maintenance", "replica", "the copy of the store that is kept elsewhere")
SNAPSHOT = Group("Maintenance", "snapshot", "copies of the whole store: create, verify, restore, prune")


class Tool(NamedTuple):
    """An operation as a tool of MCP.

    `name` is the tool's, where it is not the operation's with underscores; `kinds` are the names of the kinds that its
    request may be. `place`: those that have one are the toolset `memory`, in this order. `leaves_out`: fields of the
    report that a model need not pay for: what stands in others too, or figures of the machine. `none`: why it is no
    tool.
    """

    name: str = ""
    kinds: Mapping[str, str] = NO_FIELDS
    place: int = 0
    leaves_out: tuple[str, ...] = ()
    none: str = ""


class Named(NamedTuple):
    """A struct, or a union of several, by its name in an area, which is imported when the struct is asked for."""

    area: str
    name: str


@cache
def _imported(named: Named) -> Any:
    """Raises Overloaded: the process has no file descriptor left to import by."""
    return getattr(load(f"{__package__}.{named.area}"), named.name)


class Operation(NamedTuple):
    """One row.

    `asks` and `answers` are its structs as they stand in the row: `request` and `report` are the structs themselves.
    `capability` empty means that every authenticated caller may. `view` is `model` when the answer is meant for a
    model and the same for every caller, `owner` when it is for raw_owner alone, `caller` when it follows the
    caller. `grows` false lets writes pass the store's ceiling. `batch` says whether a batch may hold it. What is
    `heavy` may look through the whole store, and takes turns with others of its kind.

    `destructive`: it may take something away, where others add, or add a revision. `idempotent`: asked again with
    the same arguments it changes nothing more. `open_world`: it reaches beyond the store, as a call of a model
    does. MCP shows the three as hints of the `tool`.

    `cli` is the command's words, none where it has no command; `word` the request's field that may stand without its
    flag, `shell` examples of the command. `help` is what the request's docstring begins with, for people: a frozen
    build has no docstrings. `example` is a request that decodes. `carries` is the field of bytes, of the request of an
    import and of the report of an export, that goes in pieces where it is larger than a frame. `progress` says that the
    operation tells how far it is.
    """

    name: str
    method: str
    asks: type[Request] | UnionType | Named
    answers: type[Report] | Named
    effect: Effect
    capability: str
    group: Group
    cli: tuple[str, ...]
    help: str
    batch: bool = True
    grows: bool = True
    heavy: bool = False
    view: Literal["caller", "model", "owner"] = "caller"
    exposed: frozenset[TransportName] = EVERYWHERE
    deadline_ms: int | None = None
    word: str = ""
    example: Mapping[str, Any] = NO_FIELDS
    shell: tuple[str, ...] = ()
    carries: str = ""
    progress: bool = False
    destructive: bool = False
    idempotent: bool = True
    open_world: bool = False
    tool: Tool = Tool()

    @property
    def request(self) -> type[Request] | UnionType:
        """The struct of the request, or the union of several."""
        return _imported(self.asks) if isinstance(self.asks, Named) else self.asks

    @property
    def report(self) -> type[Report]:
        """The struct of the report."""
        return _imported(self.answers) if isinstance(self.answers, Named) else self.answers

    @property
    def kinds(self) -> tuple[type[Request], ...]:
        """The structs that a request may be: one, or the several that its `kind` tells apart."""
        return get_args(self.request) or (cast("type[Request]", self.request),)

    @property
    def takes_out(self) -> bool:
        """Whether it is an export: the bytes are of its report."""
        return self.carries in self.report.__struct_fields__
