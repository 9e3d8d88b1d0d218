"""A stranger adds an operation and a plane by the steps of CONTRIBUTING.md alone, in a copy of the checkout."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from beetle.contracts.operations import OPERATIONS
from tests.running import ROOT, Daemon

PARTS = (
    "beetle", "tui", "profiles", "packaging", "docs", "tests", "pyproject.toml", "README.md", "CONTRIBUTING.md",
    "CHANGELOG.md", "SECURITY.md",
)  # fmt: skip
NAMES_OF_STRUCTS = """    SkillNamesReport,
    SkillNamesRequest,
    SkillTouchReport,
    SkillTouchRequest,
"""
CASES = """    Case("skill.names", {}, ("skill",)),
    Case("skill.touch", {"name": WORD}, ("skill",), changes=True,
         stranger=(Asked({"name": WORD}, "not_found"),), quiet=(Asked({"name": NOBODY}, "not_found"),)),
"""
OPERATION = {
    "beetle/contracts/skills.py": (
        (
            "OPERATIONS: tuple[Operation, ...] = (\n",
            '''class SkillNamesRequest(Request, frozen=True, kw_only=True):
    """List the names of runtime skills, and nothing else of them."""

    starts_with: Annotated[str, Meta(max_length=64, description="what the names begin with")] = ""


class SkillNamesReport(Report, frozen=True, kw_only=True):
    """Names in their order."""

    names: Open[tuple[str, ...]]


class SkillTouchRequest(Request, frozen=True, kw_only=True):
    """Say of a runtime skill that it was looked at now."""

    name: SkillName


class SkillTouchReport(Report, frozen=True, kw_only=True):
    """Its full name."""

    name: Open[str]


''',
            '''    Operation(
        "skill.names", "list_skill_names", SkillNamesRequest, SkillNamesReport, "read", "skill", SKILL,
        ("skill", "names"), "list the names of runtime skills, and nothing else of them",
        example={"starts_with": "back"},
    ),
    Operation(
        "skill.touch", "touch_skill", SkillTouchRequest, SkillTouchReport, "write", "skill", SKILL,
        ("skill", "touch"), "say of a runtime skill that it was looked at now",
        word="name", example={"name": "backup"},
    ),
''',
        ),
    ),
    "beetle/store/skills.py": (
        ("def _skill(row: Row)", '''NAMES_SQL = "SELECT name FROM skill WHERE space = ? AND name GLOB ? ORDER BY name"


def names(tx: Reading, space: int | None, starts_with: str) -> tuple[str, ...]:
    """The names of a space's skills that begin with a text."""
    return tuple(name for (name,) in tx.rows(NAMES_SQL, space, f"{starts_with}*"))


TOUCH_SQL = "UPDATE skill SET updated_at = ? WHERE skill = ?"


def touch(tx: Writing, skill: int, at: int) -> None:
    """Write down when a skill was looked at."""
    tx.run(TOUCH_SQL, at, skill)


''', ""),
    ),
    "beetle/runtime/areas/skills/runtime_skills.py": (
        (
            "HANDLERS: Mapping[str, Handler] = {\n",
            '''def names(invocation: Invocation, request: SkillNamesRequest, tx: Reading) -> SkillNamesReport:
    """What `skill.names` answers."""
    space = evidence.find_space(tx, invocation.space_id)
    return SkillNamesReport(names=skills.names(tx, space, request.starts_with))


def touch(invocation: Invocation, request: SkillTouchRequest) -> Apply:
    """What `skill.touch` does."""

    def apply(tx: WriteTransaction) -> SkillTouchReport:
        _, skill = _existing(invocation, tx, full_name(request.name))
        skills.touch(tx, skill.skill, tx.now)
        tx.log(invocation.event("skill", "touched", name=skill.name))
        return SkillTouchReport(name=skill.name)

    return apply


''', '    "skill.names": Read(names),\n    "skill.touch": Write(touch),\n'),
        ("from beetle.contracts.skills import (\n", "", NAMES_OF_STRUCTS),
    ),
    "tests/cases.py": (
        ("CASES: tuple[Case, ...] = (\n", "", CASES),
    ),
}  # fmt: skip
"""By file: a line that is there, what is put before it, what behind it. Four files."""

PLANE = {
    "beetle/runtime/planes/note.py": '''"""A note that every query finds: a plane that is in no index."""

from __future__ import annotations

from beetle.contracts.memory import RecallHit
from beetle.domain.lexical import ParsedQuery
from beetle.domain.ranking import Candidate, Ranked
from beetle.runtime.pipeline.invocation import Invocation
from beetle.runtime.planes.forgetting import Forgetting, Forgotten, Gone, Kind, Known
from beetle.runtime.planes.plane import Asked, Loaded, Plane, Recall
from beetle.store.engine.transaction import Reading
from beetle.store.engine.write_transaction import WriteTransaction

NOTE = "the okapi sleeps in the orchard"


def _load(asked: Asked) -> Loaded:
    """The one note, as good as a full match."""
    del asked
    return Loaded([Candidate(plane="chunks", source_id="1", text=NOTE, at_us=0, bm25=10.0)], {"1": NOTE})


def _hit(ranked: Ranked, record: str, parsed: ParsedQuery) -> RecallHit:
    del parsed
    return RecallHit(plane="chunks", ref="chunks:1", score=ranked.score, excerpt=record, why=ranked.why)


def _select(asked: Forgetting) -> None:
    """It goes when its words are named."""
    if asked.words.are_in(NOTE):
        asked.found.add(KIND, 1, Known(("note",)))


def _known(invocation: Invocation, tx: Reading, space: int, key: int) -> Known | None:
    del invocation, tx, space
    return Known(("note",)) if key == 1 else None


def _erase(invocation: Invocation, tx: WriteTransaction, space: int, key: int, authority: str | None) -> Gone | None:
    del invocation, tx, space, key, authority
    return Gone([])


KIND = Kind("note", "notes", 55, _known, _erase)
PLANE = Plane(
    "chunks", recall=Recall("chunks", (), _load, _hit), forgotten=Forgotten(25, _select, (KIND,))
)
''',
}
IN_THE_LIST = (
    ("    evidence,\n", "    evidence,\n    note,\n"),
    ("    chunks.PLANE,\n", "    note.PLANE,\n"),
)
"""One line of the list of planes, and its import. A plane's name stands in the contract, which clients have too: so
this one takes the name, and the place, of another."""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With an operation and a plane more, which stands in the place of one that there is."""
    folder = with_operation(tmp_path_factory.mktemp("checkout"))
    for name, text in PLANE.items():
        (folder / name).write_text(text)
    table = folder / "beetle/runtime/planes/table.py"
    text = table.read_text()
    for old, new in IN_THE_LIST:
        assert text.count(old) == 1
        text = text.replace(old, new)
    table.write_text(text)
    run(folder, "packaging/gen_reference.py")
    return folder


def with_operation(folder: Path) -> Path:
    """A copy of the checkout with an operation more."""
    for part in PARTS:
        target = folder / part
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, target, ignore=shutil.ignore_patterns("__pycache__", "pictures"))
        else:
            shutil.copy(ROOT / part, target)
    for name, changes in OPERATION.items():
        text = (folder / name).read_text()
        for line, before, behind in changes:
            assert text.count(line) == 1, f"{name} has not one {line!r}"
            text = text.replace(line, before + line + behind)
        (folder / name).write_text(text)
    run(folder, "packaging/gen_reference.py")
    return folder


def run(
    folder: Path, *words: str, code: int | None = 0, more: Mapping[str, str] | None = None, within: int = 120
) -> str:
    # What is built is the checkout's; the copy has no build.
    env = {name: value for name, value in os.environ.items() if name != "BEETLE_REQUIRE_BUILD"}
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, capture_output=True, text=True, timeout=within,
        env={**env, "PYTHONPATH": str(folder), **(more or {})},
    )  # fmt: skip
    assert code is None or done.returncode == code, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def daemon(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    folder = str(tmp_path_factory.mktemp("d"))
    with Daemon(profile="standalone", folder=folder, checkout=checkout) as running:
        yield running


def test_an_added_operation_answers_over_the_socket_on_the_command_line_and_in_the_docs(
    checkout: Path, daemon: Daemon
) -> None:
    beetle = ("-m", "beetle", "--socket", daemon.socket)
    run(checkout, *beetle, "memory", "write-procedural", "--file", "packaging/sample/skill.json")
    (name,) = json.loads(run(checkout, *beetle, "--json", "skill", "names"))["names"]
    assert json.loads(run(checkout, *beetle, "--json", "skill", "names", "--starts-with", "x"))["names"] == []
    script = (
        f"from beetle.client import Client; print(*Client({daemon.socket!r}).list_skill_names(starts_with='r').names)"
    )
    assert run(checkout, "-c", script) == f"{name}\n"
    shown = run(checkout, *beetle, "skill", "names")
    assert shown == f"names: {name}\n", "shown by field, without a renderer"
    touched = json.loads(run(checkout, *beetle, "--json", "skill", "touch", name))
    assert touched["name"] == name and touched["lifecycle"]["changed"]
    assert "what the names begin with" in run(checkout, "-m", "beetle", "skill", "names", "--help")
    assert "## skill.names" in (checkout / "docs/operations.md").read_text()
    run(checkout, "packaging/gen_reference.py", "--check")


ADDED = ("skill.names", "skill.touch")
WALKING = (
    "tests/conformance/test_cases.py", "tests/contracts/test_operations.py", "tests/mcp/test_tools.py",
    "tests/sdk/test_backends_agree.py",
)  # fmt: skip
"""Suites that walk the table of operations, or that of cases."""
OF_THE_TABLE = ("hints_come", "has_one_case", "test_operations")


def test_an_added_read_and_an_added_write_pass_the_suites_that_walk_the_table(checkout: Path) -> None:
    """With no other file touched: a renderer, a page, a list of tools, a step of a script follow from row and case."""
    assert len(OPERATION) == 4
    asked = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *WALKING)
    done = run(checkout, *asked, "-k", " or ".join((*ADDED, *OF_THE_TABLE)))
    assert "failed" not in done and int(re.findall(r"(\d+) passed", done)[0]) >= 30, done


@pytest.mark.slow
def test_an_added_operation_leaves_the_whole_suites_green(tmp_path: Path) -> None:
    checkout = with_operation(tmp_path)
    for profile in sorted((checkout / "profiles").glob("*.toml")):
        snapshot = run(checkout, "-m", "beetle", "platform", "capability-snapshot", "--profile", profile.stem)
        (checkout / "profiles/snapshots" / f"{profile.stem}.json").write_text(snapshot)
    golden = (
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "tests/store/test_query_plans.py",
        "tests/cli/test_help.py",
    )
    run(checkout, *golden, more={"UPDATE_QUERY_PLANS": "1", "BEETLE_UPDATE_HELP": "1"}, code=None)
    more = (
        "conformance", "contracts", "cli/test_capability_snapshots.py", "cli/test_help.py", "store/test_query_plans.py",
        "transports/test_principals.py", "governance/test_privacy_matrix.py", "faults/test_every_case.py",
        "test_docs.py",
    )  # fmt: skip
    asked = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "2", *WALKING, *(f"tests/{each}" for each in more))
    run(checkout, *asked, within=1200)


def test_an_added_operation_has_its_case_and_the_self_test_counts_it(checkout: Path) -> None:
    cases = (
        "from tests.cases import OF; from beetle.contracts.operations import BY_NAME; print(OF.keys() ^ BY_NAME.keys())"
    )
    assert run(checkout, "-c", cases) == "set()\n"
    counted = "from beetle.deploy.selftest.contents import contracts; print(contracts())"
    assert run(checkout, "-c", counted).startswith(f"{len(OPERATIONS) + len(ADDED)} operations, each with its handler")


def test_an_added_plane_is_found_and_forgotten_over_the_socket_and_on_the_command_line(
    checkout: Path, daemon: Daemon
) -> None:
    with daemon.client() as client:
        client.remember(text="A space is there once something is written.")
        report = client.recall(query="okapi")
    assert [hit.ref for hit in report.hits] == ["chunks:1"] == [hit.ref for hit in report.chunks]
    shown = run(checkout, "-m", "beetle", "--socket", daemon.socket, "memory", "recall", "--query", "okapi")
    assert "the okapi sleeps in the orchard" in shown
    forgotten = run(checkout, "-m", "beetle", "--socket", daemon.socket, "memory", "forget", "okapi", "--dry-run")
    assert re.search(r"^notes +1$", forgotten, re.M)
