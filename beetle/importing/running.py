"""An import from its files to its report."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

from beetle.asking import Ask, Asking, run
from beetle.contracts.common import Report
from beetle.contracts.errors import InvalidRequest
from beetle.contracts.progress import OnProgress, ProgressStep
from beetle.importing.ahead import ahead
from beetle.importing.files import NoFile, Opened, SourceFile, check, found_files, opened
from beetle.importing.formats import READERS, UnknownFormat
from beetle.importing.items import ChainItem, Fact, Format, Item, LeftOut, Problem, SourceLocation
from beetle.importing.prepare import Options, Prepared, Preparer
from beetle.importing.report import MOST_PROBLEMS, Failed, FileReport, ImportReport
from beetle.importing.sending import Sender, new_sender
from beetle.importing.sending_chains import ChainSender
from beetle.named_tuple import NamedTuple

READING = "reading"
PROGRESS_ITEMS = 200
"""After so many items progress is told, and others may run."""


class Watch(NamedTuple):
    """Who is told while an import runs: of each thing that failed, and of how far it is, in bytes of a file."""

    on_problem: Callable[[Failed], None] | None = None
    on_progress: OnProgress | None = None


def import_files(
    ask: Ask | None, paths: Sequence[str], forced: Format | None, options: Options, watch: Watch
) -> ImportReport:
    """Take in files as `importing` does; `ask` runs an operation, and None only says what would be taken in."""
    return run(importing(ask is not None, paths, forced, options, watch, threaded=ask is not None), ask or _never)


def _never(operation: str, arguments: Any, /) -> Report:
    raise AssertionError(f"a dry run asks for {operation}")


def importing(
    sends: bool,
    paths: Sequence[str],
    forced: Format | None,
    options: Options,
    watch: Watch,
    *,
    threaded: bool = False,
) -> Asking[ImportReport]:
    """Take in files, in their order. The same again changes nothing, so an import that ended early is run again.

    Args:
        sends: whether anything is taken in; otherwise nothing is asked for.
        threaded: whether files are read on a thread of their own, while answers are waited for.

    Raises:
        NoFile, UnknownFormat: of a path that was given, before anything is taken in.
        BeetleError: the store or the daemon cannot go on; what was taken in stays.
    """
    files = list(found_files(paths, forced))
    for each in files:
        if isinstance(each, SourceFile) and each.named:
            check(each, forced)
    sender: Sender | None = None
    taken = _Import(sends, options, watch, len(files), threaded=threaded)
    if sends:
        sender = yield from new_sender(taken.failed)
    for each in files:
        yield from taken.file(each, forced, sender)
    yield from taken.finish()
    return taken.report


def _prepared(preparer: Preparer, item: Item) -> Prepared | InvalidRequest | None:
    """What is sent for an item, or what is wrong with it; None of what is sent in another way, or not at all."""
    if isinstance(item, Problem | LeftOut | ChainItem):
        return None
    try:
        return preparer.prepared(item)
    except InvalidRequest as error:
        return error


class _Import:
    def __init__(self, sends: bool, options: Options, watch: Watch, files: int, *, threaded: bool) -> None:
        self.report = ImportReport(dry_run=not sends)
        self._options = options
        self._watch = watch
        self._files = files
        self._threaded = threaded
        self._now = FileReport(path="", format="")
        self._chains = ChainSender(sends, self.failed)

    def file(self, found: SourceFile | Problem, forced: Format | None, sender: Sender | None) -> Asking[None]:
        """Take in one file, or tell why a folder's is passed over."""
        self._now = FileReport(path=found.path if isinstance(found, SourceFile) else "", format=forced or "")
        self.report.files.append(self._now)
        if isinstance(found, Problem):
            self.failed(None, found.reason)
            return
        try:
            with opened(found, forced) as file:
                self._now.format = file.format
                self._now.bytes = file.size
                if file.guessed:
                    self._derived("chain key", "the file's name")
                yield from self._read(file, sender)
        except (NoFile, UnknownFormat) as error:
            self.failed(None, error.message)

    def finish(self) -> Asking[None]:
        """What can only be done behind the last file."""
        yield from self._chains.finish()

    def _read(self, file: Opened, sender: Sender | None) -> Asking[None]:
        self._chains.begin(self._now)
        if sender is not None:
            sender.begin(self._now)
        preparer = Preparer(self._options, file.format, file.source.stem, file.changed, self._derived)
        items = ((item, _prepared(preparer, item)) for item in READERS[file.format](file.source))
        with closing(ahead(items) if self._threaded else items) as found:
            for number, (item, prepared) in enumerate(found):
                if number % PROGRESS_ITEMS == 0:
                    if self._watch.on_progress is not None:
                        done = min(file.source.stream.tell(), file.size)
                        step = ProgressStep(READING, len(self.report.files), self._files, done, file.size)
                        self._watch.on_progress(step)
                    yield None
                yield from self._item(item, prepared, sender)
        if sender is not None:
            yield from sender.flush()

    def _item(self, item: Item, prepared: Prepared | InvalidRequest | None, sender: Sender | None) -> Asking[None]:
        if isinstance(item, Problem):
            self.failed(item.place, item.reason)
        elif isinstance(item, LeftOut):
            self._now.left_out[item.what] = self._now.left_out.get(item.what, 0) + 1
        elif isinstance(item, ChainItem):
            yield from self._chains.take(item)
        elif isinstance(prepared, InvalidRequest):
            self.failed(item.place, prepared.message)
        elif prepared is not None:
            self._now.turns += 1
            self._now.facts += isinstance(item, Fact) and prepared.claim is not None
            if sender is None:
                self._now.list_conversation(prepared.conversation)
            else:
                yield from sender.add(prepared)

    def _derived(self, what: str, source: str) -> None:
        self._now.derived.setdefault(what, source)

    def failed(self, place: SourceLocation | None, reason: str) -> None:
        """Note what is not taken in, and tell the watch."""
        self._now.failed += 1
        failed = Failed(path=self._now.path, place=None if place is None else str(place), reason=reason)
        if len(self.report.problems) < MOST_PROBLEMS:
            self.report.problems.append(failed)
        if self._watch.on_problem is not None:
            self._watch.on_problem(failed)
