"""Completion scripts, pressed for real where the shell is there."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from beetle.cli.commands import COMMANDS
from beetle.cli.completion import SHELLS, script

PRESS = """
source "$1"; shift
COMP_WORDS=(beetle "$@"); COMP_CWORD=$#
_beetle
printf '%s\\n' "${COMPREPLY[@]}"
complete -p beetle
"""


@pytest.fixture(scope="module")
def bash_script(tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("completion") / "beetle.bash"
    file.write_text(script("bash", COMMANDS))
    return str(file)


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("mem",), {"memory"}),
        (("memory", ""), {words[1] for words in COMMANDS if words[0] == "memory"}),
        (("memory", "recall", "--pl"), {"--planes"}),
        (("memory", "recall", "--planes", "e"), {"evidence"}),
        (("--json", "--store", "memory", "skill", "en"), {"enable"}),
        (("--profile", "st"), {"standalone"}),
        (("transcript", "replay", "c1", "--view", "=", "host"), {"host_ui"}),
        (("completion", ""), {"bash", "zsh", "fish"}),
        (("help", "inst"), {"install"}),
        (("--store", "/etc/passw"), {"/etc/passwd"}),
        (("verify", "--no-p"), {"--no-pages"}),
    ],
)  # fmt: skip
def test_bash_offers_what_may_follow(bash_script: str, words: tuple[str, ...], offered: set[str]) -> None:
    done = subprocess.run(
        ["bash", "--norc", "-c", PRESS, "bash", bash_script, *words], capture_output=True, text=True, timeout=30
    )
    assert done.stderr == ""
    *found, registered = done.stdout.splitlines()
    assert {each for each in found if not each.startswith("/etc/passwd-")} == offered
    assert registered == "complete -F _beetle beetle"


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_knows_every_command_and_its_shell_reads_it(shell: str) -> None:
    text = script(shell, COMMANDS)
    for words in COMMANDS:
        assert words[-1] in text
    if shutil.which(shell) is not None:
        done = subprocess.run([shell, "-n"], input=text, capture_output=True, text=True, timeout=30)
        assert (done.returncode, done.stderr) == (0, "")
