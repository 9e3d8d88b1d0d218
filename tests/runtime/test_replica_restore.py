"""replication.restore: a state of the replica in the store's place, or in a file; what is not whole changes nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import apsw
import pytest

from beetle import first_boot
from beetle.contracts.common import MemoryIdentity, MemoryScope
from beetle.contracts.errors import (
    BeetleError,
    Conflict,
    IntegrityViolation,
    InvalidRequest,
    NotFound,
    ServicesUnavailable,
)
from beetle.contracts.replication import ReplicationStatusReport
from beetle.open import Embedded, configured_dependencies, open_embedded
from beetle.replication.program import Litestream, configuration, configured
from beetle.runtime.host.config import Replica, read_config
from beetle.runtime.host.replica import Forgotten
from tests.building import candidate, candidates, step, talk, turn
from tests.replicas import PROFILE, Kept, at_file, content_of
from tests.store.conftest import assert_clean, open_runtime
from tests.store.older import make_older

FORGE_SQL = "UPDATE body SET content = 'what nobody has said' WHERE message = (SELECT max(message) FROM body)"
ERASED = {"turns": 1, "messages": 1, "facts": 1, "candidates": 1}
DOOR = candidates(
    candidate("red", "The door is red.", topic="door", authority="operator"),
    candidate("green", "The door is green.", topic="door", authority="tool_observed"),
)


class Past(Kept):
    """A daemon that has kept a replica for a while: `early` was said before `between`, `late` behind it, and then
    `early` was erased, one of two waiting candidates was rejected, and a fact for which another one waited was deleted.
    It has ended."""

    def __init__(self, folder: Path) -> None:
        super().__init__(at_file(folder), folder=str(folder))
        with self:
            self.synced()
            self.say("early", "the early word")
            self.say("kept", "the lasting word")
            with self.client() as client:
                red, _ = client.call("memory.write", DOOR).outcomes
            waiting = [self.wait(text) for text in ("an unwanted guess", "a lasting guess")]
            self.synced()
            # States are told apart by the second.
            time.sleep(1.2)
            self.between = datetime.now(UTC)
            time.sleep(1.2)
            self.say("late", "the late word")
            self.synced()
            with self.client() as client:
                self.erased = client.call("transcript.lifecycle", step("delete_raw", "early"))
                client.call("long_term.mutate", {"action": "delete", "ref": red.ref})
                client.call("governance.decide", {"ids": waiting[:1], "decision": "reject", "reason": "no"})
            self.synced()

    def say(self, turn_id: str, text: str) -> None:
        with self.client() as client:
            client.call("transcript.commit", talk(turn(turn_id, text)))

    def wait(self, text: str) -> str:
        """Have a candidate wait; both have one id."""
        given = candidates(candidate("one", text, authority="assistant_claimed", topic=text))
        with self.client() as client:
            return client.call("memory.write", given).outcomes[0].waiting_id


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Past:
    return Past(tmp_path_factory.mktemp("past"))


class Here:
    """A copy of a store that was replicated, opened in this process, with the same replica."""

    def __init__(self, past: Past, folder: Path, target: Path | None = None) -> None:
        self.store = folder / "b.db"
        for name in ("b.db", "b.db-wal", "b.db.identity"):
            if (found := Path(past.store).parent / name).exists():
                shutil.copy(found, folder / name)
        self.memory = opened(self.store, target or past.target, folder)

    def restore(self, **asked: Any) -> Any:
        asked = {name: each.isoformat() if isinstance(each, datetime) else each for name, each in asked.items()}
        return self.memory.call("replication.restore", asked, None, None, None).report

    def turns(self) -> set[str]:
        asked = {"conversation": {"channel_id": "local", "conversation_id": "talk"}, "view": "operator_audit"}
        found = self.memory.call("transcript.replay", asked, None, None, None).report
        return {each.turn_id for each in found.turns}

    def facts(self) -> set[str]:
        return {each.content for each in self.memory.call("long_term.list", {}, None, None, None).report.records}


def opened(store: Path, target: Path, folder: Path) -> Embedded:
    file = folder / "beetle.toml"
    file.write_text(f'[replica]\nurl = "file://{target}"\n', encoding="utf-8")
    return open_embedded(
        store=str(store), profile=PROFILE, backend="sqlite", identity=MemoryIdentity(), scope=MemoryScope(),
        transport="cli", dependencies=configured_dependencies(read_config(str(file), {}, os.getuid()), {}),
    )  # fmt: skip


@pytest.fixture
def here(past: Past, tmp_path: Path) -> Iterator[Here]:
    found = Here(past, tmp_path)
    yield found
    found.memory.release()


def beside(here: Here) -> list[str]:
    """What a restore has left beside the store."""
    return sorted(
        each.name for each in here.store.parent.iterdir() if ".unpacking" in each.name or ".before" in each.name
    )


def test_a_state_of_the_past_takes_the_stores_place_less_what_was_erased_since(past: Past, here: Here) -> None:
    assert here.turns() == {"early", "kept", "late"} and here.facts() == {"The door is green."}
    looked = here.restore(at=past.between, dry_run=True)
    assert (looked.changed, looked.erased, beside(here)) == (False, ERASED, [])
    done = here.restore(at=past.between)
    assert done.changed and done.erased == looked.erased and done.events_behind > 0
    assert here.turns() == {"early", "kept"}
    kept = Path(done.kept_as)
    assert kept.is_file() and beside(here) == [kept.name]
    restored = here.store.read_bytes()
    assert b"the lasting word" in restored and b"the late word" not in restored
    assert b"the early word" not in restored and b"an unwanted guess" not in restored, "what was erased stays so"
    assert b"a lasting guess" in restored
    assert here.facts() == set(), "and nothing that waited is judged"
    assert here.memory.call("store.verify", {}, None, None, None).report.clean
    # Its event log goes on, with the restore as its last lifecycle event.
    assert done.lifecycle is not None


def test_it_goes_to_a_file_and_the_store_stays(past: Past, here: Here, tmp_path: Path) -> None:
    before, to = content_of(str(here.store)), tmp_path / "state.db"
    done = here.restore(at=past.between, to=str(to), keep_erased=True)
    assert (done.changed, done.kept_as, done.to) == (False, None, str(to)) and beside(here) == []
    assert to.stat().st_mode & 0o777 == 0o600 and b"the early word" in to.read_bytes()
    assert content_of(str(here.store)) == before
    with pytest.raises(Conflict, match="exists already"):
        here.restore(to=str(to))
    with pytest.raises(InvalidRequest, match="no folder"):
        here.restore(to=str(tmp_path / "nowhere" / "state.db"))


def test_a_time_of_which_there_is_no_state_is_refused_with_the_range(here: Here) -> None:
    for at in (datetime.now(UTC) + timedelta(days=1), datetime(2001, 1, 1, tzinfo=UTC)):
        with pytest.raises(InvalidRequest, match=r"states from .*Z to .*Z") as refused:
            here.restore(at=at)
        assert refused.value.details["path"] == "$.args.at"
    with pytest.raises(InvalidRequest, match="in the future"):
        here.restore(at=datetime.now(UTC) + timedelta(days=1))


def cut(target: Path) -> None:
    for file in target.rglob("*.ltx"):
        os.truncate(file, file.stat().st_size // 2)


def flipped(target: Path) -> None:
    for file in target.rglob("*.ltx"):
        data = bytearray(file.read_bytes())
        data[len(data) // 2] ^= 0xFF
        file.write_bytes(data)


def led_away(target: Path) -> None:
    """Every file is a link to one that no replica is made of."""
    for file in target.rglob("*.ltx"):
        file.unlink()
        file.symlink_to("/etc/passwd")


@pytest.mark.parametrize("harm", [cut, flipped, led_away])
def test_a_damaged_replica_changes_nothing(past: Past, tmp_path: Path, harm: Callable[[Path], None]) -> None:
    target = tmp_path / "target"
    shutil.copytree(past.target, target)
    harm(target)
    here = Here(past, tmp_path, target)
    try:
        before = content_of(str(here.store))
        with pytest.raises(IntegrityViolation, match=r"not whole.*nothing was changed"):
            here.restore()
        assert content_of(str(here.store)) == before and beside(here) == []
    finally:
        here.memory.release()


class Sent:
    """Stands for the keeper of a daemon to which so many events are known to have reached the target."""

    def __init__(self, synced_events: int) -> None:
        self.synced_events = synced_events

    def status(self) -> ReplicationStatusReport:
        return ReplicationStatusReport(state="replicating")

    def forget(self, must_end: Callable[[], bool], at: Callable[[int, int], None]) -> Forgotten:
        raise AssertionError


def test_a_replica_that_was_put_back_to_an_older_state_is_told_of(past: Past, here: Here) -> None:
    rows = here.memory._opened.store.head.seq - here.restore(dry_run=True).events_behind
    board = here.memory.dispatcher.shared.replica
    board.put_up(Sent(rows).status, Sent(rows))
    assert not here.restore(dry_run=True).changed, "all that was sent is there"
    board.put_up(Sent(rows + 1).status, Sent(rows + 1))
    with pytest.raises(Conflict, match="put back to an older state"):
        here.restore(dry_run=True)
    assert here.restore(at=past.between, dry_run=True).events_behind > 0
    assert not here.restore(accept_older=True, dry_run=True).changed


def replicated(store: Path, target: Path) -> None:
    """Make a replica of a file as it is."""
    settings = Replica(url=f"file://{target}").settings
    stream = Litestream(str(store), settings, {})
    with configured(configuration(str(store), settings, stream.secrets)) as (path, descriptor):
        line = [stream.program.path, "replicate", "-config", path, "-once"]
        subprocess.run(line, pass_fds=(descriptor,), check=True, capture_output=True)


def test_a_replica_that_somebody_has_made_of_a_changed_store_is_refused(past: Past, tmp_path: Path) -> None:
    """Who can write to the target knows the store's own key, and not its device identity."""
    forged, target = tmp_path / "forged.db", tmp_path / "target"
    assert past.stream().restore(str(forged)) is not None
    connection = apsw.Connection(str(forged))
    connection.execute("UPDATE device SET state = 'active'")
    connection.execute(FORGE_SQL)
    connection.close()
    replicated(forged, target)
    here = Here(past, tmp_path, target)
    try:
        before = content_of(str(here.store))
        with pytest.raises(IntegrityViolation, match="not what this store's runtime wrote"):
            here.restore()
        assert content_of(str(here.store)) == before and beside(here) == []
    finally:
        here.memory.release()


def test_a_replica_of_an_older_schema_is_restored(past: Past, tmp_path: Path) -> None:
    """As after an upgrade: by an operator, and by the first start of a new build."""
    old, target = tmp_path / "old.db", tmp_path / "target"
    assert past.stream().restore(str(old)) is not None
    shutil.copy(f"{past.store}.identity", f"{old}.identity")
    make_older(old)
    replicated(old, target)
    here = Here(past, tmp_path, target)
    try:
        assert here.restore(accept_older=True).changed
        assert here.turns() == {"early", "kept", "late"}
        assert here.memory.call("store.verify", {}, None, None, None).report.clean
    finally:
        here.memory.release()
    store = tmp_path / "new" / "b.db"
    store.parent.mkdir()
    shutil.copy(f"{past.store}.identity", f"{store}.identity")
    assert begin(past, store, "required", target) is not None
    with open_runtime(store) as memory:
        assert_clean(memory)


def test_another_stores_replica_needs_to_be_allowed(past: Past, tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    mine = opened(folder / "b.db", past.target, folder)
    try:
        with pytest.raises(Conflict, match="it is of the store"):
            mine.call("replication.restore", {}, None, None, None)
        report = mine.call("replication.restore", {"other_store": True}, None, None, None).report
        assert report.changed and report.identity == "wrong"
    finally:
        mine.release()


def test_without_a_replica_it_says_so(past: Past, tmp_path: Path) -> None:
    here = Here(past, tmp_path, tmp_path / "nothing")
    try:
        with pytest.raises(NotFound):
            here.restore()
        with pytest.raises(ServicesUnavailable, match="embedded"):
            here.memory.call("replication.forget", {}, None, None, None)
    finally:
        here.memory.release()


def begin(past: Past, store: Path, mode: str, target: Path | None = None) -> first_boot.Restored | None:
    settings = Replica(url=f"file://{target or past.target}", restore_on_first_boot=mode)  # type: ignore[arg-type]
    return first_boot.restore(settings, str(store), {}, None, lambda said: None)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_boot, "PAUSES_S", (0.0, 0.0))


@pytest.mark.parametrize("empty", [False, True], ids=["missing", "empty"])
def test_a_first_start_restores_and_a_second_does_not(past: Past, tmp_path: Path, empty: bool) -> None:
    target = shutil.copytree(past.target, tmp_path / "replica")
    daemon = Kept(f'url = "file://{target}"\nrestore_on_first_boot = "required"', folder=str(tmp_path))
    shutil.copy(past.store + ".identity", daemon.store + ".identity")
    if empty:
        Path(daemon.store).touch()
    with daemon:
        with daemon.client() as client:
            told = client.call("event_log.read", {"topics": ["lifecycle"]}).rows
            assert client.inspect().operator.identity.state == "usable"
        assert [each.event for each in told].count("replica_restored") == 1
        daemon.synced()
    assert begin(past, Path(daemon.store), "required") is None, "a store is there"


def test_a_replica_that_cannot_be_reached_starts_no_empty_store(past: Past, tmp_path: Path, at_once: None) -> None:
    store = tmp_path / "new" / "b.db"
    for mode in ("if_there", "required"):
        with pytest.raises(ServicesUnavailable, match="cannot be reached"):
            begin(past, store, mode, tmp_path / "not mounted")
    empty = tmp_path / "empty"
    empty.mkdir()
    assert begin(past, store, "if_there", empty) is None
    store.touch()
    assert begin(past, store, "if_there", empty) is None
    store.unlink()
    with pytest.raises(ServicesUnavailable, match="no replica"):
        begin(past, store, "required", empty)
    assert begin(past, store, "never", tmp_path / "not mounted") is None
    assert not store.exists()


@pytest.mark.parametrize("left", [".lock", "-wal", "-journal"])
@pytest.mark.parametrize("empty", [False, True], ids=["missing", "empty"])
def test_what_is_left_of_a_store_is_not_for_a_start_to_replace(
    past: Past, tmp_path: Path, left: str, empty: bool
) -> None:
    store = tmp_path / "b.db"
    Path(f"{store}{left}").write_bytes(b"x")
    if empty:
        store.touch()
    before = sorted(tmp_path.iterdir())
    with pytest.raises(Conflict, match="nothing was restored"):
        begin(past, store, "if_there")
    assert sorted(tmp_path.iterdir()) == before
    assert not empty or not store.stat().st_size


def test_a_first_start_refuses_what_is_damaged_or_forged(past: Past, tmp_path: Path) -> None:
    target, store = tmp_path / "target", tmp_path / "new" / "b.db"
    shutil.copytree(past.target, target)
    cut(target)
    with pytest.raises(BeetleError):
        begin(past, store, "if_there", target)
    assert list(store.parent.iterdir()) == []


@pytest.mark.parametrize("check", ["another device's", None])
def test_a_first_start_refuses_the_replica_of_another_device_than_its_key_file_s(
    past: Past, tmp_path: Path, check: str | None
) -> None:
    """Else who can write to the target has the seals go unchecked."""
    forged, target, store = tmp_path / "forged.db", tmp_path / "target", tmp_path / "new" / "b.db"
    assert past.stream().restore(str(forged)) is not None
    connection = apsw.Connection(str(forged))
    connection.execute(FORGE_SQL)
    connection.execute("UPDATE meta SET value = ?1 WHERE key = 'identity' AND ?1 IS NOT NULL", (check,))
    connection.execute("DELETE FROM meta WHERE key = 'identity' AND ?1 IS NULL", (check,))
    connection.close()
    replicated(forged, target)
    store.parent.mkdir()
    key = shutil.copy(f"{past.store}.identity", f"{store}.identity")
    with pytest.raises(IntegrityViolation, match="key file"):
        begin(past, store, "required", target)
    assert [str(each) for each in store.parent.iterdir()] == [key]
