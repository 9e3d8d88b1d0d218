"""Connections: who is nobody is not kept, one user takes neither all places nor all memory."""

from __future__ import annotations

import os
import select
import signal
import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from beetle.__main__ import main
from beetle.cli import control, operating, session
from beetle.contracts.errors import STATUS
from beetle.runtime.host.config import Principal
from tests.adversary.neighbours import AGENT, PRINCIPALS, READER, STRANGER, THIRD, frame, many_as, told, unfinished
from tests.forked import Daemon
from tests.transports.conftest import Peer, commit, turn
from tests.transports.serving import Served, needs_root, open_folder, peer_as, until

pytestmark = needs_root
KIB = 1024


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as made:
        yield made


@contextmanager
def open_to_all(**budgets: int) -> Iterator[Served]:
    with open_folder() as folder, Served(folder, principals=PRINCIPALS, own_uid=STRANGER + 1, **budgets) as served:
        os.chmod(served.path, 0o666)
        yield served


# Who is nobody


def test_who_is_nobody_and_has_spoken_is_closed_with_nothing_else_happening(stack: ExitStack) -> None:
    with open_to_all(first_frame_seconds=2) as served:
        nobody, agent = peer_as(served.path, STRANGER, STRANGER), peer_as(served.path, AGENT, AGENT)
        for each in (nobody, agent):
            stack.enter_context(each)
        assert told(nobody) == "unauthorized" and told(agent) == "ok"
        nobody.socket.settimeout(5)
        assert nobody.closed() and told(agent) == "ok"


def test_who_is_nobody_is_closed_although_it_speaks_and_a_device_of_the_same_user_stays(stack: ExitStack) -> None:
    with open_to_all(first_frame_seconds=2) as served:
        device, silent, talker = many_as(served.path, STRANGER, 3, stack)
        operator = stack.enter_context(served.peer())
        made = operator.ask("device.add", {"label": "Panel", "capabilities": ["recall"], "owner_id": "ada"})["report"]
        auth = {"device_id": made["device"]["device_id"], "app_key": made["appKeyOnce"]}
        assert device.ask("hello", auth=auth)["ok"]
        assert told(silent) == "unauthorized" and silent.closed()
        with pytest.raises((EOFError, OSError)):
            while told(talker) == "unauthorized":
                pass
        assert device.ask("hello")["ok"] and operator.ask("hello")["ok"]


def test_who_becomes_nobody_has_as_long_to_prove_itself_and_is_closed(stack: ExitStack) -> None:
    with open_to_all(first_frame_seconds=2) as served:
        agent = stack.enter_context(peer_as(served.path, AGENT, AGENT))
        operator = stack.enter_context(served.peer())
        assert told(agent) == "ok" and told(operator) == "ok"
        served.principals.replace({})
        served.dispatcher.hub.nudge()
        assert told(agent) == "unauthorized" and agent.closed()
        assert told(operator) == "ok"
        made = operator.ask("device.add", {"label": "Panel", "capabilities": ["recall"], "owner_id": "ada"})["report"]
        auth = {"device_id": made["device"]["device_id"], "app_key": made["appKeyOnce"]}
        panel = stack.enter_context(peer_as(served.path, AGENT, AGENT))
        assert panel.ask("hello", auth=auth)["ok"]
        operator.ask("device.update", {"device_id": auth["device_id"], "state": "suspended"})
        assert panel.closed()


# Places


def test_one_user_takes_three_quarters_of_the_places_and_the_last_are_the_operator_s(stack: ExitStack) -> None:
    with open_to_all(connections=16) as served:
        taken = many_as(served.path, AGENT, 16, stack)
        assert [told(each) for each in taken] == ["ok"] * 12 + ["overloaded"] * 4
        assert [told(each) for each in many_as(served.path, READER, 4, stack)] == ["ok"] * 2 + ["overloaded"] * 2
        assert [told(each) for each in many_as(served.path, THIRD, 2, stack)] == ["ok", "overloaded"]
        assert told(stack.enter_context(served.peer())) == "ok", "the operator's"
        assert told(stack.enter_context(served.peer())) == "overloaded", "all are taken"
        taken[0].close()
        until(lambda: served.server.connections == 15, "the end of a connection")
        assert told(stack.enter_context(served.peer())) == "ok"


def test_who_has_not_said_who_it_is_takes_a_quarter_and_leaves_it_to_who_has(stack: ExitStack) -> None:
    with open_to_all(connections=16) as served:
        operator = stack.enter_context(served.peer())
        made = operator.ask("device.add", {"label": "Panel", "capabilities": ["recall"], "owner_id": "ada"})["report"]
        auth = {"device_id": made["device"]["device_id"], "app_key": made["appKeyOnce"]}
        first = many_as(served.path, STRANGER, 4, stack)
        assert [told(each) for each in many_as(served.path, STRANGER + 1000, 2, stack)] == ["overloaded"] * 2
        assert [told(each) for each in many_as(served.path, AGENT, 2, stack)] == ["ok"] * 2
        assert all(each.ask("hello", auth=auth)["ok"] for each in first)
        more = many_as(served.path, STRANGER, 4, stack)
        assert all(each.ask("hello", auth=auth)["ok"] for each in more), "a gateway's devices, one after the other"


def test_an_operator_s_connection_counts_as_whom_it_acts_as_and_the_last_is_the_operator_s(stack: ExitStack) -> None:
    rights = Principal(owner_id="ada", capabilities=("write", "transcript"))
    hosts = {"host": (12, 12), "other": (2, 14), "third": (1, 15)}
    numbers = count()
    with open_folder() as folder, Served(folder, principals=dict.fromkeys(hosts, rights), connections=16) as served:
        for _ in range(2):
            for name, (most, together) in hosts.items():
                for _ in range(most):
                    assert commits_as(served, stack, name, next(numbers))["ok"]
                refused = commits_as(served, stack, name, next(numbers))
                assert refused["error"]["key"] == "overloaded" and refused["id"] == 1
                until(lambda left=together: served.server.connections == left, "the end of who found no place")
            assert told(stack.enter_context(served.peer())) == "ok", "the operator's"
            assert told(stack.enter_context(served.peer())) == "overloaded", "all are taken"
            stack.close()
            until(lambda: not served.server.connections, "the end of all")
        with served.store.read() as tx:
            commits = Counter(tx.rows("SELECT principal FROM event_log WHERE operation = 'transcript.commit'"))
        assert commits == {("host",): 24, ("other",): 4, ("third",): 2}, "what found no place was not done"


def test_devices_of_an_operator_s_user_leave_it_the_last_place(stack: ExitStack) -> None:
    with open_folder() as folder, Served(folder, connections=16) as served:
        with served.peer() as operator:
            asked = {"label": "Panel", "capabilities": ["recall"], "owner_id": "ada"}
            made = operator.ask("device.add", asked)["report"]
        until(lambda: not served.server.connections, "its end")
        auth = {"device_id": made["device"]["device_id"], "app_key": made["appKeyOnce"]}
        peers = [stack.enter_context(served.peer()) for _ in range(13)]
        assert [each.ask("hello", auth=auth)["ok"] for each in peers] == [True] * 12 + [False]
        until(lambda: served.server.connections == 12, "the end of who found no place")
        wrong = stack.enter_context(served.peer())
        assert wrong.ask("hello", auth=auth | {"app_key": "wrong"})["error"]["key"] == "unauthorized"
        assert [told(each) for each in [wrong, *(stack.enter_context(served.peer()) for _ in range(3))]] == ["ok"] * 4


def commits_as(served: Served, stack: ExitStack, name: str, number: int) -> dict[str, Any]:
    """The answer to the first request of an operator's connection, which stays where it has a place."""
    return stack.enter_context(served.peer()).ask("transcript.commit", commit(number), auth={"principal": name})


# Bytes


def test_unfinished_frames_of_one_user_leave_room_for_another_s(stack: ExitStack) -> None:
    room = 2048 * KIB
    with open_to_all(frame_bytes=1024 * KIB, held_bytes=room, export_bytes=room) as served:
        for uid in (AGENT, READER):
            for peer in many_as(served.path, uid, 8, stack):
                send_some(peer, unfinished(512 * KIB))
        until(lambda: served.server.held_bytes > room // 2, "frames that are held")
        with peer_as(served.path, THIRD, THIRD) as peer:
            assert told(peer, "memory.recall", {"query": "x" * 800 * KIB}) == "payload_too_large", "it was read"
        assert served.server.held_bytes <= room


def test_who_hoards_is_told_so_and_its_frames_are_gone(stack: ExitStack) -> None:
    room = 1024 * KIB
    with open_to_all(frame_bytes=512 * KIB, held_bytes=room, export_bytes=room) as served:
        peers = many_as(served.path, AGENT, 4, stack)
        for peer in peers:
            send_some(peer, unfinished(384 * KIB))
        until(lambda: served.server.connections == 2, "the end of two")
        assert served.server.held_bytes <= room * 3 // 4
        answers = [peer.answer()["error"] for peer in peers if readable(peer)]
        assert [each["key"] for each in answers] == ["overloaded"] * 2
        for peer in peers:
            peer.close()
        until(lambda: served.server.held_bytes == 0, "the end of what was held")


def test_answers_that_nobody_reads_leave_room_for_another_s(stack: ExitStack) -> None:
    room = 1024 * KIB
    with open_to_all(frame_bytes=512 * KIB, held_bytes=room, export_bytes=room) as served:
        replay = {"conversation": {"conversation_id": "c"}, "view": "model_context"}
        for uid in (AGENT, READER):
            with peer_as(served.path, uid, uid) as writer:
                turns = [turn(number, "x" * 60_000) for number in range(6)]
                assert (
                    told(writer, "transcript.commit", {"conversation": {"conversation_id": "c"}, "turns": turns})
                    == "ok"
                )
        deaf = many_as(served.path, AGENT, 6, stack)
        for peer in deaf:
            peer.send(frame("transcript.replay", replay))
        until(lambda: served.server.held_bytes > room // 2, "answers that wait")
        with peer_as(served.path, READER, READER) as reader:
            for _ in range(3):
                assert told(reader, "transcript.replay", replay) == "ok"
        assert served.server.held_bytes <= room
        for peer in deaf:
            peer.close()


def send_some(peer: Peer, data: bytes) -> None:
    with suppress(BrokenPipeError, ConnectionResetError):  # it had enough before all was sent
        peer.send(data)


def readable(peer: Peer) -> bool:
    return bool(select.select([peer.socket], [], [], 0)[0])


# Commands


def test_status_and_stop_know_a_daemon_that_is_full_from_one_that_is_not_there(
    stack: ExitStack, capsys: pytest.CaptureFixture[str]
) -> None:
    daemon = stack.enter_context(Daemon(profile="compact"))
    full = [stack.enter_context(Peer(daemon.socket)) for _ in range(32)]
    assert all(told(each) == "ok" for each in full)
    for place in (["--socket", daemon.socket], ["--store", daemon.store]):
        for shape in ([], ["--json"]):
            assert main([*place, *shape, "status"]) == 7
            said = capsys.readouterr().err
            assert "overloaded" in said and "too many connections are open" in said
    full[0].send(unfinished(2 * KIB))
    assert main(["--socket", daemon.socket, "stop"]) == 0
    assert capsys.readouterr().out == "Daemon stopped\n"
    assert main(["--socket", daemon.socket, "status"]) == 3
    assert main(["--socket", daemon.socket, "stop"]) == 0
    assert "not running" in capsys.readouterr().out.lower()


def test_a_daemon_that_stands_still_is_told_as_one(
    stack: ExitStack, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(operating, "STATUS_SECONDS", 0.05)
    monkeypatch.setattr(operating, "SECONDS", 0.05)
    daemon = stack.enter_context(Daemon(profile="compact"))
    os.kill(daemon.pid, signal.SIGSTOP)
    stack.callback(os.kill, daemon.pid, signal.SIGCONT)
    for command in ("status", "health", "metrics"):
        assert main(["--socket", daemon.socket, command]) == STATUS["deadline_exceeded"].exit_code
        said = capsys.readouterr().err
        assert f"deadline_exceeded: the daemon at {daemon.socket} did not answer in time" in said


def test_a_full_backlog_is_no_absence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(operating, "STATUS_SECONDS", 0.05)
    monkeypatch.setattr(control, "CONNECT_SECONDS", 0.05)
    monkeypatch.setattr(session, "CALL_SECONDS", 0.05)
    path = str(tmp_path / "b.sock")
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as waiting:
        listener.bind(path)
        listener.listen(0)
        waiting.connect(path)
        for words in (["status"], ["stop"], ["memory", "capabilities"]):
            assert main(["--socket", path, *words]) == 7, words
            said = capsys.readouterr().err
            assert said.startswith(f"beetle: overloaded: the daemon at {path} takes no connection now\n")
            assert len(said.splitlines()) == 2, "with a hint"


@pytest.mark.parametrize("spoil", ["pipe", "neighbour's", "folder"])
def test_credentials_of_a_neighbour_s_making_are_not_used(
    tmp_path: Path, spoil: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "auth.json"
    if spoil == "pipe":
        os.mkfifo(file, 0o600)
    elif spoil == "folder":
        file.mkdir(0o700)
    else:
        file.write_text('{"device_id": "d", "app_key": "k"}')
        file.chmod(0o600)
        os.chown(file, STRANGER, STRANGER)
    assert main(["--socket", str(tmp_path / "none"), f"--auth-file={file}", "memory", "capabilities"]) == 2
    said = capsys.readouterr().err
    assert "invalid_request: --auth-file" in said and len(said.splitlines()) == 2
