"""Chains for others: the first page on chains over MCP's official client, and a verifier in another language."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import rfc8785
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from beetle.__main__ import main
from beetle.contracts.codec import to_plain
from beetle.mcp.tools import Tools
from tests.forked import Daemon
from tests.mcp.test_official_client import Session, drive
from tests.running import ROOT

PROFILE = "profile-linux-device-standalone-memory"
VERIFIER = Path(__file__).parent / "verify_chain.js"
THOUGHT = {
    "index", "id", "agent_id", "agent_name", "agent_owner", "timestamp", "thought_type", "role", "content",
    "confidence", "importance", "tags", "concepts", "refs", "hash", "prev_hash", "signing_key_id", "thought_signature",
}  # fmt: skip
CHAIN = {"chain_key", "version", "storage_adapter", "thought_count", "agent_count", "storage_location"}
AGENT = {
    "agent_id", "display_name", "agent_owner", "description", "aliases", "status", "public_keys", "thought_count",
    "first_seen_index", "last_seen_index", "first_seen_at", "last_seen_at",
}  # fmt: skip
ANSWERS: dict[str, str] = {
    "bootstrap": "bootstrapped thought_count head_hash",
    "append": "thought head_hash",
    "append_retrospective": "thought head_hash",
    "search": "thoughts",
    "list_chains": "default_chain_key chain_keys chains",
    "list_agents": "chain_key agents",
    "get_agent": "chain_key agent",
    "list_agent_registry": "chain_key agents",
    "upsert_agent": "chain_key agent",
    "set_agent_description": "chain_key agent",
    "add_agent_alias": "chain_key agent",
    "add_agent_key": "chain_key agent",
    "revoke_agent_key": "chain_key agent",
    "disable_agent": "chain_key agent",
    "recent_context": "prompt",
    "memory_markdown": "markdown",
    "get_thought": "chain_key thought",
    "get_genesis_thought": "chain_key thought",
    "traverse_thoughts": (
        "chain_key direction include_anchor chunk_size anchor thoughts has_more next_cursor previous_cursor"
    ),
    "head": "chain_key thought_count head_hash latest_thought integrity_ok storage_location",
}
"""Every tool of chains and agents, and the fields that its answer must have."""


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with Daemon(profile=PROFILE) as running:
        yield running


def page() -> list[tuple[str, dict[str, Any]]]:
    """The calls of the first session on the page."""
    (block,) = re.findall(r"```mcp\n(.*?)```", (ROOT / "docs/chains.md").read_text(), re.S)
    return [(name, json.loads(rest)) for name, _, rest in (line.partition(" ") for line in block.splitlines())]


def test_the_first_session_of_the_page_over_the_official_client(daemon: Daemon) -> None:
    told: dict[str, dict[str, Any]] = {}

    async def work(session: Session) -> None:
        listed = {each.name for each in (await session.list_tools()).tools}
        assert {f"mentisdb_{name}" for name in ANSWERS} <= listed
        agent = {"chain_key": "project-alpha", "agent_id": "project-alpha"}
        key = {**agent, "key_id": "k1"}
        rest = [
            ("mentisdb_list_agents", {"chain_key": "project-alpha"}),
            ("mentisdb_get_agent", agent),
            ("mentisdb_list_agent_registry", {"chain_key": "project-alpha"}),
            ("mentisdb_upsert_agent", {**agent, "display_name": "Planner", "status": "active"}),
            ("mentisdb_set_agent_description", {**agent, "description": "plans releases"}),
            ("mentisdb_add_agent_alias", {**agent, "alias": "Scheduler"}),
            ("mentisdb_add_agent_key", {**key, "algorithm": "ed25519", "public_key_bytes": list(range(32))}),
            ("mentisdb_revoke_agent_key", key),
            ("mentisdb_memory_markdown", {"chain_key": "project-alpha", "agent_names": ["Planner"]}),
            ("mentisdb_get_thought", {"chain_key": "project-alpha", "thought_index": 2}),
            ("mentisdb_get_genesis_thought", {"chain_key": "project-alpha"}),
            ("mentisdb_disable_agent", agent),
        ]
        for name, arguments in [*page(), *rest, ("mentisdb_list_chains", {})]:
            result = await session.call_tool(name, arguments)
            assert not result.is_error, (name, result.content)
            told[name.removeprefix("mentisdb_")] = result.structured_content

    drive(["--socket", daemon.socket], work, "--toolset", "chain")
    assert set(told) == set(ANSWERS)
    for name, fields in ANSWERS.items():
        assert set(fields.split()) <= set(told[name]), name
    assert set(told["append"]["thought"]) & set(told["get_thought"]["thought"]) >= THOUGHT
    (chain,) = told["list_chains"]["chains"]
    assert set(chain) >= CHAIN
    assert set(told["disable_agent"]["agent"]) >= AGENT
    assert (told["head"]["thought_count"], told["head"]["integrity_ok"]) == (5, True)
    assert told["append_retrospective"]["thought"]["refs"] == [2]
    assert "Scheduler" in told["disable_agent"]["agent"]["aliases"]


def test_the_toolset_of_chains_is_that_of_chains() -> None:
    names = Tools("chain").names()
    assert {f"mentisdb_{name}" for name in ANSWERS} <= set(names)
    assert not {"memory_recall", "chain_export", "mentisdb_export"} & set(names)


def node(script: str | Path, *words: str, given: bytes) -> dict[str, Any]:
    done = subprocess.run(["node", str(script), *words], input=given, capture_output=True, timeout=60, check=True)
    return json.loads(done.stdout)


def verified(export: str, *agents: str) -> dict[str, Any]:
    return node(VERIFIER, *agents, given=export.encode())


def exported(daemon: Daemon, capsys: pytest.CaptureFixture[str], key: str) -> str:
    """All pages, one a line, as the page on the format says."""
    pages: list[str] = []
    more: list[str] = []
    while True:
        capsys.readouterr()
        words = ["--socket", daemon.socket, "--json", "chain", "export", key, "--limit", "3", *more]
        assert main(words) == 0
        pages.append(capsys.readouterr().out.strip())
        found = json.loads(pages[-1])
        if not found["has_more"]:
            return "\n".join(pages)
        more = ["--cursor", found["next_cursor"]]


NEEDS_NODE = pytest.mark.skipif(shutil.which("node") is None, reason="node is the other language")
SIGNER = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
PUBLIC = list(SIGNER.public_key().public_bytes_raw())
ADA = {"chain_key": "signed", "agent_id": "ada"}


@NEEDS_NODE
def test_a_stranger_verifies_an_export_also_after_a_thought_was_erased(
    daemon: Daemon, capsys: pytest.CaptureFixture[str]
) -> None:
    with daemon.client() as client:
        for number, content in enumerate(["Déjà vu 鳥 🐦", 'tab\t"quote" \\ \u2028 \x7f', "plain", ""]):
            client.call(
                "chain.append",
                {"chain_key": "told", "thought_type": "Finding", "content": content, "importance": 0.1 + number / 7,
                 "confidence": 1e-7 * number, "tags": ["é", "x"], "refs": list(range(number)), "session_id": "s",
                 "relations": [{"kind": "supports", "index": 0, "valid_at": "2026-01-01T00:00:00Z"}] * min(1, number)},
            )  # fmt: skip
        export = exported(daemon, capsys, "told")
        assert verified(export) == {"thoughts": 4, "gone": [], "signed": [], "problems": []}
        changed = export.replace("plain", "plane")
        assert verified(changed)["problems"] == ["2: content_digest"]
        assert verified(export.replace('"index":3,"timestamp"', '"index":4,"timestamp"'))["problems"]
        done = {"chain_key": "told", "action": "erase", "indexes": [1], "reason": "asked for"}
        assert client.call("chain.lifecycle", done).erasure == "done"
        left = verified(exported(daemon, capsys, "told"))
        assert left == {"thoughts": 4, "gone": [1], "signed": [], "problems": []}
        capsys.readouterr()
        assert main(["--socket", daemon.socket, "chain", "export", "told"]) == 0
        lines = capsys.readouterr().out.strip().splitlines()
        assert [json.loads(line)["index"] for line in lines] == [0, 1, 2, 3]


@NEEDS_NODE
def test_a_stranger_verifies_signatures_of_thoughts(
    daemon: Daemon, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Signed by somebody who has read the page alone, and verified by another."""
    with daemon.client() as client:
        client.call("chain.append", {**ADA, "thought_type": "Idea", "content": "unsigned", "agent_name": "Ada"})
        client.call("chain.add_agent_key", {**ADA, "key_id": "k1", "algorithm": "ed25519", "public_key_bytes": PUBLIC})
        relation = {"kind": "supports", "index": 0, "ref": None, "valid_at": "2026-01-01T00:00:00.000000Z",
                    "invalid_at": None}  # fmt: skip
        for content in ("Déjà vu 鳥", "erased later"):
            said = {"agent_id": "ada", "concepts": ["é"], "confidence": None, "content": content, "importance": 0.1,
                    "refs": [0], "relations": [relation], "role": "Memory", "schema_version": 1, "session_id": "s",
                    "tags": ["x", "y"], "thought_type": "Finding"}  # fmt: skip
            signature = list(SIGNER.sign(rfc8785.dumps(said)))
            given = {name: value for name, value in said.items() if name != "schema_version" and value is not None}
            given["relations"] = [{name: value for name, value in relation.items() if value is not None}]
            client.call("chain.append", {**ADA, **given, "signing_key_id": "k1", "thought_signature": signature})
        registry = json.dumps(to_plain(client.call("chain.agent_registry", {"chain_key": "signed"})))
        keys = tmp_path / "agents"
        keys.write_text(registry)
        export = exported(daemon, capsys, "signed")
        assert verified(export, str(keys)) == {"thoughts": 3, "gone": [], "signed": [1, 2], "problems": []}
        assert verified(export)["problems"] == ["1: thought_signature", "2: thought_signature"]
        keys.write_text(registry.replace(str(PUBLIC), str([PUBLIC[0] ^ 1, *PUBLIC[1:]])))
        assert verified(export, str(keys))["signed"] == []
        keys.write_text(registry)
        client.call("chain.lifecycle", {"chain_key": "signed", "action": "erase", "indexes": [2], "reason": "r"})
        client.call("chain.revoke_agent_key", {**ADA, "key_id": "k1"})
        keys.write_text(json.dumps(to_plain(client.call("chain.agent_registry", {"chain_key": "signed"}))))
        left = verified(exported(daemon, capsys, "signed"), str(keys))
        assert left == {"thoughts": 3, "gone": [2], "signed": [1], "problems": []}


@NEEDS_NODE
def test_a_stranger_verifies_an_uploaded_skill(daemon: Daemon) -> None:
    content = "---\r\nname: Größe\r\ndescription: d\r\n---\r\n# H\n\ntext"
    with daemon.client() as client:
        agent = {"chain_key": "uploads", "agent_id": "ada"}
        client.call("chain.upsert_agent", agent)
        client.call("chain.add_agent_key", {**agent, "key_id": "k", "algorithm": "ed25519", "public_key_bytes": PUBLIC})
        signature = list(SIGNER.sign(content.encode()))
        upload = {**agent, "skill_id": "told", "content": content}
        client.call("skill_registry.upload", {**upload, "signing_key_id": "k", "skill_signature": signature})
        # Whatever becomes of the agent's key: the version says by which one it holds.
        other = {"key_id": "k", "algorithm": "ed25519", "public_key_bytes": [7] * 32}
        client.call("chain.add_agent_key", {**agent, **other})
        client.call("skill_registry.upload", {**upload, "content": content + " unsigned"})
        first, second = to_plain(client.call("skill_registry.versions", {"skill_id": "told"}).versions)
        asked = {"skill_id": "told", "version_id": first["version_id"], "format": first["source_format"]}
        read = client.call("skill_registry.read", asked).content.encode()
    assert (second["skill_signature"], second["public_key_bytes"]) == (None, None)
    script = ROOT / "tests/registry/verify_skill.js"
    assert node(script, json.dumps(first), given=read) == {"hash": True, "signature": True}
    assert node(script, json.dumps(first), given=read + b"\n") == {"hash": False, "signature": False}


def test_the_vector_of_the_page_is_what_the_code_makes() -> None:
    from beetle.domain.chains import ledger
    from beetle.domain.chains.ledger import Body, Thought

    text = (ROOT / "docs/chain-format.md").read_text()
    digest = ledger.body_digest(Body(bytes(range(16)), "Déjà vu", ("a",)))
    thought = Thought(
        1, "8b0c3c5e-1111-4222-8333-444455556666", 0, 1_767_323_045_000_006, None, "astro", None, "Plan", "Memory",
        None, 0.95, (), (), digest, "", "",
    )  # fmt: skip
    assert f"`{digest}`" in text
    assert f"`{ledger.thought_hash(thought)}`" in text
