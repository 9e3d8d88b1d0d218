"""`chunk export-tree` and `chunk import-tree`: a folder of JSON files, read and written where the command runs."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

from beetle.cli import data
from beetle.cli.continuity import APART, MOST_BYTES
from beetle.cli.flags import Flag, add_flag, collect, flags_of
from beetle.cli.parser import Parser, typed_option
from beetle.contracts.chunk_trees import ChunkExportTreeReport, ChunkImportTreeReport, RefusedFile
from beetle.contracts.codec import replace
from beetle.contracts.errors import IntegrityViolation, InvalidRequest, PayloadTooLarge
from beetle.contracts.operations import Operation

if TYPE_CHECKING:
    from beetle.chunk_tree.archive import Member
    from beetle.chunk_tree.document import Unreadable
    from beetle.chunk_tree.folder import TreeFolder

SOME_REFUSED = 1
"""Exit code when some files are not imported."""
MOST_UNPACKED = 2**40


def _flags(row: Operation) -> tuple[Flag, ...]:
    return tuple(each for each in flags_of(row.kinds[0]) if each.field not in APART)


def fill_operation(row: Operation, parser: Parser) -> None:
    """The folder, and the other fields of the request."""
    whose = "a new one, or one that holds such files" if row.takes_out else "it holds chunks/ and archive/"
    parser.add_argument("folder", metavar="FOLDER", help=f"the folder: {whose}")
    if flags := _flags(row):
        group = parser.add_argument_group("request")
        for flag in flags:
            add_flag(group, flag)
    data.add_call_options(parser)


def run_operation(row: Operation, typed: Namespace) -> int:
    """Write the folder, or import it."""
    arguments = collect(_flags(row), typed)
    return _run_export(row, typed, arguments) if row.takes_out else _run_import(row, typed, arguments)


def _run_export(row: Operation, typed: Namespace, arguments: dict[str, Any]) -> int:
    from beetle.chunk_tree.folder import hindered, write_tree

    with _made(typed.folder) as folder:
        report = cast(ChunkExportTreeReport, data.ask(typed, row, arguments))
        if report.archive is None:
            raise InvalidRequest(reason="this caller's view shows no content to export", hint="ask as an operator")
        try:
            written = write_tree(folder, _files(report.archive))
        except OSError as error:
            raise hindered(error, folder.path) from None
    data.show(replace(report, archive=None), typed)
    if not typed_option(typed, "json"):
        from beetle.cli.text import count

        print(f"{count(written.written, 'file')} written, {written.unchanged:,} unchanged, {written.removed:,} removed")
        if written.left:
            print(f"{count(written.left, 'file')} of chunks that the store does not hold: left as they are")
    return 0


def _made(path: str) -> TreeFolder:
    from beetle.chunk_tree.folder import TreeFolder, hindered

    try:
        return TreeFolder(path, make=True)
    except OSError as error:
        raise hindered(error, path) from None


def _files(archive: bytes) -> Iterator[Member]:
    from beetle.chunk_tree.archive import DamagedArchive, Limits, members
    from beetle.chunk_tree.document import Unreadable

    try:
        for each in members(archive, Limits(MOST_BYTES, MOST_UNPACKED, MOST_UNPACKED)):
            if isinstance(each, Unreadable):
                raise IntegrityViolation(reason=f"the export holds {each.path}: {each.reason}")
            yield each
    except DamagedArchive as error:
        raise IntegrityViolation(reason=f"the export cannot be unpacked: {error}") from None


def _run_import(row: Operation, typed: Namespace, arguments: dict[str, Any]) -> int:
    from beetle.chunk_tree.folder import TreeFolder

    left: list[Unreadable] = []
    with TreeFolder(typed.folder) as folder:
        archive = _packed(folder, left)
    report = cast(ChunkImportTreeReport, data.ask(typed, row, {**arguments, row.carries: archive}))
    own = tuple(RefusedFile(path=each.path, reason=each.reason) for each in left)
    report = replace(report, refused=(*own, *report.refused), refused_files=len(own) + report.refused_files)
    if not typed_option(typed, "json"):
        _print_counts(report)
    data.show(report, typed)
    return SOME_REFUSED if report.refused_files else 0


def _packed(folder: TreeFolder, left: list[Unreadable]) -> bytes:
    """The folder's files as an archive; what cannot be read is kept in `left`."""
    from beetle.chunk_tree.archive import Packing
    from beetle.chunk_tree.document import Unreadable
    from beetle.chunk_tree.folder import NoTree, is_tree, read_tree

    if not is_tree(folder):
        raise NoTree(path=folder.path, reason="holds neither chunks/ nor archive/")
    packing = Packing()
    for each in read_tree(folder):
        if isinstance(each, Unreadable):
            left.append(each)
            continue
        packing.add(*each)
        if packing.bytes > MOST_BYTES:
            raise PayloadTooLarge(what=folder.path, maximum=MOST_BYTES, unit="bytes", limit="import_bytes")
    return packing.close()


def _print_counts(report: ChunkImportTreeReport) -> None:
    from beetle.cli.text import count, neutral

    for each in report.refused:
        print(f"beetle: {neutral(each.path or '-')}: {neutral(each.reason)}", file=sys.stderr)
    if (more := report.refused_files - len(report.refused)) > 0:
        print(f"beetle: and {count(more, 'further file')}", file=sys.stderr)
