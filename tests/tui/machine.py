"""A console under random keys, sizes and events of other clients: what is highlighted is in sight, and is what keys act
on, in every list of every area."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from beetle.client import Client
from beetle.contracts.errors import NotFound
from beetle_tui.app import Console
from beetle_tui.area import AreaScreen
from beetle_tui.dialogs import Ask, Confirm, Dialog, Told, Working
from beetle_tui.line_list import LineList
from beetle_tui.screens.chains import Chains
from beetle_tui.screens.memory import Memory
from beetle_tui.screens.skills import Skills
from beetle_tui.screens.time import Time
from beetle_tui.screens.transcripts import Transcripts
from beetle_tui.table import Table
from tests.forked import Daemon
from tests.sdk.skill_folders import write_skill
from tests.tui.remembering import learn
from tests.tui.showing import Shown, at, turn
from tests.tui.skills_shown import skill, write

SIZES = ((80, 24), (100, 30), (200, 50), (60, 16), (160, 48), (80, 40))
MOVES = ("up", "down", "pageup", "pagedown", "home", "end", "enter", "escape", "tab", "r")
CHAIN_PARTS = ("chains", "thoughts", "agents", "registry")
TIME_PARTS = ("contents", "hosts")
PLACES = ("overview", "skills", "agent skills", "devices", "conversations", "turns", "recall", "log", "Facts",
          "Policies", "Tools", "Proposals", "Waiting", *CHAIN_PARTS, *TIME_PARTS)  # fmt: skip
MOST_DIALOGS = 16
TALK = "talk"
CHAIN = "plan"
MOST_LISTED = 90


AREAS = {"conversations": "transcripts", "turns": "transcripts", "agent skills": "skills",
         **dict.fromkeys(CHAIN_PARTS, "chains"), **dict.fromkeys(TIME_PARTS, "time")}  # fmt: skip
"""The area of a place that is called otherwise."""


class Kind(NamedTuple):
    """The records of a place: the keys that act on one, how it is told apart, and what is stored of each."""

    keys: tuple[str, ...]
    named: Callable[[Any], str]
    stored: Callable[[Client], Mapping[str, Any]]


def _facts(client: Client) -> Mapping[str, Any]:
    return {each.ref: (each.state, each.revision) for each in client.list_long_term(state="all", limit=100).records}


def _policies(client: Client) -> Mapping[str, Any]:
    return {str(each.policy_id): each for each in client.long_term_policy(action="list").policies}


def _tools(client: Client) -> Mapping[str, Any]:
    return {each.registry_id: each.revision for each in client.list_agent_tool_registries(limit=100).registries}


def _proposals(client: Client) -> Mapping[str, Any]:
    return {each.proposal_id: each.state for each in client.list_proposals(state="all", limit=100).proposals}


def _waiting(client: Client) -> Mapping[str, Any]:
    return {each.waiting_id: each.content for each in client.list_waiting(view="host_ui", limit=100).candidates}


def _skills(client: Client) -> Mapping[str, Any]:
    return {each.name: (each.revision, each.enabled) for each in client.list_runtime_skills(limit=100).runtime_skills}


def _devices(client: Client) -> Mapping[str, Any]:
    return {each.device_id: (each.state, each.appKeyFingerprint) for each in client.list_devices(limit=100).devices}


def _turns(client: Client) -> Mapping[str, Any]:
    where = {"conversation_id": TALK}
    try:
        page = client.transcript_timeline(conversation=where, view="host_ui", anchor={"after": 0}, limit=100)
    except NotFound:
        return {}
    return {each.turn_id: tuple(message.state for message in each.messages) for each in page.turns}


KINDS: Mapping[str, Kind] = {
    "Facts": Kind(("d", "m"), lambda row: row.ref, _facts),
    "Policies": Kind(("d",), lambda row: str(row.policy_id), _policies),
    "Tools": Kind(("d",), lambda row: row.registry_id, _tools),
    "Proposals": Kind(("w",), lambda row: row.proposal_id, _proposals),
    "Waiting": Kind(("a", "d"), lambda row: row.waiting_id, _waiting),
    "skills": Kind(("d", "o"), lambda row: row.name, _skills),
    "devices": Kind(("u", "x", "d"), lambda row: row.device_id, _devices),
    "turns": Kind(("m", "x"), lambda row: row.turn_id, _turns),
}


Event = Callable[["ConsoleMachine"], None]


class ConsoleMachine(RuleBasedStateMachine):
    """One console at a daemon that other clients change meanwhile."""

    daemon: ClassVar[Daemon]
    mounted: ClassVar[Path]
    """The folder of its Agent Skills."""
    acted: ClassVar[set[str]] = set()
    """Places in which a key has acted, over all runs."""
    number: ClassVar[int] = 0

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.client = self.daemon.client()
        self.place = "overview"

    @initialize(size=st.sampled_from(SIZES), some=st.integers(2, 12))
    def begin(self, size: tuple[int, int], some: int) -> None:
        """Some records of every kind, and a console."""
        for each in EVENTS[: EVENTS.index(learn_one) + 1]:
            for _ in range(some if each in (learn_one, say_one, think_one, mount_one) else 2):
                occur(self, each)
        self.console = Console(at(self.daemon))
        self.running = self.console.run_test(size=size)
        self.shown = Shown(self.console, self.runner.run(self.running.__aenter__()))
        self.runner.run(self.shown.until_shown("read "))

    def teardown(self) -> None:
        """End the console."""
        if hasattr(self, "running"):
            self.runner.run(self.running.__aexit__(None, None, None))
        self.client.close()
        self.runner.close()

    @rule(place=st.sampled_from(PLACES))
    def go(self, place: str) -> None:
        """To a place."""
        self.place = place
        self.runner.run(self._go(place))

    @rule(keys=st.lists(st.sampled_from(MOVES), min_size=1, max_size=6))
    def move(self, keys: list[str]) -> None:
        """Keys that change nothing in the store; enter may lead to a place of another kind."""
        self.runner.run(self.shown.press(*keys))
        self.place = self._where()

    @rule(size=st.sampled_from(SIZES))
    def resize(self, size: tuple[int, int]) -> None:
        """Another terminal."""
        self.runner.run(self.shown.pilot.resize_terminal(*size))

    @rule(what=st.integers(0, 99))
    def happen(self, what: int) -> None:
        """Another client does something; the console hears of it some time."""
        occur(self, EVENTS[what % len(EVENTS)])
        self.runner.run(self.shown.pilot.pause(0.01))

    # What is drawn depends on nothing that another run may find otherwise.
    @rule(key=st.integers(0, 5), before=st.integers(-20, 20), between=st.integers(-20, 20))
    def act(self, key: int, before: int, between: int) -> None:
        """A key that acts, while others may act too: on what was highlighted, or on nothing."""
        if self.place in KINDS and self._chosen() is not None:
            kind = KINDS[self.place]
            self._act_on(kind, kind.keys[key % len(kind.keys)], _event(before), _event(between))

    # Of the places that are drawn alone, most have nothing that a key acts on: thirty runs would act in some twenty.
    @rule(
        place=st.sampled_from(tuple(KINDS)), key=st.integers(0, 5), before=st.integers(-20, 20),
        between=st.integers(-20, 20),
    )  # fmt: skip
    def act_there(self, place: str, key: int, before: int, between: int) -> None:
        """As `act`, in a place that has such keys."""
        self.go(place)
        self.check()
        self.act(key, before, between)

    def _act_on(self, kind: Kind, key: str, before: Event | None, between: Event | None) -> None:
        if before is not None:
            occur(self, before)
        self.check()
        self.runner.run(self._act(kind, key, between))
        self.acted.add(self.place)

    async def _act(self, kind: Kind, key: str, between: Any) -> None:
        row = self._chosen()
        if row is None:
            return
        wanted, named = kind.named(row), self._words(row)
        stored = kind.stored(self.client)
        await self.shown.press(key)
        await self._answered()
        if isinstance(self.console.screen, Dialog):
            text = " ".join(part.strip(" │") for part in self.shown.lines)
            now = self._chosen()
            if now is not None and not all(each in text for each in named):
                # Before the key was heard, what another client did had come: the row was another, or had gone, and the
                # next one was it.
                assert kind.named(now) == wanted or wanted not in self._listed(kind), (wanted, text)
                wanted, named = kind.named(now), self._words(now)
            assert all(each in text for each in named), (named, text)
            if between is not None:
                occur(self, between)
                stored = kind.stored(self.client)
            await self._agree()
        elif wanted not in stored and (now := self._chosen()) is not None:
            # Another client had deleted the record: the console heard of that before it heard the key, which was for
            # the next one.
            wanted = kind.named(now)
        changed = {
            name
            for name, state in kind.stored(self.client).items() | stored.items()
            if stored.get(name) != state or name not in kind.stored(self.client)
        }
        assert changed <= {wanted}, f"{key} in {self.place} was for {wanted}, and changed {changed}"

    async def _agree(self) -> None:
        """Say yes to all that is asked; what was done in vain is closed."""
        taken: set[Any] = set()
        for _ in range(MOST_DIALOGS):
            screen = self.console.screen
            match screen:
                case AreaScreen():
                    return
                case Working():
                    await self.shown.until(lambda it=screen: self.console.screen is not it)
                case Told():
                    await self.shown.press("escape")
                case Confirm():
                    await self.shown.press("y")
                case Ask() if screen in taken:
                    await self.shown.press("escape")
                case Ask():
                    taken.add(screen)
                    await self.shown.press(*"because", "enter")
                    await self._answered(beyond=screen)
                    if self.console.screen is screen:  # refused: it says why, and keeps what was typed
                        await self.shown.press("escape")
                        await self.shown.until(lambda: isinstance(self.console.screen, Confirm))
                case _:
                    raise AssertionError(f"what is this? {screen}")
            await self._answered()
        raise AssertionError(f"still asked, {self.console.screen}:\n{self.shown.text}")

    async def _answered(self, beyond: Any = None) -> None:
        """Until nothing runs that a key has begun; `beyond` is a dialog that may stay."""

        def still() -> bool:
            waits = {each.group for each in self.console.workers if not each.is_finished}
            busy = waits & {"take", "act", "action", "ask", "device"}
            asked = isinstance(self.console.screen, Dialog) and self.console.screen is not beyond
            return asked or not busy or (beyond is not None and "take" not in waits)

        await self.shown.until(still)

    @invariant()
    def check(self) -> None:
        """What is highlighted is in sight, and drawn as what a key would act on."""
        if not hasattr(self, "console"):
            return
        self.runner.run(self._check())

    async def _check(self) -> None:
        await self.shown.pilot.pause()
        # A terminal of another size is drawn some time after it has changed.
        await self.shown.until(self._is_within)
        lines = self.shown.lines
        for each in self.console.screen.query(LineList):
            region = each.content_region
            if (
                not each.display
                or not each.visible
                or region.height < 1
                or not each.line_count
                or each.region.area == 0
            ):
                continue
            top, height = int(each.scroll_offset.y), each.scrollable_content_region.height
            assert top <= each.index < top + height, (
                f"{each} hides its line {each.index}: {top} + {height}\n{self.shown.text}"
            )
            if isinstance(each, Table) and each.chosen is not None and self.console.screen is self.console.area:
                wanted = each.line(each.chosen, each.room - 2).rstrip()
                drawn = lines[region.y + each.index - top]
                assert f"> {wanted}" in drawn, f"{wanted!r} is highlighted, and {drawn!r} drawn"

    def _is_within(self) -> bool:
        """Whether the highlighted line of every list stands within the terminal as it is drawn."""
        height = len(self.shown.lines)
        lists = [each for each in self.console.screen.query(LineList) if each.display and each.visible]
        return all(
            each.content_region.y + each.index - int(each.scroll_offset.y) < height
            for each in lists
            if each.line_count and each.content_region.area
        )

    async def _go(self, place: str) -> None:
        await self._leave()
        area = AREAS.get(place, "memory" if place[0].isupper() else place)
        await self.console.switch_mode(area)
        await self.shown.until(lambda: self.console.current_mode == area and self.console.area.filled)
        screen = self.console.area
        if isinstance(screen, Memory):
            screen.open_place(place)
            await self.shown.until(lambda: screen.part.table.rows is not None)
        elif isinstance(screen, Skills):
            if (screen._shelf is screen._agent) is not (place == "agent skills"):
                screen.action_side()
            await self.shown.until(lambda: screen._shelf.table.rows is not None)
        elif isinstance(screen, Chains):
            screen._show_part(CHAIN_PARTS.index(place))
            await self.shown.until(lambda: screen.table.rows is not None)
        elif isinstance(screen, Time):
            screen._show_list(TIME_PARTS.index(place), ())
            await self.shown.until(lambda: screen.table.rows is not None)
        elif isinstance(screen, Transcripts):
            while screen.level != "conversations":
                screen.action_back()
                await self.shown.pilot.pause()
            if place == "turns":
                screen.open_ref(f"evidence:local/{TALK}/t1")
                await self.shown.until(lambda: screen.level == "turns" and screen.table("turns").chosen is not None)
        await self.shown.pilot.pause()

    async def _leave(self) -> None:
        while not isinstance(self.console.screen, AreaScreen):
            await self.shown.press("escape")

    def _where(self) -> str:
        """The place that is shown; nothing that keys act in where it is a dialog."""
        screen = self.console.screen
        if not isinstance(screen, AreaScreen):
            return "dialog"
        if isinstance(screen, Memory):
            return screen.part.TITLE
        if isinstance(screen, Transcripts):
            return screen.level
        if isinstance(screen, Skills) and screen._shelf is not screen._runtime:
            return "agent skills"
        if isinstance(screen, Chains):
            return CHAIN_PARTS[screen._part]
        if isinstance(screen, Time):
            return TIME_PARTS[screen._part]
        return self.console.current_mode

    def _table(self) -> Table[Any]:
        screen = self.console.area
        if isinstance(screen, Memory):
            return screen.part.table
        if isinstance(screen, Transcripts):
            return screen.table(screen.level)
        return screen._runtime.table if isinstance(screen, Skills) else screen.query(Table).first()

    def _chosen(self) -> Any:
        return self._table().chosen

    def _listed(self, kind: Kind) -> set[str]:
        """What the table's rows that were read are named by."""
        rows = self._table().rows
        found = () if rows is None else (rows.get(place) for place in range(rows.count))
        return {kind.named(each) for each in found if each is not None}

    def _words(self, row: Any) -> tuple[str, ...]:
        """What a dialog about a row says of it."""
        match self.place:
            case "Facts":
                return row.ref, row.content or "(erased)"
            case "Waiting":
                return row.content, row.target
            case "Policies":
                return (row.topic or "any",)
            case "devices":
                return row.label, row.device_id
            case "turns":
                return (f"urn {row.turn_id} of", "Turn" if not row.text.startswith("Said") else row.text)
            case _:
                return (KINDS[self.place].named(row),)

    @classmethod
    def next(cls) -> int:
        """A number that nothing has yet."""
        ConsoleMachine.number += 1
        return ConsoleMachine.number


def say_one(machine: ConsoleMachine) -> None:
    """A turn more."""
    number = len(_turns(machine.client)) + 1
    if number < 100:
        turns = [turn(number, f"Said {number}.")]
        machine.client.commit_transcript(conversation={"conversation_id": TALK}, turns=turns)


def say_elsewhere(machine: ConsoleMachine) -> None:
    """Another conversation."""
    name = f"other-{machine.next()}"
    machine.client.commit_transcript(conversation={"conversation_id": name}, turns=[turn(1, "Said there.")])


def add_skill(machine: ConsoleMachine) -> None:
    """A skill; they are sorted by name, so it comes anywhere."""
    number = machine.next()
    write(machine.client, skill(f"{number * 7919 % 1000:03}-{number}"))


def add_device(machine: ConsoleMachine) -> None:
    """A device."""
    number = machine.next()
    machine.client.add_device(label=f"Panel {number}", device_id=f"panel-{number}", capabilities=("recall",))


def add_policy(machine: ConsoleMachine) -> None:
    """A policy."""
    machine.client.long_term_policy(action="pause", topic=f"topic-{machine.next()}", reason="a test")


def add_tools(machine: ConsoleMachine) -> None:
    """A registry."""
    number = machine.next()
    tools = [{"tool_id": "turn", "title": "Turn", "schema_fingerprint": "s1"}]
    machine.client.upsert_agent_tool_registry(registry_id=f"tools-{number}", fingerprint=f"f{number}", tools=tools)


def add_proposal(machine: ConsoleMachine) -> None:
    """A proposal over a fact."""
    ref = learn(machine.client, f"Proposed over {machine.next()}.")
    change = {"content": f"Better {machine.next()}."}
    proposed = {"kind": "fact_correct", "target": ref, "change": change, "rationale": f"why {machine.next()}"}
    machine.client.propose(proposals=[proposed])


def think_one(machine: ConsoleMachine) -> None:
    """A thought, which comes first; at times of a new agent."""
    number = machine.next()
    machine.client.append_thought(
        chain_key=CHAIN, agent_id=f"agent-{number % 5}", thought_type="Idea", content=f"Thought {number}."
    )


def begin_chain(machine: ConsoleMachine) -> None:
    """Another chain."""
    machine.client.bootstrap_chain(chain_key=f"chain-{machine.next()}", content="Begun.")


def upload_one(machine: ConsoleMachine) -> None:
    """An uploaded skill."""
    number = machine.next()
    content = f"---\nname: Uploaded {number}\ndescription: d\n---\n# Steps\n\nDo it.\n"
    machine.client.upload_skill(agent_id="agent-0", content=content)


def mount_one(machine: ConsoleMachine) -> None:
    """One more folder among the Agent Skills."""
    number = machine.next()
    name = f"s{number * 7919 % 1000:03}-{number}"
    write_skill(machine.mounted / name, name)


def capture_one(machine: ConsoleMachine) -> None:
    """A turn that a host captured, and the contents with it."""
    number = machine.next()
    machine.client.capture_turn(
        host_kind=f"host-{number % 5}", host_session_id=f"s{number}", host_turn_index=0, role="user",
        content=f"Captured {number}.", timestamp_iso=f"20{10 + number % 20}-05-17T09:30:00Z",
    )  # fmt: skip
    machine.client.rebuild_toc()


def learn_one(machine: ConsoleMachine) -> None:
    """A fact, which comes first."""
    number = machine.next()
    learn(machine.client, f"Known {number}.", f"known {number}")


def put_off_one(machine: ConsoleMachine) -> None:
    """A candidate that waits for a person: nothing said bears it."""
    number = machine.next()
    candidate = {
        "candidate_id": f"c{number}", "target": "long_term", "privacy": "shared_with_subject",
        "authority": "assistant_claimed", "content": f"Perhaps {number}.", "topic": f"perhaps {number}",
    }  # fmt: skip
    machine.client.write(kind="candidates", candidates=[candidate])


def _one(machine: ConsoleMachine, names: Mapping[str, Any]) -> str | None:
    """The highlighted one of these, else any."""
    if hasattr(machine, "console") and machine.place in KINDS and (row := machine._chosen()) is not None:
        name = KINDS[machine.place].named(row)
        if name in names:
            return name
    return next(iter(names), None)


def forget_one(machine: ConsoleMachine) -> None:
    """A fact goes."""
    ref = _one(machine, {ref: each for ref, each in _facts(machine.client).items() if each[0] == "current"})
    if ref is not None:
        machine.client.mutate_long_term(action="delete", ref=ref)


def correct_one(machine: ConsoleMachine) -> None:
    """A fact says something else."""
    ref = _one(machine, {ref: each for ref, each in _facts(machine.client).items() if each[0] == "current"})
    if ref is not None:
        content = f"Otherwise {machine.next()}."
        machine.client.mutate_long_term(action="correct", ref=ref, content=content, reason="a test")


def drop_skill(machine: ConsoleMachine) -> None:
    """A skill goes."""
    if (name := _one(machine, _skills(machine.client))) is not None:
        machine.client.delete_runtime_skill(name=name)


def drop_device(machine: ConsoleMachine) -> None:
    """A device goes."""
    if (name := _one(machine, _devices(machine.client))) is not None:
        machine.client.remove_device(device_id=name)


def drop_tools(machine: ConsoleMachine) -> None:
    """A registry goes."""
    if (name := _one(machine, _tools(machine.client))) is not None:
        machine.client.delete_agent_tool_registry(registry_id=name)


def withdraw_one(machine: ConsoleMachine) -> None:
    """A proposal is closed."""
    name = _one(machine, {name: state for name, state in _proposals(machine.client).items() if state == "open"})
    if name is not None:
        machine.client.submit_proposals(proposal_ids=[name], decision="withdraw")


def reject_one(machine: ConsoleMachine) -> None:
    """A candidate that waits is rejected."""
    if (name := _one(machine, _waiting(machine.client))) is not None:
        machine.client.decide_waiting(ids=[name], decision="reject", reason="a test")


def mask_one(machine: ConsoleMachine) -> None:
    """A turn is masked."""
    name = _one(machine, _turns(machine.client))
    if name is not None:
        machine.client.request_transcript_lifecycle(
            conversation={"conversation_id": TALK}, action="mask", turn_ids=[name], reason="a test"
        )


ADDS: Mapping[Event, Callable[[Client], Mapping[str, Any]]] = {
    add_skill: _skills, add_device: _devices, add_policy: _policies, add_tools: _tools, put_off_one: _waiting,
}  # fmt: skip
"""Of an event what it adds to. The list of a hundred that is compared is to show no other where one has gone."""


def occur(machine: ConsoleMachine, event: Event) -> None:
    """An event, unless it would add to what is as long as a list that is read."""
    stored = ADDS.get(event)
    if stored is None or len(stored(machine.client)) < MOST_LISTED:
        event(machine)


EVENTS: tuple[Event, ...] = (
    say_one, say_elsewhere, add_skill, add_device, add_policy, add_tools, add_proposal, put_off_one, think_one,
    begin_chain, upload_one, mount_one, capture_one, learn_one,
    forget_one, correct_one, drop_skill, drop_device, drop_tools, withdraw_one, reject_one, mask_one,
)  # fmt: skip


def _event(number: int) -> Event | None:
    """One of the events, or none for a number below 0."""
    return None if number < 0 else EVENTS[number % len(EVENTS)]
