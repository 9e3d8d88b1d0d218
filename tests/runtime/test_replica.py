"""A daemon keeps a replica in a folder: state, lag, restarts of the sidecar, its end, and what is restored from it."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from beetle.contracts.errors import SchemaMismatch
from beetle.replicating import keep_replica
from beetle.replication.supervisor import Supervisor
from beetle.runtime.host.config import Replica
from beetle.sdk import MemoryRuntime
from beetle.store import replica_marks
from tests import forked
from tests.building import talk, turn
from tests.replicas import PROFILE, Kept, at_file, content_of, settings_of
from tests.transports.serving import until


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    """One daemon for what needs no other: each test leaves it in step."""
    folder = tmp_path_factory.mktemp("replica")
    daemon = Kept(at_file(folder), folder=str(folder))
    daemon.start()
    yield daemon
    daemon.stop()


def say(daemon: Kept, turn_id: str) -> None:
    with daemon.client() as client:
        client.call(
            "transcript.commit",
            talk(
                turn(turn_id, f"what {turn_id} says"), conversation={"channel_id": "local", "conversation_id": turn_id}
            ),
        )


def gone(pid: int) -> bool:
    """Whether a process has ended within a few seconds."""
    try:
        watched = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([watched], [], [], 10)[0])
    finally:
        os.close(watched)


def whole(replica: Supervisor) -> bool:
    return replica.status().lag_s == 0


def test_what_is_committed_arrives_and_litestream_restores_the_same_store(kept: Kept, tmp_path: Path) -> None:
    say(kept, "a1")
    found = kept.synced()
    assert (found.problem, found.target_kind, found.lag_bytes, found.lag_transactions) == (None, "file", 0, 0)
    assert found.target == settings_of(kept.file).target.url
    assert found.last_synced_at is not None and found.txid == found.replicated_txid
    kept.assert_restored(tmp_path / "restored.db")
    assert {each.level for each in kept.stream().files()} >= {0}


def test_the_store_verifies_clean_with_litestreams_tables_in_it(kept: Kept) -> None:
    kept.synced()
    connection = apsw.Connection(kept.store, flags=apsw.SQLITE_OPEN_READONLY)
    names = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
    connection.close()
    assert names >= {"_litestream_seq", "_litestream_lock"}
    with kept.client() as client:
        assert client.verify_store().clean


def test_a_table_that_has_only_the_name_of_one_of_litestreams_is_an_alteration(tmp_path: Path) -> None:
    path = str(tmp_path / "b.db")
    MemoryRuntime.open(path, profile=PROFILE).close()
    connection = apsw.Connection(path)
    connection.execute("CREATE TABLE _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER, more TEXT)")
    connection.close()
    with pytest.raises(SchemaMismatch, match="_litestream_seq is not of the schema"):
        MemoryRuntime.open(path, profile=PROFILE)


def test_the_command_and_the_doctor_tell_its_state(kept: Kept) -> None:
    kept.synced()
    shared = ["--config", str(kept.file), "--socket", kept.socket, "--profile", PROFILE]
    told = forked.run_text([*shared, "replica", "status"])
    assert told.returncode == 0 and told.stdout.startswith("State:        replicating: what is written arrives\n")
    assert f"Target:       file://{kept.target}\n" in told.stdout and "Kept for:     7d 0h 0m 0s\n" in told.stdout
    found = json.loads(forked.run_text([*shared, "--json", "doctor"]).stdout)["findings"]
    assert [each["level"] for each in found if each["check"] == "replica"] == ["ok"]


def test_socket_and_staged_files_are_this_users_alone(kept: Kept) -> None:
    kept.synced()
    place = Path(kept.socket + ".replica")
    staging = Path(kept.store).parent / ".b.db-litestream"
    assert place.stat().st_mode & 0o777 == 0o700
    assert (place / "control").stat().st_mode & 0o777 == 0o600
    assert [each for each in staging.rglob("*") if each.stat().st_mode & 0o077] == []


def test_a_killed_sidecar_is_started_again_and_goes_on(kept: Kept) -> None:
    before = kept.synced()
    assert before.pid is not None
    os.kill(before.pid, signal.SIGKILL)
    kept.until(lambda found: (found.restarts or 0) > (before.restarts or 0))
    say(kept, "k1")
    after = kept.synced()
    assert after.pid != before.pid and (after.txid or 0) > (before.txid or 0)


def test_a_frozen_sidecar_is_found_and_replaced_and_writes_go_on(kept: Kept) -> None:
    before = kept.synced()
    assert before.pid is not None
    os.kill(before.pid, signal.SIGSTOP)
    say(kept, "f1")
    kept.until(lambda found: (found.restarts or 0) > (before.restarts or 0))
    kept.synced()
    with kept.client() as client:
        told = client.call("event_log.read", {"topics": ["replication"]}).rows
    assert {"stalled", "waiting", "replicating"} <= {each.subject["state"] for each in told}
    assert {each.subject.get("problem") for each in told} >= {"not_answering"}


def test_a_restored_snapshot_is_what_the_replica_has_then(kept: Kept, tmp_path: Path) -> None:
    say(kept, "r1")
    with kept.client() as client:
        made = client.create_snapshot(label="r").snapshot.snapshot_id
    say(kept, "r2")
    kept.synced()
    with kept.client() as client:
        client.restore_snapshot(snapshot_id=made)
    say(kept, "r3")
    kept.assert_restored(tmp_path / "restored.db")


def test_a_clean_stop_leaves_a_log_in_which_the_next_sidecar_goes_on(tmp_path: Path) -> None:
    with Kept(at_file(tmp_path), folder=str(tmp_path)) as daemon:
        say(daemon, "c1")
        daemon.synced()
        say(daemon, "c2")
        daemon.stop()
        left = content_of(daemon.store)
        restored = daemon.stream().restore(str(tmp_path / "first.db"))
        assert restored is not None
        assert content_of(str(tmp_path / "first.db")) == left, "the last commit before the end is at the target"
        assert not Path(daemon.socket + ".replica").exists()
        whole = max(each.size for each in daemon.stream().files() if each.min_txid == 1)
        daemon.start()
        say(daemon, "c3")
        daemon.synced()
        since = [each for each in daemon.stream().files() if each.min_txid > restored.txid and each.level == 0]
        assert since and max(each.size for each in since) < whole, "no second copy of the whole store was sent"
        daemon.assert_restored(tmp_path / "second.db")


def test_the_sidecar_dies_with_its_daemon_and_the_next_one_goes_on(tmp_path: Path) -> None:
    with Kept(at_file(tmp_path), folder=str(tmp_path)) as daemon:
        say(daemon, "d1")
        sidecar = daemon.synced().pid
        assert sidecar is not None
        say(daemon, "d2")
        daemon.kill()
        assert gone(sidecar)
        daemon.start()
        daemon.assert_restored(tmp_path / "again.db")


def test_a_target_that_takes_nothing_is_told_of_and_writes_go_on(tmp_path: Path) -> None:
    with Kept(at_file(tmp_path), folder=str(tmp_path)) as daemon:
        daemon.synced()
        daemon.target.rename(tmp_path / "away")
        daemon.target.write_text("no folder")
        say(daemon, "t1")
        found = daemon.until(lambda found: found.state == "behind")
        assert found.problem == "target" and found.detail is not None
        assert (found.lag_s or 0) > 0 and (found.lag_bytes or 0) > 0
        say(daemon, "t2")
        daemon.target.unlink()
        (tmp_path / "away").rename(daemon.target)
        daemon.assert_restored(tmp_path / "again.db")


def levels_of(daemon: Kept) -> set[int]:
    return {each.level for each in daemon.stream().files()}


def test_a_target_that_loses_what_was_sent_is_told_of_and_gets_all_anew(tmp_path: Path) -> None:
    """What is sent from then on arrives, and no store can be made of it: a whole one has to be sent again."""
    with Kept(at_file(tmp_path), folder=str(tmp_path)) as daemon:
        say(daemon, "v1")
        daemon.synced()
        # Behind its first snapshot litestream makes none for a day.
        until(lambda: 9 in levels_of(daemon), "a snapshot is at the target")
        daemon.target.rename(tmp_path / "away")
        say(daemon, "v2")
        found = daemon.until(lambda found: found.state == "behind")
        assert (found.problem, found.replicated_txid) == ("target", 0) and "at the target" in (found.detail or "")
        assert (found.lag_s or 0) > 0 and found.hint is not None
        daemon.assert_restored(tmp_path / "first.db")
        say(daemon, "v3")
        daemon.synced()
        for file in [each for each in daemon.target.glob("ltx/[0-8]/*.ltx")]:
            file.unlink()
        kept_to = max(each.max_txid for each in daemon.stream().files() if each.level == 9)
        assert daemon.until(lambda found: found.state == "behind").replicated_txid == kept_to
        daemon.assert_restored(tmp_path / "second.db")
        with daemon.client() as client:
            told = client.call("event_log.read", {"topics": ["replication"]}).rows
        assert [each.subject["state"] for each in told].count("behind") == 2


def test_a_write_that_has_no_event_waits_for_the_target_as_well(tmp_path: Path) -> None:
    """What the daemon notes and derives: neither is told of in the event log."""
    memory, target = MemoryRuntime.open(str(tmp_path / "b.db"), profile=PROFILE), tmp_path / "target"
    replica = keep_replica(memory._opened._opened, Replica(url=f"file://{target}"), str(tmp_path / "socket"), {})
    assert replica is not None
    store = memory._opened._opened.store
    try:
        until(
            lambda: whole(replica) and replica.synced_events == store.head.seq > 0,
            "that it replicates, told of as well",
        )
        target.rename(tmp_path / "away")
        target.write_text("no folder")
        before = store.head.seq
        store.write(replica_marks.touch)
        assert store.head.seq == before and not whole(replica)
        target.unlink()
        (tmp_path / "away").rename(target)
        until(lambda: whole(replica), "the note arrives")
    finally:
        memory.close()
        replica.close()


def test_a_store_without_a_write_ahead_log_says_that_it_has_no_replica(tmp_path: Path) -> None:
    with Kept(at_file(tmp_path), folder=str(tmp_path), options=["--backend", "file"]) as daemon:
        found = daemon.status()
        assert (found.state, found.problem, found.pid) == ("refused", "backend", None)
        assert "sqlite" in (found.hint or "")
        say(daemon, "b1")


def test_a_secret_that_others_may_read_keeps_the_sidecar_from_starting_and_not_the_daemon(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("hunter2")
    secret.chmod(0o644)
    text = f'url = "nats://127.0.0.1:1/bucket"\nsecret_file = "{secret}"'
    with Kept(text, folder=str(tmp_path)) as daemon:
        found = daemon.until(lambda found: found.state == "refused")
        assert found.problem == "secret" and "chmod" in (found.hint or "")
        say(daemon, "s1")


def test_no_secret_stands_on_a_command_line_in_a_file_or_in_the_log(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("hunter2-hunter2")
    secret.chmod(0o600)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        text = f'url = "nats://127.0.0.1:{mute.getsockname()[1]}/bucket"\nsecret_file = "{secret}"'
        daemon = Kept(text, folder=str(tmp_path))
        daemon.start()
        found = daemon.until(lambda found: found.pid is not None)
        assert found.lag_s is None and found.state == "starting"
        told = [Path(f"/proc/{found.pid}/{name}").read_bytes() for name in ("cmdline", "environ")]
        daemon.stop()
        told += [each.read_bytes() for each in tmp_path.rglob("*") if each.is_file() and each != secret]
        assert not any(b"hunter2" in each for each in told)


def test_a_runtime_in_this_process_keeps_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "beetle.toml"
    config.write_text(f'[daemon]\nstore = "{tmp_path}/b.db"\n[replica]\n{at_file(tmp_path)}\n')
    monkeypatch.setenv("BEETLE_CONFIG", str(config))
    with MemoryRuntime.open(profile=PROFILE) as memory:
        found = memory.replication_status()
    assert (found.state, found.problem) == ("refused", "embedded")
    with MemoryRuntime.open(str(tmp_path / "c.db"), profile=PROFILE) as memory:
        assert memory.replication_status().state == "off"
