"""Where the messages of a turn stand: their keys follow each other, and the turn has the first and the last.

No index leads from a turn to its messages: a commit would write a page of it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

OF_TURN = "m.message BETWEEN t.first_message AND t.last_message AND +m.turn = t.turn"
"""What a message `m` of a turn `t` fulfils. `CROSS JOIN` has the turn read first; with `+` no index is made for it."""
OF_ONE_TURN = f"FROM turn t CROSS JOIN message m ON {OF_TURN}"
"""The messages of turns that the statement picks by `t`."""
OF_TURNS = f"FROM json_each(?) j CROSS JOIN turn t ON t.turn = j.value CROSS JOIN message m ON {OF_TURN}"
"""The messages of turns, whose keys are given as a JSON array."""
MISPLACED_SQL = """
SELECT turn FROM turn t
WHERE NOT EXISTS (SELECT 1 FROM message m WHERE m.message = t.first_message AND m.turn = t.turn)
  OR NOT EXISTS (SELECT 1 FROM message m WHERE m.message = t.last_message AND m.turn = t.turn)
LIMIT 100
"""
OUTSIDE_SQL = """
SELECT m.message FROM message m LEFT JOIN turn t ON t.turn = m.turn
WHERE t.turn IS NULL OR m.message NOT BETWEEN t.first_message AND t.last_message LIMIT 100
"""


def by_turn(rows: Iterable[tuple[Any, ...]]) -> Mapping[int, list[tuple[Any, ...]]]:
    """Rows that begin with a turn's key, without it, by turn; none for a turn that none begins with."""
    found: defaultdict[int, list[tuple[Any, ...]]] = defaultdict(list)
    for turn, *row in rows:
        found[turn].append(tuple(row))
    return found
