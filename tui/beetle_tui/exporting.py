"""Taking something along from the screen: to the terminal's clipboard, or to a file."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from textual.geometry import Region
from textual.screen import Screen

from beetle.contracts.errors import Conflict, InvalidRequest
from beetle_tui.dialogs import Ask, needed
from beetle_tui.keys import key_for
from beetle_tui.text import count, harmless, size

if TYPE_CHECKING:
    from textual.app import App

COPY_BYTES = 74_000
"""What is copied at once: terminals drop an OSC 52 sequence of more than 100,000 characters of base64."""


class WriteFailed(InvalidRequest):
    """A file that was named for an export could not be made."""

    template = "{path}: {reason}"
    hint_template = "name a file in a folder that you may write to"


class FileExists(Conflict):
    """A file of that name is there, and may be anyone's."""

    template = "{path} exists already"
    hint_template = "name another file: an export overwrites none"


def copy(app: App[Any], text: str) -> str:
    """Hand a text to the terminal's clipboard; answers with what to tell."""
    plain = "\n".join(harmless(line) for line in text.split("\n"))
    taken = len(plain.encode())
    if taken > COPY_BYTES:
        export = key_for(app, "export")
        return f"{size(taken)} are too much for a terminal's clipboard; {export} writes what is shown to a file"
    app.copy_to_clipboard(plain)
    return f"{count(len(plain), 'character')} handed to the terminal's clipboard"


def lines_within(screen: Screen[Any], region: Region) -> list[str]:
    """The text of a part of the screen, without the blanks at its ends."""
    strips = screen._compositor.render_strips(screen.app.size)[region.y : region.bottom]
    lines = [strip.crop(region.x, region.right).text.rstrip() for strip in strips]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def ask_where(lines: Sequence[str]) -> Ask:
    """The dialog that asks for the file of an export."""
    told = f"{count(len(lines), 'line')} of what is shown, to a new file that only you may read."
    return Ask("Export", [told], hint="a path, such as ~/skills.txt", fault=needed("name a file"))


async def write_lines(path: str, lines: Sequence[str]) -> str:
    """Write lines to a new file of mode 0600; answers with what to tell.

    Raises:
        FileExists: there is something of that name.
        WriteFailed: the system refuses it.
    """
    file = os.path.abspath(os.path.expanduser(path.strip()))
    data = "".join(f"{harmless(line)}\n" for line in lines).encode()
    await asyncio.to_thread(_write, file, data)
    return f"{count(len(lines), 'line')} written to {file}"


def _write(file: str, data: bytes) -> None:
    try:
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except FileExistsError:
        raise FileExists(path=file) from None
    except OSError as error:
        raise WriteFailed(path=file, reason=_reason(error)) from None
    try:
        with open(descriptor, "wb") as stream:
            stream.write(data)
    except OSError as error:
        # Ours, and only a part of what it should be.
        os.unlink(file)
        raise WriteFailed(path=file, reason=_reason(error)) from None


def _reason(error: OSError) -> str:
    return error.strerror or type(error).__name__
