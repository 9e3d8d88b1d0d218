"""`import_` and `export_`: the two short words that are no operation, on whatever runs operations."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, TypedDict, Unpack

from beetle.contracts.common import Conversation
from beetle.contracts.methods import OperationMethods

if TYPE_CHECKING:
    from beetle.contracts.governance import Authority
    from beetle.contracts.progress import OnProgress
    from beetle.importing.items import ExportFormat, Format, Visible
    from beetle.importing.report import Failed, ImportReport

Path = str | os.PathLike[str]
Named = Conversation | Mapping[str, str] | str
"""A conversation, its fields, or its id in the channel `local`."""


class Says(TypedDict, total=False):
    """What a file does not say itself."""

    conversation: Named
    """Takes in everything as this conversation."""
    channel: str
    """Channel of conversations whose file names none; the format's name when left out."""
    speakers: Mapping[str, str]
    """Display names by role, for messages that have none."""
    time: datetime
    """Time of what has none; the file's last change when left out."""
    authority: Authority
    """Whose word facts are; `host` when left out."""
    visibility: Visible
    """Of the messages, and of the facts; `shared` when left out."""


class FileMethods(OperationMethods):
    """What a client and a runtime have beside the operations."""

    def import_(
        self,
        *paths: Path,
        format: Format | None = None,
        dry_run: bool = False,
        on_problem: Callable[[Failed], None] | None = None,
        on_progress: OnProgress | None = None,
        **says: Unpack[Says],
    ) -> ImportReport:
        """Take in files of other programs: conversations as evidence, facts as candidates with their evidence.

        The same file again changes nothing; one that has grown adds what is new. Memory stays bounded, whatever the
        size of a file. What cannot be read is reported, and stops nothing.

        Args:
            paths: files, and folders of them.
            format: their format; told from the content when left out.
            dry_run: only say what would be taken in.
            on_problem: called with each line or item that is not taken in.
            on_progress: called with the progress, in bytes of the file.
            says: what the files do not say themselves.

        Returns:
            What became of each file.

        Raises:
            InvalidRequest: a path is no regular file or folder, or of no known format; nothing was taken in.
            BeetleError: the store or the daemon cannot go on; what was taken in stays.
        """
        from beetle.contracts.codec import convert_request
        from beetle.importing.items import Format
        from beetle.importing.prepare import Options
        from beetle.importing.running import Watch, import_files

        given = {name: value for name, value in says.items() if value is not None}
        if "conversation" in says:
            given["conversation"] = _named(says["conversation"])
        options = convert_request(given, Options, "$")
        forced: Format | None = None if format is None else convert_request(format, Format, "$.format")
        watch = Watch(on_problem, on_progress)
        return import_files(None if dry_run else self.call, [os.fspath(each) for each in paths], forced, options, watch)

    def export_(
        self,
        *,
        format: ExportFormat = "jsonl",
        conversations: Sequence[Named] = (),
        include_private: bool = False,
    ) -> Iterator[str]:
        """Conversations as text, a line at a time: JSON lines that `import_` takes in again, or Markdown.

        What the export view may not show is left out, as transcript.export does.

        Args:
            format: jsonl or markdown.
            conversations: these; all when left out.
            include_private: private material too; needs the capability private.read.

        Raises:
            BeetleError: what transcript.export and transcript.conversations answer, while it is iterated.
        """
        from beetle.importing.exporting import exported

        return exported(self.call, [_named(each) for each in conversations], format, include_private)


def _named(where: Named) -> Conversation:
    from beetle.contracts.codec import convert_request

    given = {"conversation_id": where} if isinstance(where, str) else where
    return convert_request(given, Conversation, "$.conversation")
