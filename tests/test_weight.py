"""What a command loads: nothing that it does not need, and no more modules than are written down here.

Modules are counted since milliseconds differ from machine to machine; `python -m tests.bench.start` measures those.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from beetle.runtime.host.config import SYSTEM_CONFIG
from tests.running import Daemon

ROOT = Path(__file__).parents[1]
PROFILE = "profile-linux-device-standalone-memory"

WEIGHED = """
import atexit, sys
file, words, before = sys.argv[1], sys.argv[2:], set(sys.modules)
def tell():
    loaded = sorted({name for name, module in sys.modules.items() if module is not None} - before)
    with open(file, "w") as stream:
        stream.write("\\n".join(loaded))
atexit.register(tell)
from beetle.__main__ import main
sys.exit(main(words))
"""
"""Runs a command line and leaves the names of the modules that it loaded in a file."""

HEAVY = (
    "asyncio textual rich beetle_tui cryptography ssl email http urllib.request importlib.metadata importlib.resources "
    "unittest concurrent.futures multiprocessing xml sqlite3 typing_extensions pkgutil apsw.ext ctypes zipfile"
)
"""What no command but the console may load."""

OPENS_A_STORE = (
    "apsw dataclasses inspect ast logging traceback hashlib secrets beetle.open beetle.sdk beetle.daemon "
    "beetle.deploy.apply beetle.deploy.selftest beetle.domain beetle.runtime.pipeline.dispatcher "
    "beetle.store.engine.store beetle.store.engine.connection"
)
STARTS_A_PROCESS = "subprocess tempfile shutil bz2 lzma random"
READS_TOML = "tomllib"
READS_JSON = "json"
SEES_MORE_THAN_ASCII = "unicodedata"
MEETS_A_MISTYPED_WORD = "difflib"
TALKS = "socket msgpack beetle.client"

NO_FILES = f"{HEAVY} {OPENS_A_STORE} {STARTS_A_PROCESS} {SEES_MORE_THAN_ASCII} {MEETS_A_MISTYPED_WORD}"
CLIENT = f"{NO_FILES} {READS_TOML}"
LEAN = f"{CLIENT} {READS_JSON}"
HELP = f"{LEAN} {TALKS} pathlib urllib.parse beetle.runtime"
SERVER = f"{TALKS} pathlib urllib.parse beetle.runtime msgspec beetle.contracts.codec beetle.contracts.operations"
FIRST = f"{LEAN} {TALKS} re typing enum argparse msgspec beetle.contracts beetle.transports"


class Case(NamedTuple):
    """A command line, what it must not load, and how many modules it may load beyond a bare interpreter.

    `{socket}` and `{none}` stand for a daemon's socket and for one where nobody listens.
    """

    words: str
    denied: str
    most: int
    code: int = 0


CASES = (
    Case("--version", FIRST, 3),
    Case("version", FIRST, 3),
    Case("--help", HELP, 76),
    Case("memory recall --help", HELP, 96),
    Case("tui --help", HELP, 86),
    Case("completion bash", f"{LEAN} {TALKS}", 166),
    Case("platform capability-snapshot --profile compact", f"{NO_FILES} {TALKS}", 108),
    Case("--socket {none} status", LEAN, 167, 3),
    Case("--socket {socket} status", LEAN, 167),
    Case("--socket {socket} memory recall key", LEAN, 166),
    Case("--socket {socket} --json memory recall key", LEAN, 166),
    Case("--socket {socket} mcp", f"{CLIENT} {SERVER}", 64),
    Case("--socket {socket} call hello", CLIENT, 172),
    Case("--socket {none} stop", f"{LEAN} msgpack beetle.client", 100),
    Case("--socket {socket} doctor", HEAVY, 492),
)
START = Case("start", f"{HEAVY} {OPENS_A_STORE} {SEES_MORE_THAN_ASCII} {MEETS_A_MISTYPED_WORD}", 128)
STOP = Case("stop", f"{LEAN} msgpack beetle.client", 101)
SERVE = Case(
    "serve",
    f"{HEAVY.replace('cryptography ', '').replace(' ctypes', '')} tempfile subprocess shutil dataclasses inspect ast "
    "dis secrets random difflib beetle.client beetle.sdk beetle.deploy.apply beetle.deploy.selftest _hashlib",
    291,
)
"""What it has loaded when it has ended: with its last write it signs the event log's head."""

IN_PROCESS = "textual asyncio rich importlib.metadata apsw.ext argparse cryptography urllib3 yaml ssl"

IMPORTS = (
    Case("import beetle", FIRST, 2),
    Case("import beetle.client", "apsw textual asyncio rich hashlib secrets importlib.metadata beetle.store", 98),
    Case("import beetle.sdk", "apsw textual asyncio rich beetle.open", 88),
    Case("import beetle.open", IN_PROCESS, 238),
    Case("import beetle.daemon", IN_PROCESS, 262),
)


def environment(folder: Path) -> dict[str, str]:
    """Nothing of this machine's own beetle."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("BEETLE_", "XDG_"))}
    return {**kept, "HOME": str(folder), "PYTHONPATH": str(ROOT)}


@pytest.fixture(scope="module", autouse=True)
def no_configuration() -> None:
    if os.getuid() == 0 and os.path.exists(SYSTEM_CONFIG):
        pytest.skip(f"commands of this machine read {SYSTEM_CONFIG}, which takes a parser of TOML")


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="bw-") as made:
        yield Path(made)


@pytest.fixture(scope="module")
def daemon(folder: Path) -> Iterator[Daemon]:
    with Daemon(profile=PROFILE, folder=str(folder)) as running:
        yield running


def run(program: str, words: list[str], folder: Path) -> tuple[int, set[str]]:
    """Run a program that leaves its modules in a file; its exit code and those modules."""
    file = folder / "modules"
    command = [sys.executable, "-c", program, str(file), *words]
    done = subprocess.run(command, cwd=folder, env=environment(folder), capture_output=True, text=True)
    assert file.exists(), done.stderr
    loaded = set(file.read_text().split())
    file.unlink()
    return done.returncode, loaded


def too_much(loaded: set[str], denied: str) -> list[str]:
    """What of the denied is there."""
    return sorted({each for each in denied.split() if each in loaded})


def weigh(case: Case, code: int, loaded: set[str]) -> None:
    assert too_much(loaded, case.denied) == []
    if sys.version_info[:2] == (3, 11):  # other versions have other modules behind the same names
        assert len(loaded) <= case.most, f"{len(loaded)} modules, {case.most} are allowed: {' '.join(sorted(loaded))}"
    assert code == case.code


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.words)
def test_a_command_loads_only_what_it_needs(case: Case, folder: Path, daemon: Daemon) -> None:
    words = case.words.format(socket=daemon.socket, none=folder / "none").split()
    weigh(case, *run(WEIGHED, words, folder))


def test_start_loads_what_starts_a_process_and_stop_does_not(folder: Path) -> None:
    own = folder / "own"
    own.mkdir()
    options = ["--socket", str(own / "s"), "--store", str(own / "b.db"), "--profile", PROFILE]
    begun = run(WEIGHED, [*options, "start"], folder)
    # The daemon ends whatever it has loaded.
    ended = run(WEIGHED, ["--socket", str(own / "s"), "stop"], folder)
    weigh(START, *begun)
    weigh(STOP, *ended)


def test_a_daemon_loads_no_more_than_serving_takes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = folder / "serving"
    own.mkdir()
    # What waits in this user's spool would be taken in.
    monkeypatch.setenv("XDG_STATE_HOME", str(own))
    file = own / "modules"
    command = shlex.join([sys.executable, "-c", WEIGHED, str(file)])
    with Daemon(profile=PROFILE, folder=str(own), command=command) as it, it.client() as client:
        mapped = Path(f"/proc/{client.hello().pid}/maps").read_text()
        assert "cryptography" not in mapped, "it takes time and memory, and is loaded when something is to be signed"
    assert it.process is not None
    weigh(SERVE, it.process.returncode, set(file.read_text().split()))


IMPORTED = """
import sys
file, statement, before = sys.argv[1], sys.argv[2], set(sys.modules)
exec(statement)
with open(file, "w") as stream:
    stream.write("\\n".join(sorted(set(sys.modules) - before)))
"""


@pytest.mark.parametrize("case", IMPORTS, ids=lambda case: case.words)
def test_importing_loads_only_what_is_needed(case: Case, folder: Path) -> None:
    weigh(case, *run(IMPORTED, [case.words], folder))
