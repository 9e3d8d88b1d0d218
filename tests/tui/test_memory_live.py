"""Memory keeps itself current: what other clients do there is shown without a key being pressed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from beetle.client import Client
from tests.forked import Daemon
from tests.tui.remembering import device, go, learn, only, part, remembering
from tests.tui.showing import Shown, at, show


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with remembering() as found:
        yield found


def test_a_fact_that_another_client_learns_corrects_and_deletes_is_shown_by_itself(
    daemon: Daemon, client: Client
) -> None:
    async def look(shown: Shown) -> None:
        await only(shown, "hopper")
        await shown.until_shown("No such fact")
        ref = learn(client, "The hopper is full.", "hopper")
        await shown.until_shown("1 of 1 fact;", "The hopper is full.", "hopper (current)", "1 revision")
        client.mutate_long_term(action="correct", ref=ref, content="The hopper is empty.", reason="seen")
        await shown.until_shown("The hopper is empty.", "2 revisions", "corrected, current")
        client.mutate_long_term(action="delete", ref=ref)
        await shown.until_shown("No such fact")

    show(at(daemon), look, size=(80, 40))


def test_a_policy_that_another_client_makes_and_lifts_is_shown_by_itself(daemon: Daemon, client: Client) -> None:
    async def look(shown: Shown) -> None:
        await part(shown, "Policies")
        await shown.until_shown("No policy holds")
        client.long_term_policy(action="pause", topic="health", reason="until spring")
        await shown.until_shown("1 of 1 policy", "> pause", "health", "until spring")
        client.long_term_policy(action="resume", topic="health")
        await shown.until_shown("No policy holds")

    show(at(daemon), look)


def test_a_registry_and_a_proposal_of_another_client_are_shown_by_themselves(daemon: Daemon, client: Client) -> None:
    ref = learn(client, "The winch holds.", "winch")

    async def look(shown: Shown) -> None:
        await part(shown, "Tools")
        await shown.until_shown("No tool registry")
        tools = [{"tool_id": "winch.turn", "title": "Turn the winch", "schema_fingerprint": "s1"}]
        client.upsert_agent_tool_registry(registry_id="winch-tools", fingerprint="f1", tools=tools)
        await shown.until_shown("1 of 1 registry", "winch.turn: Turn the winch")
        client.delete_agent_tool_registry(registry_id="winch-tools")
        await shown.until_shown("No tool registry")
        await part(shown, "Proposals")
        await shown.until_shown("No such proposal")
        change = {"content": "The winch slips."}
        client.propose(proposals=[{"kind": "fact_correct", "target": ref, "change": change, "rationale": "it slipped"}])
        await shown.until_shown("1 of 1 proposal", "it slipped")

    show(at(daemon), look, size=(80, 40))


def test_jobs_and_candidates_that_wait_are_shown_as_they_come(daemon: Daemon, client: Client) -> None:
    async def look(shown: Shown) -> None:
        await part(shown, "Waiting")
        await shown.until_shown("Nothing waits", "None. A candidate waits")
        message = {"message_id": "w1", "role": "user", "content": "I live in Porto."}
        turn = {"turn_id": "w1", "at": "2026-03-04T08:12:00Z", "messages": [message]}
        left = client.finalize_turn_and_maintain(conversation={"conversation_id": "later"}, turn=turn)
        assert left.deferred_job_id is not None
        await shown.until_shown("1 of 1 entry", "waiting", left.deferred_job_id)
        wanted = {"candidate_id": "boast", "authority": "assistant_claimed", "target": "long_term",
                  "privacy": "shared_with_subject", "content": "The assistant is good."}  # fmt: skip
        client.write(kind="candidates", candidates=[wanted])
        await shown.until_shown("(needs_assertion)")

    show(at(daemon), look, size=(80, 40))


def test_the_detail_of_a_fact_that_was_followed_to_is_current_too(daemon: Daemon, client: Client) -> None:
    ref = learn(client, "The gauge is broken.", "gauge")

    async def look(shown: Shown) -> None:
        await go(shown, "memory")
        shown.console.go(ref)
        await shown.until_shown("gauge (current)", "The gauge is broken.")
        client.mutate_long_term(action="correct", ref=ref, content="The gauge is mended.", reason="mended")
        await shown.until_shown("gauge (current)", "The gauge is mended.", "2 revisions")
        client.mutate_long_term(action="mark_stale", ref=ref, reason="gone")
        await shown.until(lambda: "gauge" not in shown.text)  # the list holds it no more
        shown.console.go(ref)
        await shown.until_shown("> stale       gauge", "gauge (stale)")

    show(at(daemon), look, size=(80, 40))


def test_who_may_not_inspect_reads_again_with_a_key(daemon: Daemon, client: Client) -> None:
    auth = device(client, "long_term", "skill")

    async def look(shown: Shown) -> None:
        await go(shown, "memory")
        await shown.until_shown("live, read")
        learn(client, "The lamp is lit.", "lamp")
        await shown.press("r")
        await shown.until_shown("The lamp is lit.")

    show(at(daemon, auth=auth), look)
