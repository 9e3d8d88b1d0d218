-- What an erasure has left to do, so that it goes on after a crash. A row goes when its keys are done; `terms` holds kinds
-- and authorities alone. Turns are named by conversation and sequence, everything else by its own key.
CREATE TABLE erasure (
  erasure   INTEGER PRIMARY KEY,
  space     INTEGER NOT NULL REFERENCES space,
  operation TEXT NOT NULL,
  principal TEXT NOT NULL,
  terms     TEXT NOT NULL,
  begun_at  INTEGER NOT NULL
) STRICT;

CREATE TABLE erasure_left (
  erasure_left INTEGER PRIMARY KEY,
  erasure      INTEGER NOT NULL REFERENCES erasure,
  plane        TEXT NOT NULL,
  conversation INTEGER,
  lifecycle    INTEGER,
  first        INTEGER NOT NULL,
  last         INTEGER NOT NULL
) STRICT;
CREATE INDEX erasure_left_of ON erasure_left (erasure);

-- Who spoke and what set a message off goes with its content, also of messages that were deleted before.
UPDATE message SET speaker = NULL, trigger_source = NULL WHERE state = 'deleted';
INSERT INTO pending_erasure (since) SELECT 0 WHERE EXISTS (SELECT 1 FROM message WHERE state = 'deleted');
