"""Days of conversations whose events have changed: what of the table of contents is to be made anew.

Each change of evidence notes its day in its own transaction, and takes away at once what a model has written after
reading the event: everything else of the table of contents only points at bodies.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from beetle.contracts.codec import json_text
from beetle.store.engine.transaction import Reading, Writing

DAY_US = 86_400_000_000
HAS_DAYS_SQL = "SELECT EXISTS (SELECT 1 FROM toc_outbox)"
HAS_STALE_SQL = "SELECT EXISTS (SELECT 1 FROM toc_node WHERE level BETWEEN 1 AND 5 AND stale > 0)"
CHANGED = "ON CONFLICT DO UPDATE SET taken = 0 WHERE taken <> 0"
NOTE_SQL = f"INSERT INTO toc_outbox VALUES (?, ?, 0) {CHANGED}"  # noqa: S608 - our own text
NOTE_MESSAGES_SQL = f"""
INSERT INTO toc_outbox
SELECT DISTINCT m.conversation, (m.at - (m.at % 86400000000 + 86400000000) % 86400000000) / 86400000000, 0
FROM json_each(?) j CROSS JOIN message m ON m.message = j.value WHERE m.visibility = 'shared' {CHANGED}
"""  # noqa: S608 - our own text
# The segments that messages stand in, and those that are read with them: five minutes may lead into the next day.
READ_WITH_SQL = """
SELECT DISTINCT n.toc_node FROM json_each(?) j CROSS JOIN message m ON m.message = j.value
CROSS JOIN toc_node n ON n.level = 5 AND n.conversation = m.conversation
  AND n.day BETWEEN (m.at - (m.at % 86400000000 + 86400000000) % 86400000000) / 86400000000
    AND (m.at - (m.at % 86400000000 + 86400000000) % 86400000000) / 86400000000 + 1
  AND n.starts - 300001 <= m.at / 1000 AND n.ends >= m.at / 1000 - 1
"""
DROP_TITLES_SQL = "DELETE FROM toc_title WHERE toc_node IN (SELECT value FROM json_each(?))"
DROP_WRITTEN_SQL = """
DELETE FROM grip WHERE segment IN (SELECT value FROM json_each(?)) AND written IS NOT NULL
"""
NOTE_CONVERSATION_SQL = f"""
INSERT INTO toc_outbox SELECT DISTINCT conversation, day, 0 FROM toc_node WHERE level = 5 AND conversation = ? {CHANGED}
"""  # noqa: S608 - our own text
CHANGE_ALL_SQL = "UPDATE toc_outbox SET taken = 0 WHERE conversation = ? AND taken <> 0"
IN_CONVERSATION = "SELECT toc_node FROM toc_node WHERE level = 5 AND conversation = ?"
DROP_CONVERSATION_TITLES_SQL = f"DELETE FROM toc_title WHERE toc_node IN ({IN_CONVERSATION})"  # noqa: S608 - ours
DROP_CONVERSATION_GRIPS_SQL = f"DELETE FROM grip WHERE segment IN ({IN_CONVERSATION})"  # noqa: S608 - ours


def has_days(tx: Reading) -> bool:
    """Whether days wait to be cut."""
    return bool(tx.value(HAS_DAYS_SQL))


def has_stale_nodes(tx: Reading) -> bool:
    """Whether nodes of the table of contents are to be made anew."""
    return bool(tx.value(HAS_STALE_SQL))


def note(tx: Writing, conversation: int, times: Iterable[int]) -> None:
    """Shared events came to these times (µs) of a conversation."""
    for day in {at // DAY_US for at in times}:
        known = (NOTE_SQL, conversation, day)
        if known not in tx.known:
            tx.run_known(NOTE_SQL, conversation, day)
            tx.known[known] = True


def note_messages(tx: Writing, messages: Sequence[int]) -> None:
    """The state of messages changes."""
    changed = json_text(messages)
    tx.run(NOTE_MESSAGES_SQL, changed)
    if segments := [row[0] for row in tx.rows(READ_WITH_SQL, changed)]:
        tx.run(DROP_TITLES_SQL, json_text(segments))
        tx.run(DROP_WRITTEN_SQL, json_text(segments))


def note_conversation(tx: Writing, conversation: int) -> None:
    """All events of a conversation go."""
    tx.run(NOTE_CONVERSATION_SQL, conversation)
    # Days that wait to be cut for the first time have no segments yet.
    tx.run(CHANGE_ALL_SQL, conversation)
    tx.run(DROP_CONVERSATION_TITLES_SQL, conversation)
    tx.run(DROP_CONVERSATION_GRIPS_SQL, conversation)
