"""The inspector's command line and the conformance suite of the protocol's authors, both programs for Node.

They come from the npm registry, and need Node 22: $BEETLE_TEST_NODE, or `node` in the path.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from beetle.mcp.resources import no_such
from beetle.mcp.server import no_method
from tests.building import Plain
from tests.forked import Daemon
from tests.mcp.arguments import ERRORS, arguments_of, in_order, prepared
from tests.mcp.bridge import Bridge
from tests.mcp.host import ROOT

INSPECTOR = "@modelcontextprotocol/inspector"
CONFORMANCE = "@modelcontextprotocol/conformance"
PACKAGES = (f"{INSPECTOR}@2.12.0", f"{CONFORMANCE}@0.1.16")
NEEDS_NODE = 22
INSTALL_SECONDS = 300
PROGRAM_SECONDS = 60

PASSES = "passes"


class Fixture(NamedTuple):
    """A scenario that asks the example server which the suite brings along. `told` is how Beetle refuses to be it."""

    told: str


class NotDeclared(NamedTuple):
    """A scenario of a capability that a server may have, and that Beetle's initialize does not declare."""

    told: str


class OfHttp(NamedTuple):
    """A scenario of the HTTP transport: here it would try the test's own bridge, for Beetle speaks stdio."""

    why: str


def _tool(name: str) -> Fixture:
    return Fixture(f"unknown tool '{name}'")


def _resource() -> Fixture:
    return Fixture(no_such("").message)


def _prompt(name: str) -> Fixture:
    return Fixture(f"unknown prompt '{name}'")


SCENARIOS: Mapping[str, str | Fixture | NotDeclared | OfHttp] = {
    "server-initialize": PASSES,
    "logging-set-level": PASSES,
    "ping": PASSES,
    "completion-complete": NotDeclared(no_method("completion/complete").message),
    "tools-list": PASSES,
    "tools-call-simple-text": _tool("test_simple_text"),
    "tools-call-image": _tool("test_image_content"),
    "tools-call-audio": _tool("test_audio_content"),
    "tools-call-embedded-resource": _tool("test_embedded_resource"),
    "tools-call-mixed-content": _tool("test_multiple_content_types"),
    "tools-call-with-logging": _tool("test_tool_with_logging"),
    "tools-call-error": _tool("test_error_handling"),
    "tools-call-with-progress": _tool("test_tool_with_progress"),
    "tools-call-sampling": _tool("test_sampling"),
    "tools-call-elicitation": _tool("test_elicitation"),
    "json-schema-2020-12": Fixture("Tool 'json_schema_2020_12_tool' not found"),
    "elicitation-sep1034-defaults": _tool("test_elicitation_sep1034_defaults"),
    "server-sse-polling": OfHttp("streams of events that the server closes while a tool works"),
    "server-sse-multiple-streams": PASSES,
    "elicitation-sep1330-enums": _tool("test_elicitation_sep1330_enums"),
    "resources-list": PASSES,
    "resources-read-text": _resource(),  # test://static-text
    "resources-read-binary": _resource(),  # test://static-binary
    "resources-templates-read": _resource(),  # test://template/123/data
    "resources-subscribe": NotDeclared(no_method("resources/subscribe").message),
    "resources-unsubscribe": NotDeclared(no_method("resources/subscribe").message),
    "prompts-list": PASSES,
    "prompts-get-simple": _prompt("test_simple_prompt"),
    "prompts-get-with-args": _prompt("test_prompt_with_arguments"),
    "prompts-get-embedded-resource": _prompt("test_prompt_with_embedded_resource"),
    "prompts-get-with-image": _prompt("test_prompt_with_image"),
    "dns-rebinding-protection": OfHttp("the headers Host and Origin"),
}
"""Every scenario of the suite for servers. What its fixtures are to show (errors, progress, logging, schemas), Beetle's
own tools show in test_tools.py and test_protocol.py."""

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


def words_of(arguments: Plain) -> list[str]:
    """As the inspector takes them."""
    pairs = [f"{key}={value if isinstance(value, str) else json.dumps(value)}" for key, value in arguments.items()]
    return ["--tool-arg", *pairs] if pairs else []


def test_the_inspector_calls_every_tool(programs: Programs, session: Path, daemon: Daemon) -> None:
    listed = [each["name"] for each in inspect(programs, session, "all", "tools/list")["tools"]]
    few = [each["name"] for each in inspect(programs, session, "memory", "tools/list")["tools"]]
    with daemon.client() as client:
        got = prepared(client)
    asked = [(server, tool) for server, names in (("memory", few), ("all", listed)) for tool in in_order(names)]
    for server, tool in asked:
        words = ("--tool-name", tool.name, *words_of(arguments_of(tool, got)))
        result = inspect(programs, session, server, "tools/call", *words)
        if key := ERRORS.get(tool.row.name):
            assert result["_meta"]["beetle/error"]["key"] == key, result
        else:
            assert not result.get("isError") and result["structuredContent"] is not None, (tool.name, result)
    assert len(few) >= 5 and set(few) < set(listed)


def test_the_conformance_suite_has_no_scenario_that_fails_for_another_reason(
    programs: Programs, daemon: Daemon
) -> None:
    script = f"{CONFORMANCE}/dist/index.js"
    listed = re.findall(r"^ +- ([a-z0-9-]+)", programs.run(script, "list", "--server").stdout, re.M)
    assert sorted(listed) == sorted(SCENARIOS)
    wrong: dict[str, str] = {}
    with Bridge("--socket", daemon.socket, "mcp") as bridge:
        for scenario, expected in SCENARIOS.items():
            if isinstance(expected, OfHttp):
                continue
            done = programs.run(script, "server", "--url", bridge.url, "--scenario", scenario)
            if isinstance(expected, str):
                as_told = done.returncode == 0
            else:
                told = re.findall(r"^ +Error: (.*)$", done.stdout, re.M)
                as_told = done.returncode != 0 and len(told) == 1 and expected.told in told[0]
            if not as_told:
                wrong[scenario] = done.stdout + done.stderr
    assert not wrong, "\n".join(wrong.values())
