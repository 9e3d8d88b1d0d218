"""What the pictures show: a daemon with some of everything, an empty one, and one with texts that do not fit."""

from __future__ import annotations

import re
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from beetle.client import Client
from beetle.contracts.common import WireScope
from beetle.contracts.envelope import DeviceAuth
from tests.forked import Daemon
from tests.tui.remembering import PROFILE, learn
from tests.tui.skills_shown import skill, write
from tests.tui.timeline import remember

MOUNTS = "BM_AGENT_SKILL_DIRS"
FOLDER = "/tmp/beetle-workshop"
"""What the daemon's own folder, of as many characters, is called in a picture."""
READ = re.compile(r"((?:live|read|LOST|waiting|daemon) )([\d:]{5,8})Z")
"""When the console has read, by its own clock."""
DIGEST = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{12,64}|(?<=[-=:])[0-9a-f]{1,11}(?=…)")
"""Ids and hashes, whole or cut off."""
SAID = (
    ("t1", "2026-03-02T08:12:00Z", "user", "Mara", "The pump on line 2 is loud again."),
    ("t2", "2026-03-02T08:13:00Z", "assistant", None, "Stop it and look at the strainer, please.\nIs there any foam?"),
    ("t3", "2026-03-02T08:31:00Z", "user", "Mara", "Cleaning the strainer helped. It is quiet now."),
    ("t4", "2026-03-04T16:05:00Z", "user", "健太", "予備の鍵は青い箱に入っています 🔑"),
    ("t5", "2026-03-05T09:40:00Z", "user", "Noa", "המשאבה שקטה היום"),
    ("t6", "2026-03-06T10:02:00Z", "user", "Mara", "My number is 555 0199, call me there."),
)
PUMP = (
    "# Steps\n\n1. Stop the **pump** at the panel.\n2. Close the valve before it.\n3. Clean the strainer.\n\n"
    "```sh\nsystemctl stop pump\n```\n"
)
AGENT_SKILL = "---\nname: {name}\ndescription: {described}\n---\n# {name}\n\nRead the manual of the machine first.\n"


MIXED = (
    "鍵は青い箱に入っています。 👩\u200d👩\u200d👧\u200d👦 🇯🇵 👍🏽 ❤\ufe0f ½ ﾊﾝｶｸ",
    "המשאבה שקטה היום; المضخة هادئة اليوم",
    "Z\u0337\u0322a\u0334l\u0335g\u0338o\u0337 e\u0301 กำลัง नमस्ते",
    "\x1b[31mred\x1b[0m \x07\x9b2J \u202egnp.exe [b]no markup[/b] $x {y}",
)
WIDE = (*MIXED, "pump_" * 2_000, "鍵" * 5_000)
"""Wide, joined, from right to left, combining, what drives terminals; and lines of ten thousand characters."""
PLAIN = {number: None for number in (*range(32), *range(127, 160))}
"""What an id or label may not hold."""


class World(NamedTuple):
    """A daemon, and who asks it; an operator by default."""

    daemon: Daemon
    auth: DeviceAuth | None = None


@contextmanager
def workshop() -> Iterator[World]:
    """A daemon that knows a workshop."""
    with _daemon() as daemon:
        with daemon.client() as client:
            _workshop(client)
        yield World(daemon)


@contextmanager
def broken() -> Iterator[World]:
    """The workshop, with a count that somebody has meddled with."""
    with workshop() as world:
        world.daemon.stop()
        with sqlite3.connect(world.daemon.store) as store:
            store.execute("UPDATE conversation SET turns = turns + 7 WHERE conversation_id = 'workshop'")
        store.close()
        world.daemon.start()
        yield world


@contextmanager
def stranger() -> Iterator[World]:
    """The workshop, seen by a device that may do little."""
    with workshop() as world:
        with world.daemon.client() as client:
            key = client.rotate_device_key(device_id="tablet").appKeyOnce or ""
        yield World(world.daemon, DeviceAuth(device_id="tablet", app_key=key))


@contextmanager
def new_store() -> Iterator[World]:
    """A daemon with nothing in it."""
    with _daemon(mounted=False) as daemon:
        yield World(daemon)


@contextmanager
def years() -> Iterator[World]:
    """A daemon with events of three years, and turns that hosts captured."""
    with _daemon(mounted=False) as daemon:
        with daemon.client() as client:
            remember(client)
        yield World(daemon)


@contextmanager
def wide_store() -> Iterator[World]:
    """A daemon with texts that do not fit."""
    with _daemon(mounted=False) as daemon:
        with daemon.client() as client:
            _wide(client)
        yield World(daemon)


WORLDS: Mapping[str, Callable[[], AbstractContextManager[World]]] = {
    "full": workshop,
    "own": workshop,
    "broken": broken,
    "stranger": stranger,
    "empty": new_store,
    "wide": wide_store,
    "years": years,
}


@contextmanager
def _daemon(mounted: bool = True) -> Iterator[Daemon]:
    with tempfile.TemporaryDirectory(prefix="beetle-", dir="/tmp") as folder:
        assert len(folder) == len(FOLDER)
        daemon = Daemon(profile=PROFILE, folder=folder)
        with pytest.MonkeyPatch.context() as patch:
            patch.delenv(MOUNTS, raising=False)
            if mounted:
                patch.setenv(MOUNTS, str(_agent_skills(Path(folder) / "skills")))
            daemon.start()
        try:
            yield daemon
        finally:
            daemon.stop()


def _agent_skills(folder: Path) -> Path:
    for name, described in (("read-gauges", "Read the gauges of a line."), ("order-parts", "Order spare parts.")):
        (folder / name).mkdir(parents=True)
        (folder / name / "SKILL.md").write_text(AGENT_SKILL.format(name=name, described=described))
    (folder / "broken").mkdir()
    (folder / "broken" / "SKILL.md").write_text("No front matter here.\n")
    return folder


def _workshop(client: Client) -> None:
    _talk(client)
    _skills(client)
    _facts(client)
    _tools(client)
    _chains(client)
    client.list_agent_skills()  # the scans after the first one tell what has changed since
    client.add_device(label="Kitchen display", device_id="kitchen", capabilities=("recall", "skill"))
    client.add_device(label="Panel of line 2", device_id="panel-2", capabilities=("recall",))
    client.update_device(device_id="panel-2", state="suspended")
    client.add_device(label="台所のタブレット 🍳", device_id="tablet", capabilities=("recall", "project"))


def _talk(client: Client) -> None:
    turns: list[dict[str, Any]] = []
    for turn_id, at, role, speaker, text in SAID:
        message: dict[str, Any] = {"message_id": f"m{turn_id[1:]}", "role": role, "content": text}
        if speaker is not None:
            message["actor"] = {"speaker": speaker}
        turns.append({"turn_id": turn_id, "at": at, "messages": [message]})
    client.commit_transcript(conversation={"conversation_id": "workshop"}, turns=turns)
    night = {"message_id": "m1", "role": "user", "content": "The boiler went out at two.", "actor": {"speaker": "Ali"}}
    client.commit_transcript(
        conversation={"channel_id": "radio", "conversation_id": "night-shift"},
        turns=[{"turn_id": "n1", "at": "2026-03-03T02:20:00Z", "messages": [night]}],
    )
    client.call(
        "transcript.lifecycle",
        {
            "conversation": {"conversation_id": "workshop"}, "action": "mask", "turn_ids": ["t6"],
            "reason": "a private number",
        },
    )  # fmt: skip


def _skills(client: Client) -> None:
    cited = {"citations": ["evidence:local/workshop/t3/m3"]}
    quiet = {"title": "Quieten the pump", "summary": "When the pump of line 2 is loud.", "content": PUMP}
    write(client, skill("runtime_skill__quieten-pump", **quiet, **cited))
    write(
        client,
        skill("runtime_skill__light-boiler", topic="boiler", title="Light the boiler", summary="After it went out."),
        skill("runtime_skill__find-key", topic="keys", title="鍵を探す (find the key)", summary="青い箱を見る。"),
    )
    write(client, skill("runtime_skill__quieten-pump", **{**quiet, "content": PUMP + "\nListen for a minute.\n"}))
    client.call("skill.set_enabled", {"name": "runtime_skill__light-boiler", "enabled": False})


def _facts(client: Client) -> None:
    cited = ["evidence:local/workshop/t4/m4"]
    learn(client, "The spare key is in the blue box (青い箱).", "spare key", evidence_refs=cited, authority="operator")
    pump = learn(client, "Cleaning the strainer helped.", "pump", evidence_refs=["evidence:local/workshop/t3/m3"])
    client.mutate_long_term(
        action="correct", ref=pump, content="The pump on line 2 is cleaned each week.", reason="Mara said so"
    )
    learn(client, "Mara prefers to be called by radio.", "Mara", kind="preference")
    client.propose(
        proposals=[
            {
                "kind": "fact_correct", "target": pump, "rationale": "said in the night shift",
                "change": {"content": "The pump on line 2 is cleaned each Monday."},
            }
        ]
    )  # fmt: skip
    waits = {"candidate_id": "boast", "authority": "assistant_claimed", "target": "long_term",
             "privacy": "shared_with_subject", "content": "The assistant repaired the pump."}  # fmt: skip
    client.write(kind="candidates", candidates=[waits])
    client.long_term_policy(action="suppress", topic="gossip", reason="nobody's business")


def _chains(client: Client) -> None:
    key = "line-2"
    client.bootstrap_chain(chain_key=key, agent_id="planner", agent_name="Planner", content="Memory of line 2.")
    client.append_thought(
        chain_key=key,
        agent_id="planner",
        thought_type="Decision",
        content="Clean the strainer weekly.",
        tags=["pump"],
        relations=[{"kind": "caused_by", "ref": "evidence:local/workshop/t3"}],
    )
    client.append_thought(chain_key=key, agent_id="reader", thought_type="Question", content="Who has the spare key?")
    client.append_retrospective(chain_key=key, agent_id="planner", content="A loud pump is a full strainer.", refs=[1])
    client.disable_chain_agent(chain_key=key, agent_id="reader")
    uploaded = f"---\nname: Quieten the pump\ndescription: When it is loud.\ntags: [pump]\n---\n# Steps\n\n{PUMP}"
    client.upload_skill(agent_id="planner", chain_key=key, content=uploaded)


def _tools(client: Client) -> None:
    tools = [
        {"tool_id": "valve.open", "title": "Open a valve", "schema_fingerprint": "s1", "risk_tags": ["water"]},
        {"tool_id": "pump.stop", "title": "Stop the pump", "schema_fingerprint": "s2"},
    ]
    client.upsert_agent_tool_registry(registry_id="workshop-tools", fingerprint="f1", tools=tools)
    used = {"tool_id": "pump.stop", "schema_fingerprint": "s2", "outcome": "succeeded", "summary": "stopped"}
    for number in (1, 2, 3):
        feedback = {"registry_ref": {"registry_id": "workshop-tools", "fingerprint": "f1"}, "turn_id": f"t{number}",
                    "observations": [used], "reuse_outcome": "succeeded"}  # fmt: skip
        written = {"kind": "agent_tool_usage_feedback", "feedback": feedback}
        client.call("memory.write", written, scope=WireScope(conversation_id="workshop"))


def _wide(client: Client) -> None:
    """In every place a text of all that is wide, narrow, or ten thousand characters long."""
    plain = [text.translate(PLAIN)[:250] for text in WIDE]
    turns = [
        {"turn_id": f"t{number}", "at": f"2026-03-02T08:{number:02}:00Z", "messages": [
            {"message_id": f"m{number}", "role": "user", "content": text, "actor": {"speaker": name}}]}
        for number, (text, name) in enumerate(zip(WIDE, plain, strict=True), 1)
    ]  # fmt: skip
    for name in plain:
        client.commit_transcript(conversation={"channel_id": name[:8], "conversation_id": name}, turns=turns)
    for number, (text, name) in enumerate(zip(WIDE, plain, strict=True), 1):
        texts = {"topic": name, "title": name, "summary": text[:1000], "content": f"# {text}\n\n{text}\n"}
        write(client, skill(f"runtime_skill__{'wide-' * 12}{number}", **texts))
        learn(client, text, name, candidate_id=f"c{number}")
        client.add_device(label=name, device_id=f"{number} {name}", capabilities=("recall",))


def masked(line: str, folder: str) -> str:
    """A line of the screen with what another run would show otherwise made the same, in as many cells."""
    line = line.replace(folder, FOLDER)
    line = READ.sub(lambda it: it[1] + "14:05:36"[: len(it[2])] + "Z", line)
    return DIGEST.sub(lambda it: ("0123456789abcdef" * 4)[: len(it[0])], line)
