"""Every class of material × every stage × every caller × every view × every operation that answers.

Each class has a word of its own. It stands in a report where the specification's tables say so, and nowhere else: not
in another report, an error, an event, a stored answer, a row of the event log or the log. What each cell expects is
worked out here from the tables of the specification, not by the code under test.
"""

from __future__ import annotations

import base64
import json
import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import pytest

from beetle.contracts.errors import BeetleError
from beetle.contracts.operations import OPERATIONS
from beetle.runtime.host import logs
from tests.building import CONVERSATION, candidate, candidates, message, talk, turn
from tests.cases import CASES, SAID_DAY, WORD
from tests.conformance.doors import InProcess, Plain
from tests.governance import exports as exported
from tests.governance.material import ALL, ASKERS, KINDS, OWNER, REGISTRY, STAGES, UPLOAD, VIEWS, Asker, Store, canary

QUERY = " ".join(ALL)
SEARCHED = ("raw_owner", "model_context", "host_ui")
"""Views that may be searched."""
WORDLESS = (
    "event_log", "idempotency", "meta", "candidate", "fact", "fact_revision", "policy", "private_item", "space_key",
    "tool_observation", "derived_ref", "pending_erasure", "remembered_conversation", "device", "transport",
    "tool_registry",
    "job", "maintained", "toc_outbox", "toc_node", "grip",
)  # fmt: skip
"""Tables that hold ids, kinds, counts and keyed digests alone."""
STREAMS = {"subscribe", "unsubscribe"}
"""They answer with ids; what they tell of is looked at by a test of its own."""


@pytest.fixture(scope="module", params=STAGES)
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    made = Store(tmp_path_factory.mktemp("matrix"), request.param)
    yield made
    made.close()


# What the tables of the specification say.


def sees_message(kind: str, stage: str, view: str, own: bool, include_private: bool = False) -> bool:
    """The table of message content."""
    if stage == "deleted":
        return False
    if view == "raw_owner":
        return True
    if stage == "masked":
        return False
    return {
        "shared": view != "operator_audit",
        "private": (view == "model_context" and own) or (view == "export" and include_private),
        "soul": view == "export" and include_private,
        "backend": view == "operator_audit",
        "operator": view == "operator_audit",
    }[kind]


def sees_words(view: str) -> bool:
    """What is marked content: every view but operator_audit."""
    return view != "operator_audit"


def sees_private_words(view: str, own: bool) -> bool:
    """Private facts, like a private message of the space's own."""
    return view == "raw_owner" or (view == "model_context" and own)


def turns_show(stage: str, view: str, own: bool, include_private: bool = False) -> set[str]:
    """Content, labels and attrs of a page of turns."""
    shown: set[str] = set()
    for kind in KINDS:
        if sees_message(kind, stage, view, own, include_private):
            shown |= {canary(f"said {kind}"), canary(f"attr {kind}")}
            if view in ("raw_owner", "host_ui"):
                shown.add(canary(f"label {kind}"))
    return shown


def found_by_words(stage: str, view: str, own: bool) -> set[str]:
    """Messages in a search: shared and private ones are indexed, masked ones are not."""
    if stage == "masked":
        return set()
    return {canary(f"said {kind}") for kind in ("shared", "private") if sees_message(kind, stage, view, own)}


def current_facts(view: str, own: bool) -> set[str]:
    shown = {canary(name) for name in ("fact shared", "fact new", "fact successor")} if sees_words(view) else set()
    return shown | ({canary("fact private")} if sees_private_words(view, own) else set())


def recalled(stage: str, view: str, own: bool) -> set[str]:
    """Recall, and what stands on it: evidence, current facts, enabled skills."""
    skills = (
        {canary("skill live"), canary("agent skill"), canary("thought"), canary("chunk")} if sees_words(view) else set()
    )
    return found_by_words(stage, view, own) | current_facts(view, own) | skills


# What is asked, and what it may show.


PERIODS = ("toc:year:2024", "toc:month:2024-05", "toc:week:2024-W18", SAID_DAY)
"""Nodes above what is said."""
HOUR = {"from_timestamp_ms": 1714557600000, "to_timestamp_ms": 1714561199999}
"""In which what is said was said."""


class Cell(NamedTuple):
    """One request: `shows` is what must stand in its report, to the letter; None where it is to be refused.

    `besides` is what may stand there too: what a search finds beside what it was asked for.
    """

    op: str
    args: dict[str, Any]
    shows: set[str] | None
    besides: frozenset[str] = frozenset()


def cells(store: Store, asker: Asker) -> Iterator[Cell]:
    """Every operation of the table, for one caller."""
    yield from transcript_cells(store, asker)
    yield from continuity_cells(store, asker)
    yield from fact_cells(store, asker)
    yield from waiting_cells(asker)
    yield from skill_cells(asker)
    yield from model_cells(store, asker)
    yield from private_cells(store, asker)
    yield from host_cells(asker)
    yield from chain_cells(asker)
    yield from chunk_cells(store, asker)
    yield from contents_cells(store, asker)
    yield from written_cells()
    yield from case_cells(asker)


def case_cells(asker: Asker) -> Iterator[Cell]:
    """The cases whose answers hold ids, kinds and counts alone, or the words that the case names, as the table says who
    may ask.

    What proposals show, which this profile hides: tests/sdk/test_evolve_views.py. What a model is shown:
    tests/sdk/test_maintain_privacy.py.
    """
    may = {"everyone": True, "operator": asker.caller.is_operator, "owner": "raw_owner" in asker.caller.views}
    for case in CASES:
        for asked in case.quietly:
            refused = case.hidden or not may[case.who] or asked.key is not None
            args = asked.args if isinstance(asked.args, dict) and not case.hidden else {}
            yield Cell(case.op, args, None if refused else set())
        if case.shows:
            assert isinstance(case.args, dict) and case.who == "everyone" and not case.hidden
            yield Cell(case.op, case.args, {canary(each) for each in case.shows} if sees_words(asker.view) else set())


def transcript_cells(store: Store, asker: Asker) -> Iterator[Cell]:
    stage, own = store.stage, asker.own_agent
    where = {"conversation": CONVERSATION}
    for view in VIEWS:
        may = view in asker.caller.views
        shown = turns_show(stage, view, own) if may else None
        yield Cell("transcript.replay", {**where, "view": view}, shown)
        yield Cell("transcript.timeline", {**where, "view": view}, shown)
        searched = found_by_words(stage, view, own) if may and view in SEARCHED else None
        beside = frozenset(canary(f"said {kind}") for kind in KINDS if sees_message(kind, stage, view, own))
        yield Cell("transcript.search", {"query": QUERY, "view": view, "limit": 50}, searched, beside)
    labels = {canary(f"label {kind}") for kind in KINDS}
    yield Cell("event.range", HOUR, turns_show(stage, asker.view, own) - labels)
    exports = "export" in asker.caller.views
    yield Cell("transcript.export", where, turns_show(stage, "export", own) if exports else None)
    whole = turns_show(stage, "export", own, True) if exports and "raw_owner" in asker.caller.views else None
    yield Cell("transcript.export", {**where, "include_private": True}, whole)
    for action in ("archive", "mask", "unmask", "delete_raw", "review"):
        yield Cell("transcript.lifecycle", store.step(action, dry_run=True), set())


def continuity_cells(store: Store, asker: Asker) -> Iterator[Cell]:
    """What leaves the store is what an export may show, opened to the last byte. The chat `talk` is evidence alone."""
    stage, own = store.stage, asker.own_agent
    exports, owner = "export" in asker.caller.views, "raw_owner" in asker.caller.views
    there = stage in ("live", "unmasked")
    said, whole = turns_show(stage, "export", own), turns_show(stage, "export", own, True)
    yield Cell("memory.replay", {"chat_id": "talk"}, set() if there else None)
    yield Cell("memory.export", {"chat_id": "talk"}, said if exports and there else None)
    yield Cell("memory.export", {"chat_id": "talk", **exported.WHOLE}, whole if owner and there else None)
    if not owner:  # the owner remembers which conversation it is; for the others it is one of no evidence
        yield Cell("memory.export", {"chat_id": "chat-1"}, exported.FACTS | exported.SKILLS if exports else None)
    space = exported.FACTS | exported.SKILLS | exported.SPACE
    yield Cell("memory.export_space", {}, space if exports else None)
    briefs = exported.BRIEFS if there else set[str]()
    everything = space | exported.PRIVATE | whole | briefs
    yield Cell("memory.export_space", exported.WHOLE, everything if owner else None)
    taken = base64.b64decode(store.ask("memory.export_space", exported.WHOLE)["archive"])
    words = {"passphrase": exported.WORDS}
    yield Cell("memory.import_space", {"archive": taken, "mode": "bootstrap_import", **words}, None)
    yield Cell("memory.import_space", {"archive": taken[:-1], "mode": "full_restore", **words}, None)
    args = {"snapshot": taken, "target_chat_id": canary("said soul"), "mode": "bootstrap_import"}
    yield Cell("memory.import", args, None)


def fact_cells(store: Store, asker: Asker) -> Iterator[Cell]:
    own = asker.own_agent
    for view in VIEWS:
        may = view in asker.caller.views
        words, private = sees_words(view), sees_private_words(view, own)
        listed = {canary(name) for name in ("fact stale", "fact superseded")} if words else set()
        yield Cell("long_term.list", {"view": view}, current_facts(view, own) if may else None)
        everything = current_facts(view, own) | listed
        yield Cell("long_term.list", {"view": view, "state": "all"}, everything if may else None)
        for name, said in (
            ("fact shared", {canary("fact shared")}), ("fact old", {canary("fact new"), canary("fact reason")}),
            ("fact stale", {canary("fact stale"), canary("fact reason")}),
            ("fact superseded", {canary("fact superseded"), canary("fact reason")}), ("fact gone", set()),
        ):  # fmt: skip
            shown = (said if words else set()) if may else None
            yield Cell("long_term.detail", {"ref": store.refs[name], "view": view}, shown)
        before = {canary("fact new"), canary("fact old"), canary("fact reason")} if words else set()
        args = {"ref": store.refs["fact old"], "history": True, "view": view}
        yield Cell("long_term.detail", args, before if may else None)
        hidden = {canary("fact private")} if may and private else None
        yield Cell("long_term.detail", {"ref": store.refs["fact private"], "view": view}, hidden)
    policies = {canary("policy topic"), canary("policy reason")} if sees_words(asker.view) else set()
    yield Cell("long_term.policy", {"action": "list"}, policies)
    for action in ("delete", "mark_stale"):
        more = {} if action == "delete" else {"reason": "because"}
        yield Cell(
            "long_term.mutate", {"action": action, "ref": store.refs["fact shared"], "dry_run": True, **more}, set()
        )
    for name in ("fact shared", "fact superseded", "fact gone"):
        args = {"action": "forget_by_query", "query": canary(name), "dry_run": True}
        yield Cell("long_term.mutate", args, set())


def waiting_cells(asker: Asker) -> Iterator[Cell]:
    """What waits follows the rules for facts; what is accepted, and why, is told by ids."""
    for view in VIEWS:
        may = view in asker.caller.views
        shown = {canary("waiting")} if sees_words(view) else set[str]()
        # What the cells below write waits here too, for the askers that come later.
        beside = frozenset({canary("fact shared")} if sees_words(view) else ())
        yield Cell("governance.list", {"view": view}, shown if may else None, beside)
        yield Cell("governance.list", {"view": view, "reason": "policy_paused"}, set() if may else None)


def skill_cells(asker: Asker) -> Iterator[Cell]:
    yield Cell("skill.detail", {"name": "off"}, {canary("skill off")} if sees_words(asker.view) else set())
    yield Cell("skill.detail", {"name": "gone"}, None)


def model_cells(store: Store, asker: Asker) -> Iterator[Cell]:
    """What is meant for a model is seen through the model's view, or through the caller's own where it has none."""
    stage, own = store.stage, asker.own_agent
    modelled = recalled(stage, "model_context" if "model_context" in asker.caller.views else asker.view, own)
    yield Cell("memory.recall", {"query": QUERY, "limit": 50}, modelled)
    yield Cell("memory.recall", {"query": QUERY, "limit": 50, "path": "toc"}, modelled)
    then = {"query": "What were we talking about last week?", "asked_at": "2024-05-08T12:00:00Z"}
    yield Cell("memory.recall", then, modelled & {canary("said shared")}, frozenset(modelled))
    for name in ALL:  # one by one: nothing is found by the words of what may not be seen
        yield Cell("memory.recall", {"query": name, "limit": 50}, modelled & {name}, frozenset(modelled))
    block = {"user_query": QUERY, "system_max_len": 16_000, "recent_messages_limit": 100, "conversation": CONVERSATION}
    yield Cell("memory.project", block, modelled)
    yield Cell("memory.inspect", {"query": QUERY}, recalled(stage, asker.view, own))


def private_cells(store: Store, asker: Asker) -> Iterator[Cell]:
    may = "raw_owner" in asker.caller.views
    for name in ("garden", "soul candidate"):
        yield Cell("private.get", {"record_id": store.records[name]}, {canary(name)} if may else None)


def host_cells(asker: Asker) -> Iterator[Cell]:
    """What the host says of its skills and tools is words like any other; what a skill's files hold is told nowhere."""
    words = sees_words(asker.view)
    yield Cell("agent_skill.list", {}, {canary("agent skill")} if words else set())
    shown = {canary("registry title"), canary("registry summary")} if words else set[str]()
    yield Cell("tool_registry.get", {"registry_id": "host-tools"}, shown)
    yield Cell("tool_registry.upsert", REGISTRY, set())
    named = {canary("uploaded name")} if words else set[str]()
    yield Cell("skill_registry.list", {}, named)
    yield Cell("skill_registry.search", {"text": canary("uploaded text")}, named)
    said = named | {canary("uploaded text")} if words else set[str]()
    yield Cell("skill_registry.read", {"skill_id": WORD}, said)
    # What is there already, and what is not, without a change to the store.
    yield Cell("skill_registry.upload", {**UPLOAD, "format": "yaml"}, None)
    yield Cell("skill_registry.deprecate", {"skill_id": "gone"}, None)
    yield Cell("skill_registry.revoke", {"skill_id": "gone"}, None)


def chunk_cells(store: Store, asker: Asker) -> Iterator[Cell]:
    """A chunk is the space's, whole, for whoever sees words; a deleted one is nobody's."""
    tag = {canary("chunk tag")} if sees_words(asker.view) else set[str]()
    shown, archived = ({canary(name), *tag} if tag else set[str]() for name in ("chunk", "chunk archived"))
    modelled = sees_words(_model_view(asker))
    live, put_away, gone = (store.refs[f"id of {name}"] for name in ("chunk", "chunk archived", "chunk gone"))
    yield Cell("chunk.get", {"id": live}, shown)
    yield Cell("chunk.get", {"id": put_away}, archived)
    yield Cell("chunk.get", {"id": gone}, set())
    yield Cell("chunk.list", {}, shown)
    yield Cell("chunk.list", {"state": "all", "changed_since": 0}, shown | archived)
    yield Cell("chunk.list", {"tags": [canary("chunk tag")], "state": "archived"}, archived)
    yield Cell("chunk.stats", {"by": "tag"}, tag)
    taken = {canary(name) for name in ("chunk", "chunk archived", "chunk tag")}
    exports = asker.caller.is_operator and "export" in asker.caller.views
    yield Cell("chunk.export_tree", {}, taken if exports else None)
    yield Cell("chunk.update", {"id": live, "confidence": 0.7}, shown)
    yield Cell("chunk.link", {"id": live, "kind": "supports", "target": "nobody", "remove": True}, shown)
    yield Cell("chunk.restore", {"id": live}, shown)
    yield Cell("chunk.create", {"content": " ", "conversation_id": "c"}, None)
    yield Cell("chunk.recall", {"query": QUERY, "max_results": 50}, {canary("chunk")} if modelled else set())
    said = {canary("chunk"), canary("chunk tag")} if modelled else set[str]()
    # A synthesis begins with what was asked for.
    yield Cell("chunk.reason", {"query": canary("chunk"), "analysis_type": "synthesis"}, said & {canary("chunk")})
    yield Cell("chunk.reason", {"query": QUERY, "analysis_type": "pattern"}, said & {canary("chunk tag")})


def chain_cells(asker: Asker) -> Iterator[Cell]:
    """A masked thought is shown in the raw_owner view alone, which no operation on chains has."""
    agent = {canary("thought agent")} if sees_words(asker.view) else set[str]()
    shown = {canary("thought"), *agent} if agent else set[str]()
    modelled = {canary("thought"), canary("thought agent")} if sees_words(_model_view(asker)) else set[str]()
    chain = {"chain_key": "told"}
    for op in ("chain.search", "chain.traverse", "chain.export"):
        yield Cell(op, chain, shown)
    yield Cell("chain.search", {**chain, "text": canary("thought masked")}, set())
    yield Cell("chain.merge_report", {**chain, "other_chain_key": "told"}, set())
    yield Cell("chain.genesis", chain, shown)
    yield Cell("chain.head", chain, agent)
    for index, said in enumerate((shown, agent, agent)):
        yield Cell("chain.get_thought", {**chain, "thought_index": index}, said)
    for op in ("chain.recent_context", "chain.memory_markdown"):
        yield Cell(op, chain, modelled)
    for op in ("chain.agents", "chain.agent_registry"):
        yield Cell(op, chain, agent)
    yield Cell("chain.get_agent", {**chain, "agent_id": "writer"}, agent)
    bad = {**chain, "content": canary("waiting"), "refs": [99]}
    yield Cell("chain.append", {**bad, "thought_type": "Plan"}, None)
    yield Cell("chain.append_retrospective", bad, None)


def contents_cells(store: Store, asker: Asker) -> Iterator[Cell]:
    """Titles, bullets and keywords are of shared, live messages; the events behind a bullet are as in any page.

    Each is asked as the table of contents was before the stage, and once it was built anew.
    """
    yield from _node_cells(store, asker)
    if asker.caller.is_operator:
        yield Cell("admin.rebuild_toc", {}, set())
        yield from _node_cells(store, asker)


def _node_cells(store: Store, asker: Asker) -> Iterator[Cell]:
    stage, view, own = store.stage, asker.view, asker.own_agent
    said = {canary("said shared")} & turns_show(stage, view, own)
    yield Cell("toc.root", {}, said)
    for level in PERIODS:
        yield Cell("toc.node", {"node_id": level}, said)
        yield Cell("toc.browse", {"parent_id": level}, said)
    searches = view != "operator_audit"
    yield Cell("toc.search_children", {"query": QUERY}, said if searches else None)
    for name in KINDS:  # one by one: nothing is found by the words of what may not be seen
        found = said & {canary(f"said {name}")} if searches else None
        yield Cell("toc.search_node", {"node_id": SAID_DAY, "query": canary(f"said {name}")}, found)
        # A neighbour of what is seen is found beside it.
        near = {"query": canary(f"said {name}"), "parent_id": SAID_DAY}
        yield Cell("toc.search_children", near, found, frozenset(said))
    # No episode is staged: what one shows of a masked task is in tests/capture/test_episodes.py.
    yield Cell("episode.similar", {"query": QUERY}, set() if searches else None)
    labels = {canary(f"label {kind}") for kind in KINDS}
    around = turns_show(stage, view, own) - labels
    for grip_id in store.grips:
        yield Cell("grip.expand", {"grip_id": grip_id, "events_before": 10, "events_after": 10}, around)


def _model_view(asker: Asker) -> str:
    return "model_context" if "model_context" in asker.caller.views else asker.view


def written_cells() -> Iterator[Cell]:
    """What is there already, written again, and what is refused."""
    said = []
    for minute, kind in enumerate(KINDS):
        label = {"kind": "task", "ref_id": f"r-{kind}", "label": canary(f"label {kind}"), "visibility": list(VIEWS[1:])}
        one = message(f"m-{kind}", canary(f"said {kind}"), visibility=kind)
        said.append(turn(f"t-{kind}", one, at=f"2024-05-01T10:0{minute}:00Z", host_refs=[label]))
    yield Cell("transcript.commit", talk(*said), set())
    yield Cell("memory.finalize_turn", {"conversation": CONVERSATION, "turn": said[0]}, set())
    captured = {"host_session_id": "s", "host_turn_index": 0, "role": "user", "content": canary("waiting")}
    yield Cell("turn.capture", {**captured, "metadata": {"agent_id": canary("waiting")}}, None)
    event = {"event_id": canary("waiting"), "session_id": "s", "timestamp_ms": 2**60, "event_type": "user_message"}
    yield Cell("event.ingest", {"event": {**event, "text": canary("waiting")}}, None)
    yield Cell("episode.start", {"task": " ", "agent_id": canary("waiting")}, None)
    again = candidate("again", canary("fact shared"), topic="topic of fact shared")
    yield Cell("memory.write", candidates(again), set())
    change = {"kind": "skill_edit", "target": WORD, "change": {"title": canary("waiting")}, "rationale": "r"}
    yield Cell("evolve.propose", {"proposals": [change]}, None)
    refused = {**again, "candidate_id": "refused", "topic": canary("policy topic"), "content": canary("waiting")}
    yield Cell("memory.write", candidates(refused), set())
    said_again = {"text": "It is so.", "said": "It is so.", "topic": canary("policy topic")}
    yield Cell("memory.remember", said_again, set())


def words_in(text: str) -> set[str]:
    """The words that stand in a text, as they were written or in a title's case."""
    text = text.lower()
    return {each for each in ALL if each in text}


@pytest.mark.parametrize("who", ASKERS)
def test_each_word_stands_where_the_contract_says_and_nowhere_else(
    store: Store, who: str, caplog: pytest.LogCaptureFixture, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    caplog.set_level(logging.DEBUG, logger="beetle")
    log = tmp_path / "beetle.log"
    handler = logs.RotatingFile(str(log), logs.Bounds(file_bytes=1 << 30))
    logging.getLogger("beetle").addHandler(handler)
    request.addfinalizer(lambda: logging.getLogger("beetle").removeHandler(handler))
    asker = ASKERS[who]
    wrong: list[str] = []
    asked: set[str] = set()
    for cell in cells(store, asker):
        asked.add(cell.op)
        try:
            answer = store.ask(cell.op, cell.args, who)
            report = json.dumps(answer, ensure_ascii=False) + exported.opened(answer)
        except BeetleError as error:
            told = words_in(f"{error.message} {error.hint} {json.dumps(error.details, default=str)}")
            if told or cell.shows is not None:
                wrong.append(f"{cell.op} {short(cell.args)}: {error.key} for {sorted(cell.shows or ())}; told {told}")
            continue
        shown = words_in(report)
        if cell.shows is None:
            wrong.append(f"{cell.op} {short(cell.args)}: answered, with {sorted(shown)}, and was to be refused")
        elif shown - cell.besides != cell.shows - cell.besides or not cell.shows <= shown:
            missing, leaked = sorted(cell.shows - shown), sorted(shown - cell.shows)
            wrong.append(f"{cell.op} {short(cell.args)}: missing {missing}, leaked {leaked}")
    assert wrong == [], "\n".join(wrong)
    assert asked == {row.name for row in OPERATIONS} - STREAMS, "every operation of the table has its cells"
    assert words_in(caplog.text) == set()
    lines = [json.loads(each) for each in log.read_text().splitlines()]
    assert {each["op"] for each in lines if each["event"] == "request"} == asked
    assert words_in(log.read_text()) == set()


def short(args: dict[str, Any]) -> str:
    return json.dumps(
        {name: value for name, value in args.items() if name not in ("turns", "conversation")}, default=str
    )[:120]


def test_event_log_and_stored_answers_hold_no_word(store: Store) -> None:
    connection = apsw.Connection(str(store.path), flags=apsw.SQLITE_OPEN_READONLY)
    for table in WORDLESS:
        for row in connection.execute(f"SELECT * FROM {table}"):
            text = " ".join(each.decode("latin-1") if isinstance(each, bytes) else str(each) for each in row)
            assert words_in(text) == set(), table
    connection.close()


def test_private_material_is_in_no_byte_of_the_store_and_erased_material_neither(store: Store) -> None:
    sealed = {canary("garden"), canary("soul candidate")}
    erased = {canary("fact gone"), canary("skill gone")}
    if store.stage == "deleted":
        erased |= {canary(f"{what} {kind}") for what in ("said", "label", "attr") for kind in KINDS} | {
            canary("tool brief")
        }
    for file in store.path.parent.rglob("*"):
        found = words_in(file.read_bytes().decode("latin-1")) if file.is_file() else set()
        assert found & (sealed | erased) == set(), file.name


def test_events_and_errors_of_the_writes_hold_no_word(tmp_path: Path) -> None:
    """What subscribers are told while all of it is written, masked and deleted."""
    from beetle.store.engine.store import Store as BeetleStore

    told: list[str] = []
    seen = threading.Lock()
    before = BeetleStore.on_commit

    def listen(self: BeetleStore, hook: Any) -> None:
        def both(logged: Any) -> None:
            with seen:
                told.extend(repr(each) for each in logged)
            hook(logged)

        before(self, both)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BeetleStore, "on_commit", listen)
        store = Store(tmp_path, "deleted")
        for key, value in (("ref", "long_term:f-0000"), ("record_id", "p-0000")):
            for op in ("long_term.detail", "private.get"):
                with pytest.raises(BeetleError) as refused:
                    store.ask(op, {key: value, "view": canary("said soul")})
                assert words_in(refused.value.message) <= {canary("said soul")}
        store.close()
    assert told
    assert words_in(" ".join(told)) == set()


def test_who_may_not_see_a_private_fact_learns_nothing_of_it_and_replaces_nothing(tmp_path: Path) -> None:
    door = InProcess(OWNER, tmp_path / "beetle.db")

    def judged(asker: str, privacy: str, content: str) -> Plain:
        asked = candidates(
            candidate("c", content, privacy=privacy, kind="fact", topic="health", authority="tool_observed")
        )
        return door.ask("memory.write", asked, caller=ASKERS[asker].caller).report["outcomes"][0]

    kept = judged("owner", "subject_private", "Mara has a cold.")
    for said in ("Mara has a cold.", "Mara is well."):
        outcome = judged("panel", "shared_with_subject", said)
        assert outcome["superseded_ref"] != kept["ref"] != outcome["ref"], outcome
        assert outcome["reason"] == ("created" if said == "Mara has a cold." else "superseded")
    own = door.ask("long_term.detail", {"ref": kept["ref"], "view": "model_context"}).report["record"]
    assert (own["state"], own["content"]) == ("current", "Mara has a cold.")
    assert judged("agent", "subject_private", "Mara has a cold.")["reason"] == "unchanged"
    door.close()


@pytest.mark.parametrize("whole", [False, True], ids=["public", "with private material"])
def test_what_was_exported_and_taken_in_elsewhere_holds_what_the_export_shows_and_no_more(
    store: Store, tmp_path: Path, whole: bool
) -> None:
    """An export's turns committed to another store: no byte there is of what the export withheld."""
    report = store.ask("transcript.export", {"conversation": CONVERSATION, "include_private": whole})
    turns = []
    for each in report["turns"]:
        said = [
            {"message_id": one["message_id"], "role": one["role"], "content": one["content"], "at": one["at"],
             "visibility": one["visibility"]}
            for one in each["messages"] if "content" in one
        ]  # fmt: skip
        attrs = [{"key": one["key"], "value": one["value"]} for one in each["attrs"]]
        refs = [{name: ref[name] for name in ("kind", "ref_id", "label")} for ref in each["host_refs"]]
        if said:
            turns.append(
                {"turn_id": each["turn_id"], "at": each["at"], "messages": said, "attrs": attrs, "host_refs": refs}
            )
    other = InProcess(OWNER, tmp_path / "other.db")
    if turns:
        other.ask("transcript.commit", talk(*turns))
    other.close()
    found = set().union(*(words_in(file.read_bytes().decode("latin-1")) for file in tmp_path.iterdir()))
    assert found == turns_show(store.stage, "export", True, whole)
