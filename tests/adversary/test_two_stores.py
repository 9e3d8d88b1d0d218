"""Two stores that differ only in what a caller may not see answer all it may ask with the same bytes, clocks apart.

What it may ask comes out of the tables of operations and of cases: a new operation is in it by being a row.

Durations (`LEFT_OUT`) differ between two runs of one store, so comparing them would show nothing. docs/security.md does
not promise them.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from beetle.contracts.codec import pack, unpack_any
from beetle.contracts.operations import OPERATIONS
from beetle.runtime.pipeline.subscriptions import TOPIC_CAPABILITIES, Subscription
from tests.adversary import twins
from tests.adversary.twins import (
    BOB,
    CALLERS,
    FOREIGN,
    HIDDEN_WORDS,
    MARA,
    PRIVATE,
    RARE,
    SEALED,
    SHOWN,
    TOLD,
    WORDS,
    Base,
    Step,
    Twin,
)
from tests.building import Plain
from tests.cases import OF, Asked, Case, Prepared

VIEWS = ("model_context", "host_ui", "operator_audit", "export", "raw_owner")
LEFT_OUT = frozenset({"uptime_s", "ms", "elapsed_ms", "timings_ms"})
"""How long something took."""
OPAQUE = frozenset({"next_cursor", "appKeyFingerprint"})
"""Sealed, or drawn at random: they are compared by their lengths, and cursors by where they lead."""
SALTED = frozenset({"content_digest", "hash", "head_hash", "prev_hash"})
"""Of a thought that is appended: its digest has a salt that is drawn at random."""
OPERATORS = frozenset({
    "bytes", "wal_bytes", "pages", "path", "folder", "storage_location", "cpu_s", "up_s", "load", "process_rss_bytes",
    "disk_free_bytes", "memory_available_bytes", "p50_ms", "p90_ms", "p99_ms", "max_ms",
    "receipt", "samples", "unsigned_events", "signed_head",
})  # fmt: skip
"""What an operator alone is told: figures of the machine, sizes of the file and where it is; and the hash of a row of
the whole log, in a receipt; the figures of `admin.metrics`; and which row was signed last, within a minute."""
ENDS = frozenset({"memory.close", "harness.run"})
"""They end the runtime, or run for seconds in stores of their own."""
PAGES = 12
"""That are turned of one list at most."""
OFTEN = ("operator", "agent", "panel", "auditor", "device", "stranger", "nobody")
"""Callers that differ most: the others are asked in the long suite."""


class Drawn(NamedTuple):
    """What one of the two stores holds beside the base: sorts, and the texts of each."""

    told: list[tuple[str, str]]
    private: list[tuple[str, str]]
    sealed: list[tuple[str, str]]
    foreign: list[tuple[str, str]]


def of(kinds: Iterable[str], most: int) -> st.SearchStrategy[list[tuple[str, str]]]:
    return st.lists(st.tuples(st.sampled_from(list(kinds)), st.sampled_from(HIDDEN_WORDS)), max_size=most)


holdings = st.builds(Drawn, of(TOLD, 4), of(PRIVATE, 6), of(SEALED, 3), of(FOREIGN, 24))


def every(kinds: Iterable[str]) -> list[tuple[str, str]]:
    return [(kind, HIDDEN_WORDS[-1 - place % len(HIDDEN_WORDS)]) for place, kind in enumerate(kinds)]


FULL = Drawn(every(TOLD), every(PRIVATE), every(SEALED), every([*FOREIGN, *FOREIGN]))
EMPTY = Drawn([], [], [], [])


def other_word(text: str) -> str:
    """The word before it."""
    return HIDDEN_WORDS[HIDDEN_WORDS.index(text) - 1]


def seen_alike(who: str, one: Drawn, other: Drawn) -> tuple[Drawn, Drawn]:
    """The two stores of which this caller must not learn which is which: what it is told of is the same in both.

    Of some things that they are there is told, by a marker or, to operators, by the event log: these have other words.
    """

    def reworded(given: list[tuple[str, str]]) -> list[tuple[str, str]]:
        shown = SHOWN.get(who, frozenset())
        return [(kind, text if kind in shown else other_word(text)) for kind, text in given]

    other = other._replace(told=reworded(one.told))
    if who == "agent":
        return one, other._replace(private=one.private)
    if who == "operator":
        one = one._replace(foreign=[each for each in one.foreign if each[0] in TOLD_TO_OPERATORS])
        return one, Drawn(other.told, reworded(one.private), reworded(one.sealed), reworded(one.foreign))
    return one, other


TOLD_TO_OPERATORS = ("private words", "soul", "masked", "erased", "private fact", "sealed", "soul candidate")


def requests(case: Case, got: Prepared) -> Iterator[Any]:
    """What is asked of one operation: as its case has it, as a stranger, wrongly; and without effect."""
    row = case.row
    fields = {name for kind in row.kinds for name in kind.__struct_fields__}
    for args, _ in case.wrong:
        yield args
    if row.effect != "read" and "dry_run" not in fields:
        if row.name == "long_term.policy":
            yield {"action": "list"}
        return
    asks: list[Any] = []
    for each in (Asked(case.args), *case.probes, *case.quietly):
        if (args := each.request(got)) not in asks:
            asks.append(args)
    for args in asks:
        if row.effect != "read":
            args = {**args, "dry_run": True}
        yield args
        if "view" in fields:
            yield from ({**args, "view": view} for view in VIEWS)
        if "cursor" in fields:
            yield {**args, "limit": 1}
        if "newest_first" in fields:
            yield {**args, "newest_first": True, "limit": 2}
        if "query" in fields:
            yield from ({**args, "query": word} for word in (RARE, RARE[:-1] + "m"))


HIDDEN_NAMES = {"conversation": [{"conversation_id": f"{name}-{n}"} for name in ("their", "told") for n in range(2)],
                "name": ["kettle-0", "skill-0"], "chat_id": ["their-0", "told-0"], "registry_id": ["r0"],
                "proposal_id": ["h0"], "device_id": ["hidden-0"],
                "chain_key": ["chain-0"], "agent_id": ["writer-0"], "skill_id": [WORDS[0], WORDS[3]]}  # fmt: skip

BEGINNINGS = {
    "ref": ("long_term:", "chunks:"),
    "record_id": ("f-", "p-"),
    "device_id": ("d-",),
    "id": ("chunk-",),
    "target": ("chunk-",),
    "episode_id": ("episode-",),
}
"""How the ids begin that a field takes."""


def named(case: Case, got: Prepared, known: list[str]) -> Iterator[Any]:
    """The same requests about what is hidden: by names that anybody might guess, and by ids that somebody was told."""
    args = Asked(case.args).request(got)
    fields = {name for kind in case.row.kinds for name in kind.__struct_fields__}
    if case.row.effect != "read":
        if "dry_run" not in fields:
            return
        args = {**args, "dry_run": True}
    for field in sorted(fields):
        for value in HIDDEN_NAMES.get(field, []):
            yield {**args, field: value}
        for beginning in BEGINNINGS.get(field, ()):
            yield from ({**args, field: each} for each in known if each.startswith(beginning))


def asked(got: Prepared, known: list[str]) -> list[tuple[str, Any]]:
    """Everything, in the order of the table."""
    found: list[tuple[str, Any]] = []
    for row in OPERATIONS:
        case = OF[row.name]
        if row.effect == "stream" or row.name in ENDS:
            continue
        found += [(row.name, args) for args in (*requests(case, got), *named(case, got, known))]
    reads = [{"op": op, "args": args} for op, args in found if OF[op].row.effect == "read" and OF[op].row.batch]
    found += [("batch", {"requests": reads[n : n + 1]}) for n in range(0, len(reads), 7)]
    return found


def steady(value: Any, operator: bool, opaque: frozenset[str] = OPAQUE) -> Any:
    """An answer without what took time; of what is opaque, which tells nothing, the length."""
    if isinstance(value, dict):
        found: dict[str, Any] = {}
        for name, each in value.items():
            if name in LEFT_OUT or (operator and name in OPERATORS):
                continue
            if name in opaque and each:
                each = len(each)
            if name == "redacted" and "digest" in each:
                each = {**each, "digest": len(each["digest"])}
            found[name] = steady(each, operator, opaque)
        return found
    return [steady(each, operator, opaque) for each in value] if isinstance(value, list | tuple) else value


def answers(twin: Twin, who: str, everything: list[tuple[str, Any]], late: Iterator[list[Step]]) -> Iterator[Plain]:
    """What the caller is answered; while it turns pages, others write."""
    caller = CALLERS[who]
    owner = None if caller.owner_id else MARA
    for n, (op, args) in enumerate(everything):
        twin.at(f"ask {n}", 2000 + n)
        told = twin.answer(caller, op, args, owner)
        yield told
        for page in range(PAGES):
            cursor = told.get("next_cursor")
            if cursor is None:
                break
            for step in next(late, []):
                twin.take(step)
            twin.at(f"ask {n} page {page}", 2000 + n)
            told = twin.answer(caller, op, {**args, "cursor": cursor}, owner)
            yield told


def fill(twin: Twin, drawn: Drawn) -> list[list[Step]]:
    """The rows of one store. A quarter of what only it has comes later, while pages are turned."""
    shared = [twins.told(place, kind, text) for place, (kind, text) in enumerate(drawn.told)]
    shared += [PRIVATE[kind](place, text) for place, (kind, text) in enumerate(drawn.private)]
    hidden = [SEALED[kind](place, text) for place, (kind, text) in enumerate(drawn.sealed)]
    hidden += [FOREIGN[kind](place, text) for place, (kind, text) in enumerate(drawn.foreign)]
    parts = [hidden[1::4], shared, hidden[2::4], [twins.own(0)], hidden[3::4], [twins.own(1)]]
    for place, part in enumerate(parts):
        for number, steps in enumerate(part):
            for n, step in enumerate(steps):
                # The same time and name in both stores, where it is the same step.
                twin.at(f"part {place} {number} {n}", 100 + 100 * place + number)
                twin.take(step)
    twin.at("table of contents", 1900)
    twin.take(Step(twins.OPERATOR, "admin.rebuild_toc", {}, MARA))
    return hidden[::4]


WHOLE = frozenset({"memory.import", "memory.import_space", "batch"})
"""Writes that are not made here: an import takes what the case's preparation gave, a batch is asked for its reads."""
WRITES = tuple(row.name for row in OPERATIONS if row.effect == "write" and row.name not in WHOLE)


UNLOCKING: tuple[tuple[str, Any], ...] = (
    ("long_term.policy", {"action": "resume", "topic": twins.PAUSED}),
    *(
        ("evolve.propose", {"proposals": [{"proposal_id": f"h{n}", "kind": "fact_write", "rationale": "seen",
                                           "change": {"content": "the hat is blue", "topic": "hat"}}]})
        for n in range(8)
    ),
    ("evolve.list", {"state": "all"}),
    ("governance.list", {}),
)  # fmt: skip
"""What has something hidden decided, or is given the name of something hidden; and how things stand then."""


def told_of(
    twin: Twin, who: str, everything: list[tuple[str, Any]], got: Prepared, late: list[list[Step]]
) -> list[bytes]:
    """All that a caller learns of a store: answers to what it asks and writes, and the events that it follows."""
    caller, writes = CALLERS[who], iter(late)
    owner = None if caller.owner_id else MARA
    topics = [name for name, needed in TOPIC_CAPABILITIES.items() if needed in caller.capabilities] or ["transcript"]
    followed = twin.follow(caller, owner, tuple(topics))
    found = [steady(each, caller.is_operator) for each in answers(twin, who, everything, writes)]
    for n, op in enumerate(WRITES):
        for step in next(writes, []):
            twin.take(step)
        twin.at(f"write {n}", 4000 + n)
        told = twin.answer(caller, op, OF[op].request(got), owner)
        found.append(steady(told, caller.is_operator, OPAQUE | SALTED))
    for n, (op, args) in enumerate(UNLOCKING):
        twin.at(f"unlock {n}", 4500 + n)
        found.append(steady(twin.answer(caller, op, args, owner), caller.is_operator, OPAQUE))
    for n, step in enumerate(twins.own(2)):
        twin.at(f"last {n}", 5000 + n)
        twin.take(step)
    if isinstance(followed, Subscription):
        events = twins.heard(followed) if "skill" in topics else []
        found += [steady(each, caller.is_operator, OPAQUE | SALTED) for each in events]
    else:
        found.append(followed)
    return [pack(each) for each in found]


def of_kind(known: list[str], beginning: str) -> list[str]:
    """The first of the ids that begin so."""
    return [each for each in known if each.startswith(beginning)][:4]


def compare(folder: Path, base: Base, who: str, one: Drawn, other: Drawn) -> None:
    left, right = (twins.copied(base, folder / name) for name in ("one", "other"))
    got = base.got[BOB if CALLERS[who].owner_id == BOB else MARA]
    with closing(left), closing(right):
        late = [fill(twin, drawn) for twin, drawn in zip((left, right), seen_alike(who, one, other), strict=True)]
        told = sorted(left.known | right.known)
        everything = asked(got, [each for some in BEGINNINGS.values() for one in some for each in of_kind(told, one)])
        first, second = (
            told_of(twin, who, everything, got, writes) for twin, writes in zip((left, right), late, strict=True)
        )
    for a, b in zip(first, second, strict=False):
        assert a == b, (unpack_any(a), unpack_any(b))
    assert len(first) == len(second)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Base]:
    """Refusals are counted by the minute of the machine, of which a loaded one has two within a comparison."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("beetle.runtime.pipeline.refusals.WINDOW_S", 3600.0)
        yield twins.build(tmp_path_factory.mktemp("base"))


@pytest.mark.parametrize("who", OFTEN)
def test_all_that_is_hidden_changes_no_byte_of_any_answer(base: Base, tmp_path: Path, who: str) -> None:
    compare(tmp_path, base, who, FULL, EMPTY)


@pytest.mark.slow
@pytest.mark.parametrize("who", CALLERS)
@settings(max_examples=30, deadline=None, phases=(Phase.generate,), suppress_health_check=list(HealthCheck))
@given(one=holdings, other=holdings)
def test_no_caller_can_tell_two_stores_apart_by_what_it_may_not_see(
    base: Base, tmp_path_factory: pytest.TempPathFactory, who: str, one: Drawn, other: Drawn
) -> None:
    compare(tmp_path_factory.mktemp("pair"), base, who, one, other)


def test_every_operation_is_asked_and_every_read_is_answered_to_somebody(base: Base) -> None:
    names = {op for op, _ in asked(base.got[MARA], [])}
    assert {row.name for row in OPERATIONS if row.effect == "read"} <= names | ENDS


def test_damage_of_others_fills_no_list_of_findings(base: Base, tmp_path: Path) -> None:
    """A list of findings is narrowed to the caller's space before it is cut, and names records by their refs."""
    twin = twins.copied(base, tmp_path / "one")
    for n in range(120):
        twin.take(FOREIGN["fact"](n, "kettle")[0])
    twin.opened.store.write(lambda tx: tx.run("UPDATE fact SET state = 'superseded'"), grows=False)
    twin.opened.store.write(lambda tx: tx.run("DELETE FROM skill_revision"), grows=False)
    with closing(twin):
        findings = twin.answer(CALLERS["panel"], "store.verify", {}, None)["findings"]
    assert {each["check"] for each in findings} >= {"long_term", "procedural"}
    assert all(":" in each["subject"] for each in findings if each["check"] in ("long_term", "procedural")), findings


def test_a_made_up_receipt_tells_nothing_of_the_rows_of_others(base: Base, tmp_path: Path) -> None:
    twin = twins.copied(base, tmp_path / "one")
    with closing(twin):
        step = twins.told(0, "erased", "kettle")
        twin.take(step[0])
        receipt = twin.answer(*step[1])["receipt"]
        mark, body, signed = receipt.split(".")
        said = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        faults = []
        for event in (1, 3, 10**9):
            made = json.dumps(said | {"event": event}, sort_keys=True, separators=(",", ":"))
            forged = f"{mark}.{base64.urlsafe_b64encode(made.encode()).decode().rstrip('=')}.{signed}"
            faults.append(
                twin.answer(CALLERS["panel"], "store.verify", {"receipt": forged}, None)["receipt"]["reasons"]
            )
        assert faults == [("wrong_signature",)] * 3
