"""Profiles: the budgets and permissions of one kind of machine, read from TOML.

The rest of the code receives the values of a profile, never its name.
"""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

from beetle.contracts.capabilities import CAPABILITY_NAMES
from beetle.contracts.errors import InvalidRequest, nearest
from beetle.contracts.names import BackendName, TransportName
from beetle.runtime.host.toml_file import decode_table, read_toml

if TYPE_CHECKING:
    from pathlib import Path

Count = Annotated[int, Meta(ge=1, le=2**53)]
CountOrNone = Annotated[int, Meta(ge=0, le=2**53)]
Percent = Annotated[int, Meta(ge=0, le=100)]
Text = Annotated[str, Meta(min_length=1, max_length=400)]


class Backends(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Ways a store may be opened here, and the one taken when none is asked for."""

    allowed: Annotated[tuple[BackendName, ...], Meta(min_length=1)]
    default: BackendName

    def __post_init__(self) -> None:
        if self.default not in self.allowed:
            raise ValueError(f"the default {self.default!r} is not among the allowed backends")


class Transports(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Ways a request may come in here."""

    allowed: Annotated[tuple[TransportName, ...], Meta(min_length=1)]


class Capabilities(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Names of the capability catalog that this profile leaves visible."""

    allowed: tuple[str, ...]

    def __post_init__(self) -> None:
        for name in self.allowed:
            if name not in CAPABILITY_NAMES:
                raise ValueError(f"no capability is named {name!r}; {nearest(name, CAPABILITY_NAMES)}")


def counts(what: str, then: str = "") -> Meta:
    """What a budget counts, and what reaching it does.

    The second is left out for a budget that fields of the contracts name with `budgeted` or `clipped`: they say it.
    """
    return Meta(description=what, extra={"then": then})


KEPT = "removes what none of the four keeps"


class Budgets(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Ceilings. The unit is in the name; a name without one counts things."""

    frame_bytes: Annotated[
        Count, counts("bytes of one frame on the socket", "refuses: `payload_too_large`, and closes the connection")
    ]
    nesting: Annotated[
        Count, counts("levels of maps and lists in a frame", "refuses: `payload_too_large`, and closes the connection")
    ]
    query_chars: Annotated[Count, counts("characters of a query")]
    message_content_bytes: Annotated[Count, counts("UTF-8 bytes of a message's content or an attr's value")]
    skill_text_bytes: Annotated[Count, counts("UTF-8 bytes of a skill's procedure")]
    key_bytes: Annotated[Count, counts("bytes of an idempotency key", "refuses: `invalid_request`")]
    commit_turns: Annotated[Count, counts("turns of one commit, turn ids of one lifecycle step")]
    batch_requests: Annotated[Count, counts("requests of a batch, skills of one write")]
    recall_limit: Annotated[Count, counts("hits of recall and search")]
    page_limit: Annotated[Count, counts("entries of a page of a list")]
    transcript_page_turns: Annotated[Count, counts("turns of a page of replay or timeline")]
    projection_chars: Annotated[Count, counts("characters of a projection")]
    host_refs_per_turn: Annotated[Count, counts("host refs of one turn")]
    redaction_items: Annotated[
        Count, counts("entries of a list of redactions or host refs", "clips the list, never the redacting")
    ]
    derived_refs: Annotated[Count, counts("derived refs in a lifecycle report", "clips the list")]
    repair_issues: Annotated[Count, counts("issues in a repair report, and those mended at a time")]
    store_bytes: Annotated[
        Count, counts("bytes of the store's ceiling", "refuses writes that grow: `store_budget_exceeded`")
    ]
    wal_bytes: Annotated[
        Count, counts("bytes from which the write-ahead log is cut", "begins a checkpoint at half of it")
    ]
    index_cache_kib: Annotated[
        Count, counts("KiB of lists of rows of the recall index, remembered between searches", "bounds memory")
    ]
    page_cache_kib: Annotated[
        Count,
        counts(
            "KiB of page cache of each connection to the store, of the one that writes 384 at least", "bounds memory"
        ),
    ]
    mmap_bytes: Annotated[CountOrNone, counts("bytes of the store that are mapped into memory", "bounds memory")]
    readers: Annotated[Count, counts("reading connections to the store", "reads wait; then `overloaded`")]
    write_queue: Annotated[Count, counts("writes that wait", "refuses: `overloaded`")]
    write_group: Annotated[Count, counts("writes that share one commit", "the rest waits for the next commit")]
    connections: Annotated[
        Count, counts("connections to the socket", "refuses: `overloaded`, and closes the connection")
    ]
    held_bytes: Annotated[
        Count,
        counts(
            "bytes of unfinished frames, of requests at work and of answers that wait, over all connections",
            "the user who holds most is refused: `overloaded`",
        ),
    ]
    answer_bytes: Annotated[
        Count,
        counts(
            "bytes of the reports of a batch, and of what a report lists",
            "refuses the batch: `payload_too_large`; ends the list, a page with its cursor",
        ),
    ]
    subscription_events: Annotated[Count, counts("events that wait for one subscriber", "drops, and says how many")]
    idempotency_keys: Annotated[Count, counts("first reports that are kept", "forgets the oldest")]
    deferred_days: Annotated[Count, counts("days for which a deferred candidate waits", "drops it, with an event")]
    waiting_candidates: Annotated[
        Count,
        counts(
            "deferred candidates of one memory space and visibility",
            "drops the weakest and oldest, with an event; refuses a candidate weaker than all: `queue_full`",
        ),
    ]
    waiting_bytes: Annotated[Count, counts("bytes of their words and refs", "the same")]
    agent_skill_depth: Annotated[
        Count, counts("levels of folders within an Agent Skill", "leaves the fingerprint out, with a finding")
    ]
    agent_skill_count: Annotated[Count, counts("Agent Skills in all mounts", "leaves the others out, with a finding")]
    agent_skill_bytes: Annotated[
        Count,
        counts(
            "bytes read for the fingerprints of a page of Agent Skills", "leaves the fingerprint out, with a finding"
        ),
    ]
    import_bytes: Annotated[Count, counts("bytes of an import")]
    export_bytes: Annotated[Count, counts("bytes of an export", "refuses: `payload_too_large`")]
    piece_bytes: Annotated[Count, counts("bytes of a piece of a transfer")]
    transfers: Annotated[Count, counts("transfers of one connection", "refuses: `overloaded`")]
    transfer_bytes: Annotated[
        Count,
        counts(
            "bytes of all transfers, in files beside the store",
            "who holds most loses its largest; refuses it: `overloaded`",
        ),
    ]
    transfer_seconds: Annotated[Count, counts("seconds between two pieces of a transfer", "ends the transfer")]
    background_share_percent: Annotated[
        Percent, counts("percent of the processor for background work", "background work waits in between")
    ]
    snapshots_newest: Annotated[Count, counts("scheduled snapshots that are kept, the last ones made", KEPT)]
    snapshots_hourly: Annotated[CountOrNone, counts("hours of which the newest scheduled snapshot is kept", KEPT)]
    snapshots_daily: Annotated[CountOrNone, counts("days of which the newest scheduled snapshot is kept", KEPT)]
    snapshots_weekly: Annotated[CountOrNone, counts("weeks of which the newest scheduled snapshot is kept", KEPT)]
    first_frame_seconds: Annotated[
        Count, counts("seconds until a new connection has sent a frame", "closes the connection")
    ]
    begun_frame_seconds: Annotated[Count, counts("seconds until a begun frame is complete", "closes the connection")]
    log_file_bytes: Annotated[Count, counts("bytes of one file of the daemon's log", "begins the next file")]
    log_files: Annotated[Count, counts("files of the daemon's log", "removes the oldest")]
    default_deadline_ms: Annotated[
        Count,
        counts(
            "milliseconds of a request without a deadline, and of any request at most",
            "`deadline_exceeded`, `overloaded`",
        ),
    ]

    def __post_init__(self) -> None:
        for part, whole in (
            ("message_content_bytes", "frame_bytes"),
            ("skill_text_bytes", "frame_bytes"),
            ("write_group", "write_queue"),
            ("wal_bytes", "store_bytes"),
            ("export_bytes", "import_bytes"),
            ("frame_bytes", "held_bytes"),
            ("export_bytes", "held_bytes"),
            ("message_content_bytes", "answer_bytes"),
            ("piece_bytes", "frame_bytes"),
            ("import_bytes", "transfer_bytes"),
            ("message_content_bytes", "waiting_bytes"),
        ):
            if getattr(self, part) > getattr(self, whole):
                raise ValueError(f"{part} is over {whole}")


class Profile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One profile as its file states it.

    `memory_ceiling_mib` is what the daemon's RSS stays under with 100,000 turns, after 1,000 recalls.
    """

    name: Text
    description: Text
    target: Text
    role: Text
    memory_ceiling_mib: Count
    backends: Backends
    transports: Transports
    capabilities: Capabilities
    budgets: Budgets


COMPACT = "profile-linux-device-compact-memory"
STANDALONE = "profile-linux-device-standalone-memory"
DESKTOP = "profile-desktop-linux-embedded-sdk"
GATEWAY = "profile-server-linux-memory-gateway"
DEV_FULL = "profile-server-linux-dev-full"
ALIASES: dict[str, str] = {
    "compact": COMPACT,
    "standalone": STANDALONE,
    "desktop": DESKTOP,
    "gateway": GATEWAY,
    "dev-full": DEV_FULL,
}


def example_configuration() -> str:
    """The configuration with every key commented out, which the build carries."""
    with open(os.path.join(_shipped(), "beetle.toml.example"), encoding="utf-8") as file:
        return file.read()


def profiles_folder(package: Path) -> Path:
    """The folder of TOML files of the package at `package`: inside it when installed, beside it in a checkout."""
    from pathlib import Path

    return Path(_folder_of(str(package)))


def profile_names() -> tuple[str, ...]:
    """Full names of the profiles that this build carries, sorted."""
    return _names_in(_shipped())


@cache
def _names_in(folder: str | os.PathLike[str]) -> tuple[str, ...]:
    """Listed once: a build's own files stay as they are."""
    ends = (each.removesuffix(".toml") for each in os.listdir(folder) if each.endswith(".toml"))
    return tuple(sorted(each for each in ends if each.startswith("profile-")))


def load_profile(name: str) -> Profile:
    """The profile of a full name, of a short alias, or at a path (anything with a slash in it).

    Raises InvalidRequest: no such name (the nearest in the hint), an unreadable file, an unknown key, a wrong value.
    """
    if "/" in name:
        return decode_table(read_toml(name), Profile, name)
    check_profile_name(name)
    return _shipped_profile(os.path.join(_shipped(), f"{ALIASES.get(name, name)}.toml"))


@cache
def _shipped_profile(file: str) -> Profile:
    """Read once: a build's own files stay as they are, and reading one takes a third of a small store's opening."""
    profile = decode_table(read_toml(file), Profile, file)
    if f"{profile.name}.toml" != os.path.basename(file):
        raise InvalidRequest(reason=f"{file}: the name inside is {profile.name!r}", path="$.name", file=file)
    return profile


def check_profile_name(name: str, *also: str) -> None:
    """Raises InvalidRequest, with the nearest names in the hint, unless `name` is a profile, an alias or in `also`."""
    known = (*ALIASES, *profile_names(), *also)
    if name not in known:
        raise InvalidRequest(reason=f"no profile is named {name!r}", profile=name, hint=nearest(name, known))


def _shipped() -> str | os.PathLike[str]:
    return _folder_of(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))


def _folder_of(package: str) -> str:
    inside = os.path.join(package, "profiles")
    return inside if os.path.isdir(inside) else os.path.join(os.path.dirname(package), "profiles")
