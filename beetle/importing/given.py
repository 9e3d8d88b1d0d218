"""What `import_` and `export_` take, for the blocking client and the one of asyncio."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TypedDict

from beetle.asking import Asking
from beetle.contracts.codec import convert_request
from beetle.contracts.common import Conversation
from beetle.contracts.governance import Authority
from beetle.importing.exporting import Exporting, exporting
from beetle.importing.items import ExportFormat, Format, Visible
from beetle.importing.prepare import Options
from beetle.importing.report import ImportReport
from beetle.importing.running import Watch, importing

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


def import_of(
    paths: Sequence[Path], format: Format | None, dry_run: bool, says: Says, watch: Watch
) -> Asking[ImportReport]:
    """The work of an import.

    Raises:
        InvalidRequest: what was given is not as it must be.
    """
    given = {name: value for name, value in says.items() if value is not None}
    if "conversation" in says:
        given["conversation"] = _named(says["conversation"])
    options = convert_request(given, Options, "$")
    forced: Format | None = None if format is None else convert_request(format, Format, "$.format")
    return importing(not dry_run, [os.fspath(each) for each in paths], forced, options, watch)


def export_of(conversations: Sequence[Named], format: ExportFormat, include_private: bool) -> Exporting:
    """The work of an export.

    Raises:
        InvalidRequest: what was given is not as it must be.
    """
    form: ExportFormat = convert_request(format, ExportFormat, "$.format")
    return exporting([_named(each) for each in conversations], form, include_private)


def _named(where: Named) -> Conversation:
    given = {"conversation_id": where} if isinstance(where, str) else where
    return convert_request(given, Conversation, "$.conversation")
