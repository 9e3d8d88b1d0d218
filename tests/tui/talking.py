"""What was said in a workshop, and the transcripts area at it."""

from __future__ import annotations

from typing import Any

from beetle.client import Client
from beetle_tui.screens.transcripts import Transcripts
from tests.tui.showing import Shown

WORKSHOP = {"conversation_id": "workshop"}


def message(name: str, text: str, role: str = "user", **more: Any) -> dict[str, Any]:
    return {"message_id": name, "role": role, "content": text, **more}


def spoken(number: int, *messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A turn of its day of March."""
    return {"turn_id": f"t{number}", "at": f"2026-03-{number:02}T08:12:00Z", "messages": list(messages), **more}


def say(client: Client, *turns: dict[str, Any], conversation: dict[str, str] = WORKSHOP) -> None:
    client.commit_transcript(conversation=conversation, turns=list(turns))


def pumps(client: Client, count: int = 5) -> None:
    said = (f"Pump {number} is loud." for number in range(1, count + 1))
    say(client, *(spoken(number, message(f"m{number}", text)) for number, text in enumerate(said, 1)))


def contents(client: Client, view: str = "host_ui") -> dict[str, str]:
    """What each message says, or the reason why it does not."""
    seen = client.replay_transcript(conversation=WORKSHOP, view=view)
    messages = [each for turn in seen.turns for each in turn.messages]
    return {each.message_id: each.content or each.redacted.reason for each in messages}  # type: ignore[union-attr]


def area(shown: Shown) -> Transcripts:
    assert isinstance(shown.console.screen, Transcripts)
    return shown.console.screen


async def begin(shown: Shown) -> None:
    await shown.until_shown("live")
    await shown.press("4")
    await shown.until(lambda: isinstance(shown.console.screen, Transcripts) and shown.console.screen.filled)


async def open_workshop(shown: Shown) -> None:
    await begin(shown)
    await shown.until_shown("local/workshop")
    await shown.press("enter")
    await shown.until_shown("local/workshop, view host_ui", "─ Turn t")


async def type_in(shown: Shown, text: str) -> None:
    await shown.press(*text, "enter")


def write_skill(client: Client) -> None:
    skill = {
        "name": "runtime_skill__quiet", "title": "Quiet a pump", "topic": "pumps", "summary": "When one is loud",
        "content": "1. Stop it.", "citations": ["evidence:local/workshop/t5/m5"],
    }  # fmt: skip
    client.call("memory.write", {"kind": "procedural", "source": "manual", "writes": [skill]})
