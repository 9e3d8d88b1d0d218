"""Chunks in the area Memory: by conversation and by tag, links followed both ways, archive and restore."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from beetle.client import Client
from beetle_tui.document import Document
from beetle_tui.source import DaemonSource
from tests.forked import Daemon
from tests.tui.remembering import PROFILE, go, part
from tests.tui.showing import Shown, show


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with Daemon(profile=PROFILE) as found:
        yield found


@pytest.fixture
def client(daemon: Daemon) -> Iterator[Client]:
    with daemon.client() as found:
        yield found


def note(client: Client, content: str, conversation: str, *tags: str, **more: Any) -> str:
    return client.create_chunk(content=content, conversation_id=conversation, tags=tags, type="note", **more).chunk.id


def test_nothing_is_there_and_it_is_said_how_chunks_come(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await part(shown, "Chunks")
        await shown.until_shown("No chunk", "Chunks are linked notes", "import-tree", "v lists them")

    show(DaemonSource(daemon.client()), look)


def test_chunks_are_found_by_conversation_and_by_tag_and_their_links_lead_both_ways(
    daemon: Daemon, client: Client
) -> None:
    first = note(client, "The strainer clogs in autumn", "pump", "water", "autumn")
    second = note(client, "The hose leaks at the valve", "garden", "water")
    third = note(client, "Autumn is dry", "garden")
    client.link_chunk(id=third, kind="contradicts", target=first, strength=0.75)

    async def look(shown: Shown) -> None:
        await part(shown, "Chunks")
        await shown.until_shown("1 of 2 conversations", "> ", "garden", "pump", "2 chunks. Enter lists them.")
        await shown.press("down", "enter")
        await shown.until_shown("1 of 1 chunk; conversation pump", "The strainer clogs in autumn", "Linked from")
        await shown.press("escape")
        await shown.until_shown("2 of 2 conversations", "─ pump")
        await shown.press("v")
        await shown.until_shown("1 of 2 tags", "autumn", "water")
        await shown.press("down", "enter")
        await shown.until_shown("1 of 2 chunks; tag water", f"─ {first}", "related_to", "contradicts", "0.75")
        # From its page to the chunk that contradicts it, from there back to it, and along the same way back.
        await shown.press("enter")
        await follow(shown, third)
        await shown.until_shown("1 of 1 chunk; a link led to it", "Autumn is dry", f"━ {third}")
        await follow(shown, first)
        await shown.until_shown(f"━ {first}")
        await shown.press("escape", "escape")
        await shown.until_shown(f"─ {third}", "a link led to it")
        await shown.press("escape")
        await shown.until_shown("1 of 2 chunks; tag water")

    show(DaemonSource(daemon.client()), look)
    assert client.get_chunk(id=second, count_access=False).chunk.metadata.access_count == 0, "looking is no access"


async def follow(shown: Shown, chunk_id: str) -> None:
    """Go from link to link on the page until the one to a chunk is chosen, and follow it."""
    page = shown.console.screen.focused
    assert isinstance(page, Document)
    await shown.press("home")
    for _ in range(20):
        if page.target == f"chunks:{chunk_id}":
            await shown.press("enter")
            return
        await shown.press("n")
    raise AssertionError(f"no link leads to {chunk_id}")


def test_a_chunk_is_archived_restored_and_deleted_once_it_was_agreed(daemon: Daemon, client: Client) -> None:
    made = note(client, "Old gossip", "talk")

    async def look(shown: Shown) -> None:
        await part(shown, "Chunks")
        await shown.until_shown("Enter lists them")
        await shown.press("end")
        await shown.until_shown("─ talk")
        await shown.press("x")
        await shown.until_shown("choose a chunk: enter lists those of this row")
        await shown.press("enter")
        await shown.until_shown("conversation talk", "Old gossip")
        for key, question, answer, said in (
            ("x", "Archive the chunk?", "n", "1 of 1 chunk; conversation talk"),
            ("u", f"{made} is not archived", "", ""),
            ("x", "Archive the chunk?", "y", f"archived: {made}"),
        ):
            await shown.press(key)
            await shown.until_shown(question)
            if answer:
                await shown.press(answer)
                await shown.until_shown(said)
        await shown.until_shown("No chunk; conversation talk")
        await shown.press("v", "v")
        await shown.until_shown("1 of 1 chunk; archived", "Old gossip")
        await shown.press("x")
        await shown.until_shown("is archived already")
        await shown.press("u")
        await shown.until_shown("Restore the chunk?", made)
        await shown.press("y")
        await shown.until_shown(f"restored: {made}", "No chunk; archived")
        await shown.press("v")
        await shown.until_shown("Enter lists them")
        await shown.press("end")
        await shown.until_shown("─ talk")
        await shown.press("enter")
        await shown.until_shown("conversation talk", "Old gossip")
        await shown.press("d")
        await shown.until_shown("Delete the chunk for good?", "This cannot be undone")
        await shown.press("y")
        await shown.until_shown("deleted", "Receipt")
        await shown.press("escape")
        await shown.until_shown("No chunk; conversation talk")

    show(DaemonSource(daemon.client()), look)
    assert client.get_chunk(id=made).chunk is None


def test_a_ref_of_a_chunk_leads_to_it_from_another_area(daemon: Daemon, client: Client) -> None:
    made = note(client, "The gauge reads in bar", "gauges")

    async def look(shown: Shown) -> None:
        await go(shown, "recall")
        await shown.until_shown("read ")
        shown.console.go(f"chunks:{made}")
        await shown.until_shown(f"━ {made}", "The gauge reads in bar", "a link led to it")
        shown.console.go("chunks:nobody")
        await shown.until_shown("there is no chunk nobody")

    show(DaemonSource(daemon.client()), look)
