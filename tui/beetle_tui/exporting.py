"""Taking something along from the screen: to the terminal's clipboard, or to a file."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from beetle.contracts.codec import to_plain
from beetle.contracts.errors import Conflict, InvalidRequest
from beetle_tui.dialogs import Ask, Faults, needed
from beetle_tui.keys import key_for
from beetle_tui.rows import Rows
from beetle_tui.text import DRIVES_A_TERMINAL, count, harmless, size

T = TypeVar("T")
Pages = AsyncIterator[Sequence[str]]
"""The lines of a file, as they are read."""

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


def json_line(value: Any) -> str:
    """A value of builtins as JSON on one line; what could drive a terminal is an escape of JSON's."""
    text = json.dumps(value, ensure_ascii=False)
    return text if text.isascii() else DRIVES_A_TERMINAL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


async def lines_of(rows: Rows[T], plain: Callable[[T], Any] = to_plain) -> Pages:
    """Every row of a list, whole, a line of JSON each; read from its beginning, whatever of it was looked at.

    Raises:
        BeetleError: it cannot be read to its end.
    """
    async for page in rows.pages():
        yield [json_line(plain(each)) for each in page]


async def one_line(value: Any) -> Pages:
    """A single thing, whole."""
    yield [json_line(value)]


def ask_where(run: Callable[[str], Awaitable[Faults]]) -> Ask:
    """The dialog that asks for the file of an export."""
    told = "All of it, whole, to a new file that only you may read."
    return Ask("Export", [told], hint="a path, such as ~/skills.jsonl", fault=needed("name a file"), run=run)


async def write_lines(path: str, lines: Sequence[str]) -> str:
    """Write lines to a new file of mode 0600; answers with what to tell.

    Raises:
        FileExists: there is something of that name.
        WriteFailed: the system refuses it.
    """

    async def pages() -> Pages:
        yield lines

    return await write_pages(path, pages())


async def write_pages(path: str, pages: Pages, on_page: Callable[[int], None] = lambda written: None) -> str:
    """As write_lines, page by page; `on_page` is told before each how many lines are written, and may raise. A file
    that is not whole is removed.

    Raises:
        BeetleError: as write_lines, and of what reads the pages.
    """
    file = os.path.abspath(os.path.expanduser(path.strip()))
    descriptor = await asyncio.to_thread(_create, file)
    written = 0
    try:
        with open(descriptor, "wb") as stream:
            async for lines in pages:
                on_page(written)
                data = "".join(f"{harmless(line)}\n" for line in lines).encode()
                await asyncio.to_thread(stream.write, data)
                written += len(lines)
    except OSError as error:
        os.unlink(file)
        raise WriteFailed(path=file, reason=_reason(error)) from None
    except BaseException:
        # Ours, and only a part of what it should be.
        os.unlink(file)
        raise
    return f"{count(written, 'line')} written to {file}"


def _create(file: str) -> int:
    try:
        return os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except FileExistsError:
        raise FileExists(path=file) from None
    except OSError as error:
        raise WriteFailed(path=file, reason=_reason(error)) from None


def _reason(error: OSError) -> str:
    return error.strerror or type(error).__name__
