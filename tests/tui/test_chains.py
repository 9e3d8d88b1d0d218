"""Chains: thoughts in both orders, refs and relations followed both ways, agents and their keys, the skill registry."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from beetle import MemoryRuntime
from beetle.client import Client
from tests.forked import Daemon
from tests.tui.remembering import PROFILE, go
from tests.tui.showing import Shown, at, opened, show

PUBLIC_KEY = [
    215, 90, 152, 1, 130, 177, 10, 183, 213, 75, 254, 211, 201, 100, 7, 58,
    14, 225, 114, 243, 218, 166, 35, 37, 175, 2, 26, 104, 247, 7, 81, 26,
]  # fmt: skip
SKILL = "---\nname: Backup\ndescription: Copy the store.\nwarnings: [needs room]\n---\n# Backup\n\nCopy it {}.\n"


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with Daemon(profile=PROFILE) as started:
        with started.client() as client:
            _fill(client)
        yield started


def _fill(client: Client) -> None:
    said = {"message_id": "m1", "role": "user", "content": "The pump is loud."}
    turn = {"turn_id": "t1", "at": "2026-03-02T08:00:00Z", "messages": [said]}
    client.commit_transcript(conversation={"conversation_id": "workshop"}, turns=[turn])
    for number in range(4):
        client.append_thought(chain_key="plan", agent_id="astro", thought_type="Idea", content=f"Idea {number}.",
                              refs=[0] if number == 2 else [])  # fmt: skip
    client.append_thought(
        chain_key="plan", agent_id="nova", thought_type="Decision", content="Clean it weekly.",
        relations=[{"kind": "supersedes", "index": 1}, {"kind": "caused_by", "ref": "evidence:local/workshop/t1"}],
    )  # fmt: skip
    client.add_chain_agent_key(chain_key="plan", agent_id="nova", key_id="k1", algorithm="ed25519",
                               public_key_bytes=PUBLIC_KEY)  # fmt: skip
    client.revoke_chain_agent_key(chain_key="plan", agent_id="nova", key_id="k1")
    client.disable_chain_agent(chain_key="plan", agent_id="nova")
    client.append_thought(chain_key="another", agent_id="astro", thought_type="Idea", content="Elsewhere.",
                          signing_key_id="k1")  # fmt: skip
    client.thought_lifecycle(chain_key="plan", action="erase", indexes=[3], reason="asked for")
    for word in ("once", "twice"):
        client.upload_skill(agent_id="astro", content=SKILL.format(word))
    client.deprecate_skill(skill_id="backup", reason="too slow")


def test_a_chain_is_whole_and_its_thoughts_lead_to_one_another(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await go(shown, "chains")
        await shown.until_shown("1 of 2 chains", "> another", "yes: the event log has this head")
        await shown.press("down")
        await shown.until_shown("> plan", "Newest thought", "Clean it weekly.")
        await shown.press("enter")
        await shown.until_shown(
            "1 of 5 thoughts; plan, newest first", "supersedes   thought 1", "─ Thought 4", "(erased)"
        )
        await shown.press("enter", "n", "enter")
        await shown.until_shown("4 of 5 thoughts", "─ Thought 1", "named by     thought 4: Clean it weekly.")
        await shown.press("down")
        await shown.until_shown("─ Thought 0", "named by     thought 2: Idea 2.")
        await shown.press("o")
        await shown.until_shown("1 of 5 thoughts; plan, in the order of the chain")
        await shown.press("end")
        await shown.until_shown("5 of 5 thoughts", "─ Thought 4")
        await shown.press("enter", "n", "n", "enter")
        await shown.until(lambda: shown.console.current_mode == "transcripts")
        await shown.until_shown("The pump is loud.")
        shown.console.go("thoughts:another/0")
        await shown.until_shown("1 of 1 thought; another", "Elsewhere.", "nothing that names it", "k1, unsigned")

    show(at(daemon), look)


def test_a_chain_that_another_program_changed_is_not_whole(tmp_path: Path) -> None:
    path = str(tmp_path / "own.db")
    with MemoryRuntime.open(path) as memory:
        memory.append_thought(chain_key="plan", thought_type="Idea", content="One.")
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE thought SET importance = 0.9")

    async def look(shown: Shown) -> None:
        await go(shown, "chains")
        await shown.until_shown("Whole        NO: a thought, or the end of the chain, was changed")

    show(opened(path), look)


def test_agents_have_keys_and_a_status(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await go(shown, "chains")
        await shown.until_shown("1 of 2 chains")
        await shown.press("down")
        await shown.until_shown("> plan", "Newest thought")
        await shown.press("right", "right")
        await shown.until_shown("1 of 2 agents; plan", "> astro", "not signed")
        await shown.press("down")
        await shown.until_shown("> nova", "revoked: it can append", "ed25519, revoked ", bytes(PUBLIC_KEY).hex()[:40])

    show(at(daemon), look)


def test_an_uploaded_skill_shows_status_warnings_and_versions(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await go(shown, "chains")
        await shown.until_shown("1 of 2 chains")
        await shown.press("left")
        await shown.until_shown("1 of 1 skill", "deprecated: too slow", "needs room", "2 versions")
        await shown.press("enter", "end")
        await shown.until_shown("Copy it twice.")

    show(at(daemon), look)


def test_without_a_chain_it_says_how_one_comes_to_be() -> None:
    async def look(shown: Shown) -> None:
        await go(shown, "chains")
        await shown.until_shown("No chain", "mentisdb_append")
        for text in ("No thought yet", "No agent has written", "No skill was uploaded"):
            await shown.press("right")
            await shown.until_shown(text)

    with Daemon(profile=PROFILE) as empty:
        show(at(empty), look)
