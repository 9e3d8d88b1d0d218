"""`beetle memory export` and its like: files of this user alone, and a passphrase that is never an argument."""

from __future__ import annotations

import os
import pty
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests import forked
from tests.conformance.doors import REPOSITORY
from tests.forked import Daemon
from tests.running import COMMAND

WORDS = "correct horse battery"


class Shell:
    """Commands in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "beetle.toml").touch()
        self.environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(REPOSITORY), "HOME": str(folder),
                            "XDG_RUNTIME_DIR": str(folder), "BEETLE_CONFIG": str(folder / "beetle.toml")}  # fmt: skip

    def words(self, *words: str, store: str = "s") -> list[str]:
        return ["--store", f"{store}.db", "--socket", f"{store}.sock", "--profile", "standalone", *words]

    def command(self, *words: str, store: str = "s") -> list[str]:
        return [*COMMAND, *self.words(*words, store=store)]

    def run(self, *words: str, store: str = "s", given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return forked.run(self.words(*words, store=store), cwd=self.folder, env=self.environment, given=given)

    def done(self, *words: str, store: str = "s", given: bytes = b"") -> str:
        ended = self.run(*words, store=store, given=given)
        assert ended.returncode == 0, ended.stderr.decode()
        return ended.stdout.decode()

    def refused(self, key: str, *words: str, store: str = "s", given: bytes = b"") -> str:
        ended = self.run(*words, store=store, given=given)
        assert ended.stderr.decode().startswith(f"beetle: {key}: "), ended
        return ended.stderr.decode()


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    made = Shell(tmp_path)
    made.done("transcript", "commit", "--conversation", "chat-1", "--text", "the spare key")
    return made


def words_file(shell: Shell, mode: int = 0o600, text: str = WORDS) -> str:
    file = shell.folder / "words"
    file.write_text(f"{text}\n")
    file.chmod(mode)
    return str(file)


def test_an_export_is_a_new_file_of_this_user_alone(shell: Shell) -> None:
    shell.done("memory", "export", "--chat-id", "chat-1", "--out", "a.beetle")
    file = shell.folder / "a.beetle"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    before = file.read_bytes()
    assert "a.beetle" in shell.refused(
        "invalid_request", "memory", "export", "--chat-id", "chat-1", "--out", "a.beetle"
    )
    assert file.read_bytes() == before
    assert shell.done("memory", "import", "a.beetle", "--target-chat-id", "b", "--mode", "bootstrap_import", store="t")
    assert "the spare key" in shell.done("memory", "recall", "spare key", store="t")


def test_what_is_refused_leaves_no_file(shell: Shell) -> None:
    shell.refused("not_found", "memory", "export", "--chat-id", "nowhere", "--out", "a.beetle")
    shell.refused("invalid_request", "memory", "export", "--chat-id", "chat-1")
    assert not (shell.folder / "a.beetle").exists()


def test_an_export_goes_through_a_pipe(shell: Shell) -> None:
    taken = shell.run("memory", "export-space", "--out", "-")
    assert taken.returncode == 0 and taken.stderr == b""
    shell.done("memory", "import-space", "-", "--mode", "bootstrap_import", store="t", given=taken.stdout)


def test_a_passphrase_is_read_from_a_file_of_this_user_alone(shell: Shell) -> None:
    export = ("memory", "export", "--chat-id", "chat-1", "--out", "a.beetle")
    assert "terminal" in shell.refused("invalid_request", *export, "--include-private")
    open_file = words_file(shell, 0o644)
    assert "chmod 600" in shell.refused("invalid_request", *export, "--passphrase-file", open_file)
    words = words_file(shell)
    assert "Sealed" in shell.done(*export, "--passphrase-file", words)
    assert b"spare key" not in (shell.folder / "a.beetle").read_bytes()
    take = ("memory", "import", "a.beetle", "--target-chat-id", "b", "--mode", "bootstrap_import")
    shell.refused("invalid_request", *take, store="t")
    wrong = words_file(shell, text="another passphrase")
    shell.refused("privacy_denied", *take, "--passphrase-file", wrong, store="t")
    shell.done(*take, "--passphrase-file", words_file(shell), store="t")
    assert "--passphrase " not in shell.done("memory", "export", "--help")


def test_a_passphrase_is_asked_for_at_a_terminal_and_not_shown(shell: Shell) -> None:
    shell.done("memory", "export-space", "--out", "a", "--passphrase-file", words_file(shell))
    controller, terminal = pty.openpty()
    command = shell.command("memory", "import-space", "a", "--mode", "bootstrap_import", store="t")
    process = subprocess.Popen(
        command, cwd=shell.folder, env=shell.environment, stdin=terminal, stdout=terminal, stderr=terminal,
        start_new_session=True,
    )  # fmt: skip
    os.close(terminal)
    said = b""
    while b"Passphrase: " not in said:
        said += os.read(controller, 1024)
    os.write(controller, f"{WORDS}\n".encode())
    while True:
        try:
            part = os.read(controller, 1024)
        except OSError:  # Linux says so when the other end is closed
            break
        if not part:
            break
        said += part
    assert process.wait(60) == 0, said
    os.close(controller)
    assert b"Taken in" in said and WORDS.encode() not in said


def test_what_is_no_export_is_refused_in_words(shell: Shell) -> None:
    (shell.folder / "noise").write_bytes(b"x" * 100)
    take = ("--target-chat-id", "b", "--mode", "bootstrap_import")
    assert "envelope" in shell.refused("invalid_request", "memory", "import", "noise", *take)
    assert "nothing.beetle" in shell.refused("invalid_request", "memory", "import", "nothing.beetle", *take)


def test_json_takes_and_gives_base64(shell: Shell) -> None:
    import json

    taken = json.loads(shell.done("--json", "call", "memory.export", '{"chat_id": "chat-1"}'))
    args = {"snapshot": taken["snapshot"], "target_chat_id": "b", "mode": "bootstrap_import"}
    made = json.loads(shell.done("--json", "call", "memory.import", "-", given=json.dumps(args).encode()))
    assert made["state_fingerprint"] == taken["state_fingerprint"]
    wrong = json.dumps({**args, "snapshot": "not base64!"}).encode()
    assert "base64" in shell.refused("invalid_request", "call", "memory.import", "-", given=wrong)
    shown = json.loads(shell.done("--json", "memory", "export", "--chat-id", "chat-1", "--out", "b.beetle"))
    assert shown["snapshot"] is None and shown["counts"]["turns"] == 1


def test_what_no_frame_holds_is_taken_in_with_a_daemon_and_without(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="bc-") as name:
        folder = Path(name)
        shell = Shell(folder)
        for number in range(6):
            text = "word " * 50_000
            shell.done("transcript", "commit", "--conversation", "chat-1", "--text-file", "-",
                       "--turn-id", f"t{number}", given=text.encode())  # fmt: skip
        shell.done("memory", "export", "--chat-id", "chat-1", "--out", "big")
        take = ("memory", "import", "big", "--target-chat-id", "b", "--mode", "bootstrap_import", "--owner", "piet")
        with Daemon(profile="profile-linux-device-standalone-memory", folder=name) as daemon:
            ended = forked.run_text(["--socket", daemon.socket, *take], cwd=folder, env=shell.environment)
        assert ended.returncode == 0 and ended.stderr == "", ended.stderr
        shell.done(*take, store="t")


PRINCIPAL = """
[principals.mara]
uid = {uid}
owner_id = "mara"
agent_id = "agent-main"
capabilities = ["write", "export", "import", "transcript", "transcript.raw", "private.read", "admin"]
views = ["host_ui", "export", "raw_owner"]
"""


def test_private_material_leaves_by_the_command_line_for_whom_the_configuration_names() -> None:
    with tempfile.TemporaryDirectory(prefix="bc-") as name:
        folder = Path(name)
        shell = Shell(folder)
        config = folder / "beetle.toml"
        config.write_text(PRINCIPAL.format(uid=os.getuid()))
        command = f"{sys.executable} -m beetle --config {config}"
        with Daemon(profile="profile-linux-device-standalone-memory", folder=name, command=command) as daemon:

            def done(*words: str) -> str:
                ended = forked.run_text(["--socket", daemon.socket, *words], cwd=folder, env=shell.environment)
                assert ended.returncode == 0, ended.stderr
                return ended.stdout

            done("transcript", "commit", "--conversation", "chat-1", "--text", "her knee", "--visibility", "private")
            words = words_file(shell)
            sealed = ("--passphrase-file", words)
            assert "messages 1" in done("memory", "export-space", "--include-private", "--out", "a", *sealed)
            assert "messages 1" in done("memory", "import-space", "a", "--mode", "full_restore", *sealed)
            log = (folder / "log").read_bytes()
        assert WORDS.encode() not in log and b"knee" not in log
