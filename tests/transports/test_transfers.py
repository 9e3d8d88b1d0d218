"""Imports and exports that are larger than a frame: in pieces, over a daemon of the compact profile and in process."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgpack
import pytest

from beetle.client import Client
from beetle.contracts.common import WireScope
from beetle.contracts.errors import BeetleError, NotFound
from beetle.contracts.operations import BY_NAME
from beetle.contracts.progress import ProgressStep
from beetle.runtime.host.config import Principal
from beetle.runtime.host.profile import load_profile
from beetle.sdk import MemoryRuntime
from tests.forked import Daemon
from tests.transports.conftest import Peer
from tests.transports.serving import Served, needs_root, peer_as, until

COMPACT = "profile-linux-device-compact-memory"
BUDGETS = load_profile("compact").budgets
FRAME, PIECE = BUDGETS.frame_bytes, BUDGETS.piece_bytes
WANTED = 2_000_000
CHAT: dict[str, Any] = {"chat_id": "long"}
HOW: dict[str, Any] = {"target_chat_id": "long", "mode": "bootstrap_import"}
KEEPER = 40_012
KEEPERS = {
    "keeper": Principal(uid=KEEPER, owner_id="owner-default", capabilities=("import", "export"), views=("export",))
}


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A continuity snapshot of about 2 MB of evidence."""
    with MemoryRuntime.open(str(tmp_path_factory.mktemp("source") / "s.db"), profile="standalone") as memory:
        for start in range(0, 50, 10):
            messages = [
                {"message_id": f"m{n}", "role": "user", "content": f"note {n} " + "so it is said " * 2900}
                for n in range(start, start + 10)
            ]
            turns = [
                {"turn_id": each["message_id"], "at": "2026-01-02T03:04:05Z", "messages": [each]} for each in messages
            ]
            memory.commit_transcript(conversation={"conversation_id": "long"}, turns=turns)
        made = memory.export_snapshot("long").snapshot
    assert made is not None and WANTED < len(made) < BUDGETS.import_bytes
    return made


@pytest.fixture
def daemon() -> Iterator[Daemon]:
    """One that a test may kill."""
    with Daemon(profile=COMPACT) as running:
        yield running


@pytest.fixture(scope="module")
def common() -> Iterator[Daemon]:
    """One for all tests, each of which has owners of its own."""
    with Daemon(profile=COMPACT) as running:
        yield running


@pytest.fixture
def served(folder: Path) -> Iterator[Served]:
    with Served(folder, principals=KEEPERS, transfer_bytes=BUDGETS.import_bytes) as running:
        os.chmod(running.path, 0o666)
        yield running


def taken_in(client: Client, snapshot: bytes | None, **more: Any) -> Any:
    return client.call("memory.import", {"snapshot": snapshot, **HOW}, **more)


def begin(peer: Peer, size: int) -> str:
    return peer.ask("transfer.begin", {"total_bytes": size})["report"]["transfer"]["transfer_id"]


def put(peer: Peer, transfer_id: str, offset: int, data: bytes) -> dict[str, Any]:
    return peer.ask("transfer.put", {"transfer_id": transfer_id, "offset": offset, "data": data})


def key_of(answer: dict[str, Any]) -> str:
    return answer["error"]["key"]


def test_two_megabytes_go_in_and_out_of_a_daemon_whose_frame_is_a_quarter(common: Daemon, archive: bytes) -> None:
    assert len(archive) > 7 * FRAME
    with common.client() as client:
        heard: list[ProgressStep] = []
        came = taken_in(client, archive, on_progress=heard.append)
        assert came.counts["turns"] == 50
        sent = [each for each in heard if each.name == "send"]
        assert (sent[0].done, sent[-1].done) == (0, len(archive)) and sent[-1].of == len(archive)
        out = client.export_snapshot("long")
        assert out.snapshot is not None and out.transfer is None and len(out.snapshot) > WANTED
        assert out.state_fingerprint == came.state_fingerprint
        other = WireScope(owner_id="other")
        again = taken_in(client, out.snapshot, scope=other)
        assert again.state_fingerprint == came.state_fingerprint
    assert beside(common) == []


def beside(daemon: Daemon) -> list[str]:
    return [each.name for each in daemon.folder.iterdir() if "transfer" in each.name]


def test_a_foreign_client_needs_no_frame_over_the_limit(common: Daemon, archive: bytes) -> None:
    """As docs/socket.md says it: no frame in either direction is larger than the profile's."""
    where = {"owner_id": "foreign"}
    with Peer(common.socket) as peer:
        begun = peer.ask("transfer.begin", {"total_bytes": len(archive)})["report"]["transfer"]
        for offset in range(0, len(archive), begun["piece_bytes"]):
            piece = archive[offset : offset + begun["piece_bytes"]]
            assert len(piece) < FRAME
            assert put(peer, begun["transfer_id"], offset, piece)["report"]["received"] == offset + len(piece)
        taken = peer.ask("memory.import", {"transfer_id": begun["transfer_id"], **HOW}, scope=where)
        assert taken["report"]["counts"]["turns"] == 50
        handle = peer.ask("memory.export", {**CHAT, "in_pieces": True}, scope=where)["report"]["transfer"]
        parts: list[bytes] = []
        done = False
        while not done:
            asked = {"transfer_id": handle["transfer_id"], "offset": sum(map(len, parts))}
            answer = peer.ask("transfer.get", asked)
            assert len(msgpack.packb(answer) or b"") < FRAME
            parts.append(answer["report"]["data"])
            done = answer["report"]["done"]
        assert len(b"".join(parts)) == handle["total_bytes"]
        assert key_of(peer.ask("transfer.get", {"transfer_id": handle["transfer_id"], "offset": 0})) == "not_found"


def test_a_daemon_killed_in_the_middle_has_written_nothing_and_keeps_no_piece(daemon: Daemon, archive: bytes) -> None:
    with Peer(daemon.socket) as peer:
        transfer_id = begin(peer, len(archive))
        for offset in range(0, 5 * PIECE, PIECE):
            assert put(peer, transfer_id, offset, archive[offset : offset + PIECE])["ok"]
        daemon.kill()
    assert beside(daemon) == []
    # What a crash between the file's making and the loss of its name would leave.
    left = Path(f"{daemon.store}.transfer-t-0123456789abcdef")
    left.write_bytes(archive[:PIECE])
    daemon.start()
    assert beside(daemon) == []
    with daemon.client() as client:
        assert client.list_conversations().conversations == ()
        assert client.verify_store().clean
        assert taken_in(client, archive).counts["turns"] == 50


def test_a_client_begins_again_on_a_new_connection_when_the_daemon_was_killed(daemon: Daemon, archive: bytes) -> None:
    killed: list[int] = []

    def on_progress(step: ProgressStep) -> None:
        if step.name == "send" and step.done >= step.of // 2 and not killed:
            killed.append(step.done)
            daemon.kill()
            daemon.start()

    with daemon.client() as client:
        report = taken_in(client, archive, on_progress=on_progress)
        assert killed and report.counts["turns"] == 50


def test_the_command_line_moves_it_too(common: Daemon, archive: bytes, tmp_path: Path) -> None:
    from beetle.__main__ import main

    given, out = tmp_path / "given", tmp_path / "out"
    given.write_bytes(archive)
    words = ["--socket", common.socket, "--owner", "typist", "memory"]
    into = ["--target-chat-id", "long", "--mode", "bootstrap_import"]
    assert main([*words, "import", str(given), *into]) == 0
    assert main([*words, "export", "--chat-id", "long", "--out", str(out)]) == 0
    assert out.stat().st_size > WANTED


@needs_root
def test_a_handle_is_of_no_use_to_anybody_else(served: Served, archive: bytes) -> None:
    with served.peer() as owner, served.peer() as elsewhere, peer_as(served.path, KEEPER, KEEPER) as thief:
        transfer_id = begin(owner, len(archive))
        assert put(owner, transfer_id, 0, archive[:PIECE])["ok"]
        for other in (elsewhere, thief):
            stolen = [
                put(other, transfer_id, PIECE, archive[PIECE : 2 * PIECE]),
                other.ask("memory.import", {"transfer_id": transfer_id, **HOW}),
                other.ask("transfer.get", {"transfer_id": transfer_id, "offset": 0}),
            ]
            made_up = put(other, "t-0000000000000000", PIECE, b"x")
            for answer in stolen:
                assert answer["error"] == {
                    **made_up["error"],
                    "message": made_up["error"]["message"].replace("t-0000000000000000", transfer_id),
                    "details": {**made_up["error"]["details"], "name": transfer_id},
                }
        assert put(owner, transfer_id, PIECE, archive[PIECE : 2 * PIECE])["report"]["received"] == 2 * PIECE


def test_more_pieces_than_announced_end_the_transfer(served: Served) -> None:
    with served.peer() as peer:
        transfer_id = begin(peer, 100)
        assert put(peer, transfer_id, 0, b"x" * 60)["ok"]
        assert key_of(put(peer, transfer_id, 0, b"x" * 60)) == "conflict"
        assert key_of(peer.ask("memory.import", {"transfer_id": transfer_id, **HOW})) == "conflict"
        assert key_of(put(peer, transfer_id, 60, b"x" * 60)) == "payload_too_large"
        assert key_of(put(peer, transfer_id, 60, b"x")) == "not_found"
        assert key_of(put(peer, begin(peer, 2 * PIECE), 0, b"x" * (PIECE + 1))) == "payload_too_large"
        assert key_of(peer.ask("transfer.begin", {"total_bytes": BUDGETS.import_bytes + 1})) == "payload_too_large"


def test_what_waits_on_disk_is_bounded_and_ends_with_its_connection(served: Served) -> None:
    whole, all_room = b"x" * PIECE, BUDGETS.import_bytes
    with served.peer() as peer:
        begun = [begin(peer, all_room) for _ in range(BUDGETS.transfers)]
        assert key_of(peer.ask("transfer.begin", {"total_bytes": 1})) == "overloaded"
        for offset in range(0, all_room, PIECE):
            assert put(peer, begun[0], offset, whole)["ok"]
        assert key_of(put(peer, begun[1], 0, whole)) == "overloaded", "all the room is its own"
    with served.peer() as later:
        assert key_of(put(later, begun[0], 0, whole)) == "not_found"
        again = begin(later, all_room)
        # A connection's end is noticed by its own thread.
        until(lambda: put(later, again, 0, whole)["ok"], "the room of a connection that has ended")


@needs_root
def test_who_takes_all_the_room_gives_way(served: Served) -> None:
    whole, all_room = b"x" * PIECE, BUDGETS.import_bytes
    with peer_as(served.path, KEEPER, KEEPER) as hog, served.peer() as other:
        taken = begin(hog, all_room)
        for offset in range(0, all_room, PIECE):
            assert put(hog, taken, offset, whole)["ok"]
        assert put(other, begin(other, PIECE), 0, whole)["ok"]
        assert key_of(put(hog, taken, 0, whole)) == "not_found"


def test_it_is_the_same_in_process(archive: bytes, tmp_path: Path) -> None:
    with MemoryRuntime.open(str(tmp_path / "s.db"), profile=COMPACT) as memory:
        handle = memory.begin_transfer(len(archive)).transfer
        for offset in range(0, len(archive), handle.piece_bytes):
            piece = archive[offset : offset + handle.piece_bytes]
            memory.put_piece(transfer_id=handle.transfer_id, offset=offset, data=piece)
        request = {"transfer_id": handle.transfer_id, **HOW}
        report: Any = memory.call("memory.import", request)
        assert report.counts["turns"] == 50
        with pytest.raises(NotFound):
            memory.call("memory.import", request)
        out = memory.export_snapshot("long", in_pieces=True)
        assert out.snapshot is None and out.transfer is not None
        assert len(memory.get_piece(out.transfer.transfer_id, offset=0).data or b"") == PIECE
        assert memory.export_snapshot("long").transfer is None, "who asks for it whole has it whole"


def test_a_transfer_without_pieces_expires(archive: bytes, tmp_path: Path) -> None:
    from beetle.open import open_store
    from beetle.runtime.host.dependencies import Dependencies
    from beetle.runtime.host.principals import OPERATOR
    from beetle.runtime.pipeline.invocation import Call

    now = [1_767_323_045_000_000]
    opened = open_store(str(tmp_path / "s.db"), COMPACT, dependencies=Dependencies(lambda: now[0]))

    def ask(op: str, **fields: Any) -> Any:
        return opened.dispatcher.dispatch(Call(op, fields, OPERATOR)).report

    try:
        begun = ask("transfer.begin", total_bytes=10).transfer
        now[0] += BUDGETS.transfer_seconds * 1_000_000
        assert ask("transfer.put", transfer_id=begun.transfer_id, offset=0, data=b"12345").received == 5
        now[0] += BUDGETS.transfer_seconds * 1_000_000 + 1
        with pytest.raises(NotFound):
            ask("transfer.put", transfer_id=begun.transfer_id, offset=5, data=b"12345")
    finally:
        opened.store.close()


def test_an_import_is_asked_for_with_its_bytes_or_a_transfer(tmp_path: Path) -> None:
    with MemoryRuntime.open(str(tmp_path / "s.db"), profile=COMPACT) as memory:
        for given in ({}, {"snapshot": b"x", "transfer_id": "t-1"}):
            with pytest.raises(BeetleError) as refused:
                memory.call("memory.import", {**HOW, **given})
            assert refused.value.key == "invalid_request"
            assert refused.value.details["path"] == "$.args.snapshot"
            assert refused.value.hint


def test_the_same_key_with_the_same_bytes_sent_again_is_one_import(common: Daemon, archive: bytes) -> None:
    scope = WireScope(owner_id="keyed")
    with common.client(scope=scope) as client, common.client(scope=scope) as other:
        first = taken_in(client, archive, idempotency_key="k")
        again = taken_in(other, archive, idempotency_key="k")
        assert other.repeated and again.counts == first.counts


def test_every_profile_has_frames_for_its_pieces() -> None:
    assert {row.name for row in BY_NAME.values() if row.carries} == {
        "memory.export", "memory.import", "memory.export_space", "memory.import_space", "chunk.export_tree",
        "chunk.import_tree",
    }  # fmt: skip
    for name in ("compact", "standalone", "desktop", "gateway", "dev-full"):
        budgets = load_profile(name).budgets
        assert budgets.piece_bytes <= budgets.frame_bytes // 2
        assert budgets.transfer_bytes >= budgets.import_bytes and budgets.transfer_bytes >= budgets.export_bytes
