"""The examples of MentisDB's own page, as they stand there, and all its tools, over MCP's official client."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.chains.test_stranger import AGENT, ANSWERS, CHAIN, THOUGHT
from tests.mcp.test_official_client import Session, drive
from tests.registry.conftest import BACKUP
from tests.running import Daemon

EXAMPLES = [json.loads(line) for line in Path(__file__).with_name("examples.jsonl").read_text().splitlines()]
SKILL_ANSWERS: dict[str, str] = {
    "skill_md": "markdown",
    "list_skills": "skills",
    "skill_manifest": "manifest",
    "upload_skill": "skill",
    "search_skill": "skills",
    "read_skill": "skill_id version_id format source_format schema_version content status safety_warnings",
    "skill_versions": "skill_id versions",
    "deprecate_skill": "skill",
    "revoke_skill": "skill",
}
SKILL = {
    "skill_id", "name", "description", "status", "status_reason", "schema_version", "tags", "triggers", "warnings",
    "latest_version_id", "version_count", "created_at", "updated_at", "latest_uploaded_at",
    "latest_uploaded_by_agent_id", "latest_uploaded_by_agent_name", "latest_uploaded_by_agent_owner",
    "latest_source_format",
}  # fmt: skip
VERSION = {
    "version_id", "uploaded_at", "uploaded_by_agent_id", "uploaded_by_agent_name", "uploaded_by_agent_owner",
    "source_format", "content_hash", "schema_version",
}  # fmt: skip
CURSOR = {"id", "index", "hash"}
MANIFEST = {"supported_formats", "searchable_fields"}
KEY = {"key_id", "algorithm", "public_key_bytes", "added_at", "revoked_at"}
HOLDS: dict[str, set[str]] = {
    "thought": THOUGHT, "thoughts": THOUGHT, "latest_thought": THOUGHT, "chains": CHAIN, "agent": AGENT,
    "public_keys": KEY, "skill": SKILL, "skills": SKILL, "versions": VERSION, "manifest": MANIFEST, "anchor": CURSOR,
    "next_cursor": CURSOR, "previous_cursor": CURSOR,
}  # fmt: skip
"""What the page lists of each object of an answer, by the field that has it."""
SIGNER = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
BRAIN = {"chain_key": "borganism-brain"}
AGENT_42 = {**BRAIN, "agent_id": "agent-42"}


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with Daemon(profile="profile-linux-device-standalone-memory") as running:
        yield running


def check_fields(tool: str, answer: dict[str, Any]) -> None:
    """Every field that the page lists is there, in the objects of an answer too."""
    assert set((ANSWERS | SKILL_ANSWERS)[tool].split()) <= set(answer), tool
    holds = {**HOLDS, "agents": AGENT if tool == "list_agent_registry" else {"agent_id", "agent_name", "agent_owner"}}
    left = [answer]
    while left:
        for name, value in left.pop().items():
            objects = [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, dict)]
            assert all(holds.get(name, set()) <= set(each) for each in objects), (tool, name)
            left += objects


class Tools:
    """The tools of a session by their short names."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.told: dict[str, Any] = {}

    async def ask(self, tool: str, **arguments: Any) -> Any:
        name = tool.removeprefix("mentisdb_")
        result = await self.session.call_tool(f"mentisdb_{name}", arguments)
        assert not result.is_error, (name, result.content)
        answer = result.structured_content
        check_fields(name, answer)
        self.told[name] = answer
        return answer

    async def refused(self, key: str, tool: str, **arguments: Any) -> None:
        result = await self.session.call_tool(f"mentisdb_{tool}", arguments)
        assert result.is_error
        assert key in str(result.content)


async def examples(tools: Tools) -> None:
    """In their order. Where one refers to a thought by its index, the chain is long enough by then."""
    for example in EXAMPLES:
        arguments = example["arguments"]
        for index in arguments.get("refs", ()):
            while (await tools.ask("head", chain_key=arguments["chain_key"]))["thought_count"] <= index:
                await tools.ask(
                    "append", chain_key=arguments["chain_key"], thought_type="ActionTaken", content="a step"
                )
        answer = await tools.ask(example["tool"], **arguments)
        if "thought" in answer:
            thought = answer["thought"]
            assert set(thought) >= THOUGHT
            assert {name: thought[name] for name in arguments if name != "chain_key"} == {
                name: value for name, value in arguments.items() if name != "chain_key"
            }
            assert answer["head_hash"] == thought["hash"]


async def skills(tools: Tools) -> None:
    """Uploads by an agent with a key of its chain, signed as a client would, and all else that is done with a skill."""
    key = {**AGENT_42, "key_id": "k1"}
    public = list(SIGNER.public_key().public_bytes_raw())
    upload = {**AGENT_42, "content": BACKUP}
    signed = {**upload, "signing_key_id": "k1", "skill_signature": list(SIGNER.sign(BACKUP.encode()))}
    await tools.refused("signature_invalid", "upload_skill", **signed)
    await tools.ask("add_agent_key", **key, algorithm="ed25519", public_key_bytes=public)
    made = await tools.ask("upload_skill", **signed, format="markdown")
    assert set(made["skill"]) >= SKILL
    assert made["skill"]["latest_uploaded_by_agent_name"] == "Planner"
    changed = {**signed, "content": BACKUP + "more\n"}
    await tools.refused("signature_invalid", "upload_skill", **changed)
    other = {**signed, "signing_key_id": "k2"}
    await tools.refused("signature_invalid", "upload_skill", **other)
    await tools.ask("revoke_agent_key", **key)
    await tools.refused("signature_invalid", "upload_skill", **signed)
    await tools.ask("upload_skill", **upload, skill_id="nightly-backup", format="md")
    filters = {
        "text": "small stores", "tags_any": ["ops"], "statuses": ["active"], "formats": ["markdown"],
        "uploaded_by_agent_names": ["planner"], "schema_versions": [1], "since": "2020-01-01T00:00:00Z",
    }  # fmt: skip
    found = await tools.ask("search_skill", **filters)
    assert [each["skill_id"] for each in found["skills"]] == ["nightly-backup"]
    shown = await tools.ask("skill_versions", skill_id="nightly-backup")
    assert all(set(each) >= VERSION for each in shown["versions"])
    assert len(shown["versions"]) == 2
    read = await tools.ask("read_skill", skill_id="nightly-backup", version_id=shown["versions"][0]["version_id"])
    assert read["content"] == BACKUP
    assert (await tools.ask("read_skill", skill_id="nightly-backup", format="json"))["format"] == "json"
    assert (await tools.ask("deprecate_skill", skill_id="nightly-backup", reason="old"))["skill"][
        "status"
    ] == "deprecated"
    assert (await tools.ask("revoke_skill", skill_id="nightly-backup", reason="bad"))["skill"]["status"] == "revoked"
    listed = (await tools.ask("list_skills", **BRAIN))["skills"]
    assert [set(each) >= SKILL for each in listed] == [True]
    await tools.ask("skill_manifest")
    assert "mentisdb" in (await tools.ask("skill_md"))["markdown"]


async def agents(tools: Tools) -> None:
    await tools.ask("get_agent", **AGENT_42)
    await tools.ask("list_agent_registry", **BRAIN)
    await tools.ask("upsert_agent", **AGENT_42, display_name="Planner", agent_owner="ops-team", status="active")
    await tools.ask("set_agent_description", **AGENT_42, description="plans deployments")
    await tools.ask("add_agent_alias", **AGENT_42, alias="Scheduler")
    disabled = await tools.ask("disable_agent", **AGENT_42)
    assert set(disabled["agent"]) >= AGENT
    await tools.refused("forbidden", "append", **AGENT_42, thought_type="Plan", content="not any more")
    await tools.refused("forbidden", "upload_skill", **AGENT_42, content=BACKUP)
    await tools.ask("memory_markdown", **BRAIN, agent_owners=["ops-team"])
    await tools.ask("get_thought", **BRAIN, thought_index=1)
    await tools.ask("get_genesis_thought", **BRAIN)


def test_the_examples_and_all_29_tools_over_the_official_client(daemon: Daemon) -> None:
    told: dict[str, Any] = {}

    async def work(session: Session) -> None:
        tools = Tools(session)
        tools.told = told
        for part in (examples, skills, agents):
            await part(tools)

    drive(["--socket", daemon.socket], work, "--toolset", "chain")
    assert set(told) == set(ANSWERS) | set(SKILL_ANSWERS)
    assert len(told) == 29
    chains = {each["chain_key"]: each for each in told["list_chains"]["chains"]}
    assert set(chains["borganism-brain"]) >= CHAIN
    assert {"agent-42", "astro", "bootstrap"} == {each["agent_id"] for each in told["list_agents"]["agents"]}
    assert {"agent_id", "agent_name", "agent_owner"} <= set(told["list_agents"]["agents"][0])
    assert told["head"]["integrity_ok"]
