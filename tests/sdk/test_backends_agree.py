"""One recorded run on all four backends: the same reports, the same refusals, the same memory in the end."""

from __future__ import annotations

import ast
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from beetle.contracts.operations import OPERATIONS
from beetle.open import state_fingerprint
from beetle.runtime.host import log_head
from tests.sdk.recorded import Request
from tests.sdk.reopened import ReopenedStore, ReopenedStores, comparable
from tests.sdk.script import NOT_IN_THE_SCRIPT, TALK, cases, mount_skills, said, steps

NEVER_ANSWERED = {
    "memory.maintain": "no model is configured here",
    "replication.restore": "no replica is: tests/runtime/test_replica_restore.py",
    "replication.forget": "likewise: tests/runtime/test_replica_erasure.py",
}
OF_THEIR_OWN = ("chain.", "chunk.", "skill_registry.", "turn.", "host.", "host_key.", "event.")
"""How the operations begin whose rules stand in suites of their own."""
NOT_IN_THE_MACHINE: dict[str, str] = {
    "agent_skill.list": "its folders are read anew by the clock on the wall; the script reads them once",
    "transcript.repair_safe": "the machine breaks nothing that could be mended; tests/governance/test_repair.py does",
    "transport.list": "the daemon's own, and the same before every step; in the script",
    "transport.update": "likewise",
    "harness.run": NOT_IN_THE_SCRIPT["harness.run"],
    "transfer.begin": NOT_IN_THE_SCRIPT["transfer.begin"],
    "transfer.put": "likewise",
    "transfer.get": "likewise",
    "memory.remember": "a commit and a candidate, both of which have rules; the script and "
    "tests/governance/test_remember.py",
    "admin.stats": "figures of the file, of which the model has none; in the script",
    "admin.compact": "likewise",
    "store.repair": NOT_IN_THE_SCRIPT["store.repair"],
    "admin.health": NOT_IN_THE_SCRIPT["admin.health"],
    "admin.metrics": "likewise",
    **dict.fromkeys(
        (row.name for row in OPERATIONS if row.name.startswith("scheduler.")),
        "jobs are the daemon's own, and counted from its opening; in the script and tests/sdk/test_scheduler.py",
    ),
    "memory.forget": "in the script; which records it selects, tests/governance/test_forget.py",
    **{name: why for name, why in NOT_IN_THE_SCRIPT.items() if name.startswith(OF_THEIR_OWN)},
    "subscribe": NOT_IN_THE_SCRIPT["subscribe"],
    "unsubscribe": NOT_IN_THE_SCRIPT["unsubscribe"],
}


@cache
def asked_by_rules() -> frozenset[str]:
    """The operations that a rule or a look around asks for, by the name that stands there."""
    asked: set[str] = set()
    folder = Path(__file__).parent
    rules = (each for each in folder.glob("*_rules.py") if not each.name.startswith("test_"))
    for path in (*rules, folder / "machine.py", folder / "looking.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            if node.func.attr in ("ask", "put", "refused"):
                named = (each.value for each in node.args[:2] if isinstance(each, ast.Constant))
                asked |= {each for each in named if isinstance(each, str)}
    return frozenset(asked)


@pytest.mark.parametrize("operation", [row.name for row in OPERATIONS])
def test_an_operation_has_a_rule_or_a_reason(operation: str) -> None:
    """Or its case in the script, which asks it of every backend too."""
    ruled, by_case = operation in asked_by_rules(), operation in {each.op for each in cases()}
    assert not (ruled and operation in NOT_IN_THE_MACHINE) and (ruled or by_case or operation in NOT_IN_THE_MACHINE)


@pytest.mark.parametrize("operation", [row.name for row in OPERATIONS])
def test_an_operation_is_in_the_script_or_has_a_reason(operation: str) -> None:
    assert (operation in {each.op for each in (*steps(), *cases())}) != (operation in NOT_IN_THE_SCRIPT)


def test_the_same_run_is_told_the_same_by_every_backend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A store in memory never signs its log by the clock.
    monkeypatch.setattr(log_head, "SIGN_AFTER_S", 24 * 3600)
    places = ReopenedStores(skill_dirs=mount_skills(tmp_path / "mounted"))
    try:
        for step in (*steps(), *cases()):
            places.ask(step)
            held = {place.backend: state_fingerprint(place.opened, step.owner) for place in places.all}
            assert len(set(held.values())) == 1, (step, held)
        asked = {each.op for each in places.steps}
        assert asked - set(places.answered) == set(NEVER_ANSWERED), "an operation was only ever refused"
    finally:
        places.close()


def test_the_same_run_again_is_told_the_same(tmp_path: Path) -> None:
    mounted = mount_skills(tmp_path / "mounted")
    told: list[list[object]] = []
    for _ in range(2):
        place = ReopenedStore("in-memory", skill_dirs=mounted)
        answers = [(step, place.ask(step)) for step in steps()]
        # A device's key is random, and the log tells of its fingerprint.
        told.append([comparable(step.op, a.report, True) if a.report else str(a.error) for step, a in answers])
        place.close()
    assert told[0] == told[1]


def _later(place: ReopenedStore) -> None:
    place.recorded.go_on(1000)


def _other_ids(place: ReopenedStore) -> None:
    place.recorded.ids(8)


def _more(place: ReopenedStore) -> None:
    place.ask(Request("transcript.commit", {"conversation": TALK, "turns": [said("more", "More.")]}, after=0))


def _less(place: ReopenedStore) -> None:
    place.ask(Request("skill.delete", {"name": "pump"}, after=0))


@pytest.mark.parametrize("change", [_later, _other_ids, _more, _less])
def test_a_backend_that_differs_is_found_out(change: Callable[[ReopenedStore], None]) -> None:
    places = ReopenedStores(("in-memory", "sqlite"))
    skill = {"name": "pump", "topic": "t", "title": "T", "summary": "s", "content": "c"}
    fact = {"candidate_id": "c", "authority": "host", "target": "long_term", "privacy": "public_runtime",
            "content": "x"}  # fmt: skip
    try:
        places.ask(Request("memory.write", {"kind": "procedural", "source": "manual", "writes": [skill]}))
        change(places.all[1])
        with pytest.raises(AssertionError, match=r"differ|other ids"):
            places.ask(Request("memory.write", {"kind": "candidates", "candidates": [fact]}))
            places.ask(Request("memory.inspect", {}))
    finally:
        places.close()
