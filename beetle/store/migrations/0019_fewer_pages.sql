-- A commit writes each page that it touches. The keys of a turn's messages follow each other: the turn says which they are, where
-- an index led to them. It says too up to which time its conversation had come, so that turns are found by their times without an
-- index but for the late ones, which have an earlier time than one before them.
ALTER TABLE turn ADD COLUMN first_message INTEGER NOT NULL DEFAULT 0;
ALTER TABLE turn ADD COLUMN last_message INTEGER NOT NULL DEFAULT 0;
ALTER TABLE turn ADD COLUMN latest INTEGER NOT NULL DEFAULT 0;
UPDATE turn SET first_message = made.first, last_message = made.last, latest = made.latest
FROM (
  SELECT t.turn, coalesce(held.first, 0) AS first, coalesce(held.last, 0) AS last,
    max(t.at) OVER (PARTITION BY t.conversation ORDER BY t.sequence, t.turn) AS latest
  FROM turn t LEFT JOIN (
    SELECT turn, min(message) AS first, max(message) AS last FROM message GROUP BY turn
  ) AS held ON held.turn = t.turn
) AS made
WHERE made.turn = turn.turn;
DROP INDEX message_turn;
DROP INDEX turn_at;
CREATE INDEX turn_late ON turn (conversation, at, sequence) WHERE at < latest;
