"""What each format gives: every sample imported, read back, imported again, and told from its content alone."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import pytest

from beetle import MemoryRuntime
from beetle.importing.formats import READERS
from beetle.importing.items import FORMATS, Format

SAMPLES = Path(__file__).parent / "samples"
EARLY = datetime(2026, 1, 1, tzinfo=UTC)


class Sample(NamedTuple):
    """A file, its format, and what is there afterwards: `role: content` by conversation; what was left out."""

    file: str
    format: str
    said: dict[str, list[str]]
    left_out: dict[str, int] = {}  # noqa: RUF012 - read only
    facts: tuple[str, ...] = ()


CASES = (
    Sample("turns.jsonl", "jsonl", {
        "telegram/42": ["user: The spare key is in the blue box.", "assistant: Noted."],
        "local/notes": ["user: The river rose over the garden path.", "user: It fell again."],
    }),
    Sample("openai.json", "openai", {"openai/openai": [
        "system: Answer shortly.", "user: How warm is it in Porto?", 'tool: weather({"city": "Porto"})',
        "tool: 21 degrees", "assistant: 21 degrees in Porto.", "tool: clock({})", "tool: nine", "tool: shell(ls)",
        "assistant: That I do not run.", "assistant: Nor that.",
    ]}, {"image_url": 1}),
    Sample("openai_lines.jsonl", "openai", {
        "openai/openai_lines:1": ["user: Name a tea.", "assistant: Oolong."],
        "openai/openai_lines:2": ["user: Name a tea.", "assistant: Sencha."],
    }),
    Sample("chatgpt.json", "chatgpt", {"chatgpt/conv-tea": [
        "user: Which tea is this?", 'tool: browser(search("oolong"))', "assistant: It is oolong.",
    ]}, {"hidden message": 1, "image_asset_pointer": 1, "other branch": 1}),
    Sample("claude.json", "claude", {"claude/11111111-aaaa": [
        "user: What is in this list?", "tool: sugar and tea", "assistant: Sugar and tea.",
        'tool: repl({"code": "1+1"})', "tool: 2",
    ]}, {"file": 1, "thinking": 1}),
    Sample("claude_code.jsonl", "claude-code", {
        "claude-code/s-1": [
            "user: Write a tea timer.", "assistant: I look at the folder.",
            'tool: Bash({"command":"ls"})', "tool: timer.py",
        ],
        "claude-code/s-1:a1": ["assistant: Find timers."],
    }, {"summary": 1, "thinking": 1, "host message": 2, "file-history-snapshot": 1}),
    Sample("codex.jsonl", "codex", {"codex/cx-1": [
        "user: List the files.", 'tool: shell({"command":["ls"]})', "tool: timer.py", "assistant: There is timer.py.",
    ]}, {"host message": 1, "event_msg": 1, "turn_context": 1, "reasoning": 1}),
    Sample("gemini.json", "gemini", {"gemini/g-1": [
        "user: Read the recipe.", "assistant: It needs sugar.", 'tool: read_file({"path": "recipe.md"})',
        "tool: 200 g of sugar",
    ]}, {"thought": 1, "info": 1}),
    Sample("gemini_lines.jsonl", "gemini", {
        "gemini/g-2": ["user: Name a tea.", "assistant: Oolong.", "tool: tea({})", "tool: oolong",
                       "user: And another?", "assistant: Sencha."],
    }, {"host message": 1, "update of the session": 2, "rewind": 1}),
    Sample("gemini_checkpoint.json", "gemini", {"gemini/gemini_checkpoint": [
        "user: Name a tea.", 'tool: tea({"sort": "green"})', "tool: sencha", "assistant: Sencha.",
    ]}, {"thought": 1}),
    Sample("MEMORY.md", "memory-md", {"memory-md/samples/MEMORY.md": [
        "assistant: Rita prefers oolong over mint.", "assistant: Rita waters the garden on Mondays.",
        "assistant: The spare key is in the blue box.", "assistant: make tea",
    ]}, {"comment": 1}, (
        "Rita prefers oolong over mint.", "Rita waters the garden on Mondays.", "The spare key is in the blue box.",
    )),
    Sample("notes", "basic-memory", {"basic-memory/kitchen/tea": [
        "assistant: Tea is kept in the kitchen.", "assistant: Tea: Oolong takes four minutes",
        "assistant: [ ] buy more", "assistant: Tea part of Kitchen", "assistant: Tea relates to Garden",
    ]}, {}, ("Tea part of Kitchen", "Tea relates to Garden", "Tea: Oolong takes four minutes")),
    Sample("mem0.json", "mem0", {
        "mem0/rita": ["assistant: Rita prefers oolong", "assistant: The spare key is in the blue box"],
        "mem0/mem0": ["assistant: rita lives in porto"],
    }, {}, ("Rita prefers oolong", "The spare key is in the blue box", "rita lives in porto")),
    Sample("mcp_memory.jsonl", "mcp-memory", {"mcp-memory/mcp_memory": [
        "assistant: Rita Sousa: Prefers oolong", "assistant: Rita Sousa is a nurse",
        "assistant: Rita Sousa lives in Porto",
    ]}, {"entity without observations": 1}, (
        "Rita Sousa is a nurse", "Rita Sousa lives in Porto", "Rita Sousa: Prefers oolong",
    )),
)  # fmt: skip


@pytest.fixture(params=CASES, ids=lambda case: case.file)
def case(request: pytest.FixtureRequest) -> Sample:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def memory() -> Iterator[MemoryRuntime]:
    with MemoryRuntime.open(":memory:", profile="desktop") as opened:
        yield opened


def said(memory: MemoryRuntime) -> dict[str, list[str]]:
    """Everything that is there, as `role: content`, by conversation."""
    found: dict[str, list[str]] = {}
    for each in memory.list_conversations().conversations:
        where = {"channel_id": each.channel_id, "conversation_id": each.conversation_id}
        turns = memory.replay_transcript(conversation=where, view="host_ui").turns
        spoken = [f"{message.role}: {message.content}" for turn in turns for message in turn.messages]
        found[f"{each.channel_id}/{each.conversation_id}"] = spoken
    return found


def test_there_is_a_sample_of_every_format() -> None:
    """A data folder of MentisDB is no conversation: test_mentisdb.py makes them."""
    assert {each.format for each in CASES} == set(FORMATS) - {"mentisdb"}


@pytest.mark.parametrize("form", FORMATS)
def test_a_reader_says_which_document_or_version_its_format_is_from(form: Format) -> None:
    page = sys.modules[READERS[form].__module__].__doc__ or ""
    assert re.search(r"\n\n(From |The service publishes no|The host documents )", page), form


def test_a_sample_is_told_from_its_content_and_taken_in_once(case: Sample, memory: MemoryRuntime) -> None:
    first = memory.import_(SAMPLES / case.file)
    (file,) = first.files
    assert (file.format, first.problems, file.left_out) == (case.format, [], case.left_out)
    assert said(memory) == case.said
    assert set(file.conversations) == set(case.said)
    facts = memory.list_long_term().records
    assert tuple(sorted(each.content or "" for each in facts)) == case.facts
    assert (file.facts, file.accepted, file.waiting, file.rejected) == (file.accepted, file.accepted, 0, 0)
    assert {each.authority for each in facts} <= {"host"}

    again = memory.import_(SAMPLES / case.file).files[0]
    assert (again.committed, again.unchanged, again.failed) == (0, file.turns, 0)
    assert said(memory) == case.said
    assert memory.list_long_term().total == len(case.facts)


def test_a_dry_run_tells_the_same_and_changes_nothing(case: Sample, memory: MemoryRuntime) -> None:
    tried = memory.import_(SAMPLES / case.file, dry_run=True)
    assert tried.dry_run and said(memory) == {}
    done = memory.import_(SAMPLES / case.file)
    for name in ("turns", "facts", "failed"):
        assert tried.total(name) == done.total(name)
    assert tried.files[0].conversations == done.files[0].conversations


def test_times_and_speakers_of_a_source_are_kept_and_what_it_lacks_is_taken_from_the_flags(
    memory: MemoryRuntime, tmp_path: Path
) -> None:
    memory.import_(SAMPLES / "chatgpt.json")
    turns = memory.replay_transcript(
        conversation={"channel_id": "chatgpt", "conversation_id": "conv-tea"}, view="host_ui"
    ).turns
    assert [turn.at for turn in turns] == ["2026-03-02T08:00:01.25Z", "2026-03-02T08:00:03Z", "2026-03-02T08:00:04Z"]
    assert [turn.turn_id for turn in turns] == ["n2", "n4", "n5"]
    assert [attr.value for attr in turns[0].attrs] == []

    report = memory.import_(
        SAMPLES / "openai.json", conversation={"channel_id": "web", "conversation_id": "7"}, time=EARLY,
        speakers={"user": "Nobody", "assistant": "Ada"},
    )  # fmt: skip
    assert report.files[0].derived == {"time": "--time"}
    turns = memory.replay_transcript(conversation={"channel_id": "web", "conversation_id": "7"}, view="host_ui").turns
    assert {turn.at for turn in turns} == {"2026-01-01T00:00:00Z"}
    spoke = {message.role: message.actor and message.actor.speaker for turn in turns for message in turn.messages}
    assert spoke == {"system": None, "user": "Rita", "tool": None, "assistant": "Ada"}


def test_a_file_that_is_touched_or_grows_adds_what_is_new(memory: MemoryRuntime, tmp_path: Path) -> None:
    """Its items have no ids and no times: those of the first import stay theirs."""
    page = tmp_path / "MEMORY.md"
    page.write_text("- Rita prefers oolong.\n- Rita waters the garden.\n")
    memory.import_(page, time=EARLY)
    page.write_text("- The key is in the box.\n- Rita prefers oolong.\n- Rita waters the garden.\n")
    file = memory.import_(page).files[0]
    assert (file.committed, file.unchanged, file.failed) == (1, 2, 0)

    transcript = tmp_path / "claude_code.jsonl"
    lines = (SAMPLES / "claude_code.jsonl").read_text().splitlines(keepends=True)
    transcript.write_text("".join(lines[:3]))
    assert memory.import_(transcript).files[0].committed == 2
    transcript.write_text("".join(lines))
    file = memory.import_(transcript).files[0]
    assert (file.committed, file.unchanged) == (2, 2)


def test_a_forced_format_is_not_told_from_the_content(memory: MemoryRuntime, tmp_path: Path) -> None:
    file = tmp_path / "page.txt"
    shutil.copy(SAMPLES / "MEMORY.md", file)
    assert memory.import_(file, format="basic-memory", dry_run=True).files[0].format == "basic-memory"
    assert memory.import_(file, dry_run=True).files[0].format == "memory-md"


def test_facts_are_judged_by_whose_word_they_are(memory: MemoryRuntime) -> None:
    file = memory.import_(SAMPLES / "mem0.json", authority="assistant_claimed").files[0]
    assert (file.accepted, file.waiting, file.reasons) == (0, 3, {"needs_assertion": 3})
    again = memory.import_(SAMPLES / "mem0.json", authority="assistant_claimed").files[0]
    assert again.waiting == 3 and len(memory.list_waiting(what="candidates").candidates) == 3
    asserted = memory.import_(SAMPLES / "mem0.json", authority="user_asserted").files[0]
    assert asserted.accepted == 3
    assert {each.authority for each in memory.list_long_term().records} == {"user_asserted"}


def test_what_looks_like_a_secret_is_no_fact_and_stops_nothing(memory: MemoryRuntime, tmp_path: Path) -> None:
    page = tmp_path / "MEMORY.md"
    key = "sk-ant-api03-" + "AbCdEf0123456789" * 4
    page.write_text(f"- Rita likes tea.\n- The API key is {key}\n- Rita likes cake.\n")
    report = memory.import_(page)
    assert [each.place for each in report.problems] == ["line 2"]
    assert report.files[0].accepted == 2 and key not in report.problems[0].reason


def test_a_folder_gives_its_pages_and_follows_no_link(memory: MemoryRuntime, tmp_path: Path) -> None:
    inner = tmp_path / "notes" / "deep"
    inner.mkdir(parents=True)
    (tmp_path / "secret.md").write_text("- A secret.\n")
    (inner / "b.md").write_text("- Rita likes tea.\n")
    (inner / "c.txt").write_text("- No page.\n")
    (inner / "link.md").symlink_to(tmp_path / "secret.md")
    (tmp_path / "notes" / "out").symlink_to(tmp_path)
    report = memory.import_(tmp_path / "notes")
    assert [Path(each.path).name for each in report.files] == ["b.md"]
    assert list(said(memory)) == ["memory-md/notes/deep/b.md"]
    logs = tmp_path / "projects"
    logs.mkdir()
    shutil.copy(SAMPLES / "claude_code.jsonl", logs)
    assert memory.import_(logs, format="claude-code", dry_run=True).total("turns") == 4
