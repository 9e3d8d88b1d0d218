"""What waits to be judged and what was decided, counted."""

from __future__ import annotations

from collections import Counter

from beetle.contracts.governance import Reason
from beetle.named_tuple import NamedTuple
from beetle.store.columns import mapping
from beetle.store.damaged_rows import IS_TIME
from beetle.store.engine.transaction import Reading
from beetle.store.event_places import Level, last_places, places_between

DAY_US = 86_400_000_000


class WaitingCount(NamedTuple):
    """Candidates that wait for one thing; `oldest` in microseconds, None where no time of theirs can be shown."""

    reason: Reason
    candidates: int
    within_day: int
    within_week: int
    longer: int
    oldest: int | None


WAITING_SQL = f"""
SELECT reason, count(*), sum(at >= ?2 - ?3), sum(at < ?2 - ?3 AND at >= ?2 - 7 * ?3), sum(at < ?2 - 7 * ?3),
  min(at) FILTER (WHERE {IS_TIME.format(column="at")})
FROM candidate
WHERE space = ?1 AND target NOT IN ('private_garden', 'soul_candidate')
  AND (?4 OR privacy IN ('public_runtime', 'shared_with_subject'))
GROUP BY reason ORDER BY reason
"""  # noqa: S608 - our columns
DECIDED_SQL = """
SELECT e.at, e.event, e.subject FROM event_place p JOIN event_log e ON e.seq = p.seq
WHERE p.space = ?1 AND p.place > ?2 AND e.topic = 'memory' AND e.event GLOB 'candidate_*'
  AND (?3 = 'sealed' OR p.matter = 'shared' OR (?3 = 'private' AND p.matter = 'private'))
ORDER BY p.place DESC
"""
AT_SQL = """
SELECT e.at FROM event_place p JOIN event_log e ON e.seq = p.seq
WHERE p.space = ?1 AND p.place > ?2
  AND (?3 = 'sealed' OR p.matter = 'shared' OR (?3 = 'private' AND p.matter = 'private'))
ORDER BY p.place LIMIT 1
"""


def waiting(tx: Reading, space: int | None, now: int, *, private: bool) -> list[WaitingCount]:
    """What waits, by reason; of private facts only with `private`, of sealed material never."""
    return [WaitingCount(*row) for row in tx.rows(WAITING_SQL, space, now, DAY_US, int(private))]


def decisions(
    tx: Reading, memory_space_id: str, level: Level, since: int, most_rows: int, *, private: bool
) -> tuple[Counter[tuple[str, str]], bool]:
    """(outcome, reason) of what was decided since a time, counted; and whether the log was read back that far.

    At most `most_rows` events are looked at, the newest ones of the space that a level may know of.
    """
    last = last_places(tx, memory_space_id).at(level)
    first = max(0, last - most_rows)
    after, _ = places_between(tx, memory_space_id, level, (first, last + 1))
    found: Counter[tuple[str, str]] = Counter()
    for at, event, text in tx.rows(DECIDED_SQL, memory_space_id, after, level):
        subject = mapping(text)
        if at >= since and _counted(subject, private):
            found[event.removeprefix("candidate_"), subject.get("reason", "")] += 1
    complete = first == 0 or (tx.value(AT_SQL, memory_space_id, after, level) or 0) < since
    return found, complete


def _counted(subject: dict[str, str], private: bool) -> bool:
    if subject.get("target") in ("private_garden", "soul_candidate"):
        return False
    return private or subject.get("privacy", "") not in ("subject_private", "soul_private")
