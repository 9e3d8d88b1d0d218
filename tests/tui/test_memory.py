"""Memory: what a person does with facts, policies, tools, what waits and what is proposed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from rich.cells import cell_len

from beetle.client import Client
from beetle.contracts.common import Report
from beetle.contracts.errors import NotFound
from tests.running import Daemon
from tests.tui.remembering import PROFILE, device, go, learn, remembering, typed
from tests.tui.showing import Shown, at, opened, running, show
from tui.dialogs import Confirm, Told
from tui.form import Choose, Form
from tui.plaintext import Plaintext
from tui.screens.memory import Memory
from tui.source import DaemonSource


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with remembering() as found:
        yield found


@pytest.fixture
def client(daemon: Daemon) -> Iterator[Client]:
    with daemon.client() as found:
        yield found


def memory(shown: Shown) -> Memory:
    screen = shown.console.area
    assert isinstance(screen, Memory)
    return screen


async def only(shown: Shown, words: str) -> None:
    """To the facts that hold these words."""
    await go(shown, "memory")
    await shown.press("slash")
    await typed(shown, words)
    await shown.press("enter")
    await shown.until_shown(f"holding “{words}”")


async def part(shown: Shown, title: str) -> None:
    """To a part of the area."""
    await go(shown, "memory")
    while title != memory(shown).part.TITLE:
        await shown.press("right")
    await shown.until(lambda: memory(shown).part.table.rows is not None)


async def dialog(shown: Shown, kind: type) -> None:
    await shown.until(lambda: isinstance(shown.console.screen, kind))


def test_a_fact_is_found_by_words_and_shown_with_what_it_comes_from(daemon: Daemon, client: Client) -> None:
    ref = learn(client, "The gasket is made of cork.", "gasket", evidence_refs=["evidence:local/workshop/t0/m0"])

    async def look(shown: Shown) -> None:
        await only(shown, "cork")
        await shown.until_shown("1 of 1 fact;", "gasket (current)", "The gasket is made of cork.", ref)
        assert shown.value("cites") == "evidence:local/workshop/t0/m0"
        await shown.press("slash", "escape")
        await shown.until(lambda: "holding" not in shown.text)

    show(at(daemon), look, size=(80, 40))


def test_a_citation_leads_to_the_evidence_and_back_to_the_fact(daemon: Daemon, client: Client) -> None:
    ref = learn(client, "The flange is bent.", "flange", evidence_refs=["evidence:local/workshop/t1/m1"])

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
        await shown.until_shown("one more")
        assert "anvil (current)" in shown.text, "what is read below does not take its place"
        await shown.press("escape", "down")
        await shown.until(lambda: "anvil (current)" not in shown.text)

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
        shown.console.screen.query("Line").last().focus()
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
    ref = learn(client, "The hammer is under the bench.", "hammer", evidence_refs=["evidence:local/workshop/t2/m2"])

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
    with pytest.raises(NotFound):
        client.get_long_term(ref=ref)  # the operator is not the space's own agent


def test_what_another_client_learns_is_listed_with_the_next_reading(daemon: Daemon, client: Client) -> None:
    async def look(shown: Shown) -> None:
        await go(shown, "memory")
        learn(client, "The newest fact of all.", "newest")
        await shown.press("r")
        await shown.until_shown("The newest fact of all.")

    show(at(daemon), look)


class Counting(DaemonSource):
    """A source that counts how often policies are listed."""

    listed = 0

    def call(self, operation: str, arguments: object = None) -> Report:
        self.listed += operation == "long_term.policy" and arguments == {"action": "list"}
        return super().call(operation, arguments)


def test_policies_are_made_and_lifted(daemon: Daemon, client: Client) -> None:
    source = Counting(daemon.client())

    async def look(shown: Shown) -> None:
        await part(shown, "Policies")
        await shown.until_shown("No policy holds", "A policy acts on what is asked to be remembered")
        await shown.press("x")
        await shown.until_shown("Suppress what may be remembered")
        await shown.press("ctrl+s")
        await shown.until_shown("give a kind or a topic")
        await typed(shown, "nonsense")
        await shown.press("ctrl+s")
        await shown.until_shown("one of profile, preference")
        await shown.press("ctrl+u", "tab")
        await typed(shown, "health")
        await shown.press("ctrl+s")
        await shown.until_shown("suppress: done", "> suppress", "suppress health")
        await shown.press("a")
        await shown.until_shown("Pause what may be remembered")
        await shown.press("ctrl+s")
        await shown.until_shown("pause: done", "1 of 2 policies")
        assert {each.action for each in client.long_term_policy(action="list").policies} == {"pause", "suppress"}
        for left in ("1 of 1 policy", "No policy holds"):
            await shown.press("d")
            await shown.until_shown("Lift (resume)?")
            await shown.press("y")
            await shown.until_shown("resume: done", left)
        listed = source.listed
        await shown.press("r", "r")
        await shown.until_shown("live, read")
        assert source.listed == listed, "listing is a write: it is asked only when others hold"

    show(source, look)
    assert client.long_term_policy(action="list").policies == ()


def test_tools_are_shown_with_what_experience_says_of_them(daemon: Daemon, client: Client) -> None:
    tools = [
        {"tool_id": "valve.open", "title": "Open a valve", "schema_fingerprint": "s1", "risk_tags": ["water"]},
        {"tool_id": "pump.stop", "title": "Stop the pump", "schema_fingerprint": "s2"},
    ]
    client.upsert_agent_tool_registry(registry_id="bench-tools", fingerprint="f1", tools=tools)
    used = {"tool_id": "valve.open", "schema_fingerprint": "s1", "outcome": "succeeded", "summary": "opened"}
    for number in range(3):
        feedback = {"registry_ref": {"registry_id": "bench-tools", "fingerprint": "f1"}, "turn_id": f"t{number}",
                    "observations": [used], "reuse_outcome": "succeeded"}  # fmt: skip
        client.write(kind="agent_tool_usage_feedback", feedback=feedback)

    async def look(shown: Shown) -> None:
        await part(shown, "Tools")
        await shown.until_shown("bench-tools", "2 tools, 1 with experience", "valve.open: Open a valve", "risk water")
        await shown.until_shown("score 0.80", "Succeeded in 3 of its last 3 uses")
        await shown.press("d")
        await shown.until_shown("Delete the registry?", "What was observed of its tools stays")
        await shown.press("y")
        await shown.until_shown("deleted: bench-tools", "No tool registry", "A host registers its tools")

    show(at(daemon), look, size=(80, 40))


def test_what_waits_is_told_with_what_it_waits_for(daemon: Daemon, client: Client) -> None:
    wanted = {"candidate_id": "boast", "authority": "assistant_claimed", "target": "long_term",
              "privacy": "shared_with_subject", "content": "The assistant is good."}  # fmt: skip
    client.write(kind="candidates", candidates=[wanted])

    async def look(shown: Shown) -> None:
        await part(shown, "Waiting")
        await shown.until_shown("No job is open", "for somebody else than the assistant to say so (needs_assertion)")
        await shown.until_shown("deferred: needs_assertion", "none is configured")
        await shown.press("m")
        await shown.until_shown("Maintain?")
        await shown.press("y")
        await shown.until_shown("Hint:")
        assert not isinstance(shown.console.screen, Confirm)

    show(at(daemon), look, size=(80, 40))


def test_a_proposal_is_looked_at_and_submitted_or_withdrawn(daemon: Daemon, client: Client) -> None:
    refs = [learn(client, f"The kiln reaches {number} degrees.", f"kiln {number}") for number in (900, 1200)]
    proposals = [
        {"kind": "fact_correct", "target": ref, "change": {"content": "The kiln is cold."}, "rationale": f"seen {ref}"}
        for ref in refs
    ]
    client.propose(proposals=proposals)

    async def look(shown: Shown) -> None:
        await part(shown, "Proposals")
        await shown.until_shown("1 of 2 proposals", "Submitting it now makes the change: corrected.")
        await shown.until_shown("-The kiln reaches 1200 degrees.", "+The kiln is cold.")
        await shown.press("b")
        await shown.until_shown("Submit the proposal?", "makes the change")
        await shown.press("y")
        await shown.until_shown("fact_correct: submitted, corrected.", "Revision: 2")
        await shown.press("escape")
        await shown.until_shown("1 of 1 proposal", f"seen {refs[0]}"[:30])
        await shown.press("w")
        await shown.until_shown("Withdraw the proposal?")
        await shown.press("y")
        await shown.until_shown("fact_correct: dropped")
        await shown.press("escape", "v")
        await shown.until_shown("; submitted", "the text of a closed proposal is erased")
        await shown.press("b")
        await shown.until_shown("this proposal is submitted, not open")

    show(at(daemon), look, size=(80, 40))
    assert [client.get_long_term(ref=ref).record.content for ref in refs] == [
        "The kiln reaches 900 degrees.",
        "The kiln is cold.",
    ]


def test_an_empty_store_says_in_each_part_what_would_be_there(tmp_path) -> None:
    said = {
        "Facts": "Facts are what holds beside what was said.",
        "Policies": "A policy acts on what is asked to be remembered",
        "Tools": "A host registers its tools in short",
        "Waiting": "A candidate waits when governance puts it off",
        "Proposals": "An agent proposes changes to skills and facts",
    }

    async def look(shown: Shown) -> None:
        await go(shown, "memory")
        for title, text in said.items():
            await shown.until(lambda title=title: title == memory(shown).part.TITLE)
            await shown.until_shown(text)
            for key in ("d", "c", "m", "f", "w", "enter"):
                await shown.press(key)
                await shown.press("escape")
            await shown.press("right")

    show(opened(str(tmp_path / "own.db"), PROFILE), look)


def test_a_part_that_the_profile_hides_says_so_and_the_others_go_on() -> None:
    with running() as other:

        async def look(shown: Shown) -> None:
            await go(shown, "memory")
            await shown.press("left")
            await shown.until_shown("capability_hidden", "Could not read")
            await shown.press("right")
            await shown.until_shown("Facts are what holds")
            await shown.until(lambda: "Could not read" not in shown.text)

        show(at(other), look)


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
            await shown.until_shown("services_unavailable")
            own.start()
            await shown.press("r")
            await shown.until_shown("live, read")
            await shown.press("d")
            await shown.until_shown("Delete the fact?")
            await shown.press("escape")

        show(at(own), look, reconnect, size=(80, 30))


@pytest.mark.parametrize("size", [(60, 16), (80, 24), (160, 48)])
def test_long_and_wide_content_breaks_no_line(daemon: Daemon, client: Client, size: tuple[int, int]) -> None:
    learn(client, "w" * 10_000, "wall\x1b[31m of [b]text[/b] 青い箱" * 3)
    learn(client, "🔑 青い箱 שלום‮ [blink]x[/blink]\ttab\nsecond line " * 40, "漢字 שלום")

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
        lines = screen.shown_lines()
        assert "State" in lines[0] and "rivet" in lines[1] and "rivet (current)" in lines
        assert any(ref in line for line in lines), "the whole detail, with what is out of sight"
        await shown.press("enter", "home")
        await shown.until(lambda: screen.part.detail.has_focus)
        assert screen.copied() == "The rivet is copper."

    show(at(daemon), look)
