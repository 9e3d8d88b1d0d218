"""Any report as text: its fields as names and values, its lists of records as tables."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, cast

from msgspec import UNSET, Struct

from beetle.cli.text import neutral_json, pairs, table
from beetle.contracts import codec
from beetle.contracts.common import Report

ABOUT_THE_ANSWER = ("lifecycle", "profile_budget_applied", "has_more", "next_cursor")
"""Said of every report in the same words, where there is something to say."""


def report_text(report: Report, width: int | None) -> str:
    """The report's fields in their order; `width` None is a pipe: nothing is cut."""
    fields = {name: getattr(report, name) for name in report.__struct_fields__ if name not in ABOUT_THE_ANSWER}
    shown = {name: value for name, value in fields.items() if value is not UNSET}
    lists = {name: value for name, value in shown.items() if _is_of_records(value)}
    parts = [pairs([(_words(name), _value(value)) for name, value in shown.items() if name not in lists])]
    for name, records in lists.items():
        columns = records[0].__struct_fields__
        rows = [[_value(getattr(record, column)) for column in columns] for record in records]
        head = [f"{_words(name)}:"] if len(lists) > 1 or parts[0] else []
        parts.append("\n".join([*head, table(rows, [_words(column).upper() for column in columns], width)]))
    return "\n\n".join(part for part in parts if part) or "Done."


def _is_of_records(value: Any) -> bool:
    """Whether a value is a list of structs of one kind."""
    if not isinstance(value, tuple) or not value:
        return False
    kinds = {type(each) for each in cast("Sequence[object]", value)}
    return len(kinds) == 1 and issubclass(kinds.pop(), Struct)


def _words(name: str) -> str:
    return name.replace("_", " ")


def _value(value: Any) -> str:
    if value is None or value is UNSET or value == ():
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str | int | float | datetime):
        return str(value)
    if isinstance(value, tuple) and all(isinstance(each, str | int) for each in cast("Sequence[object]", value)):
        return ", ".join(str(each) for each in cast("Sequence[object]", value))
    return neutral_json(codec.pack_json(value).decode())
