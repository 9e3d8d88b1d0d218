"""Running any operation from the palette: a form, a question where it cannot be taken back, and its report."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, cast

from textual.app import App

from beetle.contracts.codec import to_plain
from beetle.contracts.common import Report
from beetle.contracts.control import HelloReport
from beetle.contracts.errors import BeetleError
from beetle.contracts.fields import Request
from beetle.contracts.operations import BY_NAME, Operation
from beetle_tui.dialogs import Confirm, Editing, error_lines
from beetle_tui.json_view import ReportView
from beetle_tui.link import Cancelled, Link
from beetle_tui.operation_form import (
    HIDDEN,
    TAG,
    OperationForm,
    arguments_of,
    kind_of,
    sentence_of,
    typed_arguments,
)
from beetle_tui.palette import Entry, Palette
from beetle_tui.working import long_below

DESTROYS = frozenset({"delete", "delete_raw", "remove", "forget", "forget_by_query", "prune", "restore"})
"""Words of an operation's name, or values of its arguments, after which something is gone."""
NOT_FROM_HERE = frozenset({"batch", "hello"})
"""A batch asks for encoded requests, and hello was asked already."""
MOST_SHOWN = 400


async def operation_entries(link: Link) -> Sequence[Entry]:
    """A line for every operation that this caller may run, as the daemon says it now.

    Raises:
        BeetleError: it does not say it.
    """
    told = cast(HelloReport, await link.call("hello"))
    rows = (BY_NAME.get(each.name) for each in told.operations if each.visible and each.effect != "stream")
    return [
        Entry(row.name, f"operation('{row.name}')", row.help)
        for row in rows
        if row is not None and row.name not in NOT_FROM_HERE
    ]


async def run_operation(app: App[Any], link: Link, name: str) -> None:
    """From the choice of an operation to its report, in a worker. What was typed is kept until it has run."""
    row = BY_NAME[name]
    request = await _which_kind(app, row)
    if request is None:
        return
    texts: Mapping[str, str] | None = {}
    fault: Sequence[str] = ()
    while True:
        texts = await app.push_screen_wait(OperationForm(row, request, texts, fault))
        if texts is None:
            return
        arguments = typed_arguments(arguments_of(request), texts)
        tag = kind_of(request)
        if tag is not None:
            arguments = {TAG: tag, **arguments}
        if must_ask(row, arguments) and not await app.push_screen_wait(_question(row, arguments)):
            fault = ["Nothing was run."]
            continue
        try:
            report = await _run(app, link, row, arguments)
        except Cancelled:
            fault = ["It was called off. What the store had begun by then it may still finish."]
            continue
        except BeetleError as error:
            fault = error_lines(error)
            continue
        await app.push_screen_wait(ReportView(row.name, to_plain(report)))
        return


def must_ask(row: Operation, arguments: Mapping[str, Any]) -> bool:
    """Whether something may be gone afterwards, or the daemon itself is changed. A dry run changes nothing."""
    if arguments.get("dry_run") is True or row.effect == "read":
        return False
    words = {*row.name.replace(".", "_").split("_"), *(each for each in arguments.values() if isinstance(each, str))}
    return row.effect == "admin" or bool(words & DESTROYS)


async def _run(app: App[Any], link: Link, row: Operation, arguments: Mapping[str, Any]) -> Report:
    if row.deadline_ms is None:
        return await link.call(row.name, arguments)
    return await long_below(app, link, row.name, row.name, arguments)


async def _which_kind(app: App[Any], row: Operation) -> type[Request] | None:
    if len(row.kinds) == 1:
        return row.kinds[0]
    by_word = {kind_of(each) or each.__name__: each for each in row.kinds}
    entries = [Entry(word, word, f"{row.name} {word}") for word in by_word]
    word = await app.push_screen_wait(Palette(entries, title=f"{row.name}: which kind?"))
    return None if word is None else by_word[word]


class _Question(Confirm, Editing):
    """Asks before what was typed into a form is run; the form is closed, and nobody else has it."""

    @property
    def unsaved(self) -> bool:
        """See Editing."""
        return True


def _question(row: Operation, arguments: Mapping[str, Any]) -> _Question:
    shown = {name: "…" if name in HIDDEN else value for name, value in arguments.items()}
    text = json.dumps(shown, ensure_ascii=False)
    told = text if len(text) <= MOST_SHOWN else f"{text[: MOST_SHOWN - 1]}…"
    return _Question(f"Run {row.name}?", [sentence_of(row), "", told])
