"""A client in another language speaks with a running daemon: Node with `@msgpack/msgpack`."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.forked import Daemon
from tests.transports.serving import open_folder

HERE = Path(__file__).parent / "node"
FILES = ("package.json", "package-lock.json")
INSTALL_S = 120
RUN_S = 60


def _installed() -> Path:
    """A folder with the client's one package, kept between runs; made whole or not at all."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        pytest.skip("node and npm are not installed")
    mark = hashlib.sha256(b"".join((HERE / name).read_bytes() for name in FILES)).hexdigest()[:16]
    kept = Path(tempfile.gettempdir()) / f"beetle-node-{os.getuid()}-{mark}"
    if kept.exists() and kept.stat().st_uid == os.getuid():
        return kept
    made = Path(tempfile.mkdtemp(prefix="beetle-node-"))
    for name in FILES:
        shutil.copy(HERE / name, made)
    command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--fetch-retries=1", "--fetch-timeout=30000"]
    try:
        done = subprocess.run(command, cwd=made, capture_output=True, text=True, timeout=INSTALL_S, check=False)
    except subprocess.TimeoutExpired:
        shutil.rmtree(made)
        pytest.skip("npm did not reach its registry in time")
    if done.returncode:
        shutil.rmtree(made)
        last = [line for line in done.stderr.splitlines() if "error" in line][:2]
        pytest.skip(f"npm could not install @msgpack/msgpack: {' '.join(last)}")
    try:
        made.rename(kept)
    except OSError:  # another worker was first, or another user's folder has that name
        return made if kept.stat().st_uid != os.getuid() else _discard(made, kept)
    return kept


def _discard(made: Path, kept: Path) -> Path:
    shutil.rmtree(made)
    return kept


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    """What the client heard."""
    modules = _installed()
    with open_folder() as folder, Daemon(profile="compact", folder=str(folder)) as daemon:
        # Beside its packages, which node looks for from the script's own folder upwards.
        script = folder / "client.mjs"
        shutil.copy(HERE / "client.mjs", script)
        (folder / "node_modules").symlink_to(modules / "node_modules")
        done = subprocess.run(
            ["node", str(script), daemon.socket], capture_output=True, text=True, timeout=RUN_S, check=False
        )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_it_is_greeted_as_the_operator(told: dict[str, Any]) -> None:
    hello = told["hello"]
    assert (hello["v"], hello["id"], hello["ok"]) == (1, "n1", True)
    assert (hello["report"]["protocol"], hello["report"]["principal"]) == (1, "operator")


def test_it_writes_a_turn_and_a_skill_and_recalls_both(told: dict[str, Any]) -> None:
    assert told["committed"]["report"]["turns"] == [{"turn_id": "t1", "sequence": 1, "outcome": "committed"}]
    written = told["skill"]["report"]
    assert written["accepted"] == 1 and written["writes"][0]["outcome"] == "created"
    assert written["derived_refs"][0]["evidence"] == "evidence:local/node/t1"
    found = json.dumps(told["recalled"]["report"], ensure_ascii=False)
    assert "Grandmother keeps the samovar in the attic 🫖" in found
    assert "brew-tea" in found


def test_it_reads_the_first_report_again_for_the_same_key(told: dict[str, Any]) -> None:
    assert told["repeated"]["repeated"] is True
    assert told["repeated"]["report"] == told["committed"]["report"]


def test_it_reads_errors_with_key_hint_and_path(told: dict[str, Any]) -> None:
    assert told["conflict"]["error"]["key"] == "conflict"
    invalid = told["invalid"]["error"]
    assert (invalid["key"], invalid["details"]["path"]) == ("invalid_request", "$.args.limit")
    unknown = told["unknown"]["error"]
    assert unknown["key"] == "unknown_operation" and "memory.recall" in unknown["hint"]


def test_it_pipelines_two_requests(told: dict[str, Any]) -> None:
    conversations, detail = told["pipelined"]
    assert conversations["report"]["conversations"][0]["conversation_id"] == "node"
    assert detail["report"]["procedure"] == "Warm the samovar. 茶 🍵"
    assert conversations["id"] != detail["id"]


def test_it_hears_the_event_of_its_subscription(told: dict[str, Any]) -> None:
    event = told["event"]
    assert event["sub"] == told["subscribed"]["report"]["sub"] == told["unsubscribed"]["report"]["sub"]
    assert (event["topic"], event["seq"]) == ("transcript", told["committed"]["report"]["lifecycle"]["event_id"])
    assert "samovar" not in json.dumps(event)
    assert told["leftover"] == {"events": 0, "waiting": 0}, "a repeated report and a conflict are no events"
