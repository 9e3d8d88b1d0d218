"""Memory: what a person does with facts."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from rich.cells import cell_len

from beetle.client import Client
from beetle_tui.dialogs import Confirm, Told
from beetle_tui.form import Choose, Form
from beetle_tui.plaintext import Plaintext
from beetle_tui.source import DaemonSource
from tests.forked import Daemon
from tests.tui.remembering import device, dialog, go, learn, memory, only, remembering, typed
from tests.tui.showing import Shown, at, exported, show


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with remembering() as found:
        yield found


def test_a_fact_is_found_by_words_and_shown_with_what_it_comes_from(daemon: Daemon, client: Client) -> None:
    ref = learn(
        client,
        "The gasket is made of cork.",
        "gasket",
        evidence_refs=["evidence:local/workshop/t0/m0"],
        authority="operator",
    )

    async def look(shown: Shown) -> None:
        await only(shown, "cork")
        await shown.until_shown("1 of 1 fact;", "gasket (current)", "The gasket is made of cork.", ref)
        assert shown.value("cites") == "evidence:local/workshop/t0/m0"
        await shown.press("slash", "escape")
        await shown.until(lambda: "holding" not in shown.text)

    show(at(daemon), look, size=(80, 40))


def test_a_citation_leads_to_the_evidence_and_back_to_the_fact(daemon: Daemon, client: Client) -> None:
    ref = learn(
        client, "The flange is bent.", "flange", evidence_refs=["evidence:local/workshop/t1/m1"], authority="operator"
    )

    async def look(shown: Shown) -> None:
        await only(shown, "flange bent")
        await shown.until_shown("evidence:local/workshop/t1/m1")
        await shown.press("enter", "n", "enter")
        await shown.until(lambda: shown.console.current_mode == "transcripts")
        shown.console.go(ref)
        await shown.until(lambda: shown.console.current_mode == "memory")
        await shown.until_shown("━ flange (current)", "The flange is bent.")

    show(at(daemon), look)


def test_a_ref_is_shown_even_before_the_area_was(daemon: Daemon, client: Client) -> None:
    ref = learn(client, "The anvil is heavy.", "anvil")
    for number in range(3):
        learn(client, f"Newer fact {number}.", f"newer {number}")

    async def look(shown: Shown) -> None:
        await shown.until_shown("live, read")
        shown.console.go(ref)
        await shown.until_shown("anvil (current)", "The anvil is heavy.", "> current")
        await shown.until(lambda: shown.console.area.filled)
        with daemon.client() as other:
            learn(other, "One more.", "one more")
        await shown.press("r")
        await shown.until_shown("1 of 1 fact", "> current     anvil", "anvil (current)")
        await shown.press("escape", "escape")
        await shown.until_shown("one more (current)", "> current     one more")
        rows = memory(shown).part.table.rows
        assert rows is not None
        rows.forget()  # as while it is read again
        shown.console.go(ref)
        # The whole list again: how long it is depends on which tests learned something before.
        await shown.until_shown("anvil (current)", "> current     anvil", "newer 0", " facts")

    show(at(daemon), look)


def test_a_fact_is_corrected_and_its_revisions_tell_why(daemon: Daemon, client: Client) -> None:
    ref = learn(client, "The boiler holds 40 litres.", "boiler", kind="event")

    async def look(shown: Shown) -> None:
        await only(shown, "boiler")
        await shown.until_shown("boiler (current)")
        await shown.press("c")
        await dialog(shown, Form)
        await shown.press("ctrl+s")
        await shown.until_shown("Why (kept with the revision): say why")
        await typed(shown, "was misread")
        await shown.press("ctrl+s")
        await shown.until_shown("nothing has been changed yet")
        field = shown.console.screen.query_one(Plaintext)
        field.focus()
        await shown.press("ctrl+end")
        await typed(shown, " At most.")
        await shown.press("ctrl+s")
        await shown.until_shown("corrected, revision 2", "litres. At most.", "2 revisions", "was misread")

    show(at(daemon), look, size=(80, 40))
    seen = client.get_long_term(ref=ref, history=True)
    assert [(each.action, each.content) for each in seen.revisions] == [
        ("created", "The boiler holds 40 litres."),
        ("corrected", "The boiler holds 40 litres. At most."),
    ]


def test_a_fact_that_somebody_changed_meanwhile_is_not_written_over(daemon: Daemon, client: Client) -> None:
    ref = learn(client, "The lathe is green.", "lathe")

    async def look(shown: Shown) -> None:
        await only(shown, "lathe")
        await shown.until_shown("lathe (current)")
        await shown.press("c")
        await dialog(shown, Form)
        client.mutate_long_term(action="correct", ref=ref, content="The lathe is blue.", reason="painted")
        shown.console.screen.query_one(Plaintext).text = "The lathe is red."
        shown.console.screen.query("LineInput").last().focus()
        await typed(shown, "seen")
        await shown.press("enter")
        await shown.until_shown("conflict", "Hint:")

    show(at(daemon), look)
    assert client.get_long_term(ref=ref).record.content == "The lathe is blue."


def test_a_stale_fact_is_out_of_recall_and_listed_among_the_stale(daemon: Daemon, client: Client) -> None:
    learn(client, "The crane lifts two tonnes.", "crane")

    async def look(shown: Shown) -> None:
        await only(shown, "crane")
        await shown.until_shown("crane (current)")
        await shown.press("m")
        await shown.until_shown("Mark stale: why?")
        await shown.press("enter")
        await shown.until_shown("say why")
        await typed(shown, "sold")
        await shown.press("enter")
        await shown.until_shown("stale, revision 2", "No such fact")
        await shown.press("v")
        await shown.until_shown("stale, holding “crane”", "crane (stale)", "> stale")

    show(at(daemon), look, size=(80, 30))
    assert client.recall(query="crane tonnes", planes=["long_term"]).hits == ()


def test_a_deletion_says_what_goes_and_hands_over_a_receipt(daemon: Daemon, client: Client) -> None:
    ref = learn(
        client,
        "The hammer is under the bench.",
        "hammer",
        evidence_refs=["evidence:local/workshop/t2/m2"],
        authority="operator",
    )

    async def look(shown: Shown) -> None:
        await only(shown, "hammer")
        await shown.until_shown("hammer (current)")
        await shown.press("d")
        await shown.until_shown("Delete the fact?", "of 1 revision", "Links to evidence: 1", "This cannot be undone.")
        await shown.press("n")
        await shown.until(lambda: shown.console.screen is memory(shown))
        assert client.get_long_term(ref=ref).record.state == "current"
        await shown.press("d")
        await dialog(shown, Confirm)
        await shown.press("y")
        await dialog(shown, Told)
        await shown.until_shown("1 fact: deleted.", "No byte of it is left in the store's files.", "Receipt")
        await shown.press("escape")
        await shown.until_shown("No such fact")

    show(at(daemon), look)
    assert client.get_long_term(ref=ref).record.state == "deleted"


def test_a_tombstone_says_that_no_word_is_left(daemon: Daemon, client: Client) -> None:
    ref = learn(client, "The wedge is wooden.", "wedge")
    client.mutate_long_term(action="delete", ref=ref)

    async def look(shown: Shown) -> None:
        await go(shown, "memory")
        for state in ("stale", "superseded", "deleted"):
            await shown.press("v")
            await shown.until_shown(f"; {state}" if state == "deleted" else state)
        await shown.until_shown("(erased)", "a tombstone, no word of it is left")
        assert "wedge" not in shown.text

    show(at(daemon), look, size=(80, 30))


def test_forgetting_by_words_is_rehearsed_first(daemon: Daemon, client: Client) -> None:
    refs = [learn(client, f"The zeppelin has {number} engines.", f"zeppelin {number}") for number in range(2, 5)]

    async def look(shown: Shown) -> None:
        await only(shown, "zeppelin")
        await shown.until_shown("1 of 3 facts")
        await shown.press("f")
        await shown.until_shown("Forget by words", "zeppelin")
        await shown.press("enter")
        await shown.until_shown("Words: zeppelin", "3 facts would be erased", refs[0])
        await shown.press("y")
        await shown.until_shown("3 facts: forgotten.", "Receipt")
        await shown.press("escape")
        await shown.until_shown("No such fact")
        await shown.press("f", "enter")
        await shown.until_shown("no fact holds “zeppelin”: nothing to forget")

    show(at(daemon), look)
    assert {client.get_long_term(ref=ref).record.state for ref in refs} == {"deleted"}


def test_a_kind_is_chosen_and_whom_a_fact_may_reach(daemon: Daemon, client: Client) -> None:
    ref = learn(client, "Mara prefers brass fittings.", "fittings", kind="preference")

    async def look(shown: Shown) -> None:
        await only(shown, "fittings")
        await shown.press("i")
        await dialog(shown, Choose)
        await shown.press("down", "enter")
        await shown.until_shown("profile, holding “fittings”", "No such fact")
        await shown.press("i", "down", "enter")
        await shown.until_shown("preference, holding “fittings”", "fittings (current)")
        await shown.press("w")
        await shown.until_shown("subject_private: the space's own agent alone")
        await shown.press("end", "enter")
        await shown.until_shown("It becomes subject_private.")
        await typed(shown, "asked for")
        await shown.press("enter")
        await shown.until_shown("scope_changed, revision 2")

    show(at(daemon), look)
    # The operator is not the space's own agent, and sees what it made private itself.
    assert client.get_long_term(ref=ref).record.visibility == "private"


def test_a_caller_without_the_capability_is_told_its_key(daemon: Daemon, client: Client) -> None:
    auth = device(client, "recall")

    async def look(shown: Shown) -> None:
        await shown.until_shown("read ")
        await shown.press("5")
        await shown.until_shown("Could not read: ", "long_term")

    show(at(daemon, auth=auth), look)


def test_a_lost_daemon_leaves_what_was_shown_and_comes_back() -> None:
    with remembering() as own:
        with own.client() as client:
            learn(client, "The sign says open.", "sign")

        def reconnect() -> DaemonSource:
            return DaemonSource(Client(own.socket))

        async def look(shown: Shown) -> None:
            await go(shown, "memory")
            await shown.until_shown("sign (current)")
            own.kill()
            await shown.until_shown("The daemon is lost")
            assert "The sign says open." in shown.text
            await shown.press("d")
            await shown.until_shown("daemon_unavailable")
            own.start()
            await shown.press("r")
            await shown.until_shown("live, read")
            await shown.press("d")
            await shown.until_shown("Delete the fact?")
            await shown.press("escape")

        show(at(own), look, reconnect, size=(80, 30))


@pytest.mark.parametrize("size", [(60, 16), (80, 24), (160, 48)])
def test_long_and_wide_content_breaks_no_line(daemon: Daemon, client: Client, size: tuple[int, int]) -> None:
    learn(client, "w" * 10_000 + str(size), f"{size} wall\x1b[31m of [b]text[/b] 青い箱" * 3)
    learn(client, "🔑 青い箱 שלום‮ [blink]x[/blink]\ttab\nsecond line " * 40 + str(size), f"漢字 שלום {size}")

    async def look(shown: Shown) -> None:
        await go(shown, "memory")
        await shown.until_shown("second line")
        for key in ("down", "enter", "end"):
            await shown.press(key)
            await shown.pilot.pause()
            assert len(shown.lines) == size[1]
            assert max(map(cell_len, shown.lines)) <= size[0]
            assert not set(shown.text) & set("\x1b\u202e\t")
        await shown.until(lambda: memory(shown).part.detail.has_focus)
        assert sum(line.count("w") for line in memory(shown).part.detail.texts) >= 10_000

    show(at(daemon), look, size=size)


def test_what_is_chosen_is_copied_and_what_is_shown_is_handed_out(daemon: Daemon, client: Client) -> None:
    ref = learn(client, "The rivet is copper.", "rivet")

    async def look(shown: Shown) -> None:
        await only(shown, "rivet")
        await shown.until_shown("rivet (current)")
        screen = memory(shown)
        assert screen.copied() == "The rivet is copper."
        (line,) = await exported(screen)
        assert json.loads(line)["ref"] == ref and json.loads(line)["content"] == "The rivet is copper."
        await shown.press("enter", "home")
        await shown.until(lambda: screen.part.detail.has_focus)
        (line,) = await exported(screen)
        assert json.loads(line)["record"]["ref"] == ref and len(json.loads(line)["revisions"]) == 1
        assert screen.copied() == "The rivet is copper."

    show(at(daemon), look)
