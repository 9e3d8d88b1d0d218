"""`memory-md`: MEMORY.md and its like (CLAUDE.md, AGENTS.md): Markdown in which a host keeps what it has learned.

Each list item and each paragraph is a statement. Code blocks are evidence, and claim nothing.

From the page on memory of Claude Code's manual, which asks for headings and list items and fixes no other form.
"""

from __future__ import annotations

import re

from beetle.importing.items import Fact, Items, LeftOut, Problem, Source, SourceLocation
from beetle.importing.markdown import blocks, page

MARKS = re.compile(r"\*\*(.+?)\*\*|__(.+?)__|^\[[ xX]\]\s+")
COMMENT = re.compile(r"\s*<!--.*-->\s*", re.DOTALL)


def read(source: Source) -> Items:
    """A fact for each item and paragraph, with the heading that it stands under."""
    found = page(source)
    if isinstance(found, Problem):
        yield found
        return
    for block in blocks(found.lines):
        place = SourceLocation("line", block.number)
        if COMMENT.fullmatch(block.text):
            yield LeftOut("comment")
            continue
        text = block.text if block.kind == "code" else MARKS.sub(lambda mark: mark[1] or mark[2] or "", block.text)
        attrs = (("section", block.heading),) if block.heading else ()
        if text.strip("-*_= "):
            yield Fact(place, None, text, attrs=attrs, claim=block.kind != "code")
