"""The inspector's command line and the conformance suite of the protocol's authors, both programs for Node.

They come from the npm registry, and need Node 22: $BEETLE_TEST_NODE, or `node` in the path.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from beetle.mcp.tools import Tools
from tests.mcp.bridge import Bridge
from tests.mcp.host import ROOT
from tests.running import Daemon

INSPECTOR = "@modelcontextprotocol/inspector"
CONFORMANCE = "@modelcontextprotocol/conformance"
PACKAGES = (f"{INSPECTOR}@2.12.0", f"{CONFORMANCE}@0.1.16")
NEEDS_NODE = 22
INSTALL_SECONDS = 300
PROGRAM_SECONDS = 60

SCENARIOS = ("server-initialize", "logging-set-level", "ping", "tools-list", "resources-list", "prompts-list")
"""Those that ask what every server answers. Of the others of 0.1.16, those that call `test_…` tools, resources and
prompts ask the suite's own example server; completion-complete, resources-subscribe, sampling and elicitation ask for
capabilities that Beetle does not declare; server-sse-… and dns-rebinding-protection test HTTP itself."""

ASKED_ELSEWHERE = ("memory.maintain", "memory.finalize_turn")
"""They ask a model, and none is configured."""

pytestmark = pytest.mark.slow


class Programs(NamedTuple):
    """Node and the folder of the packages."""

    node: str
    modules: Path

    def run(self, script: str, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.node, str(self.modules / script), *words],
            capture_output=True, text=True, cwd=self.modules.parent, timeout=PROGRAM_SECONDS,
            env={**os.environ, "HOME": str(self.modules.parent), "MCP_INSPECTOR_SECRET_STORE": "memory"},
            stdin=subprocess.DEVNULL,
        )  # fmt: skip


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Programs:
    node, npm = os.environ.get("BEETLE_TEST_NODE") or shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        pytest.skip("Node is not there")
    version = subprocess.run([node, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    if int(version.lstrip("v").partition(".")[0]) < NEEDS_NODE:
        pytest.skip(f"Node {version} is too old: the programs need {NEEDS_NODE}; name another in $BEETLE_TEST_NODE")
    folder = tmp_path_factory.mktemp("node")
    quiet = ["--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error", "--prefix", str(folder)]
    done = subprocess.run([npm, "install", *quiet, *PACKAGES], capture_output=True, text=True, timeout=INSTALL_SECONDS)
    if done.returncode:
        pytest.skip(f"the registry gives no packages: {done.stderr.strip()[:200]}")
    return Programs(node, folder / "node_modules")


@pytest.fixture(scope="module")
def session(programs: Programs, daemon: Daemon) -> Iterator[Path]:
    """The inspector's configuration: the server of each toolset."""
    import sys

    entries = {
        name: {
            "type": "stdio", "command": sys.executable, "cwd": str(ROOT),
            "args": ["-m", "beetle", "--socket", daemon.socket, "mcp", "--toolset", name],
        }
        for name in ("memory", "all")
    }  # fmt: skip
    path = programs.modules.parent / "mcp.json"
    path.write_text(json.dumps({"mcpServers": entries}))
    yield path


def inspect(programs: Programs, session: Path, server: str, method: str, *words: str) -> Any:
    """What the inspector prints of an answer."""
    script = f"{INSPECTOR}/clients/launcher/build/index.js"
    done = programs.run(script, "--cli", "--config", str(session), "--server", server, "--method", method, *words)
    assert done.stdout.strip().startswith("{"), (method, words, done.returncode, done.stderr[:500])
    return json.loads(done.stdout)


def test_the_inspector_reads_every_list_resource_and_prompt(programs: Programs, session: Path) -> None:
    tools = inspect(programs, session, "memory", "tools/list")["tools"]
    assert [each["name"] for each in tools][:3] == ["memory_recall", "memory_project", "memory_remember"]
    for each in inspect(programs, session, "memory", "resources/list")["resources"]:
        read = inspect(programs, session, "memory", "resources/read", "--uri", each["uri"])
        assert read["contents"][0]["text"], each
    talk = inspect(programs, session, "memory", "resources/read", "--uri", "beetle://conversation/local/kitchen")
    assert "Mara" in talk["contents"][0]["text"]
    assert len(inspect(programs, session, "memory", "resources/templates/list")["resourceTemplates"]) == 2
    (prompt,) = inspect(programs, session, "memory", "prompts/list")["prompts"]
    words = ("--prompt-name", prompt["name"], "--prompt-args", "topic=key")
    assert "flower pot" in inspect(programs, session, "memory", "prompts/get", *words)["messages"][0]["content"]["text"]


def test_the_inspector_calls_every_tool(programs: Programs, session: Path) -> None:
    listed = {each["name"] for each in inspect(programs, session, "all", "tools/list")["tools"]}

    def call(name: str) -> tuple[str, Any]:
        row = Tools("all").get(name).row
        given = {key: value for key, value in row.example.items() if key != "kind"}
        pairs = [f"{key}={value if isinstance(value, str) else json.dumps(value)}" for key, value in given.items()]
        words = ("--tool-arg", *pairs) if pairs else ()
        return name, inspect(programs, session, "all", "tools/call", "--tool-name", name, *words)

    rows = {name: Tools("all").get(name).row for name in Tools("all").names() if name in listed}
    names = [name for name, row in rows.items() if row.effect != "admin" and row.name not in ASKED_ELSEWHERE]
    with ThreadPoolExecutor(2) as pool:
        told = dict(pool.map(call, names))
    assert len(told) > 30
    for name, result in told.items():
        # An example may name what is not there: then the error says so.
        error = result.get("_meta", {}).get("beetle/error", {}).get("key")
        assert not result.get("isError") or error in ("not_found", "conflict", "invalid_request", "forbidden"), result
        assert result.get("isError") or result["structuredContent"] is not None, name


def test_the_conformance_suite_passes_where_it_asks_what_every_server_answers(
    programs: Programs, daemon: Daemon
) -> None:
    script = f"{CONFORMANCE}/dist/index.js"
    with Bridge("--socket", daemon.socket, "mcp") as bridge:
        for scenario in SCENARIOS:
            done = programs.run(script, "server", "--url", bridge.url, "--scenario", scenario)
            assert done.returncode == 0, done.stdout + done.stderr
