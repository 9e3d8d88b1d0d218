"""Two spaces, two owners, two device keys of different capabilities, every operation of the table: nothing crosses.

What is asked comes from the table of cases, so that a new operation is asked as well.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from beetle.client import Client
from beetle.contracts.common import WireScope
from beetle.contracts.envelope import DeviceAuth
from beetle.contracts.errors import BeetleError, Forbidden
from beetle.contracts.operations import BY_NAME, OPERATIONS, Operation
from tests.building import CONVERSATION
from tests.cases import FACT, OF, SAID, SKILL, WORD, Asked, Prepared
from tests.conformance.doors import plain
from tests.forked import Daemon

ANA, BEN = "owner-ana", "owner-ben"
PROFILE = "profile-server-linux-dev-full"
NARROW = ("recall", "transcript", "skill")
NEVER = {"admin", "transcript.raw", "private.read"}
"""What no device is given."""
READS = (
    ("transcript.replay", {"conversation": CONVERSATION, "view": "host_ui"}),
    ("skill.list", {"include_disabled": True, "include_retired": True}),
    ("skill.detail", {"name": WORD}),
    ("long_term.list", {"state": "all"}),
    ("long_term.policy", {"action": "list"}),
    ("tool_registry.list", {}),
    ("evolve.list", {"state": "all"}),
    ("memory.inspect", {}),
)
"""What shows, read through, that a space is as it was."""
OWN_FIGURES = ("store", "event_log", "operator", "timings_ms", "lifecycle", "jobs")
"""What of these reports is the whole daemon's, or tells of when it was asked."""


class House(NamedTuple):
    """A daemon with the memory of two owners and a device of each."""

    daemon: Daemon
    operator: Client
    ana: Client
    ben: Client
    prepared: Prepared
    """What Ana has."""


def grantable() -> list[str]:
    return sorted({row.capability for row in OPERATIONS if row.capability} - NEVER)


def device_of(daemon: Daemon, operator: Client, name: str, owner: str, capabilities: tuple[str, ...]) -> Client:
    added = plain(operator.call("device.add", {
        "label": name, "device_id": name, "owner_id": owner, "agent_id": f"agent-{name}", "capabilities": capabilities,
    }))  # fmt: skip
    return daemon.client(auth=DeviceAuth(device_id=name, app_key=added["appKeyOnce"]), retry=False)


@pytest.fixture(scope="module")
def house() -> Iterator[House]:
    with tempfile.TemporaryDirectory(prefix="bi-") as folder, Daemon(profile=PROFILE, folder=folder) as daemon:
        with daemon.client() as operator:
            ana = device_of(daemon, operator, "ana", ANA, tuple(grantable()))
            ben = device_of(daemon, operator, "ben", BEN, NARROW)

            def make(op: str, args: Any) -> Any:
                # What cites nothing is a fact on an operator's word alone.
                if op == "memory.write":
                    return plain(operator.call(op, args, scope=WireScope(owner_id=ANA, agent_id="agent-ana")))
                # No device answers for the daemon.
                if BY_NAME[op].effect == "admin":
                    return plain(operator.call(op, args))
                return plain(ana.call(op, args))

            prepared = Prepared(make)
            for name in ("conversation", "skill", "fact"):
                prepared[name]
            yield House(daemon, operator, ana, ben, prepared)
            ana.close()
            ben.close()
        assert WORD not in (Path(folder) / "log").read_text()


def probes_of(row: Operation) -> tuple[Asked, ...]:
    """What somebody else asks; nothing at all where there is no such request."""
    return OF[row.name].probes or (Asked({}),)


def args_of(house: House, probe: Asked) -> dict[str, Any]:
    """A hidden operation is asked with what needs no preparation: Ana has none of it."""
    return probe.request(house.prepared)


def space_of(client: Client) -> list[Any]:
    """All that an owner can read of its space."""
    shown = []
    for op, args in READS:
        report = plain(client.call(op, args))
        shown.append({name: value for name, value in report.items() if name not in OWN_FIGURES})
    return shown


def outcome(client: Client, row: Operation, args: Any, **more: Any) -> str:
    """The key of the error, or nothing."""
    try:
        client.call(row.name, args, **more)
    except BeetleError as error:
        assert "secret" not in f"{error.message}{error.hint}{error.details}"
        return error.key
    return ""


@pytest.mark.parametrize("row", OPERATIONS, ids=lambda row: row.name)
@pytest.mark.parametrize("scope", [{"owner_id": ANA}, {"agent_id": "agent-ana"}], ids=["owner", "agent"])
def test_a_device_names_no_other_owner_and_no_other_agent(house: House, row: Operation, scope: dict[str, str]) -> None:
    for probe in probes_of(row):
        asked = outcome(house.ben, row, args_of(house, probe), scope=WireScope(**scope))
        hidden = "unix_socket" not in row.exposed
        assert asked == ("capability_hidden" if hidden else "forbidden")


@pytest.mark.parametrize("row", OPERATIONS, ids=lambda row: row.name)
def test_a_device_does_what_it_was_granted_and_nothing_else(house: House, row: Operation) -> None:
    granted = not row.capability or row.capability in NARROW
    for probe in OF[row.name].probes:
        try:
            house.ben.call(row.name, args_of(house, probe))
        except BeetleError as error:
            if granted and row.effect != "admin":
                assert error.key not in ("forbidden", "capability_hidden"), error.message
            else:
                assert error.key == "forbidden", error.message
        else:
            assert granted and row.effect != "admin"


@pytest.mark.parametrize("row", [row for row in OPERATIONS if row.effect == "admin"], ids=lambda row: row.name)
def test_no_device_answers_for_the_daemon(house: House, row: Operation) -> None:
    assert {outcome(house.ana, row, args_of(house, probe)) for probe in probes_of(row)} == {"forbidden"}


@pytest.mark.parametrize("row", OPERATIONS, ids=lambda row: row.name)
def test_what_one_owner_has_is_in_no_answer_to_another_and_stays_as_it_is(house: House, row: Operation) -> None:
    """A device of an owner with nothing, which may do all that a device can, under the names that Ana has used."""
    asked = [(probe, args_of(house, probe)) for probe in OF[row.name].probes]
    before = space_of(house.ana)
    name = f"stranger-{row.name}"
    with device_of(house.daemon, house.operator, name, f"owner-{name}", tuple(grantable())) as stranger:
        for probe, args in asked:
            key = outcome(stranger, row, args)
            if row.effect == "admin" or row.capability in NEVER:
                assert key == "forbidden"
                continue
            # The probes are for a profile that hides some; a device asks through two views alone, and speaks for one
            # agent.
            here = {"", "not_found", "forbidden"} if OF[row.name].hidden else {probe.key or ""}
            speaks = {"forbidden"} if "agent_id" in args and row.effect == "write" else set()
            assert key in here | speaks | {"privacy_denied"}, probe
            if not key and row.effect == "read":
                shown = str(plain(stranger.call(row.name, args))).replace(str(args), "")
                assert "secret" not in shown and ANA not in shown
    assert space_of(house.ana) == before


def test_what_an_owner_s_memory_does_is_heard_by_that_owner_s_devices_alone(house: House) -> None:
    follower = device_of(house.daemon, house.operator, "dan", "owner-dan", ("inspect", "long_term"))
    with follower, follower.subscribe(["lifecycle"]) as events:
        house.ana.call("memory.write", {**FACT, "candidates": [{**FACT["candidates"][0], "content": "another secret"}]})
        house.ana.call("long_term.policy", {"action": "pause", "topic": "of Ana's"})
        house.ana.call("long_term.policy", {"action": "resume", "topic": "of Ana's"})
        told = follower.call("long_term.policy", {"action": "suppress", "topic": "of Dan's"})
        event = next(events)
        assert (event.topic, event.event["event"]) == ("lifecycle", "policy_suppress")
        assert told.lifecycle is not None and event.seq == told.lifecycle.event_id
    with pytest.raises(Forbidden):
        house.ben.subscribe(["lifecycle"])


def test_each_owner_s_events_are_its_own(house: House) -> None:
    with (
        device_of(house.daemon, house.operator, "ben-follower", BEN, tuple(grantable())) as second,
        second.subscribe(["transcript", "skill"]) as events,
    ):
        house.ana.call("memory.write", {**SKILL, "writes": [{**SKILL["writes"][0], "content": "anew"}]})
        second.call("transcript.commit", {**SAID, "conversation": {"conversation_id": "elsewhere"}})
        event = next(events)
        assert (event.topic, event.event["event"]) == ("transcript", "committed")
        rows = plain(second.call("event_log.read", {"limit": 100}))["rows"]
    assert {row["principal"] for row in rows} <= {"device:ben", "device:ben-follower"}
    assert rows and not any(row["daemon"] for row in rows)
