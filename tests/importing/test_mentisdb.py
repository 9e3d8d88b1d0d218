"""A MentisDB data folder: every thought with its id, time and hash; agents, skills; and folders that are broken."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from beetle import MemoryRuntime
from beetle.__main__ import main
from beetle.contracts.skill_registry import SkillRegistryReadReport
from beetle.importing.report import ImportReport
from tests.importing import mentisdb as made
from tests.importing.mentisdb import KEY, binary, folder, framed, record, stem, thought, thought_id

SESSION = "7d9f1f6e-3c52-4b57-9d5a-0d0a4d3a8f11"
SKILL = "---\nname: Backup\ndescription: Copy the store.\n---\n# Backup\n\nCopy it.\n"
LATER = SKILL.replace("Copy it.", "Copy it twice.") + "\nThen rest."
PUBLIC_KEY = [
    215, 90, 152, 1, 130, 177, 10, 183, 213, 75, 254, 211, 201, 100, 7, 58,
    14, 225, 114, 243, 218, 166, 35, 37, 175, 2, 26, 104, 247, 7, 81, 26,
]  # fmt: skip


@pytest.fixture
def memory() -> Iterator[MemoryRuntime]:
    with MemoryRuntime.open(":memory:", profile="desktop") as opened:
        yield opened


@pytest.fixture(scope="module")
def dry() -> Iterator[MemoryRuntime]:
    """For files that only show what is wrong with them."""
    with MemoryRuntime.open(":memory:") as opened:
        yield opened


def relation(kind: str, index: int, **more: Any) -> dict[str, Any]:
    return {"kind": kind, "target_id": thought_id(index), **more}


THOUGHTS = [
    thought(0, "Ship in April.", tags=["ship"], concepts=["release"], session_id=SESSION, confidence=0.6),
    thought(1, "Tests come first.", thought_type="LessonLearned", role="Retrospective", refs=[0], agent_id="nova",
            thought_signature=[7] * 64, signing_key_id="k1"),
    thought(2, "Ship in May.", relations=[relation("Supersedes", 0, valid_at="2026-04-01T00:00:00Z")]),
    thought(3, "A goal.", thought_type="Goal", entity_type="milestone",
            relations=[relation("DerivedFrom", 2), relation("Supports", 9, chain_key="other")]),
]  # fmt: skip


def thoughts_of(memory: MemoryRuntime, key: str = KEY) -> list[Any]:
    return list(memory.traverse_thoughts(chain_key=key).thoughts)


def whole(at: Path) -> Path:
    """A folder of the 0.9 line with all that there is."""
    key = {"key_id": "k1", "algorithm": "Ed25519", "public_key_bytes": PUBLIC_KEY, "added_at": "2026-03-21T10:00:00Z",
           "revoked_at": "2026-03-22T10:00:00Z"}  # fmt: skip
    agents = made.agents(
        {"agent_id": "astro", "display_name": "Astro", "owner": "rita", "aliases": ["Star"], "public_keys": [key]},
        {"agent_id": "nova", "description": "writes tests", "status": "Revoked"},
    )
    return folder(at, {
        made.REGISTRY: made.registry(KEY), f"{stem(KEY)}.tcbin": binary(THOUGHTS), f"{stem(KEY)}.agents.json": agents,
        "mentisdb-skills.bin": made.skills({"backup": ("deprecated", "old", [SKILL, LATER])}),
        "mentisdb-webhooks.json": b"{}",
    })  # fmt: skip


def test_every_thought_keeps_what_it_was(memory: MemoryRuntime, tmp_path: Path) -> None:
    report = memory.import_(whole(tmp_path / "m"))
    assert (report.failed, report.total("thoughts"), report.total("agents"), report.total("skill_versions")) == (
        0,
        4,
        2,
        2,
    )
    left_out = next(each.left_out for each in report.files if each.thoughts)
    assert left_out == {"signature": 1, "kind of relation DerivedFrom, kept as a ref": 1}
    first, second, third, fourth = thoughts_of(memory)
    assert (first.content, first.session_id, first.thought_type, first.concepts) == (
        "Ship in April.", SESSION, "Decision", ("release",),
    )  # fmt: skip
    assert (first.importance, first.confidence, first.agent_name, first.agent_owner) == (0.82, 0.6, "Astro", "rita")
    for index, each in enumerate((first, second, third, fourth)):
        said = THOUGHTS[index]
        assert f"mentisdb id={said['id']} at={said['timestamp']} sha256={said['hash']}" in each.tags
        assert each.relations[0].ref == f"mentisdb:{said['id']}#{index}"
    assert (second.role, second.refs, second.agent_id) == ("Retrospective", (0,), "nova")
    assert (third.relations[1].kind, third.relations[1].index, third.relations[1].valid_at) == (
        "supersedes", 0, "2026-04-01T00:00:00.000000Z",
    )  # fmt: skip
    assert (fourth.thought_type, fourth.refs, fourth.relations[1].ref) == ("Plan", (2,), f"mentisdb:{thought_id(9)}")
    assert "mentisdb signing_key_id=k1" in second.tags and second.signing_key_id is None
    assert {"mentisdb thought_type=Goal", "mentisdb entity_type=milestone"} <= set(fourth.tags)
    assert memory.chain_head(chain_key=KEY).integrity_ok
    (listed,) = memory.search_thoughts(chain_key=KEY, tags_any=[thought_id(2)]).thoughts
    assert listed.content == "Ship in May."


def test_agents_keep_names_keys_and_status(memory: MemoryRuntime, tmp_path: Path) -> None:
    memory.import_(whole(tmp_path / "m"))
    astro, nova = memory.list_chain_agent_registry(chain_key=KEY).agents
    assert (astro.display_name, astro.aliases, astro.status, astro.thought_count) == ("Astro", ("Star",), "active", 3)
    assert (astro.public_keys[0].public_key_bytes, astro.public_keys[0].revoked_at is None) == (
        tuple(PUBLIC_KEY),
        False,
    )
    assert (nova.description, nova.status, nova.thought_count) == ("writes tests", "revoked", 1)


def test_skills_come_out_of_their_patches_byte_for_byte(memory: MemoryRuntime, tmp_path: Path) -> None:
    memory.import_(whole(tmp_path / "m"))
    versions = memory.list_skill_versions(skill_id="backup").versions
    texts = [memory.read_uploaded_skill(skill_id="backup", version_id=each.version_id) for each in versions]
    assert [each.content for each in texts] == [SKILL, LATER]
    last: SkillRegistryReadReport = texts[-1]
    assert (last.status, last.status_reason) == ("deprecated", "old")


def test_the_same_folder_again_changes_nothing(memory: MemoryRuntime, tmp_path: Path) -> None:
    """Not even a thought that was erased comes back, and what somebody changed since stays."""
    at = whole(tmp_path / "m")
    memory.import_(at)
    memory.thought_lifecycle(chain_key=KEY, action="erase", indexes=[2], reason="asked for")
    memory.upsert_chain_agent(chain_key=KEY, agent_id="astro", display_name="Renamed")
    before = memory.chain_head(chain_key=KEY).head_hash
    report = memory.import_(at)
    assert (report.failed, report.total("committed"), report.total("unchanged")) == (0, 0, 8)
    assert memory.chain_head(chain_key=KEY).head_hash == before
    assert memory.get_chain_agent(chain_key=KEY, agent_id="astro").agent.display_name == "Renamed"


@pytest.mark.parametrize("schema", [1, 2])
def test_a_chain_that_grew_behind_an_import_that_ended_early_goes_on(
    memory: MemoryRuntime, tmp_path: Path, schema: int
) -> None:
    """Refs are of the source's indexes, though the chain here has a thought of its own between them."""
    old = [thought(0, "One.", schema_version=schema), thought(1, "Two.", schema_version=schema, refs=[0])]
    grown = [*old, thought(2, "Three.", schema_version=schema, refs=[0, 1], relations=[relation("RelatedTo", 0)])]
    at = folder(tmp_path / "m", {made.REGISTRY: made.registry(KEY), f"{stem(KEY)}.tcbin": binary(grown)[:-9]})
    report = memory.import_(at)
    assert (report.total("committed"), report.failed) == (2, 1)
    assert "ends 9 bytes too early" in report.problems[0].reason
    memory.append_thought(chain_key=KEY, thought_type="Idea", content="Mine.", agent_id="me")
    (at / f"{stem(KEY)}.tcbin").write_bytes(binary([*grown, thought(3, "Four.", refs=[2])]))
    report = memory.import_(at)
    assert (report.failed, report.total("committed"), report.total("unchanged")) == (0, 2, 2)
    assert [each.content for each in thoughts_of(memory)] == ["One.", "Two.", "Mine.", "Three.", "Four."]
    assert [each.refs for each in thoughts_of(memory)][3:] == [(0, 1), (3,)]


def test_a_file_of_lines_is_told_by_its_content(memory: MemoryRuntime, tmp_path: Path) -> None:
    """By itself, without a registry: its name tells the key, where nothing in it was replaced."""
    lines = [thought(0, "One.", schema_version=1, relations=[relation("CausedBy", 0)]), thought(1, "Two.", refs=[0])]
    for key, derived in (("plain", {}), (KEY, {"chain key": "the file's name"})):
        file = tmp_path / f"{stem(key)}.jsonl"
        file.write_bytes(made.lines(lines) + b'{"thought_type": "Idea", "prev_hash": 7}\n')
        (found,) = memory.import_(file).files
        assert (found.format, found.thoughts, found.failed, found.derived) == ("mentisdb", 2, 1, derived)
    assert memory.list_chains().chain_keys == ("plain", "project_alpha")


def test_what_cannot_be_taken_in_is_told_and_the_rest_is_there(memory: MemoryRuntime, tmp_path: Path) -> None:
    bad = [
        thought(0, "One."),
        thought(1, "my password is hunter2hunter2"),
        thought(2, "Two.", refs=[1], prev_hash="0" * 64),
        thought(3, "Three.", tags=[str(each) for each in range(80)]),
        thought(4, "Four.", agent_id="a\x1bb"),
    ]
    at = folder(tmp_path / "m", {f"{stem('bad')}.tcbin": binary(bad)})
    report = memory.import_(at)
    assert [each.content for each in thoughts_of(memory, "bad")] == ["One.", "Two."]
    assert report.files[0].left_out == {"ref to a thought that is not there": 1}
    words = ("secret", "the chain is broken here: its prev_hash", "tags", "agent_id")
    assert [word in each.reason for word, each in zip(words, report.problems, strict=True)] == [True] * 4
    begins = [0]
    for each in bad[:-1]:
        begins.append(begins[-1] + 8 + len(record(each)))
    assert [each.place for each in report.problems] == [f"byte {each}" for each in begins[1:]]


GOOD = record(thought(0, "x"))
BROKEN_RECORDS = {
    b"": "ends",
    b"\xff" + GOOD[1:]: "begins no number",
    b"\x09" + GOOD[1:]: "schema version 9",
    GOOD[:1] + b"\x05" + GOOD[2:]: "16 bytes",
    GOOD[:1] + b"\xfd" + b"\xff" * 8 + GOOD[2:]: "announced",
    GOOD + b"\0": "behind the record's end",
    GOOD[:-1]: "announced",
    GOOD.replace(b"\x05astro", b"\x05\xff\xfe\xfd\xfc\xfb"): "UTF-8",
    record(thought(0, "x", refs=[1] * 5000)): "at most 4,096",
}


def test_a_broken_record_costs_itself(dry: MemoryRuntime, tmp_path: Path) -> None:
    file = tmp_path / f"{stem('c')}.tcbin"
    file.write_bytes(b"".join(framed(each) + framed(GOOD) for each in BROKEN_RECORDS))
    report = dry.import_(file, dry_run=True)
    problems = [each for each in report.problems if "taken in" not in each.reason]
    assert [word for word, each in zip(BROKEN_RECORDS.values(), problems, strict=True) if word not in each.reason] == []
    assert all(each.place is not None and each.place.startswith("byte ") for each in problems)
    assert report.total("thoughts") == len(BROKEN_RECORDS)


SKILLS = made.skills({"backup": ("active", None, [SKILL, LATER])})
BROKEN_FILES = {
    (f"{stem('c')}.tcbin", framed(GOOD) + (2**62).to_bytes(8, "little") + b"x"): "4,611,686,018,427,387,904 bytes",
    (f"{stem('c')}.tcbin", framed(GOOD) + b"\x01\x02"): "cut off",
    (f"{stem('c')}.agents.json", b'{"agents": [' + b"[" * 100_000): "agents",
    (f"{stem('c')}.agents.json", made.agents({"agent_id": 7})): "display_name",
    ("mentisdb-skills.bin", b"\x01" + SKILLS[1:]): "registry version 1",
    ("mentisdb-skills.bin", SKILLS[:200]): "nothing behind it",
    ("mentisdb-skills.bin", b"\x02\xfc\xff\xff\xff\xff"): "announced",
    ("mentisdb-skills.bin", SKILLS.replace(b"it twice", b"it twixe")): "hash",
    ("mentisdb-skills.bin", SKILLS.replace(b" @@", b" @?")): "begins no hunk",
    ("mentisdb-skills.bin", SKILLS.replace(b"-Copy it.", b"-Copy my.")): "of another text",
    ("mentisdb-skills.bin", SKILLS.replace(b"\n+Then", b"\n*Then")): "begins neither",
}  # fmt: skip


@pytest.mark.parametrize(("file", "reason"), BROKEN_FILES.items(), ids=map(str, range(len(BROKEN_FILES))))
def test_a_broken_file_is_told_with_the_place(
    dry: MemoryRuntime, tmp_path: Path, file: tuple[str, bytes], reason: str
) -> None:
    at = folder(tmp_path / "m", {made.REGISTRY: b"{not json", file[0]: file[1]})
    report: ImportReport = dry.import_(at, dry_run=True, format="mentisdb")
    assert [reason in each.reason for each in report.problems] == [True]


def test_a_small_file_makes_no_large_memory(dry: MemoryRuntime, tmp_path: Path) -> None:
    """A list says that it is long; a patch makes a text longer, again and again."""
    longest = "x" * 4_000_000
    bomb = made.skills({"bomb": ("active", None, [longest, longest + "\n" + longest])})
    at = folder(tmp_path / "m", {
        "mentisdb-skills.bin": bomb,
        f"{stem('c')}.tcbin": framed(GOOD[:-130] + b"\xfd" + (2**40).to_bytes(8, "little")),
    })  # fmt: skip
    tracemalloc.start()
    report = dry.import_(at, dry_run=True)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert any("more than 4,194,304 characters" in each.reason for each in report.problems)
    assert most < 150_000_000


def test_it_is_typed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    at, store = whole(tmp_path / "m"), str(tmp_path / "own.db")
    assert main(["--store", store, "import", str(at)]) == 0
    shown = capsys.readouterr().out
    for line in ("4 thoughts: 4 new", "2 agents: 2 new", "2 versions of skills: 2 new", f"in the chain {KEY}"):
        assert line in shown
    assert main(["--store", store, "import", str(at), "--format", "mentisdb", "--dry-run"]) == 0
    assert "this was a dry run" in capsys.readouterr().out


SAMPLES = Path(__file__).parent / "samples"


@pytest.mark.parametrize(("line", "keys"), [("0.5", ("notes", "project_alpha"))])
def test_a_folder_that_mentisdb_itself_wrote(memory: MemoryRuntime, line: str, keys: tuple[str, ...]) -> None:
    """Of each chain a thought with all fields, one signed, one with relations, an empty one, steps; agents; skills."""
    report = memory.import_(SAMPLES / f"mentisdb-{line}")
    assert [each.reason for each in report.problems] == []
    assert (report.total("thoughts"), report.total("agents"), report.total("skill_versions")) == (14, 4, 3)
    assert memory.list_chains().chain_keys == keys
    for key in keys:
        first, second, third, fourth, *steps = thoughts_of(memory, key)
        assert (first.content, first.concepts, first.confidence) == (
            "Ship in April.\nNot \u201cMay\u201d \U0001f426", ("release",), pytest.approx(0.6),
        )  # fmt: skip
        assert (second.role, second.refs, second.agent_id) == ("Retrospective", (0,), "nova")
        assert [(each.kind, each.index) for each in third.relations[1:]] == [("caused_by", 0)]
        assert (fourth.content, fourth.refs, len(steps)) == ("", (2, 0), 3)
        astro, nova = memory.list_chain_agent_registry(chain_key=key).agents
        assert (astro.display_name, astro.aliases, nova.status) == ("Astro the Second", ("Astro", "Star"), "revoked")
        assert astro.public_keys[0].revoked_at is not None
    versions = memory.list_skill_versions(skill_id="backup").versions
    texts = [memory.read_uploaded_skill(skill_id="backup", version_id=each.version_id) for each in versions]
    assert [each.content.count("\n") for each in texts] == [8, 12, 13]
    assert texts[-1].status == "deprecated"
    assert memory.import_(SAMPLES / f"mentisdb-{line}").total("committed") == 0
