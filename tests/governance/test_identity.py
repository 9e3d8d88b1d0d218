"""The device identity: made once, known again, and never used when its key file is not as it should be."""

from __future__ import annotations

import logging
import os
import shutil
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import get_args

import apsw
import pytest
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from beetle.contracts.errors import PrivacyDenied, StoreLocked
from beetle.open import open_store
from beetle.runtime.host import identity
from beetle.runtime.host.dependencies import SYSTEM_DEPENDENCIES
from beetle.store import private
from tests.governance.keeping import (
    CANARY,
    SPOILED,
    identity_of,
    invocation_of,
    keep,
    key_file,
    line,
    write_key,
)
from tests.store.conftest import DISK_BACKENDS, assert_clean, commit, found, lifecycle, open_runtime, store_of, turn
from tests.store.make_schema_fixture import FIXTURE

PROFILE = "profile-server-linux-dev-full"
ROOT = Path(__file__).parents[2]


def recorded(path: str) -> str | None:
    with open_runtime(path) as memory:
        return store_of(memory).identity_check


@pytest.fixture
def path(tmp_path: Path) -> str:
    return os.fspath(tmp_path / "store.db")


@pytest.mark.parametrize("backend", DISK_BACKENDS)
def test_a_fresh_store_has_a_key_file_for_its_user_alone_and_knows_it_again(path: str, backend: str) -> None:
    with open_runtime(path, backend) as memory:
        made = identity_of(memory).fingerprint
        place = key_file(path)
        assert identity_of(memory).state == "usable"
        assert stat.S_IMODE(place.stat().st_mode) == 0o600
        assert identity.LINE.fullmatch(place.read_bytes())
    before = place.read_bytes()
    with open_runtime(path, backend) as memory:
        assert identity_of(memory).fingerprint == made
        assert len(made or "") == 16
    assert place.read_bytes() == before


def test_a_store_in_memory_has_an_identity_and_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with open_runtime("ignored", "in-memory") as memory:
        assert identity_of(memory).state == "usable"
        record = keep(memory, CANARY)
        assert memory.get_private(record_id=record).content == CANARY
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("how", SPOILED)
def test_a_spoiled_key_file_closes_the_private_plane_and_nothing_else(path: str, how: str) -> None:
    state, spoil = SPOILED[how]
    with open_runtime(path) as memory:
        record = keep(memory, "a kept secret")
    spoil(key_file(path))
    with open_runtime(path) as memory:
        assert identity_of(memory).state == state
        with pytest.raises(PrivacyDenied) as refused:
            keep(memory, CANARY)
        assert refused.value.details["state"] == state
        assert CANARY not in f"{refused.value}{refused.value.hint}{refused.value.details}"
        assert os.path.dirname(path) not in f"{refused.value}{refused.value.hint}"
        for ask in (memory.list_private, lambda: memory.get_private(record_id=record)):
            with pytest.raises(PrivacyDenied):
                ask()
        commit(memory, turn("t1", "the ferry leaves at noon"))
        assert found(memory, "ferry")
        assert lifecycle(memory, "mask", "t1").receipt.endswith(".")
        shown = memory.inspect().operator.identity
        assert (shown.state, bool(shown.problem), bool(shown.advice)) == (state, True, True)
        assert_clean(memory)
    written = b"".join(each.read_bytes() for each in Path(path).parent.iterdir() if each.is_file())
    assert CANARY.encode() not in written


@pytest.mark.parametrize("how", SPOILED)
def test_a_key_file_spoiled_while_the_store_is_open_counts_at_once_and_so_does_its_repair(path: str, how: str) -> None:
    state, spoil = SPOILED[how]
    place = key_file(path)
    with open_runtime(path) as memory:
        record = keep(memory, "a kept secret")
        good = place.read_bytes()
        spoil(place)
        assert identity_of(memory).state == state
        with pytest.raises(PrivacyDenied):
            keep(memory, CANARY)
        if place.is_dir() and not place.is_symlink():
            place.rmdir()
        elif os.path.lexists(place):
            place.unlink()
        write_key(place, good)
        assert memory.get_private(record_id=record).content == "a kept secret"
        keep(memory, CANARY)


def test_a_lost_key_file_is_not_made_anew(path: str) -> None:
    with open_runtime(path):
        key_file(path).unlink()
    with open_runtime(path) as memory:
        assert identity_of(memory).state == "missing"
    assert not key_file(path).exists()


def test_an_identity_that_a_renewal_made_the_first_is_recorded_and_its_loss_is_not_silent(
    path: str, tmp_path: Path
) -> None:
    write_key(key_file(path), b"")
    with open_runtime(path) as memory:
        assert identity_of(memory).state == "broken"
        commit(memory, turn("t1", "the ferry leaves at noon"))
        done = memory.renew_identity(token=memory.renew_identity(dry_run=True).token)
        record = keep(memory, CANARY)
        with store_of(memory).read() as tx:
            assert private.recorded_check(tx) == identity_of(memory).check
        told = memory.inspect().operator.identity
        assert (told.state, told.device, told.former) == ("usable", done.device, ())
        assert_clean(memory)
    kept = key_file(path).rename(tmp_path / "kept")
    with open_runtime(path) as memory:
        assert identity_of(memory).state == "missing"
        kept.rename(key_file(path))
        assert memory.get_private(record_id=record).content == CANARY
        assert_clean(memory)


@pytest.mark.parametrize("public_key", [True, False], ids=["with its public key", "without"])
def test_where_the_record_is_lost_no_new_identity_is_made_and_its_own_file_is_known(
    path: str, tmp_path: Path, *, public_key: bool
) -> None:
    with open_runtime(path) as memory:
        record = keep(memory, CANARY)
    connection = apsw.Connection(path)
    names = "('identity')" if public_key else "('identity', 'identity_key')"
    connection.execute(f"DELETE FROM meta WHERE key IN {names}")
    connection.close()
    kept = key_file(path).rename(tmp_path / "kept")
    with open_runtime(path) as memory:
        assert identity_of(memory).state == "missing"
        write_key(key_file(path), kept.read_bytes())
        assert identity_of(memory).state == "unrecorded"
    write_key(key_file(path), line(bytes(32)))
    with open_runtime(path) as memory:
        assert (identity_of(memory).state, store_of(memory).identity_check) == ("wrong", None)
    shutil.copy(kept, key_file(path))
    with open_runtime(path) as memory:
        assert memory.get_private(record_id=record).content == CANARY
    assert recorded(path) is not None


@pytest.mark.parametrize(
    "value",
    [
        "x'ff00'",
        "'é'",
        "cast(x'fffe41' as text)",
        "5",
        "''",
        "hex(randomblob(16)) || 'a'",
        "x'" + b"0".hex() * 32 + "'",
        "'0' || substr(value, 2, 31)",
    ],
)
def test_where_the_record_is_damaged_its_own_file_is_known_and_another_is_of_no_use(
    path: str, tmp_path: Path, value: str
) -> None:
    with open_runtime(path) as memory:
        record = keep(memory, CANARY)
    made = recorded(path)

    def damage() -> None:
        connection = apsw.Connection(path)
        connection.execute(f"UPDATE meta SET value = {value} WHERE key = 'identity'")
        connection.close()

    damage()
    with open_runtime(path) as memory:
        assert memory.get_private(record_id=record).content == CANARY
        assert memory.verify_store().findings == ()
    assert recorded(path) == made
    damage()
    key_file(path).rename(tmp_path / "kept")
    write_key(key_file(path), line(bytes(32)))
    with open_runtime(path) as memory:
        assert identity_of(memory).state == "wrong"
        operator = memory.inspect().operator
        assert operator is not None and operator.identity is not None and operator.identity.advice is not None
        assert ("open the store again" in operator.identity.advice) == ("substr" not in value)
    shutil.copy(tmp_path / "kept", key_file(path))
    with open_runtime(path) as memory:
        assert memory.get_private(record_id=record).content == CANARY


def test_what_the_store_says_of_a_damaged_record_when_its_key_file_is_gone(path: str) -> None:
    open_runtime(path).close()
    made = key_file(path).read_bytes()
    connection = apsw.Connection(path)
    connection.execute("UPDATE meta SET value = x'00' WHERE key = 'identity'")
    connection.close()
    write_key(key_file(path), line(bytes(32)))
    with open_runtime(path) as memory:
        assert identity_of(memory).state == "wrong"
        with pytest.raises(PrivacyDenied):
            keep(memory, CANARY)
        told = {(each.check, each.subject) for each in memory.verify_store().findings}
        assert ("private", "the device identity") in told
        key_file(path).unlink()
    with open_runtime(path) as memory:
        assert identity_of(memory).state == "missing"
        shown = memory.renew_identity(dry_run=True)
        assert shown.found
        assert memory.renew_identity(token=shown.token, despite_findings=True).changed
        assert identity_of(memory).state == "usable" and key_file(path).read_bytes() != made


def test_an_opening_that_fails_behind_the_store_leaves_it_free(path: str) -> None:
    def clock() -> int:
        if key_file(path).exists():
            raise OSError("no clock any more")
        return 0

    with pytest.raises(OSError, match="no clock"):
        open_store(path, PROFILE, env={}, dependencies=SYSTEM_DEPENDENCIES._replace(clock=clock))
    assert state_with(path, {}) == "usable"


def test_two_stores_whose_key_files_were_exchanged_are_both_closed(tmp_path: Path) -> None:
    paths = [os.fspath(tmp_path / name) for name in ("one.db", "two.db")]
    for path in paths:
        with open_runtime(path) as memory:
            keep(memory, f"of {path}")
    first, second = (key_file(path) for path in paths)
    first.rename(tmp_path / "between")
    second.rename(first)
    (tmp_path / "between").rename(second)
    for path in paths:
        with open_runtime(path) as memory:
            assert identity_of(memory).state == "wrong"
            with pytest.raises(PrivacyDenied, match="not this store's"):
                memory.list_private()


def test_a_store_copied_with_its_key_file_is_whole(tmp_path: Path, path: str) -> None:
    with open_runtime(path) as memory:
        record = keep(memory, CANARY)
    there = tmp_path / "there"
    there.mkdir()
    copy = os.fspath(there / "other-name.db")
    shutil.copy2(path, copy)
    shutil.copy2(key_file(path), key_file(copy))
    with open_runtime(copy) as memory:
        assert memory.get_private(record_id=record).content == CANARY


def test_a_store_of_the_first_schema_gets_an_identity_at_its_first_opening(path: str) -> None:
    shutil.copy(FIXTURE, path)
    with open_runtime(path) as memory:
        assert "0002_governance" in memory.open_report.migrations_applied
        assert identity_of(memory).state == "usable"
        keep(memory, CANARY)
    assert key_file(path).exists()
    with open_runtime(path) as memory:
        assert memory.list_private().total == 1


def test_a_store_on_media_that_cannot_be_written_opens_without_an_identity(path: str) -> None:
    shutil.copy(FIXTURE, path)
    open_runtime(path).close()
    key_file(path).unlink()
    with open_runtime(path, immutable=True) as memory:
        assert identity_of(memory).state == "missing"
        assert memory.list_runtime_skills().total == 1
        with pytest.raises(PrivacyDenied):
            memory.list_private()
    assert not key_file(path).exists()


def test_private_material_on_media_that_cannot_be_written_is_read_with_its_key(path: str) -> None:
    with open_runtime(path) as memory:
        record = keep(memory, CANARY)
    with open_runtime(path, immutable=True) as memory:
        assert memory.get_private(record_id=record).content == CANARY


def test_of_openers_that_race_one_makes_the_identity(path: str) -> None:
    for _ in range(5):
        fingerprints: list[str | None] = []
        start = threading.Barrier(4)

        def opens(start: threading.Barrier = start, told: list[str | None] = fingerprints) -> None:
            start.wait(60)
            try:
                with open_runtime(path) as memory:
                    told.append(identity_of(memory).fingerprint)
            except StoreLocked:
                pass

        threads = [threading.Thread(target=opens) for _ in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert fingerprints and len(set(fingerprints)) == 1
        with open_runtime(path) as memory:
            assert identity_of(memory).fingerprint == fingerprints[0]
        for each in Path(path).parent.iterdir():
            each.unlink()


def test_a_key_file_whose_record_was_lost_in_a_crash_is_taken_as_it_is(path: str) -> None:
    with open_runtime(path) as memory:
        made = identity_of(memory).fingerprint
        store_of(memory).write(lambda tx: tx.run("DELETE FROM meta WHERE key = 'identity'"))
    Path(f"{key_file(path)}.new").write_bytes(b"half a fi")
    with open_runtime(path) as memory:
        assert identity_of(memory).fingerprint == made


def test_a_key_file_that_a_crash_left_half_is_not_there(path: str) -> None:
    Path(f"{key_file(path)}.new").write_bytes(b"beetle-identity 1 ha")
    with open_runtime(path) as memory:
        assert identity_of(memory).state == "usable"
    assert sorted(each.suffix for each in Path(path).parent.iterdir()) == [".db", ".identity", ".lock"]


def test_a_key_file_that_cannot_be_made_is_told_and_keeps_no_store_from_opening(
    path: str, caplog: pytest.LogCaptureFixture
) -> None:
    Path(f"{key_file(path)}.new").mkdir()
    with caplog.at_level(logging.WARNING, "beetle.identity"), open_runtime(path) as memory:
        assert identity_of(memory).state == "missing"
        commit(memory, turn("t1", "kept"))
    assert "could not be made" in caplog.text
    Path(f"{key_file(path)}.new").rmdir()
    with open_runtime(path) as memory:
        assert identity_of(memory).state == "usable"


def test_a_key_file_that_was_open_to_others_at_first_is_taken_once_it_is_not(path: str) -> None:
    place = key_file(path)
    write_key(place, line(os.urandom(32)), 0o644)
    with open_runtime(path) as memory:
        assert identity_of(memory).state == "exposed"
        place.chmod(0o600)
        assert identity_of(memory).state == "unrecorded"
        with pytest.raises(PrivacyDenied):
            keep(memory, CANARY)
    assert recorded(path) is None  # as it was found: this opening records it
    assert recorded(path) is not None
    with open_runtime(path) as memory:
        assert identity_of(memory).state == "usable"


def test_a_socket_is_no_key_file(path: str) -> None:
    open_runtime(path).close()
    place = key_file(path)
    place.unlink()
    here = os.getcwd()
    os.chdir(place.parent)  # a socket's own path may have about a hundred bytes
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(place.name)
            with open_runtime(path) as memory:
                assert identity_of(memory).state == "unreadable"
    finally:
        os.chdir(here)


def credentials(folder: Path, secret: bytes, mode: int = 0o400) -> dict[str, str]:
    folder.mkdir(exist_ok=True)
    place = folder / identity.CREDENTIAL
    place.unlink(missing_ok=True)
    write_key(place, line(secret), mode)
    return {"CREDENTIALS_DIRECTORY": os.fspath(folder)}


def state_with(path: str, env: dict[str, str]) -> str:
    opened = open_store(path, PROFILE, env=env)
    try:
        return opened.identity.state
    finally:
        opened.store.close()


def test_a_systemd_credential_is_used_and_no_file_is_made(path: str, tmp_path: Path) -> None:
    env = credentials(tmp_path / "given", b"s" * 32)
    assert state_with(path, env) == "usable"
    assert not key_file(path).exists()
    assert state_with(path, {}) == "missing"
    assert not key_file(path).exists()
    write_key(key_file(path), line(b"s" * 32))
    assert state_with(path, {}) == "usable"


def test_a_systemd_credential_comes_before_the_file(path: str, tmp_path: Path) -> None:
    assert state_with(path, {}) == "usable"
    assert state_with(path, credentials(tmp_path / "given", b"o" * 32)) == "wrong"
    assert state_with(path, {"CREDENTIALS_DIRECTORY": os.fspath(tmp_path)}) == "usable"


def test_the_group_s_bits_of_a_credential_are_its_acl_s_mask_and_others_bits_are_not(path: str, tmp_path: Path) -> None:
    assert state_with(path, credentials(tmp_path / "given", b"s" * 32, 0o440)) == "usable"
    assert state_with(path, credentials(tmp_path / "given", b"s" * 32, 0o444)) == "exposed"
    (tmp_path / "given" / identity.CREDENTIAL).unlink()
    (tmp_path / "given" / identity.CREDENTIAL).symlink_to(tmp_path / "nowhere")
    assert state_with(path, {"CREDENTIALS_DIRECTORY": os.fspath(tmp_path / "given")}) == "broken"


def test_another_user_s_key_file_counts_as_read_by_others(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can give a file away")
    open_runtime(path).close()
    os.chown(key_file(path), 1234, 1234)
    place = identity.KeyFile(os.fspath(key_file(path)))
    assert place.read().state == "usable"  # root reads it for whom it is
    monkeypatch.setattr(os, "geteuid", lambda: 4321)
    assert place.read().state == "exposed"


def test_the_keys_are_those_of_rfc_5869() -> None:
    secret = os.urandom(32)
    for purpose in ("beetle wrap", "beetle sign", "beetle check"):
        theirs = HKDF(algorithm=SHA256(), length=32, salt=None, info=purpose.encode()).derive(secret)
        assert identity.derived(secret, purpose) == theirs


def test_the_secret_stands_in_no_file_but_its_own(path: str) -> None:
    with open_runtime(path) as memory:
        keep(memory, CANARY)
        commit(memory, turn("t1", "x"))
        lifecycle(memory, "mask", "t1")
        secret = identity_of(memory).look().secret
        keys = identity_of(memory).keys()
        assert secret is not None and keys is not None
        hidden = (secret, keys.wrapping, keys.signing.private_bytes_raw(), secret.hex().encode(), line(secret)[18:-1])
        for each in Path(path).parent.iterdir():
            if each != key_file(path):
                assert [one for one in hidden if one in each.read_bytes()] == [], each
    with open_runtime(path) as memory:
        assert invocation_of(memory).shared.identity.fingerprint == keys.fingerprint


OPENED = """
import sys
from beetle.open import open_store
import beetle.daemon
for _ in range(2):
    opened = open_store(sys.argv[1], "standalone", env={})
    assert opened.identity.state == "usable"
    opened.store.close()
assert "cryptography" not in sys.modules
print("without")
"""


def test_opening_a_store_fresh_or_not_loads_no_cryptography(path: str) -> None:
    done = subprocess.run([sys.executable, "-c", OPENED, path], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("without\n", 0), done.stderr


def test_the_page_of_the_store_tells_every_state() -> None:
    page = (ROOT / "docs" / "store.md").read_text()
    assert {state for state in get_args(identity.State) if f"| `{state}` |" not in page} == set()
