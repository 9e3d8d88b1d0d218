-- The first schema. Times are microseconds since the epoch (UTC). Integer keys name rows inside the store; the text ids
-- beside them are the callers' own.

CREATE TABLE meta (
  key   TEXT PRIMARY KEY,
  value ANY NOT NULL
) STRICT;

CREATE TABLE space (
  space           INTEGER PRIMARY KEY,
  memory_space_id TEXT NOT NULL UNIQUE,
  created_at      INTEGER NOT NULL
) STRICT;

-- Evidence: one table family behind three doors (transcript.commit, turn.capture, event.ingest).

CREATE TABLE conversation (
  conversation    INTEGER PRIMARY KEY,
  space           INTEGER NOT NULL REFERENCES space,
  channel_id      TEXT NOT NULL,
  conversation_id TEXT NOT NULL,
  turns           INTEGER NOT NULL DEFAULT 0,
  last_sequence   INTEGER NOT NULL DEFAULT 0,
  messages        INTEGER NOT NULL DEFAULT 0,
  first_at        INTEGER,
  last_at         INTEGER,
  created_at      INTEGER NOT NULL,
  UNIQUE (space, channel_id, conversation_id)
) STRICT;

CREATE TABLE turn (
  turn         INTEGER PRIMARY KEY,
  conversation INTEGER NOT NULL REFERENCES conversation,
  sequence     INTEGER NOT NULL,
  turn_id      TEXT NOT NULL,
  door         TEXT NOT NULL CHECK (door IN ('transcript', 'capture', 'event')),
  at           INTEGER NOT NULL,
  committed_at INTEGER NOT NULL,
  archived     INTEGER NOT NULL DEFAULT 0 CHECK (archived IN (0, 1)),
  digest       BLOB NOT NULL,
  UNIQUE (conversation, sequence),
  UNIQUE (conversation, turn_id)
) STRICT;

-- ordinal counts the messages of a conversation one by one: neighbours in it lend to each other in recall.
-- lifecycle: the step that last changed the state. Content lives in body, by integer key, so that it can be erased.
CREATE TABLE message (
  message            INTEGER PRIMARY KEY,
  turn               INTEGER NOT NULL REFERENCES turn,
  conversation       INTEGER NOT NULL REFERENCES conversation,
  position           INTEGER NOT NULL,
  ordinal            INTEGER NOT NULL,
  message_id         TEXT NOT NULL,
  role               TEXT NOT NULL
    CHECK (role IN ('user', 'assistant', 'system', 'tool', 'tool_use', 'tool_result', 'other')),
  event_type         INTEGER,
  at                 INTEGER NOT NULL,
  visibility         TEXT NOT NULL CHECK (visibility IN ('shared', 'private', 'soul', 'backend', 'operator')),
  state              TEXT NOT NULL DEFAULT 'live' CHECK (state IN ('live', 'masked', 'deleted')),
  length             INTEGER NOT NULL,
  digest             BLOB NOT NULL,
  speaker            TEXT,
  subject_id         TEXT,
  actor_subject_id   TEXT,
  mounted_subject_id TEXT,
  agent_id           TEXT,
  trigger_source     TEXT,
  lifecycle          INTEGER REFERENCES transcript_lifecycle,
  UNIQUE (conversation, message_id),
  UNIQUE (conversation, ordinal)
) STRICT;
CREATE INDEX message_turn ON message (turn, position);

-- Who spoke in a conversation, by the visibility of what they said: recall tells names from other words by it.
CREATE TABLE conversation_speaker (
  conversation_speaker INTEGER PRIMARY KEY,
  conversation         INTEGER NOT NULL REFERENCES conversation,
  visibility           TEXT NOT NULL,
  speaker              TEXT NOT NULL,
  UNIQUE (conversation, visibility, speaker)
) STRICT;

CREATE TABLE body (
  message INTEGER PRIMARY KEY REFERENCES message,
  content TEXT NOT NULL
) STRICT;

CREATE TABLE host_ref (
  host_ref   INTEGER PRIMARY KEY,
  turn       INTEGER NOT NULL REFERENCES turn,
  position   INTEGER NOT NULL,
  kind       TEXT NOT NULL,
  ref_id     TEXT NOT NULL,
  relation   TEXT,
  visibility TEXT NOT NULL
) STRICT;
CREATE INDEX host_ref_turn ON host_ref (turn, position);

-- A label is content: apart and by integer key, like body.
CREATE TABLE host_ref_label (
  host_ref INTEGER PRIMARY KEY REFERENCES host_ref,
  label    TEXT NOT NULL
) STRICT;

CREATE TABLE attr (
  attr           INTEGER PRIMARY KEY,
  turn           INTEGER NOT NULL REFERENCES turn,
  message        INTEGER REFERENCES message,
  position       INTEGER NOT NULL,
  visibility     TEXT NOT NULL,
  export_allowed INTEGER NOT NULL CHECK (export_allowed IN (0, 1)),
  key            TEXT NOT NULL,
  value          TEXT NOT NULL
) STRICT;
CREATE INDEX attr_turn ON attr (turn, position);

CREATE TABLE transcript_lifecycle (
  lifecycle    INTEGER PRIMARY KEY,
  conversation INTEGER NOT NULL REFERENCES conversation,
  action       TEXT NOT NULL,
  reason       TEXT NOT NULL,
  principal    TEXT NOT NULL,
  at           INTEGER NOT NULL,
  turns        INTEGER NOT NULL,
  messages     INTEGER NOT NULL
) STRICT;

-- Writes that took content out whose bytes may still stand in the write-ahead log.
CREATE TABLE pending_erasure (
  pending_erasure INTEGER PRIMARY KEY,
  since           INTEGER NOT NULL
) STRICT;

-- The conversation that a principal last committed to, by scope.
CREATE TABLE remembered_conversation (
  principal    TEXT NOT NULL,
  space        INTEGER NOT NULL REFERENCES space,
  agent_id     TEXT NOT NULL,
  channel      TEXT NOT NULL,
  chat_id      TEXT NOT NULL,
  conversation INTEGER NOT NULL REFERENCES conversation,
  PRIMARY KEY (principal, space, agent_id, channel, chat_id)
) STRICT;

-- Procedural memory.

CREATE TABLE skill (
  skill      INTEGER PRIMARY KEY,
  space      INTEGER NOT NULL REFERENCES space,
  name       TEXT NOT NULL,
  enabled    INTEGER NOT NULL DEFAULT 1 CHECK (enabled IN (0, 1)),
  retired    INTEGER NOT NULL DEFAULT 0 CHECK (retired IN (0, 1)),
  revision   INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  UNIQUE (space, name)
) STRICT;

CREATE TABLE skill_revision (
  skill_revision INTEGER PRIMARY KEY,
  skill          INTEGER NOT NULL REFERENCES skill,
  revision       INTEGER NOT NULL,
  source         TEXT NOT NULL,
  source_chat_id TEXT,
  observed_at    INTEGER,
  at             INTEGER NOT NULL,
  topic          TEXT NOT NULL,
  title          TEXT NOT NULL,
  summary        TEXT NOT NULL,
  content        TEXT NOT NULL,
  citations      TEXT NOT NULL,
  edit_reason    TEXT,
  UNIQUE (skill, revision)
) STRICT;

-- Joins a derived record to its evidence. Both ends are refs; `turn` is set where the evidence is in this store.
CREATE TABLE derived_ref (
  derived_ref INTEGER PRIMARY KEY,
  space       INTEGER NOT NULL REFERENCES space,
  derived     TEXT NOT NULL,
  evidence    TEXT NOT NULL,
  relation    TEXT NOT NULL,
  skill       INTEGER REFERENCES skill,
  turn        INTEGER REFERENCES turn,
  at          INTEGER NOT NULL
) STRICT;
CREATE INDEX derived_ref_turn ON derived_ref (turn);
CREATE INDEX derived_ref_skill ON derived_ref (skill);

-- The recall index. Contentless, so that no second copy of a text exists; `scope` holds space, conversation and
-- visibility tokens, so that a scoped query reads the scope's postings alone.

CREATE VIRTUAL TABLE recall_index USING fts5(
  text, names, time, scope, content = '', tokenize = 'porter unicode61 remove_diacritics 2'
);
INSERT INTO recall_index (recall_index, rank) VALUES ('secure-delete', 1);

-- Hash-chained event log: hash = SHA-256 over the previous hash and the canonical encoding of the row.

CREATE TABLE event_log (
  seq       INTEGER PRIMARY KEY,
  at        INTEGER NOT NULL,
  space     TEXT,
  topic     TEXT NOT NULL,
  event     TEXT NOT NULL,
  operation TEXT NOT NULL,
  principal TEXT NOT NULL,
  subject   TEXT NOT NULL,
  hash      BLOB NOT NULL
) STRICT;

CREATE TABLE idempotency (
  idempotency INTEGER PRIMARY KEY,
  principal   TEXT NOT NULL,
  space       TEXT NOT NULL,
  key         TEXT NOT NULL,
  request     BLOB NOT NULL,
  report      BLOB NOT NULL,
  at          INTEGER NOT NULL,
  UNIQUE (principal, space, key)
) STRICT;
