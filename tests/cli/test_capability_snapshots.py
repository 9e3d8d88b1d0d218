"""The capability snapshots are those under profiles/snapshots."""

from __future__ import annotations

import json

import pytest

from beetle.runtime.host.capability_snapshot import capability_snapshot_text
from beetle.runtime.host.profile import load_profile, profile_names

from .conftest import REPOSITORY, CommandLine

GOLDEN = REPOSITORY / "profiles" / "snapshots"


@pytest.mark.parametrize("name", profile_names())
def test_a_profile_allows_what_its_golden_snapshot_says(beetle: CommandLine, name: str) -> None:
    file = GOLDEN / f"{name}.json"
    said = beetle.run("platform", "capability-snapshot", "--profile", name, "--check", str(file))
    assert said.code == 0, said.out
    assert beetle.run("--profile", name, "platform", "capability-snapshot").out == file.read_text()


def test_there_is_a_golden_snapshot_for_every_profile_and_for_nothing_else() -> None:
    assert {each.stem for each in GOLDEN.glob("*.json")} == set(profile_names())


@pytest.mark.parametrize("name", profile_names())
def test_a_snapshot_is_stable_json_with_every_key_of_the_schema(name: str) -> None:
    text = capability_snapshot_text(load_profile(name))
    found = json.loads(text)
    assert text == json.dumps(found, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    assert found["schema"] == "beetle.platform.capability.v1"
    assert set(found) == {
        "schema", "profile", "target", "role", "compiled", "memory", "lifecycle", "validation", "adapter", "entry",
        "indexed_recall", "budgets",
    }  # fmt: skip
    built = {"in_process", "unix_socket", "cli", "grpc"}
    assert found["compiled"]["transports"] == {each: each in built for each in found["entry"]}
    for entry in found["entry"].values():
        assert set(entry) == {"visible", "client_allowed", "server_allowed", "private_data_allowed"}
        assert entry["visible"] or not any(entry.values())


def test_a_difference_is_shown_and_fails(beetle: CommandLine) -> None:
    file = beetle.folder / "old.json"
    file.write_text(
        capability_snapshot_text(load_profile("compact")).replace('"recall_limit": 20', '"recall_limit": 21')
    )
    said = beetle.run("--profile", "compact", "platform", "capability-snapshot", "--check", str(file))
    assert (said.code, said.error[0]) == (4, "conflict")
    assert '-    "recall_limit": 21,' in said.out
    assert '+    "recall_limit": 20,' in said.out
