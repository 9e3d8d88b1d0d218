-- Messages by time, and turns that hosts delivered.

-- Every message by its time in milliseconds. `event_id` is what an ingested event is called in its space, empty for messages
-- that came in another way.
CREATE TABLE event (
  space    INTEGER NOT NULL REFERENCES space,
  at_ms    INTEGER NOT NULL,
  event_id TEXT NOT NULL,
  message  INTEGER NOT NULL REFERENCES message,
  PRIMARY KEY (space, at_ms, event_id, message)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX event_named ON event (space, event_id) WHERE event_id <> '';

INSERT INTO event
SELECT c.space, (m.at - (m.at % 1000 + 1000) % 1000) / 1000, '', m.message
FROM message m JOIN conversation c ON c.conversation = m.conversation;

CREATE TABLE host_key (
  host_key    INTEGER PRIMARY KEY,
  space       INTEGER NOT NULL REFERENCES space,
  public_key  BLOB NOT NULL,
  fingerprint TEXT NOT NULL,
  label       TEXT NOT NULL,
  host_kind   TEXT,
  added_at    INTEGER NOT NULL,
  revoked_at  INTEGER,
  UNIQUE (space, public_key)
) STRICT;

-- By (host_session_id, host_turn_index) a turn is captured once. `duplicates` counts the deliveries of a turn that was there,
-- `mismatches` those of them that said something else.
CREATE TABLE captured_turn (
  turn            INTEGER PRIMARY KEY REFERENCES turn,
  space           INTEGER NOT NULL REFERENCES space,
  host_session_id TEXT NOT NULL,
  host_turn_index INTEGER NOT NULL,
  host_kind       TEXT NOT NULL,
  host_version    TEXT,
  agent_id        TEXT NOT NULL,
  role            TEXT NOT NULL,
  at              INTEGER NOT NULL,
  attest_level    TEXT NOT NULL CHECK (attest_level IN ('signed_by_peer', 'self_signed')),
  host_key        INTEGER REFERENCES host_key,
  duplicates      INTEGER NOT NULL DEFAULT 0,
  mismatches      INTEGER NOT NULL DEFAULT 0,
  UNIQUE (space, host_session_id, host_turn_index)
) STRICT;
