"""Entries in the configurations of hosts: shown, merged, removed; what is there stays as it was, byte for byte."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from beetle.__main__ import main
from beetle.cli.mcp import FROM_ENVIRONMENT, HOST_NAMES
from beetle.mcp.hosts import ENTRY, HOSTS, file_of, planned
from beetle.mcp.jsonc import NotEditable, parse, remove_entry, set_entry
from tests.mcp.host import ROOT

THERE = {
    "json": '{\n  "theme": "dark",\n  "%s": {\n    "other": {"command": "x", "args": ["a"]}\n  }\n}\n',
    "toml": '# mine\nmodel = "o3"\n\n[%s.other]\ncommand = "x"\n\n# about history\n[history]\npersistence = "none"\n',
}
COMMENTED = """\
// Settings of mine
{
  "theme": "dark", // nicer
  /* servers */
  "context_servers": {
    // the other one
    "other": { "command": "x" }, // stays
  },
  "vim_mode": true,
}
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for host in HOSTS.values():
        if host.variable:
            monkeypatch.delenv(host.variable, raising=False)
    for each in FROM_ENVIRONMENT.values():
        monkeypatch.delenv(each, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def place(name: str) -> Path:
    return Path(file_of(HOSTS[name], os.environ))


def value_of(name: str, text: str) -> dict[str, Any]:
    return tomllib.loads(text) if HOSTS[name].form == "toml" else parse(text).value


def install(name: str, *more: str) -> int:
    return main(["--store", "/data/b.db", "mcp", "--install", name, *more])


def test_a_comment_ends_with_its_line_alone(home: Path) -> None:
    file = place("codex")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text('[mcp_servers.beetle]\ncommand = "old"\n# one\u2028two\n\n[history]\npersistence = "none"\n')
    change = planned(HOSTS["codex"], os.environ, {"command": "new"})
    assert "# one\u2028two\n" in change.after
    assert value_of("codex", change.after)["mcp_servers"]["beetle"] == {"command": "new"}


@pytest.mark.parametrize("name", HOST_NAMES)
def test_an_entry_is_shown_merged_changed_and_removed(
    name: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    host, file = HOSTS[name], place(name)
    assert file.is_relative_to(home)
    assert install(name) == 0
    shown = capsys.readouterr().out
    assert str(file) in shown
    assert not file.exists(), "it was only shown"
    text = shown[shown.index("\n\n") + 2 : shown.index("\nTo write it")]
    assert shown.endswith(f"To write it: beetle --store /data/b.db mcp --install {name} --write\n")
    entry = value_of(name, text)[host.keys[0]][ENTRY]
    assert [entry["command"], *entry["args"]][-3:] == ["--store", "/data/b.db", "mcp"]

    file.parent.mkdir(parents=True, exist_ok=True)
    there = THERE[host.form] % host.keys[0]
    file.write_text(there)
    file.chmod(0o640)
    assert install(name, "--write") == 0
    before, after = value_of(name, there), value_of(name, file.read_text())
    assert after[host.keys[0]].pop(ENTRY) == entry
    assert after == before
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    (backup,) = file.parent.glob("*.before-beetle-*")
    assert backup.read_text() == there

    written = file.read_text()
    assert install(name, "--write") == 0
    assert file.read_text() == written, "twice is once"
    assert install(name, "--write", "--toolset", "all") == 0
    assert value_of(name, file.read_text())[host.keys[0]][ENTRY]["args"][-2:] == ["--toolset", "all"]
    assert install(name, "--remove") == 0
    assert value_of(name, file.read_text()) == before
    assert file.read_text().rstrip() == there.rstrip(), "as it was, byte for byte"
    assert install(name, "--remove") == 0
    assert {each.name for each in file.parent.iterdir()} >= {file.name}
    assert not [each for each in file.parent.iterdir() if each.name.endswith(str(os.getpid()))]


@pytest.mark.parametrize("name", HOST_NAMES)
def test_a_file_that_is_not_there_is_made_for_this_user_alone(name: str) -> None:
    assert install(name, "--write") == 0
    assert ENTRY in value_of(name, place(name).read_text())[HOSTS[name].keys[0]]
    assert stat.S_IMODE(place(name).stat().st_mode) == 0o600


def test_comments_and_trailing_commas_stay() -> None:
    file = place("zed")
    file.parent.mkdir(parents=True)
    file.write_text(COMMENTED)
    assert install("zed", "--write") == 0
    written = file.read_text()
    for each in ("// Settings of mine", "// nicer", "/* servers */", "// the other one", '"x" }, // stays'):
        assert each in written
    assert install("zed", "--remove") == 0
    assert parse(file.read_text()).value == parse(COMMENTED).value
    assert all(each in file.read_text() for each in ("// the other one", "// stays"))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cursor", "{no json"),
        ("cursor", '{"mcpServers": []}'),
        ("cursor", '{"mcpServers": {"beetle": 1, "beetle": 2}}'),
        ("cursor", "[]"),
        ("zed", '{"context_servers": {} /* never ends'),
        ("codex", "not toml"),
        ("codex", 'mcp_servers = {other = {command = "x"}}\n'),
        ("codex", 'mcp_servers.beetle.command = "x"\n'),
        ("codex", "mcp_servers = 3\n"),
        ("codex", 'text = """\n[mcp_servers.beetle]\nx"""\n'),
    ],
)
def test_what_cannot_be_changed_by_itself_is_left_with_the_text_to_paste(
    name: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = place(name)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    assert install(name, "--write") == 2
    told = capsys.readouterr().err
    assert str(file) in told
    entry = value_of(name, told.partition("\n\n")[2])[HOSTS[name].keys[0]][ENTRY]
    assert "/data/b.db" in entry["args"], "it can be pasted as it stands there"
    install(name, "--remove")
    assert file.read_text() == text, "neither is anything taken out"
    assert [each.name for each in file.parent.iterdir()] == [file.name]


def test_a_pipe_in_the_place_of_the_file_is_not_waited_for(capsys: pytest.CaptureFixture[str]) -> None:
    place("cursor").parent.mkdir()
    os.mkfifo(place("cursor"))
    assert install("cursor", "--write") == 2
    assert "no regular file" in capsys.readouterr().err


def test_what_the_environment_says_stands_in_the_entry(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A host of a desktop has another environment than the shell in which it is set up."""
    monkeypatch.setenv("BEETLE_SOCKET", str(home / "b.sock"))
    monkeypatch.setenv("BEETLE_CONFIG", str(home / "beetle.toml"))
    assert main(["mcp", "--install", "gemini", "--write"]) == 0
    entry = json.loads(place("gemini").read_text())["mcpServers"][ENTRY]
    assert entry["args"][-5:] == ["--socket", str(home / "b.sock"), "--config", str(home / "beetle.toml"), "mcp"]
    assert main(["--store", "b.db", "mcp", "--install", "cursor"]) == 0
    shown = capsys.readouterr().out
    assert str(home / "b.sock") not in shown, "another store's socket"
    assert str(Path.cwd() / "b.db") in shown


def test_a_link_to_the_file_stays_a_link(home: Path) -> None:
    dotfiles = home / "dotfiles.json"
    dotfiles.write_text("{}")
    place("gemini").parent.mkdir()
    place("gemini").symlink_to(dotfiles)
    assert install("gemini", "--write") == 0
    assert place("gemini").is_symlink()
    assert ENTRY in json.loads(dotfiles.read_text())["mcpServers"]


def test_what_is_installed_starts(home: Path) -> None:
    assert main(["--store", str(home / "b.db"), "mcp", "--install", "cursor", "--write"]) == 0
    entry = json.loads(place("cursor").read_text())["mcpServers"][ENTRY]
    command = [entry["command"], *entry["args"]]
    asked = b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n'
    if command[0] != sys.executable:
        command[:1] = [sys.executable, "-m", "beetle"]  # the tests' own program is no beetle
    done = subprocess.run(command, input=asked, cwd=ROOT, capture_output=True, check=True)
    assert json.loads(done.stdout)["result"] == {}


def test_write_and_remove_belong_to_a_host(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mcp", "--write"]) == 2
    assert main(["mcp", "--install", "cursor", "--write", "--remove"]) == 2
    assert main(["mcp", "--install", "emacs"]) == 2
    assert "claude-code" in capsys.readouterr().err


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(
    whole=st.dictionaries(st.text(max_size=4), values, max_size=4),
    servers=st.dictionaries(st.text(max_size=4), values, max_size=3) | st.none(),
    indent=st.sampled_from([None, 1, 2, 4, "\t"]),
)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_any_json_keeps_its_rest(whole: dict[str, Any], servers: dict[str, Any] | None, indent: Any) -> None:
    if servers is not None:
        whole = {**whole, "mcpServers": servers}
    text = json.dumps(whole, indent=indent)
    path = ("mcpServers", ENTRY)
    try:
        written = set_entry(text, path, {"command": "x"})
    except NotEditable:
        raise AssertionError(text) from None
    assert json.loads(written) == {**whole, "mcpServers": {**(servers or {}), ENTRY: {"command": "x"}}}
    left = json.loads(remove_entry(written, path))
    assert left == {**whole, "mcpServers": {k: v for k, v in (servers or {}).items() if k != ENTRY}}
