"""Reports of chains as text: what is meant to be read as text is printed as it is, an export as JSON lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from beetle.cli.text import neutral_json, neutral_lines
from beetle.contracts import codec
from beetle.contracts.chains import ChainExportReport, ChainMemoryMarkdownReport, ChainRecentContextReport
from beetle.contracts.common import Report


def exported(report: ChainExportReport, width: int | None) -> str:
    """One thought a line."""
    del width
    return "\n".join(neutral_json(codec.pack_json(each).decode()) for each in report.thoughts)


def prompt(report: ChainRecentContextReport, width: int | None) -> str:
    """The prompt."""
    del width
    return "\n".join(neutral_lines(report.prompt or "")).rstrip("\n")


def markdown(report: ChainMemoryMarkdownReport, width: int | None) -> str:
    """The Markdown."""
    del width
    return "\n".join(neutral_lines(report.markdown or "")).rstrip("\n")


RENDERERS: Mapping[type[Report], Callable[[Any, int | None], str]] = {
    ChainExportReport: exported,
    ChainRecentContextReport: prompt,
    ChainMemoryMarkdownReport: markdown,
}
