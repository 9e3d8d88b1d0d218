"""`beetle registry …`, the MCP tools of the registry, and the page from which a model learns to use them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from beetle.__main__ import main
from beetle.contracts.codec import convert_request
from beetle.mcp.tools import Tools
from beetle.runtime.areas.registry.guide import GUIDE
from beetle.runtime.host.skill_documents import document_of
from tests.registry.conftest import BACKUP, skill

CALLS = [json.loads(text) for text in re.findall(r"```json\n(.*?)```", GUIDE, re.DOTALL)]
OF_CHAINS = {"mentisdb_append", "mentisdb_search", "mentisdb_bootstrap", "mentisdb_recent_context", "mentisdb_head",
             "mentisdb_append_retrospective"}  # fmt: skip
OF_THE_SEED = {
    "mentisdb_skill_md", "mentisdb_list_skills", "mentisdb_skill_manifest", "mentisdb_upload_skill",
    "mentisdb_search_skill", "mentisdb_read_skill", "mentisdb_skill_versions", "mentisdb_deprecate_skill",
    "mentisdb_revoke_skill",
}  # fmt: skip


Do = Callable[..., tuple[bytes, str]]
"""A command of the registry; what it writes to stdout, and to stderr."""


@pytest.fixture
def do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Do:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BEETLE_CONFIG", str(tmp_path / "beetle.toml"))
    (tmp_path / "beetle.toml").touch()

    def once(*words: str, code: int = 0) -> tuple[bytes, str]:
        place = ("--store", str(tmp_path / "b.db"), "--socket", str(tmp_path / "b.sock"), "--profile", "standalone")
        assert main([*place, "registry", *words]) == code
        out, err = capfdbinary.readouterr()
        return out, err.decode()

    return once


def test_a_skill_from_its_upload_to_its_revocation(do: Do, tmp_path: Path) -> None:
    content = BACKUP.replace("\n", "\r\n") + "\x1b[2J\u202eno\r\n"
    (tmp_path / "SKILL.md").write_bytes(content.encode())
    out, _ = do("upload", "SKILL.md", "--agent-id", "planner")
    assert out.startswith(b"nightly-backup active (1 version")
    shown = json.loads(do("read", "nightly-backup", "--format", "json")[0])
    assert shown["name"] == "Nightly backup"
    (tmp_path / "skill.json").write_text(json.dumps(shown))
    do("upload", "skill.json")
    versions = do("versions", "nightly-backup")[0].decode()
    assert "markdown" in versions and "json" in versions and "planner" in versions and "agent-main" in versions
    first = re.search(r"[0-9a-f]{8}-[0-9a-f-]{27}", versions)
    assert first is not None
    out, err = do("read", "nightly-backup", "--version-id", first[0])
    assert out == content.encode(), "a pipe gets the very bytes"
    assert "no instruction to you" in err and "\x1b" not in err
    assert b"nightly-backup  active" in do("list")[0]
    assert b"nightly-backup" in do("search", "COPY", "--tags-any", "ops")[0]
    assert b"Formats" in do("manifest")[0]
    assert b"deprecated: old" in do("deprecate", "nightly-backup", "--reason", "old")[0]
    assert b"revoked" in do("revoke", "nightly-backup")[0]
    assert "is revoked" in do("deprecate", "nightly-backup", code=4)[1]
    assert do("md")[0].decode() == GUIDE


def test_a_listing_cannot_drive_a_terminal(do: Do, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(skill("Größe \u200f", warnings="'w'"))
    do("upload", "a.md", "--skill-id", "a", "--agent-id", "x\u202ey")
    out = do("list")[0] + do("search", "w")[0]
    assert "\u202e" not in out.decode() and "\u200f" not in out.decode() and b"\\u202e" in out
    (tmp_path / "bad.md").write_text("---\nname: &a b\n---\n")
    error = do("upload", "bad.md", code=2)[1]
    assert error.startswith("beetle: invalid_request: ") and "write each value where it belongs" in error


def test_mcp_has_the_names_of_the_seed() -> None:
    assert set(Tools("chain").names()) >= OF_THE_SEED
    assert all(name.startswith(("mentisdb_", "chain_")) for name in Tools("chain").names())
    assert not OF_THE_SEED & set(Tools("memory").names())
    assert set(Tools("all").names()) >= OF_THE_SEED


def test_the_page_is_a_skill_itself_and_its_front_matter_is_plain() -> None:
    found = document_of(GUIDE, "markdown")
    assert found.name == "Using Beetle" and found.warnings and found.triggers
    assert yaml.safe_load(GUIDE.split("---")[1])["name"] == found.name


def test_every_tool_that_the_page_names_is_there_and_every_example_is_a_request() -> None:
    tools = Tools("all")
    named = set(re.findall(r"\b(?:mentisdb|memory)_[a-z_]+", GUIDE))
    assert named <= set(tools.names()) | OF_CHAINS, named
    assert len(CALLS) >= 8
    for call in CALLS:
        if call["tool"] in tools.names():
            tool = tools.get(call["tool"])
            convert_request(tool.operation_arguments(call["arguments"]), tool.request, "$.args")
