-- The recall index takes new messages in many at a time: what it has taken in is all up to this message.
CREATE TABLE index_tail (
  one        INTEGER PRIMARY KEY CHECK (one = 1),
  indexed_to INTEGER NOT NULL
) STRICT;
INSERT INTO index_tail SELECT 1, coalesce(max(message), 0) FROM message;
