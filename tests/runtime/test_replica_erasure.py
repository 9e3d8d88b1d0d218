"""What is erased leaves database and log beside a sidecar too; the replica holds it until it forgets."""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from beetle.client import Client
from beetle.contracts.codec import to_plain
from beetle.contracts.errors import BeetleError
from beetle.replication.program import staging_folder
from tests.building import step, talk, turn
from tests.cases import RECORD
from tests.ltx import content
from tests.replicas import PATIENCE_S, Kept, at_file
from tests.store.test_erasure import Words, assert_gone, gaps, remnants

TURNS = 120
AT_ONCE = 20


class Said:
    """Turns with a canary each, of which half were erased while a sidecar was attached."""

    def __init__(self, daemon: Kept) -> None:
        self.daemon = daemon
        words = Words(20)
        self.canaries = [words.canary() for _ in range(TURNS)]
        texts = [f"{words.sentence()} {each} {words.sentence()}" for each in self.canaries]
        going = sorted(random.Random(3).sample(range(TURNS), TURNS // 2))
        self.dead = [self.canaries[n] for n in going]
        self.alive = [self.canaries[n] for n in range(TURNS) if n not in going]
        with daemon.client() as client:
            for start in range(0, TURNS, AT_ONCE):
                turns = (turn(f"t{n}", texts[n]) for n in range(start, start + AT_ONCE))
                client.call("transcript.commit", talk(*turns))
            daemon.synced()
            self.before = content(daemon.target)
            self.reports = [
                client.call("transcript.lifecycle", step("delete_raw", *(f"t{n}" for n in some)))
                for some in (going[:40], going[40:])
            ]

    @property
    def sent(self) -> bytes:
        """Every page that stands in the replica, or in the sidecar's folder beside the store."""
        return content(self.daemon.target) + content(Path(staging_folder(self.daemon.store)))

    def remnants(self) -> set[bytes]:
        return remnants(self.sent, self.dead, self.alive)


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Said]:
    folder = tmp_path_factory.mktemp("replica")
    with Kept(at_file(folder), folder=str(folder)) as daemon:
        daemon.synced()
        yield Said(daemon)


def until(client: Client) -> str | None:
    return client.inspect().runtime.replicated_until


def test_a_deletion_beside_a_sidecar_leaves_nothing_in_database_and_log(said: Said) -> None:
    assert all(each.encode() in said.before for each in said.dead), "the replica has what was said"
    assert {each.erasure for each in said.reports} == {"done"}
    assert_gone(said.daemon.store, said.dead, said.alive)
    assert not gaps(said.daemon.store)


def test_the_report_and_inspect_tell_until_when_the_replica_holds_it(said: Said) -> None:
    assert said.remnants(), "it does"
    with said.daemon.client() as client:
        assert all(each.replicated_until is not None for each in said.reports)
        assert until(client) == said.reports[-1].replicated_until


def test_the_sidecar_goes_on_and_its_newest_state_has_nothing_of_it(said: Said, tmp_path: Path) -> None:
    with said.daemon.client() as client:
        client.call("transcript.commit", talk(turn("behind", "said behind the erasure")))
    restored = tmp_path / "restored.db"
    said.daemon.assert_restored(restored)
    data = restored.read_bytes()
    assert not remnants(data, said.dead, said.alive) and all(each.encode() in data for each in said.alive)


def test_a_replica_that_forgets_holds_nothing_of_it_any_more(said: Said, tmp_path: Path) -> None:
    with said.daemon.client() as client:
        report = client.forget_replica()
        assert report.removed_files > 0 and report.replicated_until is None and until(client) is None
        assert not said.remnants(), "neither in the replica nor in what is staged"
        client.call("transcript.commit", talk(turn("again", "said when it had forgotten")))
    said.daemon.assert_restored(tmp_path / "restored.db")  # it goes on


def test_private_material_is_sealed_in_the_replica_too(said: Said) -> None:
    with said.daemon.client() as client:
        assert client.call("memory.write", RECORD).outcomes[0].outcome == "accepted"
    said.daemon.synced()
    assert RECORD["candidates"][0]["content"].encode() not in said.sent


def said_again(daemon: Kept, until: int, txid: int) -> None:
    """As if what was erased before that transaction were to have left the replica by then."""
    daemon.stop()
    connection = apsw.Connection(daemon.store)
    for key, value in (("replica_keeps_until", until), ("replica_erased", f"{until} {txid}")):
        connection.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))
    connection.close()
    daemon.start()


def test_a_time_that_has_passed_is_told_until_nothing_is_seen_to_be_left(said: Said) -> None:
    daemon = said.daemon
    said_again(daemon, 1_000_000, 2**40)
    end = time.monotonic() + PATIENCE_S
    while "from before an erasure" not in (daemon.folder / "log").read_text():
        assert time.monotonic() < end
        time.sleep(0.05)
    with daemon.client() as client:
        assert until(client) == "1970-01-01T00:00:01Z", "the replica has files of before, and the time is over"
    said_again(daemon, 1_000_000, 1)
    with daemon.client() as client:
        while until(client) is not None:
            assert time.monotonic() < end
            time.sleep(0.05)


def ask(daemon: Kept) -> None:
    with contextlib.suppress(BeetleError, ConnectionError), daemon.client() as client:
        client.forget_replica()


def forgettings(client: Any) -> list[int]:
    """How many files each forgetting of the replica has removed."""
    told = client.call("event_log.read", {"topics": ["replication"]})
    return [each.subject["files"] for each in told.rows if each.event == "replica_forgotten"]


def test_what_was_begun_to_be_forgotten_is_finished_by_the_next_daemon(said: Said) -> None:
    daemon = said.daemon
    word = Words(21).canary()
    with daemon.client() as client:
        client.call("transcript.commit", talk(turn("late", f"and {word}")))
        daemon.synced()
        assert client.call("transcript.lifecycle", step("delete_raw", "late")).erasure == "done"
        assert word.encode() in said.sent
        before = forgettings(client)
    asking = threading.Thread(target=ask, args=(daemon,))
    asking.start()
    reader = apsw.Connection(daemon.store, flags=apsw.SQLITE_OPEN_READONLY)
    end = time.monotonic() + PATIENCE_S
    while not reader.execute("SELECT 1 FROM meta WHERE key = 'replica_forgets'").get:
        assert time.monotonic() < end
        time.sleep(0.01)
    reader.close()
    daemon.kill()
    asking.join()
    assert word.encode() in said.sent, "it was in the middle"
    daemon.start()
    end = time.monotonic() + PATIENCE_S
    with daemon.client() as client:
        while until(client) is not None:
            assert time.monotonic() < end, to_plain(client.replication_status())
            time.sleep(0.2)
        assert [files > 0 for files in forgettings(client)[len(before) :]] == [True]
    assert word.encode() not in said.sent
