"""What an import and an export say at their end."""

from __future__ import annotations

from typing import Any

import msgspec

from beetle.contracts.codec import to_plain
from beetle.contracts.common import Conversation

MOST_PROBLEMS = 100
MOST_CONVERSATIONS = 100


class Failed(msgspec.Struct, frozen=True, kw_only=True):
    """A line or item that was not taken in: of which file, where in it (`line 12`, `item 3`), and why."""

    path: str
    place: str | None
    reason: str


class FileReport(msgspec.Struct, kw_only=True):
    """What became of one file.

    `turns`, `thoughts`, `agents` and `skill_versions` were read, of these `committed` are new or got something new, and
    `unchanged` were there, of which `partial` were exported with something withheld, and are not compared
    therefore. `facts` were read; each was `accepted`,
    `waiting` (to be decided, see governance.list) or `rejected`, and `reasons` counts why. `failed` lines or items were
    not taken in. `left_out` counts what a format has that is no memory, by its sort. `derived` says of what the format
    does not tell where it came from. `conversations` are the first hundred of
    which a turn was taken in or was there (of a dry run: was read), `chains` those that thoughts and agents are of.
    """

    path: str
    format: str
    bytes: int = 0
    turns: int = 0
    thoughts: int = 0
    agents: int = 0
    skill_versions: int = 0
    committed: int = 0
    unchanged: int = 0
    partial: int = 0
    facts: int = 0
    accepted: int = 0
    waiting: int = 0
    rejected: int = 0
    failed: int = 0
    reasons: dict[str, int] = {}
    left_out: dict[str, int] = {}
    derived: dict[str, str] = {}
    conversations: list[str] = []
    more_conversations: bool = False
    chains: list[str] = []

    def list_conversation(self, where: Conversation) -> None:
        """List it, once, as one that turns of this file are in."""
        name = f"{where.channel_id}/{where.conversation_id}"
        if self.more_conversations or name in self.conversations:
            return
        if len(self.conversations) == MOST_CONVERSATIONS:
            self.more_conversations = True
        else:
            self.conversations.append(name)


class ImportReport(msgspec.Struct, kw_only=True):
    """An import: its files in their order, and the first hundred things that failed."""

    dry_run: bool
    files: list[FileReport] = []
    problems: list[Failed] = []

    def total(self, field: str) -> int:
        """The sum of a count over all files."""
        return sum(getattr(each, field) for each in self.files)

    @property
    def failed(self) -> int:
        """How many lines, items and files of folders were not taken in."""
        return self.total("failed")

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values, as `--json` prints it, with the totals."""
        counts = (
            "turns", "thoughts", "agents", "skill_versions", "committed", "unchanged", "partial", "facts",
            "accepted", "waiting", "rejected", "failed",
        )  # fmt: skip
        return {**to_plain(self), **{name: self.total(name) for name in counts}}
