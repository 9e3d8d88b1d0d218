"""What a candidate's evidence must be: it bears the content, and a user's word is that user's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from beetle import MemoryRuntime
from tests.building import turn
from tests.governance.learned import another
from tests.governance.queued import said
from tests.store.conftest import assert_clean, open_runtime


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "store.db")


@pytest.fixture
def memory(path: str) -> Iterator[MemoryRuntime]:
    with open_runtime(path) as opened:
        yield opened
        assert_clean(opened)


# The other conditions on a candidate.


@pytest.mark.parametrize(
    ("message", "borne", "other"),
    [
        ("Ich mag keinen Käse.", "Der Nutzer mag keinen Käse.", "Der Nutzer mag Käse."),
        ("你好！我不喜欢奶酪，谢谢。", "用户不喜欢奶酪。", "用户喜欢奶酪。"),  # noqa: RUF001 - as it is written
        ("I don't like cheese.", "The user dislikes cheese.", "The user likes cheese."),
    ],
)
def test_evidence_must_bear_a_candidate_in_any_language(
    memory: MemoryRuntime, message: str, borne: str, other: str
) -> None:
    said_ = {"message_id": "m1", "role": "user", "content": message}
    memory.commit_transcript(conversation={"conversation_id": "c"}, turns=[turn("t1", said_)])
    refs = {"evidence_refs": ["evidence:local/c/t1/m1"]}
    worker = another(memory)
    assert said(worker, other, "user_asserted", topic="cheese", **refs).reason == "evidence_does_not_bear"
    assert said(worker, borne, "assistant_claimed", topic="cheese", **refs).reason == "needs_assertion"
    assert said(worker, borne, "user_asserted", topic="cheese", **refs).reason == "created"


@pytest.mark.parametrize(
    ("role", "authority", "reason"),
    [
        ("assistant", "host", "created"),
        ("assistant", "tool_observed", "evidence_does_not_bear"),
        ("tool", "host", "created"),
        ("tool", "tool_observed", "created"),
        ("user", "tool_observed", "created"),
    ],
)
def test_an_assistant_s_words_alone_bear_what_its_host_says_and_nothing_that_a_tool_saw(
    memory: MemoryRuntime, role: str, authority: str, reason: str
) -> None:
    message = {"message_id": "m1", "role": role, "content": "The boiler is cold."}
    memory.commit_transcript(conversation={"conversation_id": "c"}, turns=[turn("t1", message)])
    refs = ["evidence:local/c/t1/m1"]
    assert said(another(memory), "The boiler is cold.", authority, topic="boiler", evidence_refs=refs).reason == reason


@pytest.mark.parametrize(
    ("role", "actor", "reason"),
    [
        ("user", None, "created"),
        ("user", {"actor_subject_id": "mara", "subject_id": "mara"}, "created"),
        ("user", {"actor_subject_id": "mara", "mounted_subject_id": "mara"}, "created"),
        ("user", {"actor_subject_id": "tom", "mounted_subject_id": "mara"}, "needs_assertion"),
        ("user", {"actor_subject_id": "mara", "subject_id": "tom"}, "needs_assertion"),
        ("assistant", None, "needs_assertion"),
        ("tool", None, "needs_assertion"),
    ],
)
def test_a_user_s_word_cites_a_user_s_message_by_that_subject(
    memory: MemoryRuntime, role: str, actor: dict[str, str] | None, reason: str
) -> None:
    text = "The user lives in Porto." if role != "user" else "I live in Porto."
    message = {"message_id": "m1", "role": role, "content": text} | ({"actor": actor} if actor else {})
    memory.commit_transcript(conversation={"conversation_id": "c"}, turns=[turn("t1", message)])
    found = said(another(memory), "The user lives in Porto.", "user_asserted", evidence_refs=["evidence:local/c/t1/m1"])
    assert found.reason == reason
    assert said(another(memory), "The user lives in Faro.", "user_asserted").reason == "needs_assertion"
