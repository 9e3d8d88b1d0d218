"""The scenes of the pictures: whose world each is in, and the keys that lead to it."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import NamedTuple

from textual.events import Paste
from textual.pilot import Pilot
from textual.theme import Theme

from beetle.chunk_tree.archive import Member, packed
from beetle_tui.app import Console
from beetle_tui.dialogs import Working
from beetle_tui.editor import SkillEditor
from beetle_tui.json_view import ReportView
from beetle_tui.line_input import LineInput
from beetle_tui.operation_form import OperationForm
from beetle_tui.theme import ANSI, DARK, LIGHT, MONOCHROME
from tests.forked import Daemon
from tests.tui.pictured import WIDE
from tests.tui.showing import Shown
from tests.tui.steady import Held, Replicated, Steady


class Visit(Shown):
    """A console in a world."""

    def __init__(self, console: Console, pilot: Pilot[None], daemon: Daemon) -> None:
        super().__init__(console, pilot)
        self.daemon = daemon


Lead = Callable[[Visit], Awaitable[None]]
USUAL, SMALL = ((80, 24), (160, 48)), ((60, 16),)


class Scene(NamedTuple):
    """How a picture comes about: what leads to it, whose world it is in, the sizes and themes it is taken in.

    A world in `OWN` is made for the scene alone, which may change it.
    """

    lead: Lead
    world: str = "full"
    sizes: tuple[tuple[int, int], ...] = USUAL
    themes: tuple[Theme, ...] = (DARK, LIGHT)
    source: type[Steady] = Steady


OWN = frozenset({"own", "broken", "stranger"})


async def go(shown: Visit, area: str) -> None:
    """To an area, and not to the place of it that the overview would lead to."""
    await shown.until_shown("read ")
    shown.console.switch_mode(area)
    await shown.until(lambda: shown.console.current_mode == area and shown.console.area.filled)


async def say(shown: Visit, text: str) -> None:
    """Paste a text into the line that has the keys, and enter it."""
    line = shown.console.screen.focused
    assert isinstance(line, LineInput)
    line.post_message(Paste(text))
    await shown.until(lambda: bool(line.value))
    await shown.press("enter")


async def overview(shown: Visit) -> None:
    await go(shown, "overview")
    await shown.until_shown("masked, deleted", "candidate waits", "/s ")


async def skills(shown: Visit) -> None:
    await go(shown, "skills")
    await shown.press("down", "down")
    await shown.until_shown("3 of 3 skills", "Quieten the pump", "Listen for a minute")


async def agent_skills(shown: Visit) -> None:
    await go(shown, "skills")
    await shown.press("right")
    await shown.until_shown("1 of 2 skills")
    await shown.press("down")
    await shown.until_shown("2 of 2 skills", "─ read-gauges")


async def devices(shown: Visit) -> None:
    await go(shown, "devices")
    await shown.until_shown("1 of 3 devices", "─ Kitchen display", "recall  ")


async def transcripts(shown: Visit) -> None:
    await go(shown, "transcripts")
    await shown.until_shown("1 of 2 conversations")


async def timeline(shown: Visit) -> None:
    await transcripts(shown)
    await shown.press("down")
    await shown.until_shown("> local/workshop")
    await shown.press("enter")
    await shown.until_shown("6 of 6 turns", "─ Turn t6")


async def third_turn(shown: Visit) -> None:
    """The one that a skill and a fact come from."""
    await timeline(shown)
    await shown.press("up", "up", "up")
    await shown.until_shown("3 of 6 turns", "─ Turn t3", "Cleaning the strainer helped. It is quiet now.")


async def memory(shown: Visit) -> None:
    await go(shown, "memory")
    await shown.until_shown("1 of 3 facts", "Mara prefers", "1 revision")


async def chains(shown: Visit) -> None:
    await go(shown, "chains")
    await shown.until_shown("1 of 1 chain", "Whole", "A loud pump is a full strainer.")


async def thoughts(shown: Visit) -> None:
    await chains(shown)
    await shown.press("enter")
    await shown.until_shown("1 of 4 thoughts", "newest first", "─ Thought 3")
    await shown.press("down", "down")
    await shown.until_shown("3 of 4 thoughts", "─ Thought 1", "thought 3: A loud pump")


async def registry(shown: Visit) -> None:
    await chains(shown)
    await shown.press("left")
    await shown.until_shown("1 of 1 skill", "─ quieten-the-pump", "Warnings")


async def contents(shown: Visit) -> None:
    await go(shown, "time")
    await shown.until_shown("1 of 3 years", "> 2026")
    await shown.press("enter")
    await shown.until_shown("1 of 3 months", "> January 2026")
    await shown.press("enter")
    await shown.until_shown("1 of 1 week", "> Week 5, 2026")


async def segments(shown: Visit) -> None:
    await contents(shown)
    await shown.press("enter")
    await shown.until_shown("1 of 2 days", "> January 28")
    await shown.press("down", "enter")
    await shown.until_shown("1 of 3 segments", "- The pump on line 2")
    await shown.press("tab", "home", "n", "o")
    await shown.until_shown("user: [masked]")


async def hosts(shown: Visit) -> None:
    await go(shown, "time")
    await shown.press("right")
    await shown.until_shown("1 of 2 hosts")
    await shown.press("down")
    await shown.until_shown("> codex", "2-3, 6-8")


async def backup(shown: Visit) -> None:
    """One by hand, and one that the job has made."""
    with shown.daemon.client() as client:
        for label in ("before the move", "scheduled"):
            client.create_snapshot(label=label)
    await go(shown, "backup")
    await shown.until_shown("1 of 2 copies", "What was erased", "newest, hourly")


async def replica(shown: Visit) -> None:
    await go(shown, "backup")
    await shown.press("right")
    await shown.until_shown("1 of 1 replica", "what is written arrives")


def part(title: str, *texts: str) -> Lead:
    async def look(shown: Visit) -> None:
        await memory(shown)
        for _ in range(("Facts", "Chunks", "Policies", "Tools", "Waiting", "Proposals", "Jobs").index(title)):
            await shown.press("right")
        await shown.until_shown(*texts)

    return look


def noted(number: int, content: str, conversation: str, kind: str, **links: list[int]) -> Member:
    """The file of a chunk; `links` are the numbers of others."""
    chunk_id = f"chunk-2026-03-0{number}-00c0ffe{number}"
    said = {
        "id": chunk_id, "content": content, "tokens": 14, "type": kind,
        "metadata": {"created": f"2026-03-0{number}T08:12:00Z", "conversation_id": conversation, "confidence": 0.9},
        "links": {each: [f"chunk-2026-03-0{one}-00c0ffe{one}" for one in ones] for each, ones in links.items()},
        "tags": ["pump", kind],
    }  # fmt: skip
    return Member(f"chunks/2026-03/{chunk_id}.json", json.dumps(said).encode())


NOTED = (
    noted(1, "The pump on line 2 gets loud once its strainer is full.", "workshop", "fact"),
    noted(2, "We clean the strainer every second Monday.", "workshop", "decision", follows=[1], supports=[1]),
    noted(3, "Mara prefers to be called, not written to.", "workshop", "preference"),
    noted(4, "The pump is loud whenever the tank runs dry.", "garden", "pattern", contradicts=[1], related_to=[1]),
)


async def chunks(shown: Visit) -> None:
    with shown.daemon.client() as client:
        client.import_chunk_tree(archive=packed(NOTED))
    await go(shown, "memory")
    await shown.press("right")
    await shown.until_shown("1 of 2 conversations")
    await shown.press("down")
    await shown.until_shown("─ workshop")
    await shown.press("enter")
    await shown.until_shown("1 of 3 chunks; conversation workshop", "contradicts", "chunk-2026-03-04")


async def recall(shown: Visit) -> None:
    await go(shown, "recall")
    await shown.press("slash")
    await say(shown, "loud pump")
    await shown.until_shown("> 1.000", "loud pump")


async def block(shown: Visit) -> None:
    await recall(shown)
    await shown.press("right")
    await shown.until_shown("Block: ", "As a model gets it")


async def log(shown: Visit) -> None:
    await go(shown, "log")
    await shown.until_shown("chain ok for", "device_id", "─ Row")


def then(lead: Lead, *keys: str, until: tuple[str, ...]) -> Lead:
    """Some keys more, until all of these texts are shown."""

    async def look(shown: Visit) -> None:
        await lead(shown)
        await shown.press(*keys)
        await shown.until_shown(*until)

    return look


def typed(lead: Lead, key: str, asked: str, text: str, *texts: str) -> Lead:
    """A key that asks, once it does; what is said then, and what comes of it."""

    async def look(shown: Visit) -> None:
        await lead(shown)
        await shown.press(key)
        await shown.until_shown(asked)
        await say(shown, text)
        await shown.until_shown(*texts)

    return look


async def palette(shown: Visit) -> None:
    await skills(shown)
    await shown.press("ctrl+p")
    await shown.until_shown("> Overview")
    await shown.until(lambda: not any(each.name == "more" for each in shown.console.workers))


async def palette_found(shown: Visit) -> None:
    await palette(shown)
    await shown.press(*"transcript")
    await shown.until_shown("> Transcripts", "transcript.commit")


async def form(shown: Visit, name: str) -> None:
    await skills(shown)
    shown.console.action_operation(name)
    await shown.until(lambda: isinstance(shown.console.screen, OperationForm) and bool(shown.console.screen.focused))


async def report(shown: Visit) -> None:
    await form(shown, "skill.list")
    await shown.press("enter")
    await shown.until(lambda: isinstance(shown.console.screen, ReportView))
    await shown.press(*["down"] * 11, "enter", "down", "enter")
    await shown.until_shown("> ", '"name": "runtime_skill__find-key"', '"title": "鍵を探す')


async def editor(shown: Visit) -> None:
    await skills(shown)
    await shown.press("i")
    await shown.until(lambda: isinstance(shown.console.screen, SkillEditor))
    await shown.until_shown("Stop the **pump**")


async def filter_open(shown: Visit) -> None:
    await skills(shown)
    await shown.press("slash", *"pump")
    await shown.until_shown(" / pump")


async def filtered(shown: Visit) -> None:
    await filter_open(shown)
    await shown.press("enter")
    await shown.until_shown("1 of 1 skill", "1 of 1 skill")


async def key_shown(shown: Visit) -> None:
    await devices(shown)
    await shown.press("a")
    await shown.until_shown("Label")
    await shown.press(*"Phone", "tab", *"phone", "ctrl+s")
    await shown.until_shown("[ ]  recall")
    await shown.press("space", "enter")
    await shown.until_shown("it is not shown again")


async def receipt(shown: Visit) -> None:
    await third_turn(shown)
    await shown.press("x")
    await shown.until_shown("Delete for good", "why?")
    await say(shown, "she asked for it")
    await shown.until_shown("y does it")
    await shown.press("y")
    await shown.until_shown("Delete for good: done", "y copies the receipt")


async def lost(shown: Visit) -> None:
    await skills(shown)
    shown.daemon.kill()
    await shown.until_shown("The daemon is lost", "Trying again in 30 s")


async def refused(shown: Visit) -> None:
    await shown.until_shown("forbidden")
    await shown.press("3")
    await shown.until_shown("Could not read: forbidden")


async def verifying(shown: Visit) -> None:
    await log(shown)
    await shown.press("v")
    await shown.until(lambda: isinstance(shown.console.screen, Working))
    await shown.until_shown("12 seconds so far")


async def too_small(shown: Visit) -> None:
    await shown.until_shown("This terminal has")


async def wide_recall(shown: Visit) -> None:
    await go(shown, "recall")
    await shown.press("slash")
    await say(shown, "".join(WIDE[:4]))
    await shown.until_shown("> 1.000")


WIDE_TALKS = then(partial(go, area="transcripts"), until=("1 of 6 conversations",))

SCENES: dict[str, Scene] = {
    "overview": Scene(overview, sizes=USUAL + SMALL),
    "overview-ansi": Scene(overview, themes=(ANSI,)),
    "overview-monochrome": Scene(overview, themes=(MONOCHROME,)),
    "skills": Scene(skills, sizes=USUAL + SMALL),
    "agent-skills": Scene(agent_skills),
    "devices": Scene(devices, sizes=USUAL + SMALL),
    "transcripts": Scene(transcripts, sizes=USUAL + SMALL),
    "timeline": Scene(timeline, sizes=USUAL + SMALL),
    "memory": Scene(memory, sizes=USUAL + SMALL),
    "policies": Scene(part("Policies", "1 of 1 policy")),
    "chunks": Scene(chunks, "own"),
    "tools": Scene(part("Tools", "1 of 1 registry", "Succeeded in 3")),
    "waiting": Scene(part("Waiting", "1 of 1 entry", "needs_assertion")),
    "proposals": Scene(part("Proposals", "1 of 1 proposal", "+The pump")),
    "recall": Scene(recall, sizes=USUAL + SMALL),
    "block": Scene(block),
    "log": Scene(log, sizes=USUAL + SMALL),
    "chains": Scene(chains),
    "thoughts": Scene(thoughts),
    "skill-registry": Scene(registry),
    "contents": Scene(contents, "years", sizes=USUAL + SMALL),
    "segments": Scene(segments, "years"),
    "hosts": Scene(hosts, "years"),
    "backup": Scene(backup, "own", sizes=USUAL + SMALL),
    "replica": Scene(replica, source=Replicated),
    "help": Scene(then(skills, "question_mark", until=("Keys (esc closes)", "find a command by its name"))),
    "palette": Scene(palette),
    "palette-found": Scene(palette_found),
    "operation-form": Scene(partial(form, name="memory.recall")),
    "report": Scene(report),
    "editor": Scene(editor),
    "diff": Scene(then(skills, "h", until=("+Listen for a minute",))),
    "filter-open": Scene(filter_open, sizes=USUAL + SMALL),
    "filter-applied": Scene(filtered),
    "deletion": Scene(then(skills, "d", until=("y does it",))),
    "export": Scene(then(skills, "e", until=("─ Export",))),
    "device-add": Scene(then(devices, "a", until=("Label",))),
    "capabilities": Scene(then(devices, "c", until=("[x]  recall",))),
    "key": Scene(key_shown, "own"),
    "search-ask": Scene(then(transcripts, "f", until=("Search messages",))),
    "search": Scene(typed(transcripts, "f", "Search messages", "pump", "1 of 1 message")),
    "date-ask": Scene(then(timeline, "d", until=("Go to",))),
    "date": Scene(typed(timeline, "d", "Go to", "2026-03-04", "4 of 6 turns", "─ Turn t4")),
    "mask": Scene(then(third_turn, "m", until=("Turn t3 of local/workshop", "why?"))),
    "receipt": Scene(receipt, "own"),
    "repair": Scene(then(transcripts, "p", until=("1 finding, 1 can be mended", "counts disagree")), "broken"),
    "lost": Scene(lost, "own"),
    "refused": Scene(refused, "stranger"),
    "verifying": Scene(verifying, source=Held),
    "too-small": Scene(too_small, sizes=((50, 14),)),
    "wide-overview": Scene(then(partial(go, area="overview"), until=("masked, deleted",)), "wide"),
    "wide-skills": Scene(then(partial(go, area="skills"), until=("1 of 6 skills", "Procedure")), "wide"),
    "wide-devices": Scene(then(partial(go, area="devices"), until=("1 of 6 devices", "May")), "wide"),
    "wide-transcripts": Scene(WIDE_TALKS, "wide"),
    "wide-timeline": Scene(then(WIDE_TALKS, "enter", until=("6 of 6 turns", "─ Turn t6")), "wide"),
    "wide-memory": Scene(then(partial(go, area="memory"), until=("1 of 6 facts", "─ 鍵鍵")), "wide"),
    "wide-recall": Scene(wide_recall, "wide"),
    "wide-log": Scene(then(partial(go, area="log"), until=("chain ok for", "─ Row")), "wide"),
}
EMPTY = {
    "overview": ("Nothing.", "Slowest"),
    "skills": ("No runtime skills yet.",),
    "devices": ("No device", "QR code"),
    "transcripts": ("Nothing was said yet.",),
    "memory": ("No such fact",),
    "recall": ("/ types a query.",),
    "log": ("1 of 1 row", "Subject"),
    "time": ("No year", "Nothing stands here yet."),
    "backup": ("No snapshot: a makes one", "one file that holds the whole store"),
}
"""What stands in each area of a new store."""
SCENES |= {f"empty-{name}": Scene(then(partial(go, area=name), until=texts), "empty") for name, texts in EMPTY.items()}
