"""What was typed is never lost without a question: escape, a refusal, a lost daemon, events while one types."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from textual.events import Paste

from beetle.client import Client
from beetle_tui.dialogs import Ask, Confirm
from beetle_tui.form import Form
from beetle_tui.line_input import LineInput
from beetle_tui.plaintext import Plaintext
from tests.forked import Daemon
from tests.tui.remembering import dialog, go, learn, only, remembering, typed
from tests.tui.showing import Shown, at, show


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with remembering() as found:
        yield found


async def correcting(shown: Shown, words: str) -> Form:
    """A fact's correction, with something typed into its text."""
    await only(shown, words)
    await shown.until_shown(f"{words} (current)")
    await shown.press("c")
    await dialog(shown, Form)
    form = shown.console.screen
    assert isinstance(form, Form)
    form.query_one(Plaintext).focus()
    await shown.press("ctrl+end", *"Yes")
    return form


def test_escape_asks_before_what_was_typed_is_gone(daemon: Daemon, client: Client) -> None:
    learn(client, "The sluice is shut.", "sluice")

    async def look(shown: Shown) -> None:
        form = await correcting(shown, "sluice")
        await shown.press("escape")
        await shown.until_shown("What you have typed here is not kept")
        await shown.press("n")
        await shown.until(lambda: shown.console.screen is form)
        assert form.query_one(Plaintext).text == "The sluice is shut.Yes"
        await shown.press("escape")
        await dialog(shown, Confirm)
        await shown.press("y")
        await shown.until(lambda: shown.console.screen is shown.console.area)
        await shown.press("m")
        await dialog(shown, Ask)
        await typed(shown, "too old")
        await shown.press("escape")
        await dialog(shown, Confirm)
        await shown.press("n")
        await dialog(shown, Ask)
        assert shown.console.screen.query_one(LineInput).value == "too old"

    show(at(daemon), look)


def test_what_changed_meanwhile_is_said_in_the_form_which_keeps_what_was_typed(daemon: Daemon, client: Client) -> None:
    ref = learn(client, "The weir is high.", "weir")

    async def look(shown: Shown) -> None:
        form = await correcting(shown, "weir")
        client.mutate_long_term(action="correct", ref=ref, content="The weir is low.", reason="seen")
        form.query_one("#field-reason", LineInput).focus()
        await typed(shown, "misread")
        await shown.press("enter")
        await shown.until_shown("conflict:")
        assert shown.console.screen is form and form.query_one(Plaintext).text == "The weir is high.Yes"
        assert client.get_long_term(ref=ref).record.content == "The weir is low."

    show(at(daemon), look, size=(100, 40))


def test_a_lost_daemon_takes_nothing_that_was_typed_with_it() -> None:
    with remembering() as daemon:
        with daemon.client() as client:
            learn(client, "The lock is old.", "lock")

        async def look(shown: Shown) -> None:
            form = await correcting(shown, "lock")
            form.query_one("#field-reason", LineInput).focus()
            await typed(shown, "misread")
            daemon.kill()
            await shown.press("enter")
            await shown.until_shown("daemon_unavailable")
            assert shown.console.screen is form and form.query_one(Plaintext).text == "The lock is old.Yes"
            daemon.start()
            shown.console.action_refresh()
            await shown.until(lambda: shown.console.link.state.__class__.__name__ == "Joined")
            await shown.press("enter")
            await shown.until_shown("corrected, revision 2", "The lock is old.Yes")

        show(at(daemon), look, lambda: at(daemon), size=(100, 40))


def test_the_device_that_is_being_added_is_still_there_when_its_capabilities_are_not_taken(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await go(shown, "devices")
        await shown.press("a")
        await dialog(shown, Form)
        await typed(shown, "Hall")
        await shown.press("ctrl+s")
        await shown.until_shown("[ ]  recall")
        await shown.press("escape")
        await dialog(shown, Form)
        assert shown.console.screen.query_one("#field-label", LineInput).value == "Hall"

    show(at(daemon), look)


def test_a_paste_that_does_not_fit_is_cut_and_that_is_said(daemon: Daemon, client: Client) -> None:
    learn(client, "The gate is green.", "gate")

    async def look(shown: Shown) -> None:
        await only(shown, "gate")
        await shown.until_shown("gate (current)")
        await shown.press("m")
        await dialog(shown, Ask)
        shown.console.screen.query_one(LineInput).post_message(Paste("x" * 20_007))
        await shown.until_shown("no room for the last 7 characters")

    show(at(daemon), look)


def test_events_while_one_types_change_nothing_of_it(daemon: Daemon, client: Client) -> None:
    learn(client, "The crane is tall.", "crane")

    async def look(shown: Shown) -> None:
        form = await correcting(shown, "crane")
        learn(client, "Another crane squeaks.", "noise")
        await shown.until_shown("of 2 facts")
        assert shown.console.screen is form and form.query_one(Plaintext).text == "The crane is tall.Yes"

    show(at(daemon), look, size=(100, 40))
