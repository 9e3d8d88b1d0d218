"""For each profile, every operation works or is hidden, just as the profile's capability snapshot says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from beetle import MemoryRuntime
from beetle.contracts.errors import BeetleError, CapabilityHidden
from beetle.contracts.operations import OPERATIONS
from beetle.runtime.host.profile import profile_names
from beetle.runtime.pipeline.capabilities import APART_NAMES
from tests.cases import CASES, Prepared
from tests.conformance.doors import InProcess

SNAPSHOTS = Path(__file__).parents[2] / "profiles" / "snapshots"


def snapshot(profile: str) -> dict[str, Any]:
    return json.loads((SNAPSHOTS / f"{profile}.json").read_text())


@pytest.mark.parametrize("profile", profile_names())
def test_an_operation_works_or_is_hidden_as_the_snapshot_says(profile: str, tmp_path: Path) -> None:
    """The tour: every case, in the table's order, for an owner of its own in one store."""
    visible = {name: row["visible"] for name, row in snapshot(profile)["memory"]["operations"].items()}
    door = InProcess("nobody", tmp_path / "b.db", profile)
    wrong: list[str] = []
    for number, case in enumerate(case for case in CASES if "in_process" in case.row.exposed):
        door.owner = f"owner-{number}"
        try:
            args = case.request(Prepared(door.prepare))
        except CapabilityHidden:
            assert not visible[case.op], f"{case.op} needs what {profile} hides"
            args = {}
        try:
            door.call(case.op, args)
            told = "answered"
        except CapabilityHidden:
            told = "hidden"
        except BeetleError as error:
            told = "answered" if error.key == case.key else f"{error.key}: {error.message}"
        if told != ("answered" if visible[case.op] else "hidden"):
            wrong.append(f"{case.op}: {told}, and the snapshot says visible: {visible[case.op]}")
    door.close()
    assert wrong == []


@pytest.mark.parametrize("profile", profile_names())
def test_the_catalog_that_a_caller_reads_is_the_snapshot_s(profile: str, tmp_path: Path) -> None:
    expected = snapshot(profile)
    with MemoryRuntime.open(str(tmp_path / "b.db"), profile=profile) as memory:
        shown = memory.capabilities()
        operations = {each.name: each.visible for each in memory.hello().operations}
    compiled = expected["compiled"]["capabilities"]
    told = {name: allowed and (compiled[name] or name in APART_NAMES)
            for name, allowed in expected["memory"]["capabilities"].items()}  # fmt: skip
    assert {name: each.visible for name, each in shown.capabilities.items()} == told
    asked = {name: row["visible"] for name, row in expected["memory"]["operations"].items()}
    in_process = {row.name for row in OPERATIONS if "in_process" in row.exposed}
    assert {name: operations[name] for name in in_process} == {name: asked[name] for name in in_process}
