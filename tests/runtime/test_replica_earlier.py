"""What was sent to a target that is not the configured one any more stays there, and is told of until it is gone."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from beetle.contracts.errors import Conflict, InvalidRequest
from tests import forked
from tests.building import step, talk, turn
from tests.replicas import Kept


def earlier(daemon: Kept) -> tuple[str, ...]:
    return daemon.status().earlier_targets or ()


def test_an_earlier_target_is_told_of_until_somebody_has_emptied_it(tmp_path: Path) -> None:
    first, second = f"file://{tmp_path}/first", f"file://{tmp_path}/second"
    daemon = Kept(f'url = "{first}"', folder=str(tmp_path))
    with daemon, daemon.client() as client:
        client.call("transcript.commit", talk(turn("t1", "said at first")))
        daemon.synced()
        assert earlier(daemon) == ()
    daemon.write(f'url = "{second}"')
    with daemon, daemon.client() as client:
        daemon.synced()
        assert earlier(daemon) == (first,)
        told = forked.run_text(["--config", str(daemon.file), "--socket", daemon.socket, "doctor"])
        assert f"{first} still has" in told.stdout and "--earlier-target" in told.stdout
        assert f"Still held by: {first}" in " ".join(
            forked.run_text(["--socket", daemon.socket, "replica", "status"]).stdout.split()
        )
        with pytest.raises(Conflict, match="still there"):
            client.forget_replica(earlier_target=first)
        with pytest.raises(InvalidRequest, match="nothing is known"):
            client.forget_replica(earlier_target=second)
        shutil.rmtree(tmp_path / "first")
        assert client.forget_replica(earlier_target=first).removed_files == 0
        assert earlier(daemon) == ()


def test_what_was_erased_while_no_replica_was_kept_is_told_of_when_one_is_again(tmp_path: Path) -> None:
    url = f"file://{tmp_path}/target"
    daemon = Kept(f'url = "{url}"', folder=str(tmp_path))
    with daemon, daemon.client() as client:
        client.call("transcript.commit", talk(turn("t1", "said at first")))
        daemon.synced()
    daemon.file.write_text("")
    with daemon, daemon.client() as client:
        assert (daemon.status().state, earlier(daemon)) == ("off", (url,))
        done = client.call("transcript.lifecycle", step("delete_raw", "t1"))
        assert done.erasure == "done" and done.replicated_until is None
    daemon.write(f'url = "{url}"')
    with daemon, daemon.client() as client:
        daemon.synced()
        assert earlier(daemon) == () and client.inspect().runtime.replicated_until is not None
        client.forget_replica()
        assert client.inspect().runtime.replicated_until is None
