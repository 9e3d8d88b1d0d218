"""What a chat id stands for: recall, projection and inspection show nothing rather than the wrong conversation."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from beetle import MemoryRuntime
from beetle.contracts.common import WireScope
from beetle.open import Embedded
from tests.store.conftest import commit, lifecycle, open_runtime, path, turn

__all__ = ["path"]

CHAT = "chat"
BEARER = {"channel_id": "local", "conversation_id": CHAT}
STABLE = {"channel_id": "local", "conversation_id": "stable-7"}


@pytest.fixture
def memory(path: str) -> Iterator[MemoryRuntime]:
    with open_runtime(path) as opened:
        yield opened


def another(memory: MemoryRuntime, name: str, **scope: str) -> MemoryRuntime:
    """The same store for another principal, or in another scope."""
    mine = memory._opened
    where = {"owner_id": "owner-a", "channel": "local", "chat_id": CHAT, **scope}
    return MemoryRuntime(Embedded(mine._opened, mine._caller._replace(name=name), WireScope(**where)))


def said(memory: MemoryRuntime, conversation: dict[str, str], word: str, turn_id: str = "t1") -> None:
    commit(memory, turn(turn_id, f"{word} pelican"), conversation=conversation)


def standing(memory: MemoryRuntime) -> tuple[str, str | None]:
    """By what the current conversation is found, and its id; recall, projection and inspection must agree."""
    recalled = memory.recall(query="pelican")
    inspected = memory.inspect(query="pelican")
    projected = memory.project(user_query="", system_max_len=4000)
    seen = [recalled.working_recall, inspected.recall, inspected.operator]
    found = {(each.current_by, each.current_conversation and each.current_conversation.conversation_id)
             for each in seen if each is not None}  # fmt: skip
    (how,) = found
    marked = [hit for hit in recalled.hits if "current_conversation" in hit.why]
    recent = next(each for each in projected.sections if each.name == "recent")
    if how[1] is None:
        assert marked == [] and recent.items == 0
    else:
        assert {hit.conversation.conversation_id for hit in marked if hit.conversation} == {how[1]}
        assert recent.items > 0
    return how


def test_a_chat_id_stands_for_what_its_caller_last_committed_to(memory: MemoryRuntime) -> None:
    assert standing(memory) == ("nothing", None)
    said(memory, STABLE, "first")
    assert standing(memory) == ("remembered", "stable-7")
    said(memory, {**STABLE, "conversation_id": "later"}, "second")
    assert standing(memory) == ("remembered", "later")
    assert standing(another(memory, "other")) == ("nothing", None)
    assert standing(another(memory, "embedded:test", chat_id="elsewhere")) == ("nothing", None)


def test_a_chat_id_stands_for_the_conversation_that_bears_it(memory: MemoryRuntime) -> None:
    said(another(memory, "writer", chat_id="elsewhere"), BEARER, "borne")
    assert standing(memory) == ("chat_id", CHAT)
    assert standing(another(memory, "embedded:test", channel="mail")) == ("nothing", None)


def test_a_chat_id_that_two_conversations_claim_stands_for_neither(memory: MemoryRuntime) -> None:
    said(memory, BEARER, "borne")
    assert standing(memory) == ("remembered", CHAT)
    said(memory, STABLE, "stable")
    assert standing(memory) == ("untrusted", None)
    assert "stable" in str(memory.recall(query="pelican").hits) and "borne" in str(memory.recall(query="pelican").hits)
    for named in (BEARER, STABLE):
        recalled = memory.recall(query="pelican", conversation=named).working_recall
        assert (recalled.current_by, recalled.current_conversation is not None) == ("named", True)
    said(memory, BEARER, "again", "t2")
    assert standing(memory) == ("remembered", CHAT)


def test_another_s_word_unsettles_a_chat_id_only_for_who_has_none_of_its_own(memory: MemoryRuntime) -> None:
    said(another(memory, "writer", chat_id="elsewhere"), BEARER, "borne")
    said(another(memory, "other"), STABLE, "stable")
    assert standing(memory) == ("untrusted", None)
    said(memory, BEARER, "mine", "t2")
    assert standing(memory) == ("remembered", CHAT)
    assert standing(another(memory, "third")) == ("untrusted", None)


def test_claims_of_another_owner_count_for_nothing(memory: MemoryRuntime) -> None:
    said(another(memory, "embedded:test", owner_id="owner-b"), STABLE, "theirs")
    said(another(memory, "writer", chat_id="elsewhere"), BEARER, "borne")
    assert standing(memory) == ("chat_id", CHAT)


@pytest.mark.parametrize("action", ["mask", "delete_raw"])
@pytest.mark.parametrize("how", ["remembered", "chat_id"])
def test_a_withheld_conversation_is_current_for_nobody_and_replaced_by_none(
    memory: MemoryRuntime, action: str, how: str
) -> None:
    writer = memory if how == "remembered" else another(memory, "writer", chat_id="elsewhere")
    said(writer, BEARER, "borne")
    said(writer, BEARER, "more", "t2")
    said(another(memory, "someone", chat_id="other"), {**STABLE, "conversation_id": "other"}, "elsewhere")
    assert standing(memory) == (how, CHAT)
    lifecycle(memory, action, "t1", conversation=BEARER)
    assert standing(memory) == (how, CHAT)
    assert "borne" not in str(memory.project(user_query="pelican").system_memory_block)
    lifecycle(memory, action, "t2", conversation=BEARER)
    assert standing(memory) == ("withheld", None)
    block = memory.project(user_query="").system_memory_block
    assert block == ""
    assert "borne" not in str(memory.project(user_query="pelican").system_memory_block)
    if action == "mask":
        lifecycle(memory, "unmask", "t2", conversation=BEARER)
        assert standing(memory) == (how, CHAT)


def test_a_masked_conversation_that_is_named_shows_nothing_and_nothing_instead(memory: MemoryRuntime) -> None:
    said(memory, STABLE, "stable")
    said(memory, {**STABLE, "conversation_id": "live"}, "lively")
    lifecycle(memory, "mask", "t1", conversation=STABLE)
    assert memory.project(user_query="", conversation=STABLE).system_memory_block == ""
    assert memory.recall(query="pelican", conversation=STABLE).hits == ()
    scoped = another(memory, "embedded:test", conversation_id="stable-7")
    assert scoped.project(user_query="").system_memory_block == ""


def test_what_is_named_and_not_there_is_not_replaced_by_another(memory: MemoryRuntime) -> None:
    said(memory, STABLE, "stable")
    nowhere = {"channel_id": "local", "conversation_id": "nowhere"}
    recalled = memory.recall(query="pelican", conversation=nowhere)
    assert (recalled.hits, recalled.working_recall.current_by) == ((), "nothing")
    assert memory.project(user_query="", conversation=nowhere).system_memory_block == ""
    scoped = another(memory, "embedded:test", conversation_id="nowhere")
    assert standing(scoped) == ("nothing", None)


def test_a_projection_that_names_its_conversation_depends_on_nothing_remembered(memory: MemoryRuntime) -> None:
    """The order of two equal hits is decided by the conversation that is named, not by the one committed to last."""
    said(memory, STABLE, "equal")
    said(memory, {**STABLE, "conversation_id": "later"}, "equal")
    orders: list[tuple[str, ...]] = []
    for name in ("stable-7", "later"):
        where = {"channel_id": "local", "conversation_id": name}
        report = memory.project(user_query="pelican", conversation=where, recent_messages_limit=0)
        orders.append(report.audit.selected)
    assert orders[0][0] == "evidence:local/stable-7/t1/t1-m0"
    assert orders[1][0] == "evidence:local/later/t1/t1-m0"
