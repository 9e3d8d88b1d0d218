"""Episodes as they are kept: conversations of one channel, with a first and a last turn of known names."""

from __future__ import annotations

import json
from collections.abc import Iterable

from beetle.named_tuple import NamedTuple
from beetle.store.engine.transaction import Reading
from beetle.store.turn_messages import OF_TURN

NEWEST_SQL = """
SELECT c.conversation, c.conversation_id, c.turns, c.created_at,
  EXISTS (SELECT 1 FROM turn t WHERE t.conversation = c.conversation AND t.turn_id = ?)
FROM conversation c WHERE c.space = ? AND c.channel_id = ? ORDER BY +c.conversation DESC LIMIT ?
"""
TEXTS_SQL = f"""
SELECT t.conversation, m.message_id, m.at, m.agent_id, m.length, m.digest, b.content
FROM json_each(?) j
CROSS JOIN turn t ON t.conversation = j.value AND t.turn_id IN (?, ?)
CROSS JOIN message m ON {OF_TURN}
CROSS JOIN body b ON b.message = m.message
WHERE m.state = 'live' AND m.visibility IN (SELECT value FROM json_each(?))
ORDER BY t.conversation, m.ordinal
"""  # noqa: S608 - our own text
ATTRS_SQL = """
SELECT t.conversation, a.key, a.value
FROM json_each(?) j
CROSS JOIN turn t ON t.conversation = j.value AND t.turn_id = ?
CROSS JOIN attr a ON a.turn = t.turn AND a.message IS NULL
"""


class EpisodeRow(NamedTuple):
    """An episode; `ended` where it has its last turn. `created_at` in microseconds."""

    conversation: int
    episode_id: str
    turns: int
    created_at: int
    ended: bool


class EpisodeText(NamedTuple):
    """A live message of the first or last turn; behind `length` characters of its content may stand tool calls."""

    conversation: int
    message_id: str
    at: int
    agent_id: str | None
    length: int
    digest: bytes
    content: str


def newest(tx: Reading, space: int, channel: str, last_turn: str, most: int) -> list[EpisodeRow]:
    """The episodes of a space, those first that were begun last."""
    rows = tx.rows(NEWEST_SQL, last_turn, space, channel, most)
    return [EpisodeRow(key, name, turns, at, bool(ended)) for key, name, turns, at, ended in rows]


def texts(tx: Reading, keys: Iterable[int], turns: tuple[str, str], kinds: tuple[str, ...]) -> list[EpisodeText]:
    """What first and last turns say, as far as it is live and of these visibilities."""
    found = tx.rows(TEXTS_SQL, json.dumps(list(keys)), *turns, json.dumps(kinds))
    return [EpisodeText(*row) for row in found]


def outcomes(tx: Reading, keys: Iterable[int], turn: str) -> dict[int, dict[str, str]]:
    """The values that stand beside the last turns of episodes."""
    found: dict[int, dict[str, str]] = {}
    for key, name, value in tx.rows(ATTRS_SQL, json.dumps(list(keys)), turn):
        found.setdefault(key, {})[name] = value
    return found
