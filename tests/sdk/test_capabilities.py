"""For each profile, every operation works or is hidden, just as the profile's capability snapshot says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from beetle import MemoryRuntime
from beetle.contracts.codec import to_plain
from beetle.contracts.errors import BeetleError, CapabilityHidden
from beetle.contracts.operations import OPERATIONS
from beetle.runtime.capabilities import APART_NAMES
from beetle.runtime.profile import profile_names
from tests.sdk.tour import TOUR

SNAPSHOTS = Path(__file__).parents[2] / "profiles" / "snapshots"


def snapshot(profile: str) -> dict[str, Any]:
    return json.loads((SNAPSHOTS / f"{profile}.json").read_text())


def test_the_tour_goes_to_every_operation() -> None:
    assert {each.op for each in TOUR} == {row.name for row in OPERATIONS if "in_process" in row.exposed}


@pytest.mark.parametrize("profile", profile_names())
def test_an_operation_works_or_is_hidden_as_the_snapshot_says(profile: str, tmp_path: Path) -> None:
    visible = {name: row["visible"] for name, row in snapshot(profile)["memory"]["operations"].items()}
    said: dict[str, Any] = {}
    wrong: list[str] = []
    with MemoryRuntime.open(str(tmp_path / "b.db"), profile=profile) as memory:
        for step in TOUR:
            if not all(each in said for each in step.needs):
                assert not visible[step.op], f"{step.op} needs what {profile} hides"
                args: Any = {}
            else:
                args = step.args(said)
            try:
                said[step.op] = to_plain(memory.call(step.op, args))
                told = "answered"
            except CapabilityHidden:
                told = "hidden"
            except BeetleError as error:
                told = "answered" if error.key in step.answers else f"{error.key}: {error.message}"
            if told != ("answered" if visible[step.op] else "hidden"):
                wrong.append(f"{step.op}: {told}, and the snapshot says visible: {visible[step.op]}")
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
