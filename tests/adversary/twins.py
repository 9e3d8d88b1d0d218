"""Two stores of one beginning: rows of the same ids and times, and then what a caller may not see in one alone."""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from beetle.contracts.codec import to_plain
from beetle.contracts.common import DEFAULT_AGENT, WireScope
from beetle.contracts.errors import BeetleError
from beetle.open import Opened, open_store
from beetle.runtime.host.caller import Caller
from beetle.runtime.host.dependencies import Dependencies
from beetle.runtime.host.principals import OPERATOR, OPERATOR_CAPABILITIES
from beetle.runtime.pipeline.invocation import Call
from beetle.runtime.pipeline.subscriptions import Subscription
from tests.building import Plain, candidate, candidates, message, registry, skill, step, talk, turn, write
from tests.cases import ENROLLED, INGESTED, PREPARATIONS, PROPOSAL, TOOL, WORD, Prepared
from tests.conformance.doors import embedded_caller, plain
from tests.following import deliveries, subscribe

PROFILE = "profile-server-linux-dev-full"
MARA, BOB, ZOE = "mara", "bob", "zoe"
START_US = 1_767_323_045_000_000
SECOND_US = 1_000_000
FILE = "store.db"
WORDS = ("kettle", "garden", "ledger", "harbour", "violin", "orchard", "zanzibar")
RARE = "marzipan"
"""A word that is said only where it is hidden."""
HIDDEN_WORDS = (*WORDS, RARE)


def _principal(name: str, owner: str, agent: str | None, *views: Any) -> Caller:
    return Caller(name, "principal", OPERATOR_CAPABILITIES - {"admin"}, views, "unix_socket", owner, agent)


PANEL = _principal("panel", MARA, None, "host_ui", "model_context")
DEVICE = PANEL._replace(name="device:pad", kind="device", agent_id=DEFAULT_AGENT, added_at=START_US)
CALLERS: Mapping[str, Caller] = {
    "operator": OPERATOR,
    "agent": _principal("agent", MARA, DEFAULT_AGENT, "model_context", "host_ui"),
    "panel": PANEL,
    "model": _principal("model", MARA, None, "model_context"),
    "narrow": PANEL._replace(name="narrow", capabilities=frozenset({"recall", "inspect", "event_log"})),
    "auditor": _principal("auditor", MARA, None, "operator_audit"),
    "exporter": _principal("exporter", MARA, None, "export"),
    "device": DEVICE,
    "host device": DEVICE._replace(views=("host_ui",)),
    "model device": DEVICE._replace(views=("model_context",)),
    "audit device": DEVICE._replace(views=("operator_audit",)),
    "stranger": _principal("bob", BOB, None, "host_ui", "model_context", "operator_audit", "export"),
    "nobody": Caller("uid:4711", "unknown", frozenset(), (), "unix_socket"),
}
"""Everyone who may ask, by what they are called here; the first is no owner and has no right to private material."""
SHOWN: Mapping[str, frozenset[str]] = {
    "operator": frozenset({"backend", "operator"}),
    "auditor": frozenset({"backend", "operator"}),
    "audit device": frozenset({"backend", "operator"}),
    "agent": frozenset({"private"}),
}
"""Visibilities beside `shared` whose content the table of views shows to a caller."""

FLUSH_S = 30.0
PAUSED = "hats"
"""A topic of which nothing is remembered for now."""
OF_RECORD = re.compile(r"[fpd]-|\w+:f-|chunk-|chunks:|episode-")
"""How the ids and refs of records begin that a stranger may have been told."""


class Step(NamedTuple):
    """One write of somebody: it may be refused."""

    caller: Caller
    op: str
    args: Plain
    owner: str


class Twin:
    """One of the two stores. Ids and times follow from what each step is called, so that they are the same in both."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._label, self._drawn, self.now = "open", 0, START_US
        self.opened: Opened = open_store(str(path), PROFILE, dependencies=Dependencies(lambda: self.now, self._ids))
        self.known: set[str] = set()
        """Ids that hidden rows were given."""

    def _ids(self, size: int) -> bytes:
        self._drawn += 1
        return hashlib.blake2b(f"{self._label} {self._drawn}".encode(), digest_size=size).digest()

    def at(self, label: str, second: int) -> None:
        """What is done next is called so, and is done so many seconds after the start."""
        self._label, self._drawn, self.now = label, 0, START_US + second * SECOND_US

    def answer(self, caller: Caller, op: str, args: Any, owner: str | None) -> Plain:
        """The report as builtins, or all that an error tells."""
        try:
            call = Call(op, args, caller, WireScope(owner_id=owner))
            return to_plain(self.opened.dispatcher.dispatch(call).report)
        except BeetleError as error:
            # Written aside: what the clock says when it is, is what this caller's next answers tell.
            assert self.opened.dispatcher.refusals.flush(FLUSH_S)
            told = {name: getattr(error, name) for name in ("key", "message", "hint", "retryable")}
            return {"error": {**told, "details": to_plain(error.details)}}

    def take(self, step_: Step) -> None:
        """One write, whatever comes of it."""
        told = self.answer(step_.caller, step_.op, step_.args, step_.owner)
        self.known |= {each for each in _texts(told) if OF_RECORD.match(each)}

    def follow(self, caller: Caller, owner: str | None, topics: tuple[str, ...]) -> Subscription | Plain:
        """A subscription, or the error."""
        try:
            call = Call("subscribe", {"topics": list(topics)}, caller, WireScope(owner_id=owner))
            return subscribe(self.opened.dispatcher, call)
        except BeetleError as error:
            return {"error": error.key, "message": error.message, "details": to_plain(error.details)}

    def close(self) -> None:
        self.opened.store.close()


def heard(subscription: Subscription) -> list[Plain]:
    """The events that were handed over, up to the last skill of `own(2)`."""
    found: list[Plain] = []
    handed = deliveries(subscription)
    while not found or found[-1]["subject"].get("name", "").rpartition("__")[2] != "own-2":
        delivery = next(handed)
        assert not delivery.dropped
        if delivery.logged is None:
            continue  # the connection only looks whether its caller still may follow
        logged = delivery.logged
        told = {"seq": logged.seq, "topic": logged.event.topic, "event": logged.event.event}
        found.append({**told, "subject": logged.event.subject})
    return found


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(each)


class Base(NamedTuple):
    """The folder that both begin with, and what was prepared in it for Mara and for Bob."""

    folder: Path
    got: Mapping[str, Prepared]


def build(folder: Path) -> Base:
    """What all cases need, in the space of each of the two owners, and a device."""
    twin = Twin(folder / FILE)
    got: dict[str, Prepared] = {}
    for owner in (MARA, BOB):

        def ask(op: str, args: Plain, owner: str = owner) -> Plain:
            if op == "snapshot.create" and owner != MARA:
                return got[MARA]["snapshot"]
            call = Call(op, args, embedded_caller(owner), WireScope(owner_id=owner))
            return plain(twin.opened.dispatcher.dispatch(call).report)

        got[owner] = Prepared(ask)
        for second, name in enumerate(PREPARATIONS):
            twin.at(f"{owner} {name}", second)
            _ = got[owner][name]
        said = (turn(f"s{n}", f"{WORDS[n % 7]} {WORDS[n * 3 % 7]} by the door") for n in range(8))
        ask("transcript.commit", talk(*said))
        for n, word in enumerate(WORDS):
            ask("memory.write", candidates(candidate(f"s{n}", f"the {word} is blue", topic=f"colour of the {word}")))
        ask("memory.write", write(*(skill(word) for word in WORDS[:3])))
        ask("long_term.policy", {"action": "suppress", "topic": "shoes"})
        ask("long_term.policy", {"action": "pause", "topic": PAUSED})
    pad = {"label": "pad", "device_id": "pad", "capabilities": ["recall"], "owner_id": MARA}
    twin.answer(OPERATOR, "device.add", pad, None)
    twin.close()
    return Base(folder, got)


def copied(base: Base, folder: Path) -> Twin:
    """A store with all that the base has; nobody writes to that one."""
    shutil.copytree(base.folder, folder)
    return Twin(folder / FILE)


# What is hidden. Each makes a write of a number, which no other has, and a text.

Hidden = Callable[[int, str], list[Step]]


def _by(owner: str, op: str, args: Plain) -> Step:
    return Step(embedded_caller(owner), op, args, owner)


def _said(owner: str, n: int, text: str, name: str, **more: Any) -> Step:
    one = message(f"{name}{n}", text, **more)
    return _by(owner, "transcript.commit", talk(turn(f"{name}{n}", one), conversation=_where(name, n)))


def _where(name: str, n: int) -> Plain:
    return {"conversation_id": f"{name}-{n % 3}"}


def _judged(owner: str, n: int, text: str, **more: Any) -> Step:
    fields = {"topic": f"{text} {n}", **more}
    return _by(owner, "memory.write", candidates(candidate(f"h{n}", f"{text} is number {n}", **fields)))


def _lifecycle(owner: str, action: str, name: str, n: int) -> Step:
    given = {**step(action, f"{name}{n}"), "conversation": _where(name, n)}
    return _by(owner, "transcript.lifecycle", given)


def _garden(owner: str, n: int, text: str, target: str = "private_garden") -> Step:
    privacy = "soul_private" if target == "soul_candidate" else "subject_private"
    return _judged(owner, n, text, topic="", target=target, privacy=privacy)


def _proposed(owner: str, n: int, text: str, **more: Any) -> Step:
    change = {"title": text} if not more else {"content": text}
    one = {**PROPOSAL, "proposal_id": f"h{n}", "change": change, "target": f"skill-{n}", **more}
    return _by(owner, "evolve.propose", {"proposals": [one]})


def _writer(n: int, chain: str = "") -> Plain:
    return {"chain_key": chain or f"chain-{n % 2}", "agent_id": f"writer-{n}"}


def _thought(n: int, text: str, chain: str) -> Step:
    said = {"thought_type": "Plan", "content": f"the {text} of {n}", "tags": [text], "concepts": [text]}
    return _by(ZOE, "chain.append", {**_writer(n, chain), **said})


def _refused(n: int, text: str) -> list[Step]:
    asker = _principal(f"visitor {n % 3}", ZOE, None, "host_ui")._replace(capabilities=frozenset())
    return [Step(asker, "memory.recall", {"query": text}, ZOE), Step(asker, "hello", {}, MARA)]


FOREIGN: Mapping[str, Hidden] = {
    "shared words": lambda n, text: [_said(ZOE, n, text, "their")],
    "private words": lambda n, text: [_said(ZOE, n, text, "their", visibility="private")],
    "soul": lambda n, text: [_said(ZOE, n, text, "their", visibility="soul")],
    "own conversation": lambda n, text: [_by(ZOE, "transcript.commit", talk(turn(f"z{n}", text)))],
    "masked": lambda n, text: [_said(ZOE, n, text, "their"), _lifecycle(ZOE, "mask", "their", n)],
    "erased": lambda n, text: [_said(ZOE, n, text, "their"), _lifecycle(ZOE, "delete_raw", "their", n)],
    "fact": lambda n, text: [_judged(ZOE, n, text)],
    "fact of the same topic": lambda n, text: [_judged(ZOE, n, text, topic=f"colour of the {text}")],
    "private fact": lambda n, text: [_judged(ZOE, n, text, privacy="subject_private")],
    "waiting": lambda n, text: [_judged(ZOE, n, text, authority="assistant_claimed")],
    "sealed": lambda n, text: [_garden(ZOE, n, text)],
    "soul candidate": lambda n, text: [_garden(ZOE, n, text, "soul_candidate")],
    "skill": lambda n, text: [_by(ZOE, "memory.write", write(skill(f"{text}-{n}")))],
    "deleted skill": lambda n, text: [
        _by(ZOE, "memory.write", write(skill(f"{text}-{n}"))),
        _by(ZOE, "skill.delete", {"name": f"{text}-{n}"}),
    ],
    "tools": lambda n, text: [_by(ZOE, "tool_registry.upsert", registry(f"r{n}", {**TOOL, "summary": text}))],
    "policy": lambda n, text: [_by(ZOE, "long_term.policy", {"action": "suppress", "topic": f"{text} {n}"})],
    "thought": lambda n, text: [_thought(n, text, f"chain-{n % 2}"), _thought(n, text, WORD)],
    "erased thought": lambda n, text: [
        _thought(n, text, f"chain-{n % 2}"),
        _by(ZOE, "chain.lifecycle", {"chain_key": f"chain-{n % 2}", "action": "erase", "indexes": [0],
                                     "reason": text}),
    ],
    "chain agent": lambda n, text: [
        _by(ZOE, "chain.upsert_agent", {**_writer(n), "display_name": text, "description": f"plans the {text}"}),
        _by(ZOE, "chain.add_agent_alias", {**_writer(n), "alias": text}),
        _by(ZOE, "chain.add_agent_key", {**_writer(n), "key_id": f"key-{n}", "algorithm": "ed25519",
                                         "public_key_bytes": [n % 256] * 32}),
    ],
    "chunk": lambda n, text: [
        _by(ZOE, "chunk.create", {"content": f"the {text} of {n}", "conversation_id": text, "tags": [text]}),
        _by(ZOE, "chunk.remember", {"content": f"the {text} of {n}", "conversation_id": "talk"}),
    ],
    "uploaded skill": lambda n, text: [
        _thought(n, text, "mentisdb"),
        _by(ZOE, "skill_registry.upload", {"agent_id": f"writer-{n}", "content":
            f"---\nname: {text}\ndescription: the way of {text}\n---\n# Steps\n\n{text}\n"}),
    ],
    "proposal": lambda n, text: [
        _by(ZOE, "memory.write", write(skill(f"skill-{n}"))),
        _proposed(ZOE, n, text),
    ],
    "job": lambda n, text: [
        _by(ZOE, "memory.finalize_turn", {"conversation": _where("their", n), "turn": turn(f"j{n}", text),
                                          "maintain": True}),
    ],
    "device": lambda n, text: [
        Step(OPERATOR, "device.add",
             {"label": text, "device_id": f"hidden-{n}", "capabilities": ["recall"], "owner_id": ZOE}, ZOE),
    ],
    "captured turn": lambda n, text: [
        _by(ZOE, "turn.capture", {"host_session_id": "session-1", "host_turn_index": n, "host_kind": "claude-code",
                                  "role": "user", "content": each})
        for each in (text, f"{text} again")
    ],
    "event": lambda n, text: [
        _by(ZOE, "event.ingest", {"event": {**INGESTED["event"], "event_id": f"event-{n}", "text": text}}),
    ],
    "episode": lambda n, text: [_by(ZOE, "episode.start", {"task": f"number {n} of the {text}", "plan": [text]})],
    "host key": lambda n, text: [Step(OPERATOR, "host_key.enroll", {**ENROLLED, "label": text}, ZOE)],
    "refusal": _refused,
    "projection": lambda n, text: [_by(ZOE, "memory.project", {"user_query": text})],
}  # fmt: skip
"""What another owner has and does."""
SEALED: Mapping[str, Hidden] = {
    "sealed": lambda n, text: [_garden(MARA, n, text)],
    "soul candidate": lambda n, text: [_garden(MARA, n, text, "soul_candidate")],
}
"""What the private plane of Mara holds."""
PRIVATE: Mapping[str, Hidden] = {
    "fact": lambda n, text: [_judged(MARA, n, text, privacy="subject_private")],
    "waiting": lambda n, text: [
        _judged(MARA, n, text, privacy="subject_private", authority="assistant_claimed")
    ],
    "proposal": lambda n, text: [
        _proposed(MARA, n, text, kind="fact_write", change={
            "topic": f"{text} {n}", "content": text, "privacy": "subject_private", "kind": "fact"}, target=None),
    ],
    "paused": lambda n, text: [_judged(MARA, n, text, topic=PAUSED, privacy="subject_private")],
    "cited": lambda n, text: [
        _judged(MARA, n, text, privacy="subject_private", evidence_refs=["evidence:local/talk/t1"])
    ],
    "forgotten": lambda n, text: [
        _judged(MARA, n, text, privacy="subject_private"),
        _by(MARA, "long_term.mutate", {"action": "forget_by_query", "query": f"number {n}", "reason": "asked"}),
    ],
}  # fmt: skip
"""Facts of Mara that only who sees private material may know of."""


def told(n: int, kind: str, text: str) -> list[Step]:
    """A message of Mara's whose place in its conversation every view tells by a marker."""
    if kind in ("masked", "erased"):
        action = "mask" if kind == "masked" else "delete_raw"
        return [_said(MARA, n, text, "told"), _lifecycle(MARA, action, "told", n)]
    return [_said(MARA, n, text, "told", visibility=kind)]


TOLD = ("private", "soul", "backend", "operator", "masked", "erased")


def own(n: int) -> list[Step]:
    """What happens in the spaces of the callers, for all of them to see, between what they may not see."""
    found: list[Step] = []
    for owner in (MARA, BOB):
        said = talk(turn(f"own{n}", f"{WORDS[n % 7]} again"))
        fact = candidates(candidate(f"own{n}", f"the {WORDS[n % 7]} stands {n}", topic=f"place {n}"))
        found += [
            _by(owner, "transcript.commit", said),
            _by(owner, "memory.write", fact),
            _by(owner, "memory.write", write(skill(f"own-{n}"))),
            _by(owner, "long_term.policy", {"action": "suppress", "topic": f"own {n}"}),
            _by(owner, "tool_registry.upsert", registry(f"own-{n}", TOOL)),
            _by(owner, "memory.write", candidates(
                candidate(f"w{n}", f"{WORDS[n % 7]} waits", topic=f"waits {n}", authority="assistant_claimed"))),
            Step(OPERATOR, "device.add", {"label": "own", "device_id": f"{owner}-{n}", "capabilities": [],
                                          "owner_id": owner}, owner),
        ]  # fmt: skip
    return found
