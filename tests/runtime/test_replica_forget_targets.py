"""`beetle replica forget` at real servers: what was erased is in nothing that the target still hands out.

    pytest -m slow tests/runtime/test_replica_forget_targets.py

Needs the servers' programs, as test_replica_targets.py does.
"""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from beetle.replication.program import staging_folder
from tests import forked
from tests.building import step, talk, turn
from tests.ltx import content
from tests.replicas import Kept, settings_of
from tests.store.test_erasure import Words, assert_gone, remnants

from .replica_servers import nats_objects, s3_objects
from .test_replica_targets import target

pytestmark = pytest.mark.slow

TURNS = 60


def held(kind: str, daemon: Kept, scratch: Path) -> bytes:
    """Every page of every file that the target hands out, and of what is staged for it on this disk."""
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    settings = settings_of(daemon.file)
    if kind == "sftp":
        for number, file in enumerate(Path(settings.target.path).rglob("*.ltx")):
            # The sidecar merges and removes meanwhile.
            with contextlib.suppress(FileNotFoundError):
                shutil.copy(file, scratch / f"{number}.ltx")
    elif kind == "s3":
        port = urlsplit(settings.endpoint or "").port
        assert port is not None
        s3_objects(port, scratch)
    else:
        port = urlsplit(settings.target.url).port
        assert port is not None
        nats_objects(port, scratch)
    # The pieces of an object of NATS come one by one.
    return content(scratch, whole=kind != "nats") + content(Path(staging_folder(daemon.store)))


@pytest.mark.parametrize("kind", ["sftp", "s3", "nats"])
def test_a_server_hands_out_nothing_of_what_was_erased_once_it_has_forgotten(kind: str, tmp_path: Path) -> None:
    words = Words(22)
    canaries = [words.canary() for _ in range(TURNS)]
    dead, alive = canaries[::2], canaries[1::2]
    with target(kind, tmp_path) as text, Kept(text, folder=str(tmp_path)) as daemon, daemon.client() as client:
        daemon.synced()
        for number, word in enumerate(canaries):
            client.call("transcript.commit", talk(turn(f"t{number}", f"{words.sentence()} {word}")))
        daemon.synced()
        assert all(each.encode() in held(kind, daemon, tmp_path / "held") for each in dead[:3])
        erased = client.call("transcript.lifecycle", step("delete_raw", *(f"t{n}" for n in range(0, TURNS, 2))))
        assert erased.erasure == "done" and erased.replicated_until is not None
        assert_gone(daemon.store, dead, alive)
        assert remnants(held(kind, daemon, tmp_path / "held"), dead, alive), "the target has it still"
        done = forked.run_text(["--socket", daemon.socket, "replica", "forget"], timeout=240)
        assert done.returncode == 0, done.stderr
        left = held(kind, daemon, tmp_path / "held")
        assert not remnants(left, dead, alive) and all(each.encode() in left for each in alive[:3])
        assert client.inspect().runtime.replicated_until is None
        client.call("transcript.commit", talk(turn("behind", "said when it had forgotten")))
        daemon.assert_restored(tmp_path / "restored.db")
