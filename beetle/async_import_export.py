"""`import_` and `export_` for asyncio: the work is that of the blocking client."""

from __future__ import annotations

import asyncio
from contextlib import closing
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, Unpack

from beetle.asking import Asking
from beetle.contracts.async_methods import AsyncOperationMethods
from beetle.contracts.common import Report
from beetle.contracts.errors import BeetleError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from beetle.contracts.progress import OnProgress
    from beetle.importing.given import Named, Path, Says
    from beetle.importing.items import ExportFormat, Format
    from beetle.importing.report import Failed, ImportReport

T = TypeVar("T")


class AsyncAsk(Protocol):
    """Runs one operation: `call` of a client."""

    async def __call__(self, operation: str, arguments: Any, /) -> Report: ...


async def run(work: Asking[T], ask: AsyncAsk) -> T:
    """The result of the work, as `beetle.asking.run` gives it; other tasks run while it asks, and where it yields."""
    with closing(work):
        try:
            asked = next(work)
            while True:
                if asked is None:
                    await asyncio.sleep(0)
                    asked = next(work)
                    continue
                try:
                    report = await ask(*asked)
                except BeetleError as error:
                    asked = work.throw(error)
                else:
                    asked = work.send(report)
        except StopIteration as done:
            return done.value


class AsyncFileMethods(AsyncOperationMethods):
    """What a client has beside the operations."""

    async def import_(
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

        Files are read in small pieces, without a thread: other tasks run while the daemon is asked, and between pieces.

        Args:
            paths: files, and folders of them.
            format: their format; told from the content when left out.
            dry_run: only say what would be taken in.
            on_problem: called in the event loop with each line or item that is not taken in.
            on_progress: called in the event loop with the progress, in bytes of the file.
            says: what the files do not say themselves.

        Returns:
            What became of each file.

        Raises:
            InvalidRequest: a path is no regular file or folder, or of no known format; nothing was taken in.
            BeetleError: the store or the daemon cannot go on; what was taken in stays.
        """
        from beetle.importing.given import import_of
        from beetle.importing.running import Watch

        return await run(import_of(paths, format, dry_run, says, Watch(on_problem, on_progress)), self.call)

    async def export_(
        self,
        *,
        format: ExportFormat = "jsonl",
        conversations: Sequence[Named] = (),
        include_private: bool = False,
    ) -> AsyncIterator[str]:
        """Conversations as text, a line at a time: JSON lines that `import_` takes in again, or Markdown.

        What the export view may not show is left out, as transcript.export does.

        Args:
            format: jsonl or markdown.
            conversations: these; all when left out.
            include_private: private material too; needs the capability private.read.

        Raises:
            BeetleError: what transcript.export and transcript.conversations answer, while it is iterated.
        """
        from beetle.importing.exporting import sent
        from beetle.importing.given import export_of

        with closing(export_of(conversations, format, include_private)) as work:
            found = next(work, None)
            while found is not None:
                if isinstance(found, str):
                    yield found
                    found = next(work, None)
                else:
                    found = sent(work, await self.call(*found))
