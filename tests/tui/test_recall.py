"""Recall: what a person tries on the bench, held against what the daemon answers anybody else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from rich.cells import cell_len

from beetle.client import Client
from beetle.contracts.common import Report
from beetle.contracts.names import PLANE_NAMES
from beetle.contracts.progress import OnProgress
from beetle_tui.bench.settings import Settings, number_fault, read_time, time_fault
from beetle_tui.screens.recall import Recall
from beetle_tui.source import DaemonSource
from beetle_tui.text import bar
from tests.forked import Daemon
from tests.tui.remembering import PROFILE, device, go, learn, remembering, typed
from tests.tui.showing import Shown, at, exported, opened, show


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    with remembering() as found:
        with found.client() as client:
            learn(
                client,
                "The pump on line 2 was replaced.",
                "pump",
                evidence_refs=["evidence:local/workshop/t0/m0"],
                authority="operator",
            )
        yield found


def bench(shown: Shown) -> Recall:
    screen = shown.console.area
    assert isinstance(screen, Recall)
    return screen


async def ask(shown: Shown, query: str) -> None:
    """Type a query on the bench, and wait for its answer."""
    await go(shown, "recall")
    await shown.press("slash")
    await typed(shown, query)
    await shown.press("enter")
    await answered(shown, query)


async def answered(shown: Shown, query: str) -> None:
    def is_there() -> bool:
        tried = bench(shown).tried
        return tried is not None and tried.query == query and bench(shown).filled

    await shown.until(is_there)


def test_the_hits_are_those_that_anybody_gets(daemon: Daemon) -> None:
    with daemon.client() as client:
        found = client.recall(query="loud pump", limit=20)

    async def look(shown: Shown) -> None:
        await ask(shown, "loud pump")
        best = found.hits[0]
        await shown.until_shown("> 1.000", f"1 of {len(found.hits)} hits", best.ref, "search ", "rank ")
        assert [each.ref for each in bench(shown).tried.found.hits] == [each.ref for each in found.hits]
        assert f"Score        {'█' * 16}  1.000 of the best one's" in shown.text
        assert shown.value("lexical") == "it matched by itself"
        await shown.press("down")
        await shown.until_shown("─ Hit 2", f"> {found.hits[1].score:.3f}", found.hits[1].ref)

    show(at(daemon), look, size=(80, 48))


def test_the_block_is_shown_with_where_its_characters_went(daemon: Daemon) -> None:
    with daemon.client() as client:
        block = client.project(user_query="loud pump")

    async def look(shown: Shown) -> None:
        await ask(shown, "loud pump")
        await shown.press("right")
        await shown.until_shown(f"Block: {block.audit.characters} of 4,000 characters", "As a model gets it")
        for section in block.sections:
            assert f"{section.characters:,} of {section.budget:,}" in shown.value(section.name)
        await shown.until_shown("<memory note=", "</memory>")
        assert bench(shown).copied() == block.system_memory_block
        await shown.press("left")
        await shown.until_shown("> 1.000")

    show(at(daemon), look, size=(80, 60))


def test_hits_and_block_stand_side_by_side_where_there_is_room(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await ask(shown, "loud pump")
        await shown.until_shown("> 1.000", "As a model gets it", "Why it stands here")
        await shown.press("right")
        await shown.until(lambda: bench(shown).block.has_focus)
        await shown.press("right")
        await shown.until(lambda: bench(shown).table.has_focus)
        await shown.pilot.resize_terminal(80, 24)
        await shown.until(lambda: "As a model gets it" not in shown.text)
        assert "> 1.000" in shown.text

    show(at(daemon), look, size=(160, 48))


def test_a_plane_is_left_out_and_the_last_one_stays(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await ask(shown, "pump")
        await shown.until_shown("[x]evidence", "evidence  ")
        await shown.press("x", "space")
        await shown.until_shown("[ ]evidence")
        await shown.until(lambda: {each.plane for each in bench(shown).tried.found.hits} == {"long_term"})
        for _ in PLANE_NAMES[1:]:
            await shown.press("right", "space")
        await shown.until_shown("one plane at least is searched")
        assert bench(shown).settings.planes == {PLANE_NAMES[-1]}
        await shown.until_shown("No hit", "No memory holds words of this query")
        await shown.press("escape")
        await shown.until(lambda: bench(shown).table.has_focus)

    show(at(daemon), look)


def test_memory_is_asked_as_it_stood_at_a_time(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await ask(shown, "pump")
        everything = len(bench(shown).tried.found.hits)
        await shown.press("a")
        await shown.until_shown("Memory as it stood at a time (UTC)")
        await typed(shown, "yesterday")
        await shown.press("enter")
        await shown.until_shown("a time such as 2026-03-02 08:12")
        await shown.press("ctrl+u")
        await typed(shown, "2026-03-02 08:00:30")
        await shown.press("enter")
        await shown.until_shown("as of 2026-03-02 08:00:30Z", "1 of 1 hit;")
        await shown.press("a", "ctrl+u", "enter")
        await shown.until_shown("as of now", f" of {everything} hits")

    show(at(daemon), look)


def test_length_pressure_and_number_of_hits_are_tried(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await ask(shown, "pump")
        await shown.press("b", "ctrl+u")
        await typed(shown, "many")
        await shown.press("enter")
        await shown.until_shown("a number from 0 to 10,000,000")
        await shown.press("ctrl+u")
        await typed(shown, "300")
        await shown.press("enter")
        await shown.until(lambda: bench(shown).tried.block.audit.budget == 300)
        await shown.press("u")
        await shown.until(lambda: bench(shown).tried.block.audit.pressure == "elevated")
        await shown.until_shown("block 300", "pressure elevated")
        await shown.press("x", "left", "left", "left", "enter")
        await shown.until_shown("At most so many")
        await shown.press("ctrl+u", "2", "enter")
        await shown.until_shown("hits 2", "1 of 2 hits")

    show(at(daemon), look)


class Counting(DaemonSource):
    """A source that counts recalls."""

    recalls = 0

    def call(self, operation: str, arguments: object = None, on_progress: OnProgress | None = None) -> Report:
        self.recalls += operation == "memory.recall"
        return super().call(operation, arguments, on_progress)


def test_a_change_is_told_and_runs_nothing_by_itself(daemon: Daemon) -> None:
    source = Counting(daemon.client())

    async def look(shown: Shown) -> None:
        await ask(shown, "turbine")
        await shown.until_shown("No hit")
        said = {"message_id": "m9", "role": "user", "content": "The turbine hums."}
        with daemon.client() as client:
            client.commit_transcript(
                conversation={"conversation_id": "other"},
                turns=[{"turn_id": "t9", "at": "2026-03-02T09:00:00Z", "messages": [said]}],
            )
        await shown.until_shown("memory has changed since: r runs it again")
        assert source.recalls == 1
        await shown.press("r")
        await shown.until_shown("1 of 1 hit;", "The turbine hums.")
        assert source.recalls == 2

    show(source, look)


def test_a_hit_leads_to_what_it_was_found_in(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await ask(shown, "replaced pump")
        await shown.until_shown("long_term:")
        await shown.press("enter", "n", "enter")
        await shown.until(lambda: shown.console.current_mode == "memory")
        await shown.until_shown("The pump on line 2 was replaced.")

    show(at(daemon), look, size=(80, 40))


def test_before_a_query_the_bench_says_how_it_works(tmp_path) -> None:
    async def look(shown: Shown) -> None:
        await go(shown, "recall")
        await shown.until_shown("press / and type a question", "/ types a query.", "as of now", "pressure normal")
        await shown.press("enter", "y", "right", "left", "u")
        await shown.until_shown("pressure elevated")
        await ask(shown, "anything")
        await shown.until_shown("No memory holds words of this query")

    show(opened(str(tmp_path / "own.db"), PROFILE), look)


def test_a_caller_who_may_not_recall_is_told_so(daemon: Daemon) -> None:
    with daemon.client() as client:
        auth = device(client, "inspect")

    async def look(shown: Shown) -> None:
        await go(shown, "recall")
        await shown.until_shown("Recall is not there for this caller")
        await shown.press("slash")
        await typed(shown, "pump")
        await shown.press("enter")
        await shown.until_shown("Could not read: ", "recall")

    show(at(daemon, auth=auth), look)


def test_a_caller_who_may_not_project_still_sees_the_hits(daemon: Daemon) -> None:
    with daemon.client() as client:
        auth = device(client, "recall")

    async def look(shown: Shown) -> None:
        await ask(shown, "loud pump")
        await shown.until_shown("> 1.000")
        await shown.press("right")
        await shown.until_shown("project", "How it was looked for")

    show(at(daemon, auth=auth), look, size=(80, 40))


def test_a_lost_daemon_leaves_the_answer_and_the_query_runs_again() -> None:
    with remembering() as own:

        def reconnect() -> DaemonSource:
            return DaemonSource(Client(own.socket))

        async def look(shown: Shown) -> None:
            await ask(shown, "loud pump")
            await shown.until_shown("> 1.000")
            own.kill()
            await shown.until_shown("The daemon is lost")
            assert "> 1.000" in shown.text
            own.start()
            await shown.press("r")
            await shown.until_shown("live, read")
            await shown.press("r")
            await shown.until(lambda: "The daemon is lost" not in shown.text and "changed since" not in shown.text)
            assert "> 1.000" in shown.text

        show(at(own), look, reconnect, size=(80, 30))


@pytest.mark.parametrize("size", [(60, 16), (80, 24), (160, 48)])
def test_wide_and_long_hits_break_no_line(daemon: Daemon, size: tuple[int, int]) -> None:
    with daemon.client() as client:
        learn(client, "gizmo " + "x" * 10_000, "wall [b]of[/] gizmo")
        learn(client, "gizmo 🔑 青い箱 שלום\u202e\x1b[31m\nsecond line " * 20, "漢字 gizmo")

    async def look(shown: Shown) -> None:
        await ask(shown, "gizmo key")
        await shown.until_shown("> 1.000")
        for keys in (("down",), ("enter", "end"), ("escape", "right", "end"), ("x",)):
            await shown.press(*keys)
            await shown.pilot.pause()
            assert len(shown.lines) == size[1]
            assert max(map(cell_len, shown.lines)) <= size[0]
            assert not set(shown.text) & set("\x1b\u202e")
        found, block = map(json.loads, await exported(bench(shown)))
        assert found["query"] == "gizmo key" and any("gizmo" in each["excerpt"] for each in found["hits"])
        assert "gizmo" in block["system_memory_block"]

    show(at(daemon), look, size=size)


def test_a_bar_shows_anything_above_nothing_and_is_full_only_for_all() -> None:
    assert bar(0, plain=False) == "░" * 16
    assert bar(0.001, plain=False) == "█" + "░" * 15
    assert bar(0.999, plain=False) == "█" * 15 + "░"
    assert bar(1, plain=True) == "#" * 16
    assert bar(7, plain=True) == "#" * 16


def test_a_time_is_utc_unless_it_says_otherwise() -> None:
    assert read_time(" ") is None and read_time("NOW") is None
    assert read_time("2026-03-02") == datetime(2026, 3, 2, tzinfo=UTC)
    assert read_time("2026-03-02T08:12+02:00") == datetime(2026, 3, 2, 6, 12, tzinfo=UTC)
    assert time_fault("0001-01-01T00:00+14:00") and time_fault("x") and time_fault("") is None


def test_a_number_is_held_to_its_bounds() -> None:
    assert number_fault("1,000", 0, 1000) is None
    for wrong in ("", "-1", "1001", "1.5", "٣", "9" * 5000):
        assert number_fault(wrong, 0, 1000) == "a number from 0 to 1,000"


def test_all_planes_are_asked_for_by_naming_none() -> None:
    assert Settings().recall("q")["planes"] is None
    assert Settings().switched("evidence").recall("q")["planes"] == list(PLANE_NAMES[1:])
