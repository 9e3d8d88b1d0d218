"""The one file of dist/ as a device has it: one file, started by its name. Skipped where it is not built."""

from __future__ import annotations

import hashlib
import json
import marshal
import os
import platform
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from beetle import __version__
from beetle.replication.pin import PROGRAM_SHA256, VERSION
from tests.built import ONE_FILE, TREE, need_build
from tests.mcp.host import Host, text_of
from tests.running import ROOT, Daemon, rss_mib
from tests.transports.test_kill import kill_and_check

IDLE_RSS_MIB = 32
PROFILE = "profile-linux-device-compact-memory"


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Homes of their own for cache, temporary files and configuration: whatever the one file leaves is in here.

    The path is short: a socket's may have about a hundred bytes.
    """
    need_build()
    for name in [each for each in os.environ if each.startswith(("BEETLE_", "XDG_"))]:
        monkeypatch.delenv(name)
    with tempfile.TemporaryDirectory(prefix="beetle-") as folder:
        for name in ("home", "tmp"):
            (Path(folder) / name).mkdir()
        monkeypatch.setenv("HOME", f"{folder}/home")
        monkeypatch.setenv("TMPDIR", f"{folder}/tmp")
        yield Path(folder)


def beetle(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([ONE_FILE, *words], capture_output=True, text=True, env={**os.environ, **env}, timeout=120)


def left(places: Path) -> list[str]:
    """What stands in the cache and the temporary folder, but for the lock of the cache."""
    cache = places / "home/.cache/beetle"
    inside = [each.name for each in cache.iterdir() if each.name != ".lock"] if cache.exists() else []
    return inside + [each.name for each in (places / "tmp").iterdir()]


def tree_name() -> str:
    return (TREE / "MANIFEST").read_text().split("\n", 1)[0].split()[-1]


def test_its_name_says_version_system_and_processor() -> None:
    need_build()
    assert ONE_FILE.name == f"beetle-{__version__}-linux-{platform.machine()}"


def test_the_manual_is_inside(places: Path) -> None:
    pages = sorted(each.stem for each in (ROOT / "docs").glob("*.md") if each.stem != "README")
    assert sorted(each["topic"] for each in json.loads(beetle("--json", "help").stdout)["topics"]) == pages
    assert beetle("help", "install").stdout.startswith("# Installing\n")


def test_the_first_start_and_the_next_say_the_version_and_leave_one_tree(places: Path) -> None:
    for _ in range(2):
        said = beetle("--version")
        assert (said.returncode, said.stdout, said.stderr) == (0, f"beetle {__version__}\n", "")
        assert left(places) == [tree_name()]


def test_ten_first_starts_at_once_all_answer_and_leave_one_tree(places: Path) -> None:
    started = [subprocess.Popen([ONE_FILE, "--version"], stdout=subprocess.PIPE, text=True) for _ in range(10)]
    said = [process.communicate(timeout=120)[0] for process in started]
    assert said == [f"beetle {__version__}\n"] * 10
    assert [process.returncode for process in started] == [0] * 10
    assert left(places) == [tree_name()]


@pytest.mark.parametrize("share", [0.2, 0.5, 0.9, 0.999999])
def test_a_flipped_byte_is_told_and_nothing_is_left(places: Path, share: float) -> None:
    data = bytearray(ONE_FILE.read_bytes())
    data[int(len(data) * share)] ^= 0x40
    damaged = places / "beetle"
    damaged.write_bytes(data)
    damaged.chmod(0o755)
    said = subprocess.run([damaged, "--version"], capture_output=True, text=True, timeout=120)
    assert said.returncode == 9
    assert said.stderr.startswith(f"beetle: damaged file: {damaged}")
    assert left(places) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="a small file system is mounted, which needs root")
def test_a_disk_without_room_is_told_and_nothing_is_left(places: Path) -> None:
    (places / "small").mkdir()
    script = """
        mount -t tmpfs -o size=4m tmpfs "$1" || exit
        "$2" --version; echo $?
        BEETLE_CACHE="$1" "$2" --version; echo $?
        find "$1" -mindepth 1 ! -name .lock
    """
    command = ["unshare", "--mount", "sh", "-c", script, "sh", str(places / "small"), str(ONE_FILE)]
    said = subprocess.run(command, capture_output=True, text=True, timeout=120)
    if "unshare" in said.stderr:
        pytest.skip(f"no mounts of its own here: {said.stderr.strip()}")
    assert said.stdout == f"beetle {__version__}\n0\n8\n"
    assert "beetle: no storage to unpack into: " in said.stderr


def test_its_own_checks_pass_as_many_as_there_must_be(places: Path) -> None:
    said = beetle("--json", "doctor", "--self-test")
    report = json.loads(said.stdout)
    assert report["failed"] == []
    assert (said.returncode, report["ran"], report["passed"]) == (0, report["expected"], report["expected"])
    assert left(places) == [tree_name()]


def test_the_first_step_of_looking_after_a_device(places: Path) -> None:
    """The page's commands: the system's install without `sudo` and below a root, the user's where this is no root's."""
    page = (ROOT / "docs/look-after-a-device.md").read_text()
    lines = page.partition("```sh\n")[2].partition("```")[0].splitlines()
    system, user, checked = [line.partition("#")[0].split() for line in lines]
    assert [system[:2], user[0], checked[0]] == [["sudo", f"./{ONE_FILE.name}"], f"./{ONE_FILE.name}", "beetle"]
    root = places / "system"
    said = beetle(*system[2:], "--root", str(root))
    assert said.returncode == 0, said.stdout + said.stderr
    said = beetle(*user[1:])
    assert said.returncode == (2 if os.geteuid() == 0 else 0), said.stdout + said.stderr
    said = subprocess.run(
        [root / "opt/beetle/current/beetle", *checked[1:]], capture_output=True, text=True, timeout=120
    )
    assert "20 of 20 checks passed" in said.stdout and "20 checks" in lines[2], said.stdout + said.stderr


@pytest.mark.parametrize("program", [TREE / "beetle", ONE_FILE], ids=["tree", "one file"])
def test_a_host_starts_it_as_a_server_of_mcp(places: Path, program: Path) -> None:
    with Host("--store", str(places / "b.db"), "--profile", "compact", "mcp", program=[str(program)]) as host:
        assert host.told["serverInfo"]["version"] == __version__
        assert {"memory_recall", "memory_remember"} <= set(host.tools())
        said = host.call("memory_remember", text="Mara drinks green tea.", said="I drink green tea.", speaker="Mara")
        assert not said.get("isError"), said
        assert "green tea" in text_of(host.call("memory_recall", query="tea"))
        assert host.end() == 0


def test_it_speaks_utf_8_without_a_locale(places: Path) -> None:
    store = str(places / "b.db")
    message = {"message_id": "m", "role": "user", "content": "Käfer 甲虫 walk"}
    turn = {"turn_id": "t", "at": "2026-01-01T00:00:00Z", "messages": [message]}
    request = json.dumps({"conversation": {"conversation_id": "c"}, "turns": [turn]}, ensure_ascii=False)
    plain = {"HOME": os.environ["HOME"], "TMPDIR": os.environ["TMPDIR"]}
    for words in (["transcript.commit", request], ["memory.recall", '{"query": "walking Käfer"}']):
        command = [ONE_FILE, f"--store={store}", "--profile=compact", "--json", "call", *words]
        done = subprocess.run(command, capture_output=True, env=plain, timeout=60)
        assert done.returncode == 0, done.stderr
    assert "甲虫" in json.loads(done.stdout)["hits"][0]["excerpt"]


def test_the_environment_of_another_python_do_not_reach_it(places: Path) -> None:
    poison = places / "poison"
    poison.mkdir()
    for name in ("sitecustomize", "usercustomize", "json", "msgspec", "encodings"):
        (poison / f"{name}.py").write_text("raise SystemExit('poisoned')\n")
    said = beetle("--help", PYTHONPATH=str(poison), PYTHONHOME=str(poison), PYTHONSTARTUP=str(poison / "json.py"))
    assert (said.returncode, said.stderr) == (0, "")


def test_a_tree_runs_wherever_it_stands_and_names_what_it_lacks(places: Path) -> None:
    tree = places / "a b:c?1" / "Käfer"
    shutil.copytree(TREE, tree, symlinks=True)

    def said() -> subprocess.CompletedProcess[str]:
        command = [tree / "beetle", "--store", places / "b.db", "doctor"]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, env={"HOME": os.environ["HOME"]})

    assert said().returncode == 0, said().stderr
    for name in ("begin", "modules.pyz", "base_library.zip", "interpreter"):
        file = tree / "_internal" / name
        away = file.rename(places / name)
        for content in (None, b"", marshal.dumps([1])):
            if content is not None:
                file.write_bytes(content)
            lacks = said()
            assert lacks.returncode == 126 and lacks.stderr.endswith(
                "the next start of the one file unpacks it again\n"
            )
            assert "Assertion" not in lacks.stderr
        away.rename(file)
    assert said().returncode == 0


def test_no_library_comes_from_the_system_or_the_environment(places: Path) -> None:
    poison = places / "poison"
    poison.mkdir()
    for name in ("libc.so.6", "libz.so.1", "libm.so.6", "libpthread.so.0", "libsqlite3.so.0"):
        (poison / name).write_text("no library\n")
    store = ["--store", str(places / "b.db"), "--socket", str(places / "b.sock")]
    started = beetle(*store, "--profile", "compact", "start", LD_LIBRARY_PATH=str(poison))
    assert started.returncode == 0, started.stderr
    pid = int(started.stdout.split("(pid ")[1].split(")")[0])
    lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
    mapped = {line.split(maxsplit=5)[5] for line in lines if len(line.split(maxsplit=5)) == 6}
    assert beetle(*store, "stop").returncode == 0
    tree = str(places / "home/.cache/beetle" / tree_name())
    libraries = {path for path in mapped if ".so" in path}
    assert any(path.endswith("/libc.so.6") for path in libraries)
    assert {path for path in libraries if not path.startswith(f"{tree}/")} == set()


def test_the_replicas_program_is_inside_and_is_the_pinned_one(places: Path) -> None:
    need_build()
    program = TREE / "litestream"
    assert hashlib.sha256(program.read_bytes()).hexdigest() == PROGRAM_SHA256[platform.machine()]
    said = subprocess.run([program, "version"], capture_output=True, text=True, env={}, timeout=60)
    assert said.stdout.strip() == VERSION


def test_the_program_holds_its_tree_and_a_child_of_start_does_too(places: Path) -> None:
    store = ["--store", str(places / "b.db"), "--socket", str(places / "b.sock")]
    started = beetle(*store, "--profile", "compact", "start")
    assert started.returncode == 0, started.stderr
    try:
        lock = places / "home/.cache/beetle" / tree_name() / "in-use"
        tried = subprocess.run(["flock", "--exclusive", "--nonblock", lock, "true"])
        assert tried.returncode == 1
    finally:
        assert beetle(*store, "stop").returncode == 0
    assert subprocess.run(["flock", "--exclusive", "--nonblock", lock, "true"]).returncode == 0
    assert left(places) == [tree_name()]


@pytest.mark.parametrize("kills", [6, pytest.param(100, marks=pytest.mark.slow)])
def test_the_pid_that_was_started_is_the_pid_that_dies_and_many_kills_leave_one_tree(places: Path, kills: int) -> None:
    (places / "store").mkdir()
    daemon = Daemon(profile=PROFILE, folder=str(places / "store"), command=str(ONE_FILE))
    tree = places / "home/.cache/beetle" / tree_name()
    for kill in range(kills):
        daemon.start()
        program = os.readlink(f"/proc/{daemon.pid}/exe")
        assert program == str(tree / "beetle")
        with daemon.client() as client:
            assert client.hello().pid == daemon.pid
            turn = {"turn_id": f"t{kill}", "at": "2026-01-01T00:00:00Z",
                    "messages": [{"message_id": f"m{kill}", "role": "user", "content": "a note"}]}  # fmt: skip
            client.commit_transcript(conversation={"conversation_id": "c"}, turns=[turn])
            daemon.kill()
        assert daemon.process is not None
        assert daemon.process.returncode == -signal.SIGKILL
        assert not Path(f"/proc/{daemon.pid}").exists()
    daemon.start()
    with daemon.client() as client:
        client.hello()
        assert rss_mib(daemon.pid) <= IDLE_RSS_MIB
        assert client.inspect().counts.turns == kills
        assert client.verify_store().clean
    daemon.stop()
    assert left(places) == [tree_name()]


def test_acknowledged_turns_survive_kill_9_of_the_one_file(places: Path) -> None:
    (places / "store").mkdir()
    kill_and_check(places / "store", writers=4, turns=150, kills=3, command=str(ONE_FILE))
    assert left(places) == [tree_name()]


@pytest.mark.slow
def test_acknowledged_turns_of_eight_writers_survive_five_kills_of_the_one_file(places: Path) -> None:
    (places / "store").mkdir()
    kill_and_check(places / "store", writers=8, turns=2000, kills=5, command=str(ONE_FILE))
    assert left(places) == [tree_name()]
