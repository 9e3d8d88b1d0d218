"""`beetle capture`: JSON lines, the transcript files of hosts, hooks; two processes at once, and kill -9 between."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from beetle.__main__ import main
from beetle.contracts.common import WireScope
from beetle.spool import REFUSED_FILES, SPOOL_FILES
from tests.running import ROOT, Daemon

Plain = dict[str, Any]
SAMPLES = ROOT / "tests/importing/samples"
HOOKS = 40
"""So many deliver what waits, however busy the machine."""
FILES = {"claude-code": "claude_code.jsonl", "codex": "codex.jsonl", "gemini": "gemini.json"}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with Daemon(profile="desktop", folder=str(tmp_path_factory.mktemp("d"))) as started:
        yield started


@pytest.fixture
def spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state/beetle/spool"


def capture(socket_path: str, given: bytes | None, *words: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "beetle", "capture", *words[:1], "--socket", socket_path, *words[1:]]
    return subprocess.run(command, input=given or b"", capture_output=True, cwd=ROOT, check=False)


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine's daemon may take its time: what is not taken in at once would be spooled."""
    monkeypatch.setenv("BEETLE_HOOK_MS", "20000")


def hook(socket_path: str, given: Plain | str) -> Plain:
    done = capture(socket_path, (given if isinstance(given, str) else json.dumps(given)).encode(), "--hook")
    assert done.returncode == 0
    answer: Plain = json.loads(done.stdout)
    return answer


def said(socket_path: str, text: str, *words: str) -> str:
    """What a hook with this prompt, in the session of this name, says on stderr."""
    done = capture(socket_path, json.dumps({"session_id": text, "prompt": text}).encode(), "--hook", *words)
    assert (done.returncode, done.stdout) == (0, b'{"continue":true}\n')
    return done.stderr.decode()


def device(daemon: Daemon, name: str, folder: Path) -> Path:
    """The file of the credentials of a device whose owner has its name."""
    with daemon.client(scope=WireScope(owner_id=name)) as client:
        made = client.call("device.add", {"label": name, "device_id": name, "capabilities": ["event", "write"]})
    file = folder / f"{name}.json"
    file.write_text(json.dumps({"device_id": name, "app_key": made.to_dict()["appKeyOnce"]}))
    file.chmod(0o600)
    return file


def waiting(spool: Path) -> list[str]:
    return sorted(json.loads(each.read_text())["args"]["event"]["text"] for each in spool.glob("*.json"))


def passing_by(socket_path: str, spool: Path, phrase: str, left: Sequence[str] = ()) -> str:
    """What hooks say until one says this and only these wait: each has little time for what waits."""
    told = ""
    for _ in range(HOOKS):
        told += said(socket_path, "passing by")
        if phrase in told and waiting(spool) == [*left]:
            return told
    raise AssertionError(f"{waiting(spool)} wait; {told}")


def line(index: int, content: str, session: str = "s1") -> Plain:
    return {"host_session_id": session, "host_turn_index": index, "role": "user", "content": content}


def coverage(daemon: Daemon, **asked: Any) -> Plain:
    with daemon.client() as client:
        return client.call("host.coverage", asked).to_dict()


def texts(daemon: Daemon, session: str, owner: str = "owner-default") -> list[str]:
    with daemon.client(scope=WireScope(owner_id=owner)) as client:
        found = client.call("event.range", {"from_timestamp_ms": 0, "to_timestamp_ms": 2**42, "limit": 500}).to_dict()
    return [each["text"] for each in found["events"] if each["session_id"] == session]


def test_each_line_of_json_is_answered_by_one(daemon: Daemon) -> None:
    given = [json.dumps(line(0, "a\0")), "broken", "", json.dumps(line(0, "b")), "[]", json.dumps(line(1, "c")),
             json.dumps({**line(2, "d"), "role": "robot"}), json.dumps(line(3, "e"))]  # fmt: skip
    done = capture(daemon.socket, "\n".join(given).encode())
    told = [json.loads(each) for each in done.stdout.splitlines()]
    assert (done.returncode, done.stderr) == (1, b"")
    assert [(each["at"], each["ok"]) for each in told] == [
        ("line 1", True), ("line 2", False), ("line 4", True), ("line 5", False), ("line 6", True), ("line 7", False),
        ("line 8", True),
    ]  # fmt: skip
    assert [told[n]["report"]["dedup_hit"] for n in (0, 2, 4, 6)] == [False, True, False, False]
    assert told[2]["report"]["content_mismatch"] and told[5]["error"]["details"]["path"] == "$.args.role"
    again = capture(daemon.socket, json.dumps(line(3, "e")).encode())
    assert again.returncode == 0 and json.loads(again.stdout)["report"]["dedup_hit"]


@pytest.mark.parametrize("host", FILES)
def test_a_hosts_own_file_is_captured_once(daemon: Daemon, host: str, tmp_path: Path, capsys: Any) -> None:
    file = tmp_path / FILES[host]
    file.write_bytes((SAMPLES / FILES[host]).read_bytes())
    words = ["--socket", daemon.socket, "--owner", host, "capture", "--host", host, str(file)]
    assert main(words) == 0
    first = capsys.readouterr().out
    assert main(words) == 0
    again = capsys.readouterr().out
    number = int(first.split()[0])
    assert number > 3 and first == f"{number} captured, 0 already there\n"
    assert again == f"0 captured, {number} already there\n"
    (found,) = main_json(["--socket", daemon.socket, "--owner", host, "--json", "host", "coverage"], capsys)["hosts"]
    assert (found["host_kind"], found["turns"], found["gaps"], found["duplicates"]) == (host, number, 0, number)
    assert {"user", "assistant", "tool_use", "tool_result"} >= set(found["roles"]) >= {"user", "assistant"}


def main_json(words: list[str], capsys: Any) -> Plain:
    assert main(words) == 0
    found: Plain = json.loads(capsys.readouterr().out)
    return found


def record(number: int, text: str) -> str:
    said = {"role": "user", "content": text}
    at = f"2026-03-02T08:12:{number:02}Z"
    told = {"type": "user", "uuid": f"u{number}", "sessionId": "grows", "timestamp": at, "version": "2.0.0"}
    return json.dumps({**told, "message": said})


def test_a_file_that_grows_keeps_its_numbers_and_broken_lines_are_told(
    daemon: Daemon, tmp_path: Path, capsys: Any
) -> None:
    file = tmp_path / "grows.jsonl"
    words = ["--socket", daemon.socket, "--owner", "grows", "capture", "--host", "claude-code", str(file)]
    file.write_text(f"{record(0, 'a')}\n{{broken\n{record(1, 'b')}\n{record(2, 'c')[:30]}")
    assert main(words) == 1
    shown = capsys.readouterr()
    assert shown.out == "2 captured, 0 already there, 2 not taken in\n"
    assert [each.split(": ")[1] for each in shown.err.splitlines()] == ["line 2", "line 4"]
    file.write_text(f"{record(0, 'a')}\n{{broken\n{record(1, 'b')}\n{record(2, 'c')}\n")
    assert main(words) == 1
    assert capsys.readouterr().out == "1 captured, 2 already there, 1 not taken in\n"


def test_a_file_of_another_host_is_not_a_file_without_turns(daemon: Daemon, tmp_path: Path, capsys: Any) -> None:
    words = ["--socket", daemon.socket, "--owner", "other-host", "capture", "--host"]
    file = tmp_path / "session.jsonl"
    file.write_bytes((SAMPLES / FILES["codex"]).read_bytes())
    assert main([*words, "claude-code", str(file)]) == 2
    told = capsys.readouterr().err
    assert f"{file} has no turn of claude-code: its format is codex" in told
    assert f"beetle capture --host codex {file}" in told
    assert main([*words, "codex", str(file)]) == 0
    file.write_text('{"a": 1}\n')
    assert main([*words, "claude-code", str(file)]) == 2
    assert "its format is not known" in capsys.readouterr().err
    for empty in ("", "\n", '{"type": "summary", "summary": "x", "leafUuid": "1"}\n'):
        file.write_text(empty)
        assert main([*words, "claude-code", str(file)]) == 0
        assert capsys.readouterr().out == "0 captured, 0 already there\n"


def test_a_file_is_followed_as_it_grows(daemon: Daemon, tmp_path: Path) -> None:
    file = tmp_path / "followed.jsonl"
    file.write_text(record(0, "first").replace("grows", "followed") + "\n")
    command = [sys.executable, "-m", "beetle", "--socket", daemon.socket, "--json", "capture", "--host", "claude-code",
               str(file), "--watch"]  # fmt: skip
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT, text=True) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["report"]["turn_id"] == "turn-0"
        with file.open("a") as growing:
            half = record(1, "second").replace("grows", "followed")
            growing.write(half[:40])
            growing.flush()
            growing.write(half[40:] + "\n")
        assert json.loads(process.stdout.readline())["report"]["turn_id"] == "turn-1"
        file.unlink()
        process.wait()
    assert texts(daemon, "followed") == ["first", "second"]


@pytest.mark.usefixtures("patient")
def test_a_hook_is_taken_in_and_answered(daemon: Daemon, spool: Path) -> None:
    read = {"tool_name": "Read", "tool_response": {"lines": 2}}
    hooks: dict[str, Plain] = {"SessionStart": {}, "UserPromptSubmit": {"prompt": "hello é"}, "PostToolUse": read}
    for name, more in {**hooks, "Stop": {}}.items():
        assert hook(daemon.socket, {"session_id": "hooked", "hook_event_name": name, "cwd": "/src", **more}) == {
            "continue": True
        }
    assert hook(daemon.socket, {**line(0, "whole turn", "hooked"), "timestamp_iso": "2099-01-01T00:00:00Z"})["continue"]
    assert not spool.exists()
    with daemon.client() as client:
        found = client.call(
            "event.range", {"from_timestamp_ms": 2**40, "to_timestamp_ms": 2**42, "limit": 500}
        ).to_dict()
    mine = [each for each in found["events"] if each["session_id"] == "hooked"]
    assert [(e["event_type"], e["role"], e["text"]) for e in mine] == [
        ("session_start", "system", ""), ("user_message", "user", "hello é"), ("tool_result", "tool", '{"lines": 2}'),
        ("session_end", "system", ""), ("user_message", "user", "whole turn"),
    ]  # fmt: skip
    assert mine[2]["metadata"] == {"cwd": "/src", "hook_event_name": "PostToolUse", "tool_name": "Read"}


@pytest.mark.parametrize("given", ["", "broken", "[]", '"x"', '{"session_id": 5, "timestamp": "soon"}', "[" * 100_000])
def test_a_hook_answers_whatever_it_is_given(tmp_path: Path, spool: Path, given: str) -> None:
    assert hook(str(tmp_path / "none.sock"), given) == {"continue": True}


@pytest.mark.usefixtures("patient")
def test_hooks_wait_for_a_daemon_in_files_of_their_users_own(tmp_path: Path, spool: Path) -> None:
    place = Daemon(profile="desktop", folder=str(tmp_path))
    for n in range(3):
        hook(place.socket, {"session_id": "spooled", "prompt": f"while away {n}"})
    hook(str(tmp_path / "another.sock"), {"session_id": "spooled", "prompt": "for another daemon"})
    files = sorted(spool.iterdir())
    assert len(files) == 4 and {stat.S_IMODE(each.stat().st_mode) for each in files} == {0o600}
    assert stat.S_IMODE(spool.stat().st_mode) == 0o700
    (spool / "0-broken.json").write_text("{")
    (spool / "0-link.json").symlink_to(files[0])
    refused = json.loads(files[0].read_text())
    refused["args"]["event"]["event_type"] = "unknown"
    (spool / "1-refused.json").write_text(json.dumps(refused))
    # A hook that was killed while it wrote.
    (spool / "2-torn.new").write_text("{")
    with place:
        hook(place.socket, {"session_id": "spooled", "prompt": "back"})
        while len([each for each in spool.iterdir() if each.suffix == ".json"]) > 1:
            hook(place.socket, {"session_id": "other", "prompt": "more"})
        assert texts(place, "spooled") == ["while away 0", "while away 1", "while away 2", "back"]
    assert len(list((spool / "refused").iterdir())) == 3


@pytest.mark.usefixtures("patient")
def test_a_hook_that_the_daemon_refuses_is_kept_and_told_of(daemon: Daemon, spool: Path) -> None:
    done = capture(daemon.socket, json.dumps(line(-1, "before the first", "refused")).encode(), "--hook")
    assert (done.returncode, done.stdout) == (0, b'{"continue":true}\n') and b"refused" in done.stderr
    (kept,) = (spool / "refused").iterdir()
    assert json.loads(kept.read_text())["args"]["content"] == "before the first"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert hook(daemon.socket, {"session_id": "far", "prompt": "in no year", "timestamp": 10**18})["continue"]
    assert texts(daemon, "far") == ["in no year"]


@pytest.fixture
def later(tmp_path: Path) -> Path:
    """A socket's path at which nobody listens until it is made a link to a daemon's."""
    return tmp_path / "later.sock"


@pytest.mark.usefixtures("patient")
def test_a_spooled_hook_is_delivered_as_the_device_whose_it_is_or_not_at_all(
    daemon: Daemon, spool: Path, later: Path, tmp_path: Path
) -> None:
    file = device(daemon, "kitchen", tmp_path)
    secret = json.loads(file.read_text())["app_key"]
    away = file.rename(tmp_path / "away.json")
    for text, auth in (("of a device", file), ("of another", tmp_path / "other.json"), ("of nobody", None)):
        if auth is not None:
            auth.write_text(away.read_text())
            auth.chmod(0o600)
        assert said(str(later), text, *(("--auth-file", str(auth)) if auth else ())) == ""
    first, second, _ = (json.loads(each.read_text()) for each in sorted(spool.iterdir()))
    assert secret not in json.dumps(first)
    assert first["identity"] == {"auth_file": str(file), "device_id": "kitchen"}
    # As an earlier build wrote it.
    (spool / "0-unnamed.json").write_text(json.dumps({k: v for k, v in second.items() if k != "identity"}))
    file.unlink()
    device(daemon, "hall", tmp_path).rename(tmp_path / "other.json")
    later.symlink_to(daemon.socket)
    told = passing_by(str(later), spool, f"No such file or directory: '{file}'", ["of a device"])
    assert f"1 left in {spool} (" in told and f" put aside in {spool / 'refused'} (" in told
    assert "no word of whose it is" in told and "is of another device now" in told
    assert waiting(spool / "refused") == ["of another"] * 2
    assert texts(daemon, "of nobody") == ["of nobody"]
    # Neither a pipe nor a file that others may read is a device's.
    os.mkfifo(file, 0o600)
    passing_by(str(later), spool, "is not a regular file", ["of a device"])
    file.unlink()
    away.rename(file).chmod(0o644)
    passing_by(str(later), spool, "may be read by others", ["of a device"])
    file.chmod(0o600)
    assert passing_by(str(later), spool, "") == ""
    assert texts(daemon, "of a device", "kitchen") == ["of a device"]
    assert not any(texts(daemon, each) for each in ("of a device", "of another"))


@pytest.mark.usefixtures("patient")
def test_a_starting_daemon_delivers_as_whose_it_is_and_logs_what_it_does_not(tmp_path: Path, spool: Path) -> None:
    place = Daemon(profile="desktop", folder=str(tmp_path))
    with place:
        file, gone = device(place, "kitchen", tmp_path), device(place, "hall", tmp_path)
    for text, words in (("gone", ["--auth-file", str(gone)]), ("there", ["--auth-file", str(file)]), ("operator", [])):
        said(place.socket, text, *words)
    gone.unlink()
    with place:
        # A thread of its own does it beside all else.
        while not texts(place, "operator"):
            pass
        assert texts(place, "there", "kitchen") == ["there"]
        assert not texts(place, "gone") and not texts(place, "there")
    assert waiting(spool) == ["gone"] and f"1 left in {spool} (" in (tmp_path / "log").read_text()


@pytest.mark.usefixtures("patient")
def test_a_spooled_hook_that_is_forbidden_holds_up_none_behind_it(
    daemon: Daemon, spool: Path, later: Path, tmp_path: Path
) -> None:
    words = ["--auth-file", str(device(daemon, "porch", tmp_path))]
    refused = spool / "refused"
    assert said(str(later), "forbidden", *words, "--owner", "owner-default") == said(str(later), "behind", *words) == ""
    later.symlink_to(daemon.socket)
    passing_by(str(later), spool, f"1 put aside in {refused} (forbidden)")
    assert texts(daemon, "behind", "porch") == ["behind"]
    told = said(str(later), "forbidden", *words, "--owner", "owner-default")
    assert f"refused the hook (forbidden), which is kept in {refused}" in told
    assert waiting(refused) == ["forbidden"] * 2 and texts(daemon, "forbidden") == []


@pytest.mark.usefixtures("patient")
def test_what_can_neither_be_delivered_nor_put_aside_stays_and_is_told_of(
    daemon: Daemon, spool: Path, later: Path
) -> None:
    for text in ("refused", "read later", "behind"):
        said(str(later), text)
    first, second, _ = sorted(spool.iterdir())
    bad = json.loads(first.read_text())
    bad["args"]["event"]["event_type"] = "unknown"
    first.write_text(json.dumps(bad))
    refused = spool / "refused"
    refused.mkdir()
    for n in range(REFUSED_FILES):
        (refused / f"{n}.json").touch()
    later.symlink_to(daemon.socket)
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)
    # Who opens a leased file without waiting is told to try again. This test would wait.
    with second.open("r+") as leased:
        fcntl.fcntl(leased, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        told = said(str(later), "passing by")
        while len(list(spool.glob("*.json"))) > 2:
            told += said(str(later), "passing by")
    signal.signal(signal.SIGIO, before)
    assert f"invalid_request, and {refused} is full" in told and "Resource temporarily unavailable" in told
    assert waiting(spool) == ["read later", "refused"]
    assert texts(daemon, "behind") == ["behind"]
    for each in refused.iterdir():
        each.unlink()
    refused.rmdir()
    refused.touch()
    passing_by(str(later), spool, "invalid_request, and not put aside: File exists", ["refused"])
    refused.unlink()
    passing_by(str(later), spool, f"1 put aside in {refused} (invalid_request)")
    assert waiting(refused) == ["refused"] and texts(daemon, "read later") == ["read later"]


def test_a_hook_waits_for_no_daemon_that_says_nothing(tmp_path: Path, spool: Path) -> None:
    path = str(tmp_path / "silent.sock")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as silent:
        silent.bind(path)
        silent.listen(1)
        assert hook(path, {"session_id": "s", "prompt": "x"})["continue"]
    assert len(list(spool.iterdir())) == 1


def test_a_full_spool_takes_no_more(tmp_path: Path, spool: Path) -> None:
    spool.mkdir(parents=True, mode=0o700)
    for n in range(SPOOL_FILES):
        (spool / f"{n}.json").touch()
    done = capture(str(tmp_path / "none.sock"), b'{"prompt": "x"}', "--hook")
    assert done.stdout == b'{"continue":true}\n' and b"start the daemon" in done.stderr
    assert len(list(spool.iterdir())) == SPOOL_FILES


def deliver(daemon: Daemon, who: str, turns: int) -> subprocess.Popen[str]:
    file = daemon.folder / f"{who}.jsonl"
    file.write_text("".join(json.dumps(line(n, f"turn {n} by {who}", "raced")) + "\n" for n in range(turns)))
    command = [sys.executable, "-m", "beetle", "--socket", daemon.socket, "capture"]
    with file.open() as given:
        return subprocess.Popen(
            command, stdin=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT, text=True
        )


def fresh(told: list[str]) -> set[int]:
    """The indexes of the turns that a process was told it delivered first."""
    reports = [json.loads(each)["report"] for each in told]
    return {int(each["turn_id"].removeprefix("turn-")) for each in reports if not each["dedup_hit"]}


def test_one_of_those_who_ingest_an_event_at_once_creates_it(daemon: Daemon) -> None:
    def ingest(who: str) -> list[bool]:
        event = {"session_id": "at once", "event_type": "user_message", "timestamp_ms": 2**40, "text": who}
        with daemon.client() as client:
            asked = ({"event": {**event, "event_id": f"at-once-{n}"}} for n in range(100))
            return [client.call("event.ingest", each).to_dict()["created"] for each in asked]

    with ThreadPoolExecutor() as pool:
        created = list(pool.map(ingest, ("ana", "ben", "cleo")))
    assert [sum(each) for each in zip(*created, strict=True)] == [1] * 100
    assert len(texts(daemon, "at once")) == 100


@pytest.mark.parametrize("turns", [300, pytest.param(10_000, marks=pytest.mark.slow)])
def test_two_processes_deliver_the_same_turns_and_the_daemon_is_killed_between(tmp_path: Path, turns: int) -> None:
    first: dict[int, set[str]] = {n: set() for n in range(turns)}
    daemon = Daemon(profile="desktop", folder=str(tmp_path))
    with daemon:
        pair = {who: deliver(daemon, who, turns) for who in ("ana", "ben")}
        told: dict[str, list[str]] = {}
        assert pair["ana"].stdout is not None
        told["ana"] = [pair["ana"].stdout.readline() for _ in range(turns // 3)]
        daemon.kill()
        for who, process in pair.items():
            with process:
                assert process.stdout is not None
                for index in fresh([*told.get(who, []), *process.stdout.readlines()]):
                    first[index].add(who)
        daemon.start()
        for _ in range(2):
            pair = {who: deliver(daemon, who, turns) for who in ("ana", "ben")}
            for who, process in pair.items():
                out, err = process.communicate(timeout=300)
                assert (process.returncode, err, len(out.splitlines())) == (0, "", turns)
                for index in fresh(out.splitlines()):
                    first[index].add(who)
        (host,) = coverage(daemon)["hosts"]
        assert (host["turns"], host["gaps"], host["sessions"], host["coverage"]) == (turns, 0, 1, 1.0)
        assert host["duplicates"] >= 3 * turns
        kept = {}
        cursor: Plain = {}
        with daemon.client() as client:
            while True:
                page = client.call(
                    "event.range", {"from_timestamp_ms": 0, "to_timestamp_ms": 2**42, "limit": 500, **cursor}
                )
                kept |= {int(e["turn_id"][5:]): e["text"] for e in page.to_dict()["events"]}
                if not page.has_more:  # type: ignore[attr-defined]
                    break
                cursor = {"cursor": page.next_cursor}  # type: ignore[attr-defined]
            assert client.call("store.verify").to_dict()["findings"] == ()
    assert len(kept) == turns
    for index, who in first.items():
        # What was committed when the daemon was killed, and not answered, is nobody's first.
        assert len(who) <= 1
        if who:
            assert kept[index] == f"turn {index} by {min(who)}"
