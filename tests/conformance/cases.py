"""What the cases are made of: turns, messages, skills."""

from __future__ import annotations

from typing import Any

from tests.conformance.doors import Door, Plain

CONVERSATION = {"channel_id": "local", "conversation_id": "talk"}
PREFIX = "runtime_skill__"


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


def replay(door: Door, view: str = "host_ui", conversation: Plain = CONVERSATION, **more: Any) -> Plain:
    return door.call("transcript.replay", {"conversation": conversation, "view": view, **more})


def lifecycle(door: Door, action: str, *turn_ids: str, **more: Any) -> Plain:
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
