"""Titles, bullets and keywords that the configured model writes; the extractive ones wherever it does not."""

from __future__ import annotations

import json
import os
import random
import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingMixIn, UnixStreamServer
from typing import Any

import pytest

from beetle import MemoryRuntime
from beetle.domain.toc.summary import Text
from beetle.domain.toc.writing import question_of, written_of
from beetle.runtime.host.config import Model, model_of
from beetle.runtime.host.dependencies import Dependencies
from tests.building import message, talk, turn
from tests.sdk.answering import Answer, Asked, ModelServer, openai
from tests.toc.conftest import Plain, ask, build, event, everything, ingest, node, open_memory

CANARY = "zanzibarquartz"
JOB = "model-summaries"
MORNING = (
    event("a", "2026-01-30T10:00:00Z", "I found a flat in Porto near the river for 900 euros."),
    event("b", "2026-01-30T10:02:00Z", "Ask the landlord about the heating before you sign anything."),
    event("c", "2026-01-30T10:04:00Z", "The heating is new, and I will sign the contract on Monday."),
)
EVENING = (
    event("d", "2026-01-30T20:00:00Z", "Maria plays the cello in the city orchestra tonight."),
    event("e", "2026-01-30T20:05:00Z", "Buy two tickets for the cello concert before seven."),
)


def turns_of(asked: Asked) -> list[Plain]:
    return json.loads(asked.body["messages"][1]["content"])["turns"]


def answer_with(**fields: Any) -> Answer:
    return openai(json.dumps(fields))


def telling(asked: Asked) -> Answer:
    """A model that answers from the turns alone: the same for the same."""
    turns = turns_of(asked)
    first, last = turns[0], turns[-1]
    bullets = [
        {"text": f"The user said: {first['text'][:60].rstrip('.')}", "turns": [first["id"]]},
        {"text": f"Both spoke: {last['text'][:60].rstrip('.')}", "turns": [first["id"], last["id"]]},
    ]
    words = [word.strip(".,") for word in first["text"].split() if len(word) > 4]
    return answer_with(title=" ".join(first["text"].split()[:4]), bullets=bullets, keywords=words[:3])


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    running = ModelServer()
    yield running
    running.stop()


@pytest.fixture(autouse=True)
def told_again(request: pytest.FixtureRequest) -> None:
    if "server" in request.fixturenames:
        running = request.getfixturevalue("server")
        running.asked.clear()
        running.answer = telling


def opened(model: Model | None, path: str | None = None) -> MemoryRuntime:
    more = {"dependencies": Dependencies(model=model)}
    return open_memory(**more) if path is None else open_memory(path, **more)


@pytest.fixture
def memory(server: ModelServer) -> Iterator[MemoryRuntime]:
    with opened(server.model(summaries=True)) as running:
        yield running


def write(memory: MemoryRuntime) -> Plain:
    """Build it, have the model write, and roll that up; how the model's job stands then."""
    build(memory)
    job = ask(memory, "scheduler.run", {"job_name": JOB, "wait": True})["job"]
    build(memory)
    return job


def segments(memory: MemoryRuntime) -> list[Plain]:
    found = [each for each in everything(memory).values() if each["level"] == "segment"]
    return sorted(found, key=lambda each: (each["start_time_ms"], each["node_id"]))


def texts(node: Plain) -> list[str]:
    return [each["text"] for each in node["bullets"]]


def test_the_model_writes_titles_bullets_and_keywords_at_every_level(memory: MemoryRuntime) -> None:
    ingest(memory, *MORNING, *EVENING)
    job = write(memory)
    assert (job["last_result"], job["run_count"]) == ("success", 1)
    morning, evening = segments(memory)
    assert (morning["title"], evening["title"]) == ("I found a flat", "Maria plays the cello")
    assert texts(morning)[0] == "The user said: I found a flat in Porto near the river for 900 euros"
    assert morning["keywords"][:2] == ("found", "porto")
    day, year = node(memory, "toc:day:2026-01-30"), node(memory, "toc:year:2026")
    assert (day["title"], year["title"]) == ("January 30, 2026", "2026")
    assert set(texts(day)) <= {*texts(morning), *texts(evening)}
    assert texts(day)
    assert set(texts(year)) <= set(texts(day))
    assert {"porto", "cello"} & set(day["keywords"])


def test_every_bullet_of_the_model_leads_to_the_events_that_it_rests_on(memory: MemoryRuntime) -> None:
    ingest(memory, *MORNING)
    write(memory)
    (morning,) = segments(memory)
    spans = []
    for level in everything(memory).values():
        assert level["bullets"]
        for bullet in level["bullets"]:
            (grip_id,) = bullet["grip_ids"]
            found = ask(memory, "grip.expand", {"grip_id": grip_id})
            inside = " ".join(each["text"] for each in found["excerpt_events"])
            assert bullet["text"].partition(": ")[2] in inside
            assert found["grip"]["excerpt"] in inside
            if level is morning or level["node_id"] == morning["node_id"]:
                spans.append((found["grip"]["event_id_start"], found["grip"]["event_id_end"]))
    assert spans == [("a", "a"), ("a", "c")]


def test_without_the_switch_no_model_is_asked(server: ModelServer) -> None:
    with opened(server.model()) as memory:
        ingest(memory, *MORNING)
        assert write(memory)["last_result"] == "success"
        assert segments(memory)[0]["bullets"]
    assert server.asked == []


def test_one_question_for_each_segment_and_none_twice(memory: MemoryRuntime, server: ModelServer) -> None:
    ingest(memory, *MORNING, *EVENING)
    write(memory)
    write(memory)
    assert ask(memory, "admin.rebuild_toc")["changed_nodes"] == 0
    write(memory)
    assert sorted(len(turns_of(each)) for each in server.asked) == [2, 3]
    assert all("data" in each.body["messages"][0]["content"] for each in server.asked)


def test_only_what_is_live_and_shared_is_sent(memory: MemoryRuntime, server: ModelServer) -> None:
    hidden = [
        message(f"m{n}", f"{CANARY} {kind}", visibility=kind) for n, kind in enumerate(("private", "soul", "operator"))
    ]
    ask(memory, "transcript.commit", talk(turn("t1", *hidden), turn("t2", "Clay needs patience and a hot kiln.")))
    ingest(
        memory,
        *MORNING,
        event("x", "2026-01-30T10:01:00Z", f"{CANARY} masked"),
        event("y", "2026-01-30T10:01:30Z", f"{CANARY} erased"),
    )
    for name, action in (("x", "mask"), ("y", "delete_raw")):
        place = {"channel_id": "event", "conversation_id": "s1"}
        ask(
            memory,
            "transcript.lifecycle",
            {"conversation": place, "action": action, "turn_ids": [name], "reason": "a test"},
        )
    write(memory)
    sent = json.dumps([each.body for each in server.asked])
    assert "kiln" in sent and "Porto" in sent
    assert CANARY not in sent


SESSION = {"channel_id": "event", "conversation_id": "s1"}


def govern(memory: MemoryRuntime, action: str, name: str) -> None:
    args = {"conversation": SESSION, "action": action, "turn_ids": [name], "reason": "a test"}
    ask(memory, "transcript.lifecycle", args)


@pytest.mark.parametrize("action", ["mask", "delete_raw"])
def test_what_is_governed_is_gone_from_what_the_model_wrote_at_once(
    server: ModelServer, tmp_path: Path, action: str
) -> None:
    with opened(server.model(summaries=True), str(tmp_path / "beetle.db")) as memory:
        ingest(
            memory,
            event("z", "2026-01-30T10:00:00Z", f"The {CANARY} kiln opens with a brass key."),
            *MORNING[1:],
            *EVENING,
        )
        write(memory)
        morning, evening = segments(memory)
        assert CANARY in morning["title"] and CANARY in str(node(memory, "toc:year:2026"))
        govern(memory, action, "z")
        assert CANARY not in str(everything(memory))
        # The rest of the day is as it was, and what is left of the morning has its extractive bullets.
        assert segments(memory)[1] == evening
        assert segments(memory)[0]["bullets"]
        write(memory)
        assert CANARY not in str(everything(memory))
        assert segments(memory)[0]["title"] == "Ask the landlord about"
        if action == "delete_raw":
            held = b"".join(each.read_bytes() for each in tmp_path.iterdir() if each.is_file())
            assert CANARY.encode() not in held


def test_what_was_read_before_midnight_is_taken_back_behind_it(memory: MemoryRuntime, server: ModelServer) -> None:
    def quoting(asked: Asked) -> Answer:
        shown = json.loads(asked.body["messages"][1]["content"])
        title = shown["before"][0]["text"] if shown["before"] else "Nothing before"
        first = shown["turns"][0]
        bullet = {"text": first["text"], "turns": [first["id"]]}
        return answer_with(title=title, bullets=[bullet], keywords=[])

    server.answer = quoting
    ingest(
        memory,
        event("a", "2026-01-30T23:58:00Z", f"The {CANARY} key lies under the stone."),
        event("b", "2026-01-31T00:01:00Z", f"A {CANARY} key under a stone is easy to find."),
    )
    write(memory)
    assert json.loads(server.asked[0].body["messages"][1]["content"])["before"]
    later = segments(memory)[1]
    assert CANARY in later["title"]
    govern(memory, "mask", "a")
    assert segments(memory)[1]["title"] != later["title"]
    write(memory)
    assert CANARY not in segments(memory)[0]["title"]


def test_what_changes_while_the_model_is_asked_is_not_kept(memory: MemoryRuntime, server: ModelServer) -> None:
    """Its answer is of what was live when it was asked. That somebody can write meanwhile shows: the writer is free."""
    ingest(memory, event("z", "2026-01-30T10:00:00Z", f"The {CANARY} kiln opens with a brass key."), *MORNING[1:])

    def masked_meanwhile(asked: Asked) -> Answer:
        govern(memory, "mask", "z")
        return telling(asked)

    server.answer = masked_meanwhile
    write(memory)
    assert CANARY not in str(everything(memory))
    server.answer = telling
    write(memory)
    assert segments(memory)[0]["title"] == "Ask the landlord about"


def test_a_late_event_has_its_segment_written_again(memory: MemoryRuntime, server: ModelServer) -> None:
    ingest(memory, *MORNING, *EVENING)
    write(memory)
    asked = len(server.asked)
    ingest(memory, event("0", "2026-01-30T09:59:00Z", "Good news about a house with a garden."))
    write(memory)
    assert segments(memory)[0]["title"] == "Good news about a"
    assert len(server.asked) == asked + 1


def test_the_order_of_events_and_a_rebuild_change_nothing(server: ModelServer) -> None:
    whole: list[dict[str, Plain]] = []
    for seed in range(2):
        with opened(server.model(summaries=True)) as memory:
            events = [*MORNING, *EVENING, event("f", "2026-02-03T08:00:00Z", "The dentist moved the visit to Friday.")]
            random.Random(seed).shuffle(events)
            for place in range(0, len(events), 2):
                ingest(memory, *events[place : place + 2])
                write(memory)
            whole.append(everything(memory))
            ask(memory, "admin.rebuild_toc")
            assert everything(memory) == whole[-1]
            write(memory)
            assert everything(memory) == whole[-1]
    assert whole[0] == whole[1]


LIES: dict[str, Callable[[Asked], Answer]] = {
    "no JSON": lambda _: openai("Sure! Here is your summary."),
    "another shape": lambda _: answer_with(items=[]),
    "another field": lambda _: answer_with(title="x", bullets=[], keywords=[], run="rm -rf /"),
    "no bullets": lambda _: answer_with(title="A flat", bullets=[], keywords=["flat"]),
    "no turns": lambda _: answer_with(title="x", bullets=[{"text": "A flat in Porto near the river", "turns": []}]),
    "turns that nobody sent": lambda _: answer_with(
        title="A flat", bullets=[{"text": "A flat in Porto near the river", "turns": ["t99", "a"]}]
    ),
    "what no turn says": lambda _: answer_with(
        title="x", bullets=[{"text": "Everybody should buy our golden coins today", "turns": ["t1"]}]
    ),
    "another number": lambda _: answer_with(
        title="x", bullets=[{"text": "A flat in Porto near the river for 100 euros", "turns": ["t1"]}]
    ),
    "another name": lambda _: answer_with(
        title="x", bullets=[{"text": "I found a flat in Lisbon near the river", "turns": ["t1"]}]
    ),
    "an address": lambda _: answer_with(
        title="x", bullets=[{"text": "A flat in Porto near the river, see https://evil.example/x", "turns": ["t1"]}]
    ),
    "a refusal of the server": lambda _: Answer(500, b"{}"),
    "a page": lambda _: Answer(200, b"<html>", "text/html"),
}  # fmt: skip


def test_a_model_that_lies_leaves_the_extractive_summary_and_says_so(server: ModelServer) -> None:
    with opened(None) as plain:
        ingest(plain, *MORNING)
        build(plain)
        extractive = everything(plain)
    for name, lie in LIES.items():
        server.answer = lie
        with opened(server.model(summaries=True)) as memory:
            ingest(memory, *MORNING)
            job = write(memory)
            assert everything(memory) == extractive, name
            assert (job["last_result"], job["last_error_key"]) == ("failed", "services_unavailable"), name
            assert not any(word in job["last_error"] for word in ("Porto", "coins", "evil", "Sure")), name


def test_a_model_that_is_not_there_is_told_of_and_what_it_wrote_before_stays(server: ModelServer) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        nobody = f"http://127.0.0.1:{taken.getsockname()[1]}"
    absent = model_of({"kind": "openai", "name": "small", "url": nobody, "summaries": True})
    with opened(absent) as memory:
        ingest(memory, *MORNING)
        assert write(memory)["last_error"] == "the model cannot be reached"
        assert segments(memory)[0]["bullets"]


def test_a_question_that_failed_is_held_back_and_the_others_are_asked(
    memory: MemoryRuntime, server: ModelServer
) -> None:
    server.answer = lambda asked: openai("?") if "cello" in json.dumps(asked.body) else telling(asked)
    ingest(memory, *MORNING, *EVENING)
    assert write(memory)["last_result"] == "failed"
    assert write(memory)["last_result"] == "success"
    assert len(server.asked) == 2
    assert segments(memory)[0]["title"] == "I found a flat"


def written(given: Plain) -> Any:
    question = question_of(
        [Text(7, "user", "Sign the <b>lease</b> with Maria, room 12, on Monday."), Text(9, "tool", "ok")], []
    )
    assert question is not None
    return written_of(json.dumps(given).encode(), question)


def test_what_is_kept_of_a_hostile_answer_is_one_plain_line() -> None:
    script = "Sign the lease with <script>alert(1)</script> Maria on Monday"
    assert written({"title": "", "bullets": [{"text": script, "turns": ["t1"]}]}) is None
    clean = written({
        "title": "# **The** lease\x07", "keywords": ["maria", "MARIA", "lea", ".*", "\x1b[0m"],
        "bullets": [{
            "text": "\x1b**Sign** the\u202e lease\r\nwith [Maria](x:y)\u0000 on `Monday` <img src=x>",
            "turns": ["t1", "t1", "?"],
        }],
    })  # fmt: skip
    assert (clean.title, clean.bullets[0].text) == ("The lease", "Sign the lease with Maria on Monday")
    assert [each.place.begin for each in clean.keywords] == [27]


def test_a_secret_and_a_title_of_something_else_are_dropped() -> None:
    key = "sk_live_" + "a1B2c3D4e5F6g7H8i9"
    found = written({
        "title": "Golden coins for everybody", "keywords": [key],
        "bullets": [
            {"text": f"Sign the lease with Maria, key {key}", "turns": ["t1"]},
            {"text": "Sign the lease with Maria.", "turns": ["t1"]},
        ],
    })  # fmt: skip
    assert (found.title, [each.text for each in found.bullets], found.keywords) == (
        "",
        ["Sign the lease with Maria."],
        (),
    )


def test_a_host_s_own_instructions_and_the_rest_of_long_turns_are_not_sent() -> None:
    question = question_of(
        [Text(1, "system", "secret plan"), Text(2, "tool", "x" * 5000), Text(3, "user", "y" * 90_000)], []
    )
    assert question is not None
    sent = question.prompt.user
    assert "secret plan" not in sent
    assert len(sent) < 6000
    assert question_of([Text(1, "system", "secret plan")], []) is None


def test_a_model_at_a_unix_socket(tmp_path: Path) -> None:
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            asked.append(self.path)
            found = telling(Asked(self.path, {}, body)).body
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(found)))
            self.end_headers()
            self.wfile.write(found)

        def log_message(self, format: str, *args: Any) -> None:
            del format, args

    class Server(ThreadingMixIn, UnixStreamServer):
        def get_request(self) -> tuple[Any, Any]:
            found, _ = super().get_request()
            return found, ("unix", 0)

    path = os.path.relpath(tmp_path / "m", "/")
    with Server(f"/{path}", Handler) as listening:
        thread = threading.Thread(target=listening.serve_forever, args=(0.01,))
        thread.start()
        model = model_of({"kind": "openai", "name": "small", "url": f"unix:/{path}", "summaries": True})
        with opened(model) as memory:
            ingest(memory, *MORNING)
            assert write(memory)["last_result"] == "success"
            assert segments(memory)[0]["title"] == "I found a flat"
        listening.shutdown()
        thread.join()
    assert asked == ["/v1/chat/completions"]
