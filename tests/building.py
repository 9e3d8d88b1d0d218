"""What requests are built of (turns, messages, skills, candidates), and what is read out of reports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

Plain = dict[str, Any]

CONVERSATION = {"channel_id": "local", "conversation_id": "talk"}
PREFIX = "runtime_skill__"


class Asked(Protocol):
    """What a request is put to: a door."""

    def call(self, op: str, args: Mapping[str, Any] | None = None, /) -> Plain: ...


def message(message_id: str, content: str, **more: Any) -> Plain:
    return {"message_id": message_id, "role": "user", "content": content, **more}


def turn(turn_id: str, *messages: Plain | str, at: str = "2024-05-01T10:00:00Z", **more: Any) -> Plain:
    """A turn; a text stands for a user's message whose id is the turn's and its place."""
    made = [message(f"{turn_id}.{n}", m) if isinstance(m, str) else m for n, m in enumerate(messages)]
    return {"turn_id": turn_id, "at": at, "messages": made, **more}


def talk(*turns: Plain, conversation: Plain = CONVERSATION) -> Plain:
    return {"conversation": conversation, "turns": list(turns)}


def skill(name: str, **more: Any) -> Plain:
    return {
        "name": name,
        "topic": f"topic of {name}",
        "title": f"Title of {name}",
        "summary": f"Summary of {name}",
        "content": f"1. the first step of {name}\n2. the second step",
        **more,
    }


def write(*skills: Plain, source: str = "manual") -> Plain:
    return {"kind": "procedural", "source": source, "writes": list(skills)}


def candidate(candidate_id: str, content: str, **more: Any) -> Plain:
    """A candidate for a shared fact that a user asserted, unless `more` says otherwise."""
    return {
        "candidate_id": candidate_id, "authority": "user_asserted", "target": "long_term",
        "privacy": "shared_with_subject", "content": content, **more,
    }  # fmt: skip


def candidates(*given: Plain) -> Plain:
    return {"kind": "candidates", "candidates": list(given)}


def registry(registry_id: str, *tools: Plain, **more: Any) -> Plain:
    return {"registry_id": registry_id, "fingerprint": "f1", "tools": list(tools), **more}


def replay(door: Asked, view: str = "host_ui", conversation: Plain = CONVERSATION, **more: Any) -> Plain:
    return door.call("transcript.replay", {"conversation": conversation, "view": view, **more})


def lifecycle(door: Asked, action: str, *turn_ids: str, **more: Any) -> Plain:
    return door.call("transcript.lifecycle", step(action, *turn_ids, **more))


def step(action: str, *turn_ids: str, **more: Any) -> Plain:
    chosen = {"turn_ids": list(turn_ids)} if turn_ids else {}
    return {"conversation": CONVERSATION, "action": action, "reason": "a case asked for it", **chosen, **more}


def contents(slice_: Plain) -> list[str | None]:
    """The content of every message of a replay, None where it is withheld."""
    return [each.get("content") for one in slice_["turns"] for each in one["messages"]]


def found_texts(report: Plain) -> str:
    """Every excerpt of a recall, a search or an inspection."""
    hits = report.get("hits", report.get("recall_hits"))
    return "\n".join(hit["excerpt"] or "" for hit in hits)
