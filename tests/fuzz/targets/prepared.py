"""What stands in a store before an input comes: something of every plane, from the table of cases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from beetle.contracts.codec import to_plain
from beetle.contracts.common import WireScope
from tests.cases import Prepared
from tests.fuzz.targets.target import Memory

PLANES = ("conversation", "skill", "fact", "waiting", "registry", "agent key", "chunk", "uploaded", "captured", "event")
SCOPE = WireScope(owner_id="owner-a", channel="local", chat_id="talk")


def prepared(ask: Callable[[str, dict[str, Any]], Any]) -> Prepared:
    """Each plane's preparation, asked for by `ask`, which answers plain reports."""
    got = Prepared(ask)
    for each in PLANES:
        got[each]
    return got


def fill(memory: Memory) -> None:
    """Put them into a store."""
    prepared(lambda op, args: to_plain(memory.call(op, args, SCOPE)))
