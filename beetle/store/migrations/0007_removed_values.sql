-- Values that were corrected, superseded or deleted, by keyed digests alone, and the strongest authority that removed each:
-- a weaker one does not bring it back. `private`: only who sees private facts is judged beside it.
CREATE TABLE removed_value (
  space      INTEGER NOT NULL REFERENCES space,
  digest     BLOB NOT NULL,
  visibility TEXT NOT NULL CHECK (visibility IN ('shared', 'private')),
  authority  TEXT NOT NULL
    CHECK (authority IN ('operator', 'user_asserted', 'tool_observed', 'host', 'assistant_claimed')),
  PRIMARY KEY (space, digest, visibility)
) STRICT, WITHOUT ROWID;

-- Whether an operator wrote what waits, and so answers for a user's word that cites nothing.
ALTER TABLE candidate ADD COLUMN by_operator INTEGER NOT NULL DEFAULT 0 CHECK (by_operator IN (0, 1));
