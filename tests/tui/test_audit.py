"""What a stranger ran into who used the console by hand."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from beetle.client import Client
from beetle_tui.dialogs import Confirm
from beetle_tui.editor import SkillEditor
from beetle_tui.help import HelpScreen
from beetle_tui.json_view import ReportView
from beetle_tui.screens.devices import Devices
from beetle_tui.screens.log import Log
from beetle_tui.screens.memory import Memory
from beetle_tui.screens.overview import Overview, Remark
from beetle_tui.screens.recall import Recall
from beetle_tui.screens.skills import Skills
from beetle_tui.steps import impact_lines
from tests.forked import Daemon
from tests.tui.remembering import device, go, learn, remembering, typed
from tests.tui.showing import Shown, at, exported, show
from tests.tui.skills_shown import skill, write


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with remembering() as found:
        yield found


async def recalled(shown: Shown, query: str) -> Recall:
    """Ask a query at the bench."""
    await go(shown, "recall")
    await shown.press("slash")
    await typed(shown, query)
    await shown.press("enter")
    screen = shown.console.area
    assert isinstance(screen, Recall)
    await shown.until(lambda: screen.tried is not None)
    return screen


def test_the_block_is_of_the_settings_even_when_they_were_changed_while_the_hits_were_shown(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        screen = await recalled(shown, "pump")
        await shown.press("right")
        await shown.until_shown("━ Block", "Pressure     normal")
        await shown.press("left", "u")
        await shown.until(lambda: screen.tried is not None and screen.tried.found.working_recall is not None)
        pressure = screen.settings.pressure
        await shown.until(lambda: any(pressure in each for each in screen.block.texts))
        assert any("<memory" in each for each in await exported(screen)), "an export holds the block out of sight"
        await shown.press("right")
        await shown.until_shown("━ Block", f"Pressure     {pressure}")

    show(at(daemon), look)


def test_where_a_filter_leaves_no_fact_none_is_shown_or_deleted(daemon: Daemon, client: Client) -> None:
    learn(client, "The kettle is red.", "kettle")

    async def look(shown: Shown) -> None:
        await go(shown, "memory")
        await shown.until_shown("kettle (current)")
        await shown.press("slash")
        await typed(shown, "nosuchword")
        await shown.press("enter")
        await shown.until_shown("No such fact")
        await shown.until(lambda: "kettle" not in shown.text)
        await shown.press("d")
        await shown.until_shown("no fact is chosen")
        assert not isinstance(shown.console.screen, Confirm)

    show(at(daemon), look)


def test_where_a_filter_leaves_no_row_of_the_log_none_is_shown(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await go(shown, "log")
        await shown.until_shown("─ Row ", "Chain        follows")
        await shown.press("slash")
        await typed(shown, "topic:nosuch")
        await shown.press("enter")
        await shown.until_shown("No row")
        await shown.until(lambda: "Chain        follows" not in shown.text)

    show(at(daemon), look)


def test_while_the_daemon_hangs_the_overview_says_that_it_waits_and_takes_keys(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await go(shown, "overview")
        screen = shown.console.area
        assert isinstance(screen, Overview) and daemon.process is not None
        daemon.process.send_signal(signal.SIGSTOP)
        try:
            screen._begin_to_look(screen._look)
            await shown.until(lambda: screen._looking)
            await shown.press("question_mark")
            await shown.until(lambda: isinstance(shown.console.screen, HelpScreen))
            await shown.until(lambda: "waiting" in screen._mark())
        finally:
            daemon.process.send_signal(signal.SIGCONT)
        await shown.until(lambda: not screen._looking and screen._mark() == "live")

    show(at(daemon), look)


def test_the_key_that_a_remark_names_leads_to_what_it_is_about(daemon: Daemon, client: Client) -> None:
    waits = {"candidate_id": "w", "authority": "assistant_claimed", "target": "long_term",
             "privacy": "shared_with_subject", "content": "The assistant is clever."}  # fmt: skip
    client.write(kind="candidates", candidates=[waits])

    async def look(shown: Shown) -> None:
        await go(shown, "overview")
        await shown.until_shown("waits to be judged:", "press 5 (Memory)")
        await shown.press("5")
        await shown.until(lambda: isinstance(shown.console.area, Memory) and shown.console.area.part.TITLE == "Waiting")
        await shown.until_shown("(needs_assertion)")
        await shown.press("left", "left", "left", "left", "2", "5")
        await shown.until(lambda: isinstance(shown.console.area, Memory) and shown.console.area.part.TITLE == "Facts")
        overview = next(each for each in shown.console.opened if isinstance(each, Overview))
        await go(shown, "overview")
        await shown.until(lambda: shown.console.area.filled)
        overview._remarks = (Remark("findings", "skills", "agent"), Remark("broken", "log", "2"))
        await shown.press("2")
        await shown.until(lambda: isinstance(shown.console.area, Skills))
        await shown.until_shown("No Agent Skills")
        await go(shown, "overview")
        overview._remarks = (Remark("broken", "log", "2"),)
        await shown.press("7")
        await shown.until_shown("─ Row 2 ─")

    show(at(daemon), look, size=(80, 40))


def test_all_that_a_verification_found_can_be_read_and_its_verdict_stays(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await go(shown, "log")
        screen = shown.console.area
        assert isinstance(screen, Log)
        await shown.press("f")
        await shown.until_shown("nothing was verified yet")
        await shown.press("v")
        await shown.until_shown("Verified, and clean", "Z, clean")
        await shown.press("escape", "f")
        await shown.until(lambda: isinstance(shown.console.screen, ReportView))
        await shown.until_shown('"clean": true')

    show(at(daemon), look)


def test_a_device_that_connects_is_seen_without_a_key(daemon: Daemon, client: Client) -> None:
    auth = device(client, "recall")

    async def look(shown: Shown) -> None:
        await go(shown, "devices")
        await shown.until_shown("open now")
        await shown.press("end")
        await shown.until_shown("0 open now", "Last seen    never")
        screen = shown.console.area
        assert isinstance(screen, Devices)
        assert not await screen._look(), "while nothing changes there is nothing to draw"
        with daemon.client(auth=auth) as other:
            other.hello()
            await shown.until_shown("1 open now")
            assert "Last seen    never" not in shown.text
        await shown.until_shown("0 open now")

    show(at(daemon), look)


def test_a_revoked_device_is_not_offered_another_key(daemon: Daemon, client: Client) -> None:
    added = client.add_device(label="Lost phone", capabilities=["recall"]).device
    client.update_device(device_id=added.device_id, state="revoked")

    async def look(shown: Shown) -> None:
        await go(shown, "devices")
        await shown.press("end")
        await shown.until_shown("REVOKED")
        for key in ("o", "u", "x"):
            await shown.press(key)
            await shown.until_shown("Lost phone", "is revoked, which is for good")
            assert not isinstance(shown.console.screen, Confirm)
            await shown.press("escape")

    show(at(daemon), look)


def test_an_impact_whose_lists_were_cut_is_told_as_a_least() -> None:
    report: Any = SimpleNamespace(
        affected_turns=1_000_000, affected_messages=1_500_000,
        message_ids=["m"] * 10_000, redactions=(), host_refs=(), derived_refs=(),
        profile_budget_applied=True,
    )  # fmt: skip
    assert "1,000,000 turns, 1,500,000 messages" in list(impact_lines(report))


def test_an_export_of_the_skills_holds_the_list_that_is_shown_or_the_page(daemon: Daemon, client: Client) -> None:
    write(client, skill("runtime_skill__sweep"), skill("runtime_skill__rinse"))

    async def look(shown: Shown) -> None:
        await go(shown, "skills")
        await shown.until_shown(" rinse ", " sweep ")
        names = [json.loads(each)["name"] for each in await exported(shown.console.area)]
        assert names == sorted(each.name for each in client.list_runtime_skills().runtime_skills)
        for _ in range(names.index("runtime_skill__rinse")):
            await shown.press("down")
        await shown.until_shown("> rinse", "Clean the strainer")
        await shown.press("enter")
        (page,) = map(json.loads, await exported(shown.console.area))
        assert page["name"] == "runtime_skill__rinse" and "Clean the strainer" in page["procedure"]

    show(at(daemon), look)


def test_who_may_not_list_devices_is_not_told_that_there_are_none(daemon: Daemon, client: Client) -> None:
    async def look(shown: Shown) -> None:
        await shown.press("3")
        await shown.until_shown("forbidden: device.list needs")
        assert "No device" not in shown.text

    show(at(daemon, auth=device(client, "recall")), look)


def test_what_is_wrong_with_a_field_of_a_skill_is_said_below_that_field(daemon: Daemon, client: Client) -> None:
    write(client, skill("runtime_skill__aim"))

    async def look(shown: Shown) -> None:
        await go(shown, "skills")
        await shown.until_shown("> aim", "Clean the strainer")
        await shown.press("i")
        await shown.until(lambda: isinstance(shown.console.screen, SkillEditor))
        await shown.press("tab")
        await typed(shown, "tidier")
        await shown.press("tab", "ctrl+u", "ctrl+k", "ctrl+s")
        await shown.until_shown("The title must not be empty.")
        at_title = next(n for n, line in enumerate(shown.lines) if line.startswith("│ Title"))
        assert "must not be empty" in shown.lines[at_title + 1]
        await typed(shown, "New aim")
        await shown.press("ctrl+s")
        await shown.until_shown("revision 2")

    show(at(daemon), look)
