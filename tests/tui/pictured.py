"""What the pictures of the console show: a daemon with some of everything, and readings that are the same each time."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from beetle.client import Client
from beetle.contracts.common import Report
from beetle.contracts.console import ConnectedPrincipal, ConsoleOverviewReport, Metrics, OperationMetrics
from beetle.contracts.control import HelloReport
from beetle.contracts.event_log import EventLogReadReport, EventRow
from beetle.contracts.memory import MemoryInspectionReport
from tests.running import Daemon
from tests.tui.remembering import PROFILE, learn
from tests.tui.skills_shown import skill, write
from tui.source import DaemonSource

MOUNTS = "BM_AGENT_SKILL_DIRS"
FOLDER = "/tmp/beetle-workshop"
"""What the daemon's own folder, of as many characters, is called in a picture."""
PID = 4021
MACHINE = {"disk_total_bytes": 64_000_000_000, "disk_free_bytes": 41_500_000_000}
OPERATOR = ConnectedPrincipal(principal="operator", transport="socket", connections=2)
STORE = {"bytes": 417_792, "wal_bytes": 86_520}
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


@contextmanager
def workshop() -> Iterator[Daemon]:
    """A daemon that knows a workshop."""
    with _daemon() as daemon, daemon.client() as client:
        _talk(client)
        _skills(client)
        _facts(client)
        _tools(client)
        client.list_agent_skills()  # the scans after the first one tell what has changed since
        client.add_device(label="Kitchen display", device_id="kitchen", capabilities=("recall", "skill"))
        client.add_device(label="Panel of line 2", device_id="panel-2", capabilities=("recall",))
        client.update_device(device_id="panel-2", state="suspended")
        client.add_device(label="台所のタブレット 🍳", device_id="tablet", capabilities=("recall", "project"))
        yield daemon


@contextmanager
def new_store() -> Iterator[Daemon]:
    """A daemon with nothing in it."""
    with _daemon(mounted=False) as daemon:
        yield daemon


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
    learn(client, "The spare key is in the blue box (青い箱).", "spare key", evidence_refs=cited)
    pump = learn(
        client, "The pump on line 2 is cleaned monthly.", "pump", evidence_refs=["evidence:local/workshop/t3/m3"]
    )
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
        client.write(kind="agent_tool_usage_feedback", feedback=feedback)


class Steady(DaemonSource):
    """A daemon's answers, with figures that never change in the place of the machine's and the process's."""

    def call(self, operation: str, arguments: Any = None) -> Report:
        """See Source."""
        return _steady(super().call(operation, arguments))


def _steady(report: Report) -> Report:
    match report:
        case HelloReport():
            return replace(report, pid=PID, version="0.1.0")
        case ConsoleOverviewReport(system=system, sessions=sessions, metrics=metrics):
            assert system is not None and sessions is not None and metrics is not None
            return replace(
                report,
                system=replace(system, process_rss_bytes=43_800_000, memory_limit_bytes=None),
                sessions=replace(sessions, connected=(OPERATOR,)),
                metrics=_asked(metrics),
                storage=replace(report.storage, **STORE, **MACHINE),
            )
        case MemoryInspectionReport():
            return replace(report, store=replace(report.store, pages=102, **STORE))
        case EventLogReadReport():
            return replace(report, rows=tuple(_of_pid(each) for each in report.rows))
        case _:
            return report


def _asked(metrics: Metrics) -> Metrics:
    calls = {"memory.recall": 31, "memory.write": 12}
    asked = [OperationMetrics(operation=name, calls=number, errors={}, p50_ms=2.1, p90_ms=3.4, p99_ms=5.2, max_ms=6.0)
             for name, number in calls.items()]  # fmt: skip
    return replace(metrics, operations=tuple(asked))


def _of_pid(row: EventRow) -> EventRow:
    return replace(row, subject={**row.subject, "pid": PID}) if "pid" in row.subject else row


BARS = "▁▂▃▄▅▆▇█"
LATENCY = "4.2 ms"
OFTEN = re.compile(rf"(│ (?:Writes|Recalls|Latency|RSS|WAL|Disk) .*?(?:/s|B|ms)  )( *[{BARS}](?:[ {BARS}]*[{BARS}])?)")
TIMES = re.compile(r"[\d,]*\.\d ms: search [\d,]*\.\d, load [\d,]*\.\d, rank [\d,]*\.\d")
TIMED = "2.1 ms: search 1.3, load 0.5, rank 0.3"


def masked(line: str, folder: str) -> str:
    """A line of the screen with what another run would show otherwise made the same, in as many cells."""
    line = line.replace(folder, FOLDER)
    # A date of the seeded world stays; what the clock of this run says does not.
    line = re.sub(r"\b20(?!26-03-0)\d\d-\d\d-\d\d", "2026-03-09", line)
    # A fraction ends before its last zeros: it is made one of six digits, in the cells of the blanks behind it.
    line = re.sub(r"(?<=2026-03-09T)[\d:.]+Z *", lambda it: "14:05:36.250000Z".ljust(len(it[0])), line)
    line = re.sub(r"(?<=2026-03-09[ T])\d\d:\d\d(:\d\d)?(\.\d+)?", lambda it: "14:05:36.250000"[: len(it[0])], line)
    line = re.sub(r"(?<!\d)\d\d-\d\d \d\d:\d\d:\d\d(?=  )", "03-09 14:05:36", line)
    line = re.sub(
        r"((?:live|read) )\d\d:\d\d(:\d\d)?Z", lambda it: it[1] + "14:05:36"[: 5 + len(it[2] or "")] + "Z", line
    )
    line = re.sub(r"[0-9a-f]{12,64}", lambda it: ("0123456789abcdef" * 4)[: len(it[0])], line)
    line = re.sub(r"(│ Latency +)( *[\d.,]+ m?s)", lambda it: it[1][:-1] + LATENCY.rjust(len(it[2]) + 1), line)
    line = TIMES.sub(lambda it: TIMED.ljust(len(it[0])), line)
    return OFTEN.sub(lambda it: it[1] + "▅".rjust(len(it[2])), line)
