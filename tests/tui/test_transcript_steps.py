"""The steps that a person takes on turns: mask, archive, delete, mend."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from beetle.client import Client
from beetle_tui.screens.transcripts import Transcripts
from beetle_tui.steps import Receipt
from tests.forked import Daemon
from tests.tui.showing import Shown, at, opened, running, show
from tests.tui.talking import (
    WORKSHOP,
    begin,
    contents,
    message,
    open_workshop,
    pumps,
    spoken,
    type_in,
    write_skill,
)


@pytest.fixture
def daemon() -> Iterator[Daemon]:
    with running() as found:
        yield found


def test_a_person_masks_a_turn_and_recall_forgets_it(daemon: Daemon, client: Client) -> None:
    pumps(client)

    def found() -> list[str]:
        return [hit.message_id or "" for hit in client.recall(query="pump 3 loud", planes=["evidence"]).hits]

    assert "m3" in found()

    async def look(shown: Shown) -> None:
        await open_workshop(shown)
        await shown.press("g", "j", "j")
        await shown.until_shown("3 of 5 turns", "─ Turn t3", "m Mask")
        await shown.press("m")
        await shown.until_shown("Turn t3 of local/workshop", "1 turn, 1 message", "No derived record came from it.")
        await shown.press("enter")
        await shown.until_shown("Say why")
        assert contents(client)["m3"] == "Pump 3 is loud."
        await type_in(shown, "a slip")
        await shown.until_shown("Mask: done", "Row of the event log")
        assert "m3" not in found()
        await shown.press("escape")
        await shown.until_shown("[masked]", "masked: it is masked", "u Unmask")
        assert "m Mask" not in shown.lines[-1]
        await shown.press("u")
        await shown.until_shown("┌─ Unmask")
        await type_in(shown, "no slip")
        await shown.until_shown("Unmask: done")
        await shown.press("escape")
        await shown.until(lambda: "[masked]" not in shown.text)
        assert "m3" in found()

    show(at(daemon), look, size=(120, 40))


def test_a_person_deletes_a_turn_with_its_impact_before_and_its_receipt_after(daemon: Daemon, client: Client) -> None:
    pumps(client)
    write_skill(client)

    async def look(shown: Shown) -> None:
        await open_workshop(shown)
        await shown.press("x")
        await shown.until_shown(
            "┌─ Delete for good", "1 derived record came from it:", "procedural:runtime_skill__quiet"
        )
        await type_in(shown, "asked to")
        await shown.until_shown("Delete for good?", "y does it")
        assert contents(client)["m5"] == "Pump 5 is loud."
        await shown.press("y")
        await shown.until_shown("Delete for good: done", "Erased: no byte of the content is left", "beetle-receipt-1.")
        assert isinstance(shown.console.screen, Receipt)
        receipt = shown.console.screen.receipt
        checked = client.verify_store(receipt=receipt).receipt
        assert checked is not None and checked.valid
        await shown.press("y")
        await shown.until_shown("handed to the terminal's clipboard")
        assert shown.console.clipboard == receipt
        await shown.press("escape")
        await shown.until_shown("[raw_deleted]", "deleted for good")

    show(at(daemon), look, size=(120, 40))
    assert contents(client)["m5"] == "raw_deleted"


def test_a_person_who_does_not_say_yes_changes_nothing(daemon: Daemon, client: Client) -> None:
    pumps(client)

    async def look(shown: Shown) -> None:
        await open_workshop(shown)
        await shown.press("x")
        await shown.until_shown("┌─ Delete for good")
        await shown.press("escape")
        await shown.until(lambda: isinstance(shown.console.screen, Transcripts))
        await shown.press("x")
        await shown.until_shown("┌─ Delete for good")
        await type_in(shown, "perhaps")
        await shown.until_shown("Delete for good?")
        await shown.press("n")
        await shown.until_shown("Nothing was done.", "perhaps")
        await shown.press("escape")
        await shown.until_shown("is not kept")
        await shown.press("y")
        await shown.until(lambda: isinstance(shown.console.screen, Transcripts))

    before = client.inspect().event_log.rows
    show(at(daemon), look)
    assert contents(client)["m5"] == "Pump 5 is loud."
    assert client.inspect().event_log.rows == before


def test_a_person_archives_the_turns_before_a_day(daemon: Daemon, client: Client) -> None:
    pumps(client)

    async def look(shown: Shown) -> None:
        await begin(shown)
        await shown.until_shown("> local/workshop")
        await shown.press("a")
        await shown.until_shown("Archive: which turns?")
        await type_in(shown, "soon")
        await shown.until_shown("That is not a time")
        await shown.press(*["backspace"] * 4)
        await type_in(shown, "2026-03-04")
        await shown.until_shown("Every turn of local/workshop before 2026-03-04 00:00 UTC", "3 turns, 3 messages")
        await type_in(shown, "old")
        await shown.until_shown("Archive?")
        await shown.press("y")
        await shown.until_shown("Archive: done", "3 turns")
        await shown.press("escape")

    show(at(daemon), look)
    seen = client.replay_transcript(conversation=WORKSHOP, view="host_ui")
    assert [turn.archived for turn in seen.turns] == [True, True, True, False, False]


def test_a_person_finds_what_is_broken_and_mends_what_loses_nothing(daemon: Daemon, client: Client) -> None:
    pumps(client)
    client.close()
    daemon.stop()
    with sqlite3.connect(daemon.store) as store:
        store.execute("UPDATE conversation SET turns = turns + 7")
    store.close()
    daemon.start()

    async def look(shown: Shown) -> None:
        await begin(shown)
        await shown.until_shown("> local/workshop")
        await shown.press("p")
        await shown.until_shown("Repair of all conversations: 1 finding, 1 can be mended", "counts disagree", "m Mend")
        await shown.press("m")
        await shown.until_shown("Mend what loses nothing?", "recounted: 1")
        await shown.press("y")
        await shown.until_shown("Mend: done", "beetle-receipt-1.")
        await shown.press("escape")
        await shown.until_shown("Nothing of all conversations is broken.", "> local/workshop")
        await shown.press("p")
        await shown.until_shown("Nothing of all conversations is broken.")

    show(at(daemon), look)


def test_a_store_of_this_process_is_read_and_masked_like_a_daemons(tmp_path: Path) -> None:
    source = opened(str(tmp_path / "own.db"))
    turns = [spoken(1, message("m1", "Pump 1 is loud."))]
    source.call("transcript.commit", {"conversation": WORKSHOP, "turns": turns})

    async def look(shown: Shown) -> None:
        await shown.until_shown("no daemon")
        await shown.press("4")
        await shown.until_shown("> local/workshop")
        await shown.press("enter")
        await shown.until_shown("Pump 1 is loud.", "─ Turn t1")
        await shown.press("x")
        await shown.until_shown("┌─ Delete for good")
        await type_in(shown, "a test")
        await shown.until_shown("Delete for good?")
        await shown.press("y")
        await shown.until_shown("Delete for good: done")
        await shown.press("escape")
        await shown.until_shown("[raw_deleted]")

    show(source, look)
