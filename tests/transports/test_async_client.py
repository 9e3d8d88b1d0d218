"""The client for asyncio: requests that share a connection, lost ones, cancelled ones, events, progress."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import msgpack
import pytest

from beetle.async_client import AsyncClient, ClientClosed, NoDaemon
from beetle.client import Client
from beetle.contracts import errors
from beetle.contracts.common import Report, WireScope
from beetle.contracts.progress import ProgressStep
from tests.transports.conftest import commit, turn
from tests.transports.serving import Served
from tests.transports.standin import DEEP, LISTED, Far, LosingProxy, Scripted, serve_well

T = TypeVar("T")
SOON_S = 30.0


def run(work: Awaitable[T]) -> T:
    """In a loop of its own, which must be left with nothing open."""

    async def bounded() -> T:
        async with asyncio.timeout(SOON_S):
            return await work

    found = asyncio.run(bounded())
    gc.collect()
    return found


async def until(condition: Callable[[], bool]) -> None:
    """Other threads answer to no event of the loop."""
    while not condition():
        await asyncio.sleep(0.001)


def test_many_tasks_share_one_connection_and_get_each_its_own_answer(served: Served) -> None:
    async def one(client: AsyncClient, number: int) -> str:
        where = {"conversation_id": f"task-{number}"}
        await client.commit_transcript(conversation=where, turns=[turn(number, f"note {number}")])
        page = await client.replay_transcript(conversation=where, view="host_ui")
        return page.turns[0].messages[0].content

    async def work() -> list[str]:
        async with AsyncClient(served.path, scope=WireScope(owner_id="many")) as client:
            return await asyncio.gather(*(one(client, number) for number in range(60)))

    assert run(work()) == [f"note {number}" for number in range(60)]


def test_requests_are_sent_before_answers_come_and_answers_are_told_by_their_ids(folder: Path) -> None:
    def reversed_answers(far: Far) -> None:
        requests = [far.request() for _ in range(3)]
        far.answer({"id": 99}, {**LISTED, "total": 9})
        for request in reversed(requests):
            far.answer(request, {**LISTED, "total": len(request["args"]["query"])})
        serve_well(far)

    async def work(path: str) -> list[int]:
        async with AsyncClient(path) as client:
            found = await asyncio.gather(*(client.list_runtime_skills(query="q" * n) for n in (1, 2, 3)))
            return [each.total for each in found]

    with Scripted(str(folder / "s"), reversed_answers) as daemon:
        assert run(work(daemon.path)) == [1, 2, 3]
        assert daemon.connections == 1


def test_a_pool_opens_more_connections_only_while_they_are_needed(folder: Path) -> None:
    def pair(far: Far) -> None:
        waiting.append(far)
        serve_well(far)

    waiting: list[Far] = []

    async def work(path: str) -> None:
        async with AsyncClient(path, pool=3) as client:
            for _ in range(4):
                await client.list_runtime_skills()
            assert len(waiting) == 1
            await asyncio.gather(*(client.list_runtime_skills() for _ in range(9)))
            assert len(waiting) == 3

    with Scripted(str(folder / "s"), pair) as daemon:
        run(work(daemon.path))
    with pytest.raises(errors.InvalidRequest):
        AsyncClient(daemon.path, pool=0)


def test_an_answer_larger_than_one_read_and_one_larger_than_a_frame_arrive_whole(served: Served) -> None:
    text = "tea 茶 " * 6000

    async def work() -> None:
        async with AsyncClient(served.path, scope=WireScope(owner_id="big")) as client:
            for number in range(4):
                await client.commit_transcript(conversation={"conversation_id": "big"}, turns=[turn(number, text)])
            page = await client.replay_transcript(conversation={"conversation_id": "big"}, view="host_ui", limit=20)
            assert [each.messages[0].content for each in page.turns] == [text] * 4
            archive = (await client.export_space(include_private=False)).archive
        async with AsyncClient(served.path, scope=WireScope(owner_id="copy")) as client:
            noise = os.urandom(200_000)
            with pytest.raises(errors.BeetleError) as caught:
                await client.import_space(archive=noise, mode="bootstrap_import")
            assert caught.value.key != "payload_too_large", "it went in pieces"
            await client.import_space(archive=archive, mode="bootstrap_import")

    run(work())


def test_errors_are_those_of_the_blocking_client(served: Served, folder: Path) -> None:
    async def work() -> None:
        async with AsyncClient(served.path) as client:
            with pytest.raises(errors.InvalidRequest) as caught:
                await client.recall("x", limit=0)
            assert caught.value.details["path"] == "$.args.limit"
            with pytest.raises(errors.UnknownOperation):
                await client.call("memory.recal")
            with pytest.raises(errors.InvalidRequest):
                await client.recall(query="\ud800")
            assert type(await client.call("hello")) is not Report
        with pytest.raises(ClientClosed):
            await client.hello()
        with pytest.raises(NoDaemon):
            await AsyncClient(str(folder / "nobody")).hello()

    run(work())


@pytest.mark.parametrize("said", [b"\xc1", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\x81\xa2id\xa1\xff", DEEP])
def test_whoever_answers_something_else_is_a_typed_error_for_all_that_wait(folder: Path, said: bytes) -> None:
    def foreign(far: Far) -> None:
        far.request()
        far.request()
        far.socket.sendall(said)
        far.request()

    async def work(path: str) -> list[Any]:
        async with AsyncClient(path) as client:
            return await asyncio.gather(client.hello(), client.list_runtime_skills(), return_exceptions=True)

    with Scripted(str(folder / "s"), foreign) as daemon:
        assert [type(each) for each in run(work(daemon.path))] == [errors.InvalidFrame] * 2


# Lost connections and retries


@pytest.mark.parametrize("share", [0.0, 0.5, 0.99])
def test_what_a_lost_connection_left_unanswered_is_asked_again_once_for_each(folder: Path, share: float) -> None:
    def dying(far: Far) -> None:
        first, _ = far.request(), far.request()
        frame = msgpack.packb({"v": 1, "id": first["id"], "ok": True, "report": {**LISTED, "total": 3}})
        far.socket.sendall(frame[: int(len(frame) * share)])

    async def work(path: str, retry: bool) -> list[Any]:
        async with AsyncClient(path, retry=retry) as client:
            calls = (client.list_runtime_skills() for _ in range(2))
            return await asyncio.gather(*calls, return_exceptions=not retry)

    with Scripted(str(folder / "s"), dying, serve_well) as daemon:
        assert [each.total for each in run(work(daemon.path, True))] == [0, 0]
        assert [request["id"] for request in daemon.requests] == [1, 2, 1, 2]
    os.unlink(daemon.path)
    with Scripted(daemon.path, dying) as daemon:
        assert all(isinstance(each, ConnectionError) for each in run(work(daemon.path, False)))


def test_a_write_whose_answer_was_lost_is_not_made_twice(served: Served, folder: Path) -> None:
    answers: list[dict[str, Any]] = []

    def lose(answer: dict[str, Any]) -> bool:
        answers.append(answer)
        return len(answers) == 1

    async def work(path: str) -> None:
        async with AsyncClient(path, scope=WireScope(owner_id="lost")) as client:
            assert (await client.commit_transcript(**commit(1))).committed == 1
            assert client.repeated
            assert (await client.commit_transcript(**commit(2))).committed == 1
            assert not client.repeated

    with LosingProxy(str(folder / "p"), served.path, lose) as proxy:
        run(work(proxy.path))
        keys = [request["idempotency_key"] for request in proxy.requests]
        assert len(keys) == 3 and len(set(keys)) == 2


def test_retryable_errors_are_tried_again_with_the_same_key_until_the_timeout(folder: Path) -> None:
    def busy(far: Far) -> None:
        far.refuse(far.request(), "overloaded", retryable=True, retry_after_ms=1)
        far.answer(far.request(), {"committed": 1, "unchanged": 0, "turns": []})
        far.refuse(far.request(), "overloaded", retryable=True, retry_after_ms=60_000)
        far.refuse(far.request(), "conflict")

    async def work(path: str) -> None:
        async with AsyncClient(path) as client:
            assert (await client.commit_transcript(**commit(1))).committed == 1
            with pytest.raises(errors.Overloaded):
                await client.hello()
            with pytest.raises(errors.Conflict):
                await client.commit_transcript(**commit(1))

    with Scripted(str(folder / "s"), busy) as daemon:
        run(work(daemon.path))
        assert len({request.get("idempotency_key") for request in daemon.requests[:2]}) == 1
        assert daemon.connections == 1


def test_what_may_take_long_is_waited_for_until_its_own_deadline_and_else_times_out(folder: Path) -> None:
    def late(far: Far) -> None:
        first = far.request()
        with pytest.raises(EOFError):
            far.request()
        assert first["op"] == "skill.list"

    def later(far: Far) -> None:
        request = far.request()
        assert not threading.Event().wait(0.15)
        far.answer(request, LISTED)

    async def work(path: str) -> None:
        async with AsyncClient(path, timeout=0.05) as client:
            with pytest.raises(TimeoutError):
                await client.list_runtime_skills()
            assert await client.call("skill.list", deadline_ms=60_000)

    with Scripted(str(folder / "s"), late, later) as daemon:
        run(work(daemon.path))


def test_a_client_that_was_turned_away_comes_in_when_there_is_room(folder: Path) -> None:
    def full(far: Far) -> None:
        far.request()
        far.refuse(None, "overloaded", retryable=True, retry_after_ms=1)

    async def work(path: str) -> None:
        async with AsyncClient(path) as client:
            assert (await client.list_runtime_skills()).total == 0

    with Scripted(str(folder / "s"), full, serve_well) as daemon:
        run(work(daemon.path))
        assert daemon.connections == 2


# Cancelled and closed calls


def test_a_cancelled_call_that_has_its_connection_alone_closes_it(folder: Path) -> None:
    ended: list[bool] = []

    def silent(far: Far) -> None:
        far.request()
        try:
            far.request()
        except EOFError:
            ended.append(True)

    async def work(path: str) -> None:
        async with AsyncClient(path) as client:
            call = asyncio.create_task(client.recall("anything"))
            await until(lambda: len(daemon.requests) == 1)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            await until(lambda: ended == [True])
            assert (await client.list_runtime_skills()).total == 0

    with Scripted(str(folder / "s"), silent, serve_well) as daemon:
        run(work(daemon.path))
        assert daemon.connections == 2


def test_a_call_that_is_cancelled_or_times_out_leaves_the_others_of_its_connection_alone(folder: Path) -> None:
    given_up = threading.Event()

    def late(far: Far) -> None:
        first, second = far.request(), far.request()
        far.request()  # sent after the first was called off
        assert given_up.wait(SOON_S)
        far.answer(first, {**LISTED, "total": 9})
        far.answer(second, {**LISTED, "total": 2})
        serve_well(far)

    async def work(path: str) -> None:
        async with AsyncClient(path) as client:
            first = asyncio.create_task(client.list_runtime_skills())
            second = asyncio.create_task(client.list_runtime_skills())
            await until(lambda: len(daemon.requests) == 2)
            first.cancel()
            with pytest.raises(asyncio.CancelledError):
                await first
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await client.list_runtime_skills()
            given_up.set()
            assert (await second).total == 2
            assert (await client.list_runtime_skills()).total == 0

    with Scripted(str(folder / "s"), late) as daemon:
        run(work(daemon.path))
        assert daemon.connections == 1


def test_closing_ends_the_calls_of_other_tasks(folder: Path) -> None:
    def silent(far: Far) -> None:
        while True:
            far.request()

    async def work(path: str) -> None:
        client = AsyncClient(path, pool=2)
        calls = [asyncio.create_task(client.hello()) for _ in range(3)]
        await until(lambda: len(daemon.requests) == 3)
        await client.close()
        assert [type(each) for each in await asyncio.gather(*calls, return_exceptions=True)] == [ClientClosed] * 3
        await client.close()

    with Scripted(str(folder / "s"), silent) as daemon:
        run(work(daemon.path))


# Other loops


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # a loop warns of what was left open
@pytest.mark.parametrize("ended", ["closed", "stopped"])
def test_in_another_loop_a_client_opens_a_connection_of_its_own(served: Served, ended: str) -> None:
    async def one(number: int) -> str:
        report, _ = await asyncio.gather(client.commit_transcript(**commit(number, ended)), client.hello())
        return report.turns[0].turn_id

    client = AsyncClient(served.path, scope=WireScope(owner_id="loops"))
    with asyncio.Runner() as first:
        assert first.run(one(1)) == "t1"
        if ended == "stopped":
            assert run(one(2)) == "t2"
            assert first.run(one(3)) == "t3"
    assert run(one(4)) == "t4"
    run(client.close())
    with pytest.raises(ClientClosed):
        run(client.hello())


def test_two_loops_that_run_do_not_share_a_client(served: Served) -> None:
    async def work() -> None:
        async with AsyncClient(served.path) as client:
            with pytest.raises(errors.InvalidRequest) as caught:
                await asyncio.to_thread(asyncio.run, client.hello())
            assert "in each event loop" in caught.value.hint
            assert (await client.hello()).server == "beetle"

    run(work())


# Events and progress


def test_a_subscription_is_an_async_iterator_that_closing_ends(served: Served) -> None:
    async def work() -> None:
        scope = WireScope(owner_id="watched")
        async with AsyncClient(served.path, scope=scope) as client:
            async with await client.subscribe(["transcript"]) as events:
                await client.commit_transcript(**commit(1, "w"))
                event = await anext(events)
                assert (event.topic, event.event["turns"]) == ("transcript", 1)
                waiting = asyncio.create_task(anext(events, None))
                await asyncio.sleep(0)
                await events.close()
                assert await waiting is None
            assert [each async for each in events] == []
            with pytest.raises(errors.BeetleError):
                await client.subscribe(["weather"])
            left = await client.subscribe(["transcript"])
            del left

    run(work())


def test_a_closed_client_begins_no_subscription(folder: Path) -> None:
    async def work(path: str) -> None:
        client = AsyncClient(path)
        await client.close()
        with pytest.raises(ClientClosed):
            await client.subscribe(["skill"])

    with Scripted(str(folder / "s"), serve_well) as daemon:
        run(work(daemon.path))
        assert daemon.connections == 0


def test_a_subscription_whose_daemon_ends_says_so(folder: Path) -> None:
    def ending(far: Far) -> None:
        request = far.request()
        far.answer(request, {"sub": "sub-1", "topics": ["transcript"]})
        for number in range(600):
            far.send({"v": 1, "sub": "sub-1", "topic": "transcript", "seq": number, "event": {"event": "committed"}})

    async def work(path: str) -> None:
        events = await AsyncClient(path).subscribe(["transcript"])
        found: list[int | None] = []
        with pytest.raises(ConnectionError):
            async for event in events:
                found.append(event.seq)
                if len(found) == 1:
                    await asyncio.sleep(0.02)  # more come than are taken
        assert found == list(range(600))
        await events.close()

    with Scripted(str(folder / "s"), ending) as daemon:
        run(work(daemon.path))


def test_progress_is_told_of_each_call_by_itself(folder: Path) -> None:
    def working(far: Far) -> None:
        subs, calls = [], []
        while len(calls) < 2:
            request = far.request()
            if request["op"] == "subscribe":
                subs.append(f"sub-{len(subs)}")
                far.answer(request, {"sub": subs[-1], "topics": ["lifecycle"]})
            else:
                calls.append(request)
        for call in calls:
            said = {"event": "progress", "operation": call["op"], "id": call["id"], "step": call["op"]}
            for sub in subs:  # each subscription of a connection is told of all its calls
                event = {**said, "number": 1, "steps": 2, "done": 3, "of": 4}
                far.send({"v": 1, "sub": sub, "topic": "lifecycle", "event": event})
                far.send({"v": 1, "sub": sub, "topic": "lifecycle", "event": {"event": "job_done", "id": 7}})
        for call in calls:
            far.answer(call)
        left = [far.request() for _ in subs]
        assert {request["op"] for request in left} == {"unsubscribe"}
        serve_well(far)

    async def work(path: str) -> None:
        async with AsyncClient(path) as client:
            told: tuple[list[ProgressStep], list[ProgressStep]] = ([], [])
            await asyncio.gather(
                client.call("skill.list", on_progress=told[0].append),
                client.call("transcript.conversations", on_progress=told[1].append),
                return_exceptions=True,
            )
            assert told == (
                [ProgressStep("skill.list", 1, 2, 3, 4)],
                [ProgressStep("transcript.conversations", 1, 2, 3, 4)],
            )
            assert (await client.list_runtime_skills()).total == 0

    with Scripted(str(folder / "s"), working) as daemon:
        run(work(daemon.path))


def test_a_real_daemon_tells_how_far_it_is(served: Served) -> None:
    async def work() -> None:
        async with AsyncClient(served.path, scope=WireScope(owner_id="steps")) as client:
            await client.commit_transcript(**commit(1))
            told: list[ProgressStep] = []
            report = await client.call("store.verify", on_progress=told.append)
            assert report.lifecycle is not None and report.lifecycle.operation == "store.verify"
            assert told and len({step.steps for step in told}) == 1

    run(work())


# Sessions, of both clients


def test_a_session_fills_scope_and_conversation_into_every_call(served: Served) -> None:
    with Client(served.path, pool=2) as client:
        session = client.session(owner="ida", agent="agent-main", conversation="tea", channel="telegram")
        assert session.commit_transcript(turns=[turn(1, "the kettle is red")]).committed == 1
        assert session.replay_transcript(view="host_ui").turns[0].turn_id == "t1"
        batch = session.batch(
            [
                {"op": "transcript.commit", "args": {"turns": [turn(2, "the cup is blue")]}},
                {"op": "memory.recall", "args": {"query": "kettle"}},
            ]
        )
        assert batch.reports[0]["committed"] == 1
        hits = session.recall("kettle").hits
        assert hits[0].conversation is not None and hits[0].conversation.channel_id == "telegram"
        other = client.session(owner="ida", conversation="coffee", channel="telegram")
        assert other.recall("kettle").hits, "recall is not narrowed to the conversation"
        assert other.recall("kettle").working_recall.current_conversation is None
        assert session.recall("kettle").working_recall.current_conversation is not None
        elsewhere = {"conversation_id": "else"}
        assert session.commit_transcript(conversation=elsewhere, turns=[turn(3)]).committed == 1
        assert not client.recall("kettle red").hits
    found: list[str] = []

    async def work() -> None:
        async with AsyncClient(served.path) as client:
            session = client.session(owner="ida", conversation="tea", channel="telegram")
            found.extend(each.turn_id for each in (await session.replay_transcript(view="host_ui")).turns)

    run(work())
    assert found == ["t1", "t2"]
