"""A daemon that goes away is told, looked for and found again."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from beetle.client import Client
from beetle.contracts.errors import BeetleError, ServicesUnavailable
from beetle.contracts.progress import OnProgress
from beetle_tui.link import FIRST_PAUSE_S, LONGEST_PAUSE_S, Joined, Link, Lost, State
from beetle_tui.source import DaemonSource
from tests.forked import Daemon
from tests.tui.showing import Shown, at, commit, opened, running, show, turn


@pytest.fixture
def daemon() -> Iterator[Daemon]:
    with running() as found:
        yield found


def test_a_killed_daemon_is_told_and_a_new_one_found(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await shown.until_shown("live, read")
        first = daemon.pid
        daemon.kill()
        await shown.until_shown("DAEMON LOST, read", "The daemon is lost: daemon_unavailable: ", "Hint: ", "Trying")
        assert f"pid {first}" in shown.text, "what was read stays on the screen"
        daemon.start()
        with daemon.client() as client:
            commit(client, turn(1))
        await shown.until_shown("live, read", f"pid {daemon.pid},")
        await shown.until(lambda: shown.value("turns") == "1")
        assert "LOST" not in shown.text and "Trying" not in shown.text

    show(at(daemon), look, lambda: at(daemon))


def test_the_pauses_grow_and_a_key_ends_them(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[int] = []
    tell = Link._set

    def told(link: Link, state: State) -> None:
        if isinstance(state, Lost) and state.pause_s:
            pauses.append(state.pause_s)
        tell(link, state)

    def reconnect() -> DaemonSource:
        return at(daemon)

    async def look(shown: Shown) -> None:
        await shown.until_shown("live, read")
        daemon.kill()
        while LONGEST_PAUSE_S not in pauses:
            # A short pause may have ended by itself before it is looked at.
            known = len(pauses)
            await shown.press("r")
            await shown.until(lambda known=known: len(pauses) > known)
        await shown.until_shown(f"Trying again in {LONGEST_PAUSE_S} s; r tries now.")
        daemon.start()
        await shown.press("r")
        await shown.until_shown("live, read")

    monkeypatch.setattr(Link, "_set", told)
    show(at(daemon), look, reconnect)
    assert pauses == [1, 2, 4, 8, 16, 30]
    assert (pauses[0], pauses[-1]) == (FIRST_PAUSE_S, LONGEST_PAUSE_S)


def test_why_nobody_was_found_is_shown_with_its_hint(daemon: Daemon) -> None:
    def reconnect() -> DaemonSource:
        raise ServicesUnavailable(reason="[b]no[/b] daemon\x1b[2J here", hint="start \x1b]0;one\x07")

    async def look(shown: Shown) -> None:
        await shown.until_shown("live, read")
        daemon.kill()
        await shown.until_shown("Trying again in 1 s")
        await shown.press("r")
        await shown.until_shown(r"services_unavailable: [b]no[/b] daemon\x1b[2J here", r"Hint: start \x1b]0;one\x07")

    show(at(daemon), look, reconnect)


def test_a_daemon_that_does_not_answer_is_lost_until_it_does(daemon: Daemon) -> None:
    def reconnect() -> DaemonSource:
        client = Client(daemon.socket, timeout=0.5)
        try:
            client.hello()
        except TimeoutError:
            client.close()
            raise
        return DaemonSource(client)

    async def look(shown: Shown) -> None:
        await shown.until_shown("live, read")
        os.kill(daemon.pid, signal.SIGSTOP)
        try:
            await shown.press("r")
            await shown.until_shown("DAEMON LOST", "deadline_exceeded: the daemon at", "did not answer in time")
        finally:
            os.kill(daemon.pid, signal.SIGCONT)
        await shown.press("r")
        await shown.until_shown("live, read")

    show(at(daemon, timeout=0.5), look, reconnect)


def test_a_slow_answer_is_waited_for_in_words(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await shown.until_shown("live, read")
        os.kill(daemon.pid, signal.SIGSTOP)
        try:
            await shown.press("r")
            await shown.until_shown("waiting for an answer, read")
        finally:
            os.kill(daemon.pid, signal.SIGCONT)
        await shown.until_shown("live, read")

    show(at(daemon), look)


def test_leaving_does_not_wait_for_a_daemon_that_is_silent(daemon: Daemon) -> None:
    async def look(shown: Shown) -> None:
        await shown.until_shown("live, read")
        os.kill(daemon.pid, signal.SIGSTOP)
        await shown.press("r", "q")

    try:
        show(at(daemon, timeout=600), look)  # would be killed by whoever waits for this test
    finally:
        os.kill(daemon.pid, signal.SIGCONT)


def test_a_reading_that_is_refused_is_told_and_tried_again(daemon: Daemon) -> None:
    class Refusing(DaemonSource):
        refuse = True

        def call(self, operation: str, arguments: object = None, on_progress: OnProgress | None = None):
            if self.refuse and operation == "memory.inspect":
                raise ServicesUnavailable(reason="not now", hint="later")
            return super().call(operation, arguments, on_progress)

    source = Refusing(daemon.client())

    async def look(shown: Shown) -> None:
        await shown.until_shown("Could not read: services_unavailable: not now", "Hint: later", "r tries again.")
        assert shown.state == "live, nothing read yet"
        assert f"pid {daemon.pid}," in shown.text, "who answers is known all the same"
        source.refuse = False
        await shown.press("r")
        await shown.until_shown("live, read")
        assert "Could not" not in shown.text

    show(source, look)


@pytest.fixture
def as_nobody(daemon: Daemon) -> Iterator[int]:
    """The effective user of connections that are made meanwhile."""
    if os.getuid() != 0:
        pytest.skip("only root can ask as another user")
    os.chmod(daemon.folder, 0o755)
    os.chmod(daemon.socket, 0o666)
    os.seteuid(65534)
    yield 65534
    os.seteuid(0)


def test_a_stranger_sees_why_it_sees_nothing(daemon: Daemon, as_nobody: int) -> None:
    async def look(shown: Shown) -> None:
        await shown.until_shown("not live, nothing read yet", "unauthorized: ", f"uid:{as_nobody}", "Hint: ")

    show(at(daemon), look)


def test_a_caller_who_may_follow_some_topics_follows_those(daemon: Daemon, tmp_path) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can ask as another user")
    daemon.stop()
    config = daemon.folder / "beetle.toml"
    config.write_text(
        '[principals.panel]\nuid = 65534\ncapabilities = ["inspect", "transcript"]\nviews = ["host_ui"]\n'
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BEETLE_CONFIG", str(config))
        daemon.start()
    os.chmod(daemon.folder, 0o755)
    os.chmod(daemon.socket, 0o666)

    async def look(shown: Shown) -> None:
        await shown.until_shown("live, read")
        assert shown.value("Caller") == "panel"
        assert shown.value("Path") == "(not shown to this caller)"
        assert shown.console.link.state == Joined(live=True)
        commit(operator, turn(1))
        await shown.until(lambda: shown.value("turns") == "1")

    with daemon.client() as operator:
        operator.hello()
        os.seteuid(65534)
        try:
            show(at(daemon), look)
        finally:
            os.seteuid(0)


def test_events_that_are_refused_leave_a_screen_that_reads_on_request(daemon: Daemon) -> None:
    class Deaf(DaemonSource):
        def follow(self):
            raise BeetleError(reason="too many follow", hint="another time")

    async def look(shown: Shown) -> None:
        await shown.until_shown("not live, read", "Changes are not shown by themselves: internal: too many follow")
        with daemon.client() as client:
            commit(client, turn(1))
        await shown.press("r")
        await shown.until(lambda: shown.value("turns") == "1")

    show(Deaf(daemon.client()), look)


def test_a_store_of_this_process_is_closed_behind_the_call_that_runs(tmp_path) -> None:
    source = opened(str(tmp_path / "own.db"))

    async def look(shown: Shown) -> None:
        await shown.until_shown("no daemon, read")
        await shown.press("r", "q")

    show(source, look)
    opened(str(tmp_path / "own.db")).close()
