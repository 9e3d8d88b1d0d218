"""What waits is sealed where it is private, and the queue has a size."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from beetle import MemoryRuntime
from beetle.contracts.errors import (
    PrivacyDenied,
)
from tests.governance.keeping import key_file
from tests.governance.learned import another, forget, listed
from tests.governance.queued import CANARY, OWNER, dropped, refused, said, waiting
from tests.store.conftest import assert_clean, bytes_of, open_runtime, store_of


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "store.db")


@pytest.fixture
def memory(path: str) -> Iterator[MemoryRuntime]:
    with open_runtime(path) as opened:
        yield opened
        assert_clean(opened)


# Sealed while it waits.


@pytest.mark.parametrize(
    ("target", "privacy"),
    [("long_term", "subject_private"), ("long_term", "soul_private"), ("private_garden", "soul_private"),
     ("private_garden", "subject_private"), ("soul_candidate", "soul_private"), ("soul_candidate", "subject_private")],
)  # fmt: skip
def test_what_is_private_is_sealed_from_its_first_moment_also_under_a_pause(
    path: str, target: str, privacy: str
) -> None:
    with open_runtime(path) as memory:
        memory.long_term_policy(action="pause")
        outcome = said(memory, f"Mara fears {CANARY}.", topic=CANARY, target=target, privacy=privacy)
        assert (outcome.outcome, outcome.reason) == ("deferred", "policy_paused")
        assert CANARY.encode() not in bytes_of(path)
        (row,) = waiting(memory, **OWNER)
        assert row.content == f"Mara fears {CANARY}."
        assert (
            said(memory, f"Mara fears {CANARY}.", topic=CANARY, target=target, privacy=privacy).reason
            == "policy_paused"
        )
        assert len(waiting(memory, **OWNER)) == 1
        assert memory.verify_store().findings == ()
    key_file(path).unlink()
    with open_runtime(path) as memory:
        (row,) = waiting(memory, **OWNER)
        assert row.content is None
        if target == "long_term":
            refused(PrivacyDenied, memory, "accept", row.waiting_id, **OWNER)


def test_a_private_fact_that_waited_is_judged_as_any_other(memory: MemoryRuntime) -> None:
    memory.long_term_policy(action="pause", topic="fear")
    private = {"privacy": "subject_private", "topic": "fear"}
    said(memory, f"Mara fears {CANARY}.", "host", **private)
    assert memory.long_term_policy(action="resume", topic="fear").rejudged == 1
    assert listed(memory, **OWNER) != [] and listed(memory) == []
    said(memory, "Mara fears snow.", **private)
    assert len(waiting(memory, **OWNER)) == 1
    said(memory, "mara FEARS snow.", "operator", **private)
    assert waiting(memory, **OWNER) == (), "the operator's word settles what the assistant claimed"


def test_a_sealed_text_is_forgotten_by_its_words(memory: MemoryRuntime, path: str) -> None:
    said(memory, f"Mara fears {CANARY}.", privacy="subject_private")
    assert forget(memory, CANARY).waiting == 0
    assert forget(memory, CANARY, **OWNER).waiting == 1
    assert waiting(memory, **OWNER) == ()


def test_without_an_identity_nothing_private_waits_in_clear_text(path: str) -> None:
    with open_runtime(path):
        pass
    key_file(path).unlink()
    with open_runtime(path) as memory:
        outcome = said(memory, f"Mara fears {CANARY}.", privacy="subject_private")
        assert (outcome.outcome, outcome.reason) == ("rejected", "private_unavailable")
        assert said(memory, "Mara fears rain.", "host", privacy="subject_private").reason == "created"


def test_a_sealed_text_that_was_changed_is_found(path: str) -> None:
    with open_runtime(path) as memory:
        said(memory, f"Mara fears {CANARY}.", privacy="subject_private")
        store_of(memory).write(lambda tx: tx.run("UPDATE candidate_body SET sealed = zeroblob(length(sealed))"))
        (finding,) = memory.verify_store().findings
        assert finding.subject.startswith("candidate w-")
        assert waiting(memory, **OWNER)[0].content is None


# The queue has a size.


def small(memory: MemoryRuntime, candidates: int, size: int) -> None:
    """Give the store a queue of so many candidates and bytes."""
    shared = memory._opened._opened.dispatcher.shared  # type: ignore[attr-defined]
    most = min(size, shared.profile.budgets.message_content_bytes)
    changes = {"waiting_candidates": candidates, "waiting_bytes": size, "message_content_bytes": most}
    budgets = msgspec.structs.replace(shared.profile.budgets, **changes)
    profile = msgspec.structs.replace(shared.profile, budgets=budgets)
    memory._opened._opened.dispatcher.shared = shared._replace(profile=profile)  # type: ignore[attr-defined]


def fill(memory: MemoryRuntime, name: str, authority: str = "assistant_claimed", **more: Any) -> Any:
    return said(memory, f"Mara likes {name}.", authority, **{"topic": name, **more})


def contents(memory: MemoryRuntime, **more: Any) -> list[str]:
    return [(each.content or "").removeprefix("Mara likes ").rstrip(".") for each in waiting(memory, **more)]


def test_a_full_queue_drops_the_oldest_of_the_weakest_with_an_event(memory: MemoryRuntime) -> None:
    small(memory, 3, 1 << 20)
    memory.long_term_policy(action="pause")
    for name, authority in (("rain", "user_asserted"), ("snow", "assistant_claimed"), ("fog", "assistant_claimed")):
        assert fill(memory, name, authority).reason == "policy_paused"
    assert fill(memory, "hail").outcome == "deferred"
    assert contents(memory) == ["rain", "fog", "hail"]
    assert fill(memory, "sun", "host").outcome == "deferred" and contents(memory) == ["rain", "hail", "sun"]
    assert [each["reason"] for each in dropped(memory)] == ["queue_full", "queue_full"]
    fill(memory, "wind", "user_asserted")
    fill(memory, "ice", "user_asserted")
    assert contents(memory) == ["rain", "wind", "ice"]
    refusal = fill(memory, "dew")
    assert (refusal.outcome, refusal.reason, refusal.waiting_id) == ("rejected", "queue_full", None)
    assert contents(memory) == ["rain", "wind", "ice"]


def test_the_queue_is_bounded_by_bytes(memory: MemoryRuntime) -> None:
    small(memory, 1000, 800)
    for name in ("rain" * 80, "snow" * 80, "fog" * 80):
        assert fill(memory, name, topic="").outcome == "deferred"
    assert contents(memory) == ["snow" * 80, "fog" * 80]
    assert fill(memory, "hail" * 190, topic="t" * 100).reason == "queue_full"
    assert contents(memory) == ["snow" * 80, "fog" * 80]


def test_what_is_hidden_takes_no_room_from_what_is_seen(memory: MemoryRuntime) -> None:
    small(memory, 2, 1 << 20)
    for name in ("rain", "snow", "fog"):
        fill(memory, name, privacy="subject_private")
        fill(memory, name, target="private_garden", privacy="subject_private")
    assert fill(memory, "rain").outcome == fill(memory, "snow").outcome == "deferred"
    assert [each.level for each in waiting(memory, **OWNER)].count("sealed") == 2
    assert contents(memory) == ["rain", "snow"]
    memory.long_term_policy(action="pause")
    for name in ("sun", "wind"):
        fill(memory, name, "user_asserted", privacy="subject_private")
    # Who may not know of private facts is answered as ever; nothing tells it that they fill their queue.
    blind = fill(another(memory), "dew", privacy="subject_private")
    assert (blind.outcome, blind.reason, blind.waiting_id) == ("deferred", "policy_paused", None)
    assert [each.content for each in waiting(memory, **OWNER) if each.level == "private"] == [
        "Mara likes sun.", "Mara likes wind.",
    ]  # fmt: skip
