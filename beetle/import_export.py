"""`import_` and `export_`: the two short words that are no operation, on whatever runs operations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack

from beetle.contracts.methods import OperationMethods

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from beetle.contracts.progress import OnProgress
    from beetle.importing.given import Named, Path, Says
    from beetle.importing.items import ExportFormat, Format
    from beetle.importing.report import Failed, ImportReport


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
        from beetle.asking import run
        from beetle.importing.given import import_of
        from beetle.importing.running import Watch

        return run(import_of(paths, format, dry_run, says, Watch(on_problem, on_progress)), self.call)

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
        from beetle.importing.given import export_of

        return exported(export_of(conversations, format, include_private), self.call)
