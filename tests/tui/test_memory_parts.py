"""Memory: what a person does with policies, tools, what waits and what is proposed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from beetle.client import Client
from beetle.contracts.common import Report
from beetle.contracts.progress import OnProgress
from beetle.store import jobs
from beetle_tui.dialogs import Confirm
from beetle_tui.source import DaemonSource
from tests.forked import Daemon
from tests.tui.remembering import PROFILE, go, learn, memory, part, remembering, typed
from tests.tui.showing import Shown, at, opened, running, show


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with remembering() as found:
        yield found


class Counting(DaemonSource):
    """A source that counts how often policies are listed."""

    listed = 0

    def call(self, operation: str, arguments: object = None, on_progress: OnProgress | None = None) -> Report:
        self.listed += operation == "long_term.policy" and arguments == {"action": "list"}
        return super().call(operation, arguments, on_progress)


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
        await shown.until_shown("of profile, preference, fact")
        await shown.press("ctrl+u", "tab")
        await typed(shown, "health")
        await shown.press("ctrl+s")
        await shown.until_shown("suppress: done", "> suppress", "suppress health")
        await shown.press("a")
        await shown.until_shown("Pause what may be remembered")
        await shown.press("ctrl+s")
        await shown.until_shown("pause: done", " of 2 policies")
        assert {each.action for each in client.long_term_policy(action="list").policies} == {"pause", "suppress"}
        for left in ("1 of 1 policy", "No policy holds"):
            await shown.press("d")
            await shown.until_shown("Lift (resume)?")
            await shown.press("y")
            await shown.until_shown("resume: done", left)
        await shown.until(lambda: not memory(shown)._reading and memory(shown)._timer is None)
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
        await shown.until_shown("1 of 1 entry", "for somebody else than the assistant to say so (needs_assertion)")
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


def test_a_job_is_paused_run_and_resumed(daemon: Daemon, client: Client) -> None:
    def job():
        return next(each for each in client.scheduler_status().jobs if each.job_name == "optimize")

    async def look(shown: Shown) -> None:
        await part(shown, "Jobs")
        await shown.until_shown("of 9 jobs", "deferred-governance", "active", "0 0 * * * *")
        await shown.press("down", "down", "down")
        await shown.until_shown("Folds the write-ahead log into the store")
        await shown.press("m")
        await shown.until_shown("optimize: paused", "State        paused")
        assert job().is_paused
        await shown.press("R")
        await shown.until_shown("Result       success", "1 run")
        await shown.press("u")
        await shown.until_shown("optimize: resumed", "State        active")

    show(at(daemon), look, size=(80, 40))
    assert (job().is_paused, job().run_count) == (False, 1)


def test_an_empty_store_says_in_each_part_what_would_be_there(tmp_path) -> None:
    said = {
        "Facts": "Facts are what holds beside what was said.",
        "Chunks": "Chunks are linked notes.",
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
            await shown.press("left", "left")
            await shown.until_shown("capability_hidden", "Could not read")
            await shown.press("right", "right")
            await shown.until_shown("Facts are what holds")
            await shown.until(lambda: "Could not read" not in shown.text)

        show(at(other), look)


def waits(client: Client, content: str, **more: object) -> str:
    wanted = {"candidate_id": "w", "authority": "assistant_claimed", "target": "long_term",
              "privacy": "shared_with_subject", "topic": content, "content": content, **more}  # fmt: skip
    waiting_id = client.write(kind="candidates", candidates=[wanted]).outcomes[0].waiting_id
    assert waiting_id is not None
    return waiting_id


def test_what_waits_is_accepted_and_rejected_with_a_reason() -> None:
    with running() as other, other.client() as client:
        turn = {"turn_id": "t1", "at": "2026-03-04T08:12:00Z", "messages": [
            {"message_id": "m1", "role": "assistant", "content": "I believe the kiln is hot."}]}  # fmt: skip
        client.commit_transcript(conversation={"conversation_id": "kiln"}, turns=[turn])
        waits(client, "The kiln is hot.", evidence_refs=["evidence:local/kiln/t1/m1"])
        waits(client, "The kiln is blue.")
        gone = waits(client, "The kiln is new.")

        async def look(shown: Shown) -> None:
            await part(shown, "Waiting")
            await shown.until_shown("1 of 3 entries", "needs_assertion", "The kiln is hot.", "I believe the kiln is")
            await shown.press("a")
            await shown.until_shown("Accept this candidate?", "The kiln is hot.", "accepted (created)")
            await shown.press("y")
            await shown.until_shown("accepted: created", "1 of 2 entries", "The kiln is blue.")
            await shown.press("down")
            await shown.until(lambda: memory(shown).part.row is not None and memory(shown).part.row.waiting_id == gone)
            await shown.press("d")
            await shown.until_shown("Reject this candidate?", "The kiln is new.")
            await shown.press("enter")
            await shown.until_shown("a reason is needed")
            await typed(shown, "a joke")
            await shown.press("enter")
            await shown.until_shown("rejected: declined", "1 of 1 entry", "The kiln is blue.")
            await shown.press("R")
            await shown.until_shown("no job is chosen")

        show(at(other), look, size=(80, 44))
        assert [each.content for each in client.list_waiting(what="candidates").candidates] == ["The kiln is blue."]
        assert [each.content for each in client.list_long_term().records] == ["The kiln is hot."]


def test_a_failed_job_shows_its_conversation_and_error_and_is_retried(tmp_path) -> None:
    source = opened(str(tmp_path / "own.db"), PROFILE)
    message = {"message_id": "w1", "role": "user", "content": "I live in Porto."}
    turn = {"turn_id": "w1", "at": "2026-03-04T08:12:00Z", "messages": [message]}
    left = source.call("memory.finalize_turn", {"conversation": {"conversation_id": "harbour"}, "turn": turn})
    job_id = left.deferred_job_id

    def fail(tx) -> None:
        job = jobs.find(tx, job_id)
        assert job is not None
        jobs.end(tx, job, tx.now, "failed", "model_timeout")

    source._embedded._opened.store.write(fail)

    async def look(shown: Shown) -> None:
        await part(shown, "Waiting")
        await shown.until_shown("job failed", "local/harbour", "model_timeout", "never again")
        await shown.press("a")
        await shown.until_shown("no candidate is chosen")
        await shown.press("R")
        await shown.until_shown("Try this job again now?", "maintain of local/harbour")
        await shown.press("y")
        await shown.until_shown("retried", "job waiting")

    show(source, look, size=(80, 44))
