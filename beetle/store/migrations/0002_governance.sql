-- Governed memory: long-term facts, candidates that wait, policies, tool observations, private material. Digests of text
-- (…_mac) are keyed with the store's own key; the text itself stands in tables by integer key, so that it can be erased.

CREATE TABLE fact (
  fact          INTEGER PRIMARY KEY,
  space         INTEGER NOT NULL REFERENCES space,
  record_id     TEXT NOT NULL,
  target        TEXT NOT NULL CHECK (target IN ('long_term', 'shared_fact')),
  kind          TEXT NOT NULL,
  topic_mac     BLOB,
  content_mac   BLOB,
  visibility    TEXT NOT NULL CHECK (visibility IN ('shared', 'private')),
  authority     TEXT NOT NULL
    CHECK (authority IN ('operator', 'user_asserted', 'tool_observed', 'host', 'assistant_claimed')),
  state         TEXT NOT NULL DEFAULT 'current' CHECK (state IN ('current', 'stale', 'superseded', 'deleted')),
  revision      INTEGER NOT NULL,
  superseded_by INTEGER REFERENCES fact,
  confidence    REAL,
  created_at    INTEGER NOT NULL,
  updated_at    INTEGER NOT NULL,
  UNIQUE (space, record_id)
) STRICT;
CREATE INDEX fact_topic ON fact (space, target, kind, topic_mac) WHERE state = 'current';
CREATE INDEX fact_content ON fact (space, target, kind, content_mac) WHERE state = 'current';
CREATE INDEX fact_listed ON fact (space, state, fact, kind, visibility);
CREATE INDEX fact_superseded_by ON fact (superseded_by);

-- What a fact says, once for all revisions that say it.
CREATE TABLE fact_body (
  fact_body INTEGER PRIMARY KEY,
  fact      INTEGER NOT NULL REFERENCES fact,
  topic     TEXT NOT NULL,
  content   TEXT NOT NULL,
  keywords  TEXT NOT NULL
) STRICT;
CREATE INDEX fact_body_fact ON fact_body (fact);

-- valid_until is NULL while the revision holds. body is NULL once the text was erased.
CREATE TABLE fact_revision (
  fact_revision  INTEGER PRIMARY KEY,
  fact           INTEGER NOT NULL REFERENCES fact,
  revision       INTEGER NOT NULL,
  action         TEXT NOT NULL CHECK (action IN (
    'created', 'evidence_added', 'corrected', 'superseded', 'stale', 'scope_changed', 'deleted', 'restored')),
  state          TEXT NOT NULL,
  body           INTEGER REFERENCES fact_body,
  content_mac    BLOB,
  visibility     TEXT NOT NULL,
  authority      TEXT NOT NULL,
  principal      TEXT NOT NULL,
  source_chat_id TEXT,
  extractor      TEXT,
  valid_from     INTEGER NOT NULL,
  valid_until    INTEGER,
  UNIQUE (fact, revision)
) STRICT;
CREATE INDEX fact_revision_body ON fact_revision (body);

-- Why a person changed a fact: text of theirs, apart like content.
CREATE TABLE fact_reason (
  fact_revision INTEGER PRIMARY KEY REFERENCES fact_revision,
  reason        TEXT NOT NULL
) STRICT;

-- Candidates that were deferred, and what they wait for. Of private material the text is sealed in a private_item.
CREATE TABLE candidate (
  candidate    INTEGER PRIMARY KEY,
  space        INTEGER NOT NULL REFERENCES space,
  candidate_id TEXT NOT NULL,
  target       TEXT NOT NULL,
  kind         TEXT NOT NULL,
  topic_mac    BLOB,
  content_mac  BLOB,
  privacy      TEXT NOT NULL,
  authority    TEXT NOT NULL,
  reason       TEXT NOT NULL,
  chat_id      TEXT NOT NULL,
  principal    TEXT NOT NULL,
  confidence   REAL,
  extractor    TEXT,
  evidence     TEXT NOT NULL,
  record_id    TEXT,
  at           INTEGER NOT NULL
) STRICT;
CREATE INDEX candidate_waiting ON candidate (space, reason, at);
CREATE INDEX candidate_topic ON candidate (space, target, kind, topic_mac, content_mac);
CREATE INDEX candidate_age ON candidate (space, at);
CREATE INDEX candidate_sealed ON candidate (record_id) WHERE record_id IS NOT NULL;

CREATE TABLE candidate_body (
  candidate INTEGER PRIMARY KEY REFERENCES candidate,
  topic     TEXT NOT NULL,
  content   TEXT NOT NULL,
  keywords  TEXT NOT NULL
) STRICT;

-- chat_id NULL: the whole space. Its topic and why it was set are text, apart and by integer key.
CREATE TABLE policy (
  policy    INTEGER PRIMARY KEY,
  space     INTEGER NOT NULL REFERENCES space,
  action    TEXT NOT NULL CHECK (action IN ('pause', 'suppress')),
  kind      TEXT,
  topic_mac BLOB,
  chat_id   TEXT,
  principal TEXT NOT NULL,
  at        INTEGER NOT NULL
) STRICT;
CREATE INDEX policy_space ON policy (space, action);

CREATE TABLE policy_text (
  policy INTEGER PRIMARY KEY REFERENCES policy,
  topic  TEXT,
  reason TEXT
) STRICT;

-- What a host observed of its tools, in short.
CREATE TABLE tool_observation (
  tool_observation     INTEGER PRIMARY KEY,
  space                INTEGER NOT NULL REFERENCES space,
  registry_id          TEXT NOT NULL,
  registry_fingerprint TEXT NOT NULL,
  registry_scope       TEXT NOT NULL,
  tool_id              TEXT NOT NULL,
  schema_fingerprint   TEXT NOT NULL,
  outcome              TEXT NOT NULL CHECK (outcome IN ('succeeded', 'failed', 'denied', 'aborted')),
  duration_ms          INTEGER,
  permission_tags      TEXT NOT NULL,
  risk_tags            TEXT NOT NULL,
  turn                 INTEGER REFERENCES turn,
  turn_id              TEXT,
  principal            TEXT NOT NULL,
  at                   INTEGER NOT NULL
) STRICT;
CREATE INDEX tool_observation_tool ON tool_observation (space, tool_id, schema_fingerprint, outcome);
CREATE INDEX tool_observation_turn ON tool_observation (turn);

-- Its brief is content: erased with the turn that it was observed in.
CREATE TABLE tool_brief (
  tool_observation INTEGER PRIMARY KEY REFERENCES tool_observation,
  brief            TEXT NOT NULL
) STRICT;

-- Private material. The key of a space is wrapped by the device identity; every item is sealed with it.
CREATE TABLE space_key (
  space      INTEGER PRIMARY KEY REFERENCES space,
  wrapped    BLOB NOT NULL,
  identity   TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE private_item (
  private_item INTEGER PRIMARY KEY,
  space        INTEGER NOT NULL REFERENCES space,
  record_id    TEXT NOT NULL,
  candidate_id TEXT NOT NULL,
  plane        TEXT NOT NULL CHECK (plane IN ('private_garden', 'soul_candidate')),
  privacy      TEXT NOT NULL CHECK (privacy IN ('subject_private', 'soul_private')),
  authority    TEXT NOT NULL,
  state        TEXT NOT NULL DEFAULT 'kept' CHECK (state IN ('kept', 'handoff', 'waiting')),
  content_mac  BLOB NOT NULL,
  length       INTEGER NOT NULL,
  sealed       BLOB NOT NULL,
  principal    TEXT NOT NULL,
  at           INTEGER NOT NULL,
  UNIQUE (space, record_id)
) STRICT;
CREATE INDEX private_item_space ON private_item (space);
CREATE INDEX private_item_content ON private_item (space, content_mac);

ALTER TABLE skill ADD COLUMN authority TEXT;
ALTER TABLE derived_ref ADD COLUMN fact INTEGER REFERENCES fact;
CREATE INDEX derived_ref_fact ON derived_ref (fact);

-- Whether two conversations claim one chat id.
CREATE INDEX remembered_conversation_chat ON remembered_conversation (space, channel, chat_id);
