"""Skills of a real store for the tests, and the console at them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

from beetle.client import Client
from beetle_tui.document import Document
from tests.forked import Daemon
from tests.tui.showing import Shown, commit, running, turn

PREFIX = "runtime_skill__"
CITED = "evidence:local/workshop/t1/m1"
PROCEDURE = "# Steps\n\n1. Stop the **pump**.\n2. Clean the strainer.\n\n```sh\nsystemctl stop pump\n```\n"


@contextmanager
def with_a_turn() -> Iterator[Daemon]:
    with running() as found:
        with found.client() as client:
            commit(client, turn(1))
        yield found


def skill(name: str, **more: Any) -> dict[str, Any]:
    texts = {"topic": "pumps", "title": f"Title of {name}", "summary": f"When {name} is needed.", "content": PROCEDURE}
    return {"name": name, **texts, **more}


def write(client: Client, *skills: dict[str, Any], source: Literal["manual", "import"] = "manual") -> None:
    for first in range(0, len(skills), 100):
        client.write(kind="procedural", source=source, writes=list(skills[first : first + 100]))


def detail(daemon: Daemon, name: str) -> Any:
    with daemon.client() as client:
        return client.get_runtime_skill(name=name)


async def to_skills(shown: Shown, *texts: str) -> None:
    await shown.until_shown("live, read")
    await shown.press("2")
    await shown.until_shown("Runtime skills", "live, read", *texts)


def page(shown: Shown) -> Document:
    return shown.console.screen.query_one(Document)


def names(shown: Shown) -> list[str]:
    """What stands in the first column of the list."""
    rows = shown.lines[3 : next(at for at, line in enumerate(shown.lines) if " skills; " in line or " skill; " in line)]
    return [row[2:].split()[0] for row in rows if row[2:].strip()]
