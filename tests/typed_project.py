"""A user's project in two files: right code, and lines of which each is wrong; tests/test_wheel.py has it checked."""

from __future__ import annotations

RIGHT = """\
from datetime import UTC, datetime

from beetle.async_client import AsyncClient
from beetle.client import Client
from beetle.contracts.common import Conversation
from beetle.contracts.errors import BeetleError, NotFound
from beetle.contracts.memory import MemoryRecallReport, MemoryRecallRequest, ProceduralWrite
from beetle.contracts.skills import RuntimeSkillWrite
from beetle.sdk import MemoryRuntime

MESSAGE = {"message_id": "m1", "role": "user", "content": "c"}
TURN = {"turn_id": "t1", "at": "2026-05-17T09:30:00Z", "messages": [MESSAGE]}


def remember(memory: MemoryRuntime | Client) -> MemoryRecallReport:
    memory.commit_transcript(conversation={"conversation_id": "c1"}, turns=[TURN])
    memory.commit_transcript(conversation=Conversation(conversation_id="c1"), turns=(TURN,))
    skill = RuntimeSkillWrite(name="n", topic="t", title="t", summary="s", content="c")
    memory.write(kind="procedural", source="manual", writes=[skill])
    memory.write(ProceduralWrite(source="manual", writes=(skill,)))
    memory.edit_runtime_skill(name="n", title="T", edit_reason="r")
    memory.set_runtime_skill_enabled(name="n", enabled=False)
    memory.delete_runtime_skill(name="n")
    memory.request_transcript_lifecycle(
        conversation={"conversation_id": "c1"}, action="mask", turn_ids=["t1"], reason="r", dry_run=True
    )
    memory.recall("key", limit=3)
    memory.replay_transcript({"conversation_id": "c1"}, view="host_ui")
    return memory.recall(MemoryRecallRequest(query="key", limit=3))


def look(memory: MemoryRuntime | Client) -> list[str]:
    now = datetime.now(UTC)
    hits = memory.recall(query="key", planes=("evidence", "long_term"), since=now, until="2027-01-01T00:00:00Z")
    block: str | None = memory.project(user_query="today", pressure="elevated").system_memory_block
    found = [hit.ref for hit in hits.hits] + [block or ""]
    found += [each.name for each in memory.list_runtime_skills(query="n", limit=3).runtime_skills]
    found += [memory.hello().server, memory.inspect().store.backend, memory.capabilities().profile]
    try:
        memory.get_long_term(ref="long_term:f-1", view="host_ui")
    except NotFound as error:
        found.append(error.hint)
    except BeetleError as error:
        found.append(error.key)
    memory.list_long_term(state="current")
    found += [each.path for each in memory.import_("notes.jsonl", format="jsonl").files]
    found += memory.export_(include_private=False)
    memory.list_conversations()
    memory.replay_transcript(conversation={"conversation_id": "c1"}, view="host_ui")
    memory.search_transcript(query="key", view="model_context")
    memory.governance_report(since=datetime.now(UTC))
    memory.list_snapshots(limit=2)
    memory.verify_store(pages=False)
    memory.read_event_log(topics=["lifecycle"], newest_first=True)
    return found


async def ask(memory: AsyncClient) -> list[str]:
    report = await memory.commit_transcript(conversation={"conversation_id": "c1"}, turns=[TURN])
    found = [each.turn_id for each in report.turns]
    hits: MemoryRecallReport = await memory.recall("key", limit=3, planes=["evidence"])
    found += [hit.ref for hit in hits.hits]
    async with await memory.subscribe(["transcript"]) as events:
        async for event in events:
            found.append(event.topic or "")
    found.append(str((await memory.import_("notes.jsonl", dry_run=True)).total("turns")))
    async for line in memory.export_(format="markdown", conversations=["c1"]):
        found.append(line)
    session = memory.session(owner="ada", conversation="c1")
    found += [each.turn_id for each in (await session.replay_transcript(view="host_ui")).turns]
    return found


def talk(memory: Client) -> int:
    session = memory.session(owner="ada", agent="main", conversation="c1")
    session.commit_transcript(conversation=Conversation(conversation_id="c2"), turns=[TURN])
    return session.commit_transcript(turns=[TURN]).committed


with MemoryRuntime.open(backend="in-memory") as runtime:
    remember(runtime)
with Client("/run/beetle.sock") as client:
    look(client)
"""

WRONG = {
    "memory.recall(limit=3)": "a required field is missing",
    'memory.recall(query="key", planes=["evidense"])': "no such plane",
    'memory.set_runtime_skill_enabled(name="n", enabled="no")': "a text is no bool",
    "tasks.recall(limit=3)": "a required field is missing",
    "tasks.hello().server": "a coroutine is no report",
}
HEAD = """\
from beetle.async_client import AsyncClient
from beetle.client import Client

memory = Client("s")
tasks = AsyncClient("s")
"""
