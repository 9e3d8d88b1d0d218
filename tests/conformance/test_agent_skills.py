"""agent_skill.list, and Agent Skills in recall, at every door. The folder is mounted as a deployment mounts it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from beetle.open import SKILL_DIRS_VARIABLE, configured_dependencies
from beetle.runtime.host.config import Config
from beetle.runtime.host.dependencies import Dependencies
from tests.conformance.conftest import running_daemon
from tests.conformance.doors import Daemon, Door, InProcess, embedded_caller
from tests.sdk.skill_folders import write_skill

PDF = "Rotate, merge and read PDF pages."


@pytest.fixture(scope="module")
def mount(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that is mounted."""
    made = tmp_path_factory.mktemp("mounts") / "skills"
    write_skill(made / "pdf", "pdf", PDF, scripts__run="print('zanzibar')")
    (made / "broken").mkdir()
    (made / "broken/SKILL.md").write_text("zanzibar")
    return made


@pytest.fixture(scope="module")
def daemon(mount: Path) -> Iterator[Daemon]:
    """A daemon of this module's own, which finds the folder in its environment."""
    with running_daemon(**{SKILL_DIRS_VARIABLE: str(mount)}) as running:
        yield running


def dependencies(mount: Path) -> Dependencies:
    return configured_dependencies(Config(), {SKILL_DIRS_VARIABLE: str(mount)})


@pytest.fixture
def mounted(mount: Path, door: Door) -> Door:
    """The door to a runtime that has it mounted: a daemon by itself, a runtime in this process by its dependencies."""
    if isinstance(door, InProcess):
        door.restart(dependencies=dependencies(mount))
    return door


def test_the_mounted_skills_are_listed_with_their_findings(mounted: Door, mount: Path) -> None:
    report = mounted.call("agent_skill.list", {})
    (skill,) = report["skills"]
    assert (skill["ref"], skill["mount"], skill["name"]) == ("agent_skill:skills/pdf", "skills", "pdf")
    assert (skill["description"], skill["resources"], len(skill["fingerprint"])) == (PDF, 1, 64)
    assert report["findings"] == [{"kind": "no_front_matter", "mount": "skills", "path": "broken/SKILL.md"}]
    assert report["mounts"] == [{"mount": "skills", "path": str(mount), "skills": 1}]
    assert (report["total"], report["has_more"], report["lifecycle"]["changed"]) == (1, False, False)


def test_a_query_narrows_the_list(mounted: Door) -> None:
    assert [each["name"] for each in mounted.call("agent_skill.list", {"query": "PDF merge"})["skills"]] == ["pdf"]
    assert mounted.call("agent_skill.list", {"query": "zanzibar"})["skills"] == []
    mounted.refused("invalid_request", "agent_skill.list", {"limit": 0})
    mounted.refused("invalid_request", "agent_skill.list", {"cursor": "x"})


def test_recall_and_projection_know_a_skill_by_its_summary_alone(mounted: Door) -> None:
    report = mounted.call("memory.recall", {"query": "rotate the pages"})
    assert report["agent_skills"] == report["hits"]
    assert [(hit["plane"], hit["ref"], hit["excerpt"]) for hit in report["hits"]] == [
        ("agent_skill", "agent_skill:skills/pdf", PDF)
    ]
    assert f"- pdf: {PDF}" in mounted.call("memory.project", {"user_query": "rotate"})["system_memory_block"]
    assert mounted.call("memory.recall", {"query": "zanzibar"})["hits"] == []


def test_where_skills_are_mounted_is_told_to_operators_alone(in_process: InProcess, mount: Path) -> None:
    in_process.restart(dependencies=dependencies(mount))
    agent = embedded_caller(in_process.owner)._replace(kind="principal", views=("model_context",))
    report = in_process.ask("agent_skill.list", {}, caller=agent).report
    assert [each["description"] for each in report["skills"]] == [PDF] and report["mounts"] is None
    assert report["findings"] == [{"kind": "no_front_matter", "mount": "skills", "path": None}]
    inspected = in_process.ask("memory.inspect", {"query": "rotate"}, caller=agent).report
    assert (inspected["agent_skills"]["mounts"], inspected["agent_skills"]["skills"]) == (None, 1)
    assert str(mount) not in f"{report} {inspected}"
    auditor = agent._replace(views=("operator_audit",))
    report = in_process.ask("agent_skill.list", {}, caller=auditor).report
    assert [each["description"] for each in report["skills"]] == [None]
    in_process.ask("batch", {"requests": [{"op": "tool_registry.list", "args": {}}]})
    in_process.refused("invalid_request", "batch", {"requests": [{"op": "agent_skill.list", "args": {}}]})


def test_nothing_is_listed_where_nothing_is_mounted(in_process: InProcess) -> None:
    report = in_process.call("agent_skill.list", {})
    assert (report["total"], report["skills"], report["findings"], report["mounts"]) == (0, [], [], [])
