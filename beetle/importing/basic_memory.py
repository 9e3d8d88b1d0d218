"""`basic-memory`: notes of basic-memory, Markdown with front matter, observations and relations.

`- [category] text #tag (context)` is an observation and `- type [[Target]] (context)` a relation, wherever they stand.
The prose between them is evidence, and claims nothing.

From NOTE-FORMAT.md of basicmachines-co/basic-memory, and the page "Knowledge Format" of its manual.
"""

from __future__ import annotations

import re
from datetime import datetime

from beetle.importing.items import Fact, Items, Problem, Source, SourceLocation
from beetle.importing.markdown import Block, blocks, page
from beetle.importing.times import moment

OBSERVATION = re.compile(r"\[([^\[\]()]{1,64})\]\s+(.+)$", re.DOTALL)
RELATION = re.compile(r"([^\[\]]{0,128}+)\[\[([^\[\]]{1,256}+)\]\]\s*+(?:\((.*)\)\s*+)?$", re.DOTALL)
CONTEXT = re.compile(r"(?<!\s)\s*+\(([^()]*+)\)\s*+$")
TAG = re.compile(r"(?<!\S)#([^\s#]+)")
TASKS = ("x", "X", " ", "-")
RELATES = "relates to"
NOTE = re.compile(r"(?m)^[ \t]*+[-*+][ \t]++(?:\[(?![ xX-]\])[^\[\]()\n]++\][ \t]++\S|[^\[\]\n]*+\[\[[^\[\]\n]++\]\])")
"""A line by which a page of this format is known."""


def read(source: Source) -> Items:
    """A fact an observation and a relation, in the conversation of the note's permalink."""
    found = page(source)
    if isinstance(found, Problem):
        yield found
        return
    fields = found.fields
    title = fields.get("title") or source.stem.rpartition("/")[2].removesuffix(".md")
    at = _time(fields.get("modified") or fields.get("updated") or fields.get("created") or fields.get("date"))
    note = _Note(fields.get("permalink") or None, title, at, fields.get("tags", ""))
    for block in blocks(found.lines):
        yield note.fact(block)


def _time(text: str | None) -> datetime | None:
    try:
        return None if text is None else moment(datetime.fromisoformat(text))
    except ValueError:
        return None


class _Note:
    def __init__(self, permalink: str | None, title: str, at: datetime | None, tags: str) -> None:
        self._permalink = permalink
        self._title = title
        self._at = at
        self._tags = tags

    def fact(self, block: Block) -> Fact:
        """What one block states."""
        place = SourceLocation("line", block.number)
        if block.kind == "item":
            observed = OBSERVATION.match(block.text)
            if observed is not None and observed[1] not in TASKS:
                return self._observation(place, observed[1].strip(), observed[2])
            related = RELATION.match(block.text)
            if related is not None:
                words = (related[1].strip().strip('"') or RELATES).replace("_", " ")
                statement = f"{self._title} {words} {related[2].strip()}"
                return self._made(place, statement, "relationship", {"context": related[3] or ""})
        return self._made(place, block.text, "prose", {"section": block.heading})

    def _observation(self, place: SourceLocation, category: str, text: str) -> Fact:
        context = CONTEXT.search(text)
        text = text[: context.start()] if context is not None else text
        tags = TAG.findall(text)
        statement = " ".join(TAG.sub("", text).split())
        named = self._title.casefold() in statement.casefold()
        words = {"category": category, "tags": " ".join(tags), "context": context[1] if context is not None else ""}
        return self._made(place, statement if named else f"{self._title}: {statement}", "fact", words)

    def _made(self, place: SourceLocation, text: str, kind: str, words: dict[str, str]) -> Fact:
        tags = " ".join(each for each in (words.get("tags", ""), self._tags) if each)
        attrs = tuple((key, value) for key, value in ({**words, "tags": tags, "note": self._title}).items() if value)
        claim = kind != "prose"
        kept = "relationship" if kind == "relationship" else "fact"
        return Fact(place, self._permalink, text, kept, self._at, attrs=attrs, claim=claim)
