-- Written by packaging/gen_reference.py from the migrations. Add a migration, then run it again.
CREATE TABLE meta (
  key   TEXT PRIMARY KEY,
  value ANY NOT NULL
) STRICT;
CREATE TABLE space (
  space           INTEGER PRIMARY KEY,
  memory_space_id TEXT NOT NULL UNIQUE,
  created_at      INTEGER NOT NULL
) STRICT;
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
  digest       BLOB NOT NULL, seal BLOB, first_message INTEGER NOT NULL DEFAULT 0, last_message INTEGER NOT NULL DEFAULT 0, latest INTEGER NOT NULL DEFAULT 0,
  UNIQUE (conversation, sequence),
  UNIQUE (conversation, turn_id)
) STRICT;
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
  lifecycle          INTEGER REFERENCES transcript_lifecycle, apart INTEGER NOT NULL DEFAULT 0,
  UNIQUE (conversation, message_id),
  UNIQUE (conversation, ordinal)
) STRICT;
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
CREATE TABLE pending_erasure (
  pending_erasure INTEGER PRIMARY KEY,
  since           INTEGER NOT NULL
) STRICT;
CREATE TABLE remembered_conversation (
  principal    TEXT NOT NULL,
  space        INTEGER NOT NULL REFERENCES space,
  agent_id     TEXT NOT NULL,
  channel      TEXT NOT NULL,
  chat_id      TEXT NOT NULL,
  conversation INTEGER NOT NULL REFERENCES conversation,
  PRIMARY KEY (principal, space, agent_id, channel, chat_id)
) STRICT;
CREATE TABLE skill (
  skill      INTEGER PRIMARY KEY,
  space      INTEGER NOT NULL REFERENCES space,
  name       TEXT NOT NULL,
  enabled    INTEGER NOT NULL DEFAULT 1 CHECK (enabled IN (0, 1)),
  retired    INTEGER NOT NULL DEFAULT 0 CHECK (retired IN (0, 1)),
  revision   INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL, authority TEXT,
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
CREATE TABLE derived_ref (
  derived_ref INTEGER PRIMARY KEY,
  space       INTEGER NOT NULL REFERENCES space,
  derived     TEXT NOT NULL,
  evidence    TEXT NOT NULL,
  relation    TEXT NOT NULL,
  skill       INTEGER REFERENCES skill,
  turn        INTEGER REFERENCES turn,
  at          INTEGER NOT NULL
, fact INTEGER REFERENCES fact) STRICT;
CREATE INDEX derived_ref_turn ON derived_ref (turn);
CREATE INDEX derived_ref_skill ON derived_ref (skill);
CREATE VIRTUAL TABLE recall_index USING fts5(
  text, names, time, scope, content = '', tokenize = 'porter unicode61 remove_diacritics 2'
);
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
  at          INTEGER NOT NULL, seal BLOB,
  UNIQUE (principal, space, key)
) STRICT;
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
CREATE TABLE fact_body (
  fact_body INTEGER PRIMARY KEY,
  fact      INTEGER NOT NULL REFERENCES fact,
  topic     TEXT NOT NULL,
  content   TEXT NOT NULL,
  keywords  TEXT NOT NULL
) STRICT;
CREATE INDEX fact_body_fact ON fact_body (fact);
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
CREATE TABLE fact_reason (
  fact_revision INTEGER PRIMARY KEY REFERENCES fact_revision,
  reason        TEXT NOT NULL
) STRICT;
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
, by_operator INTEGER NOT NULL DEFAULT 0 CHECK (by_operator IN (0, 1)), waiting_id TEXT, level TEXT NOT NULL DEFAULT 'shared' CHECK (level IN ('shared', 'private', 'sealed')), bytes INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE INDEX candidate_waiting ON candidate (space, reason, at);
CREATE INDEX candidate_topic ON candidate (space, target, kind, topic_mac, content_mac);
CREATE INDEX candidate_age ON candidate (space, at);
CREATE INDEX candidate_sealed ON candidate (record_id) WHERE record_id IS NOT NULL;
CREATE TABLE candidate_body (
  candidate INTEGER PRIMARY KEY REFERENCES candidate,
  topic     TEXT NOT NULL,
  content   TEXT NOT NULL,
  keywords  TEXT NOT NULL
, sealed BLOB, former_identity INTEGER REFERENCES former_identity) STRICT;
CREATE TABLE policy (
  policy    INTEGER PRIMARY KEY,
  space     INTEGER NOT NULL REFERENCES space,
  action    TEXT NOT NULL CHECK (action IN ('pause', 'suppress')),
  kind      TEXT,
  topic_mac BLOB,
  chat_id   TEXT,
  principal TEXT NOT NULL,
  at        INTEGER NOT NULL
, number INTEGER) STRICT;
CREATE INDEX policy_space ON policy (space, action);
CREATE TABLE policy_text (
  policy INTEGER PRIMARY KEY REFERENCES policy,
  topic  TEXT,
  reason TEXT
) STRICT;
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
, channel_id TEXT, conversation_id TEXT) STRICT;
CREATE INDEX tool_observation_turn ON tool_observation (turn);
CREATE TABLE tool_brief (
  tool_observation INTEGER PRIMARY KEY REFERENCES tool_observation,
  brief            TEXT NOT NULL
) STRICT;
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
  at           INTEGER NOT NULL, former_identity INTEGER REFERENCES former_identity,
  UNIQUE (space, record_id)
) STRICT;
CREATE INDEX private_item_space ON private_item (space);
CREATE INDEX private_item_content ON private_item (space, content_mac);
CREATE INDEX derived_ref_fact ON derived_ref (fact);
CREATE INDEX remembered_conversation_chat ON remembered_conversation (space, channel, chat_id);
CREATE TABLE tool_registry (
  tool_registry INTEGER PRIMARY KEY,
  space         INTEGER NOT NULL REFERENCES space,
  registry_id   TEXT NOT NULL,
  scope         TEXT NOT NULL,
  fingerprint   TEXT NOT NULL,
  revision      INTEGER NOT NULL,
  principal     TEXT NOT NULL,
  created_at    INTEGER NOT NULL,
  updated_at    INTEGER NOT NULL,
  UNIQUE (space, registry_id)
) STRICT;
CREATE TABLE registered_tool (
  registered_tool    INTEGER PRIMARY KEY,
  tool_registry      INTEGER NOT NULL REFERENCES tool_registry,
  position           INTEGER NOT NULL,
  tool_id            TEXT NOT NULL,
  title              TEXT NOT NULL,
  summary            TEXT NOT NULL,
  schema_fingerprint TEXT NOT NULL,
  permission_tags    TEXT NOT NULL,
  risk_tags          TEXT NOT NULL,
  UNIQUE (tool_registry, tool_id)
) STRICT;
CREATE INDEX tool_observation_known
  ON tool_observation (space, registry_id, tool_id, schema_fingerprint);
CREATE INDEX tool_observation_untied ON tool_observation (space, turn_id) WHERE turn IS NULL AND turn_id IS NOT NULL;
CREATE TABLE job (
  job         INTEGER PRIMARY KEY,
  job_id      TEXT NOT NULL UNIQUE,
  kind        TEXT NOT NULL,
  space       INTEGER NOT NULL REFERENCES space,
  principal   TEXT NOT NULL,
  agent_id    TEXT NOT NULL,
  channel     TEXT NOT NULL,
  chat_id     TEXT NOT NULL,
  subject     TEXT NOT NULL,
  state       TEXT NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'leased', 'done', 'failed', 'dropped')),
  reason      TEXT,
  attempts    INTEGER NOT NULL DEFAULT 0,
  not_before  INTEGER NOT NULL,
  lease_until INTEGER,
  created_at  INTEGER NOT NULL,
  updated_at  INTEGER NOT NULL
) STRICT;
CREATE INDEX job_due ON job (not_before) WHERE state IN ('waiting', 'leased');
CREATE INDEX job_listed ON job (space, state, job);
CREATE UNIQUE INDEX job_open ON job (space, kind, principal, agent_id, subject) WHERE state IN ('waiting', 'leased');
CREATE INDEX skill_counted ON skill (space, enabled, retired);
CREATE INDEX skill_updated ON skill (space, updated_at, name);
CREATE INDEX skill_revisions ON skill (space, revision, name);
CREATE TABLE maintained (
  conversation INTEGER PRIMARY KEY REFERENCES conversation,
  sequence     INTEGER NOT NULL,
  at           INTEGER NOT NULL
) STRICT;
CREATE TABLE device (
  device       INTEGER PRIMARY KEY,
  device_id    TEXT NOT NULL UNIQUE,
  label        TEXT NOT NULL,
  state        TEXT NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'suspended', 'revoked')),
  owner_id     TEXT NOT NULL,
  agent_id     TEXT NOT NULL,
  capabilities TEXT NOT NULL,
  salt         BLOB NOT NULL,
  verifier     BLOB NOT NULL,
  fingerprint  TEXT NOT NULL,
  generation   INTEGER NOT NULL,
  created_at   INTEGER NOT NULL,
  updated_at   INTEGER NOT NULL,
  last_seen    INTEGER
) STRICT;
CREATE TABLE transport (
  transport  INTEGER PRIMARY KEY,
  name       TEXT NOT NULL UNIQUE,
  enabled    INTEGER NOT NULL CHECK (enabled IN (0, 1)),
  endpoint   TEXT,
  principal  TEXT NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE TABLE proposal (
  proposal    INTEGER PRIMARY KEY,
  space       INTEGER NOT NULL REFERENCES space,
  proposal_id TEXT NOT NULL,
  kind        TEXT NOT NULL,
  target      TEXT,
  base        INTEGER,
  state       TEXT NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'submitted', 'refused', 'dropped')),
  outcome     TEXT,
  result      TEXT,
  principal   TEXT NOT NULL,
  chat_id     TEXT NOT NULL,
  visibility  TEXT NOT NULL CHECK (visibility IN ('shared', 'private')),
  created_at  INTEGER NOT NULL,
  updated_at  INTEGER NOT NULL,
  UNIQUE (space, proposal_id)
) STRICT;
CREATE INDEX proposal_listed ON proposal (space, state, proposal);
CREATE TABLE proposal_body (
  proposal  INTEGER PRIMARY KEY REFERENCES proposal,
  change    TEXT NOT NULL,
  rationale TEXT NOT NULL
) STRICT;
CREATE INDEX message_hidden ON message (state, conversation) WHERE state <> 'live';
CREATE INDEX conversation_listed ON conversation (space);
CREATE TABLE log_head (
  one    INTEGER PRIMARY KEY CHECK (one = 1),
  signed TEXT
) STRICT;
INSERT INTO log_head VALUES (1, NULL);
CREATE TABLE removed_value (
  space      INTEGER NOT NULL REFERENCES space,
  digest     BLOB NOT NULL,
  visibility TEXT NOT NULL CHECK (visibility IN ('shared', 'private')),
  authority  TEXT NOT NULL
    CHECK (authority IN ('operator', 'user_asserted', 'tool_observed', 'host', 'assistant_claimed')),
  PRIMARY KEY (space, digest, visibility)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX candidate_named ON candidate (space, waiting_id);
CREATE INDEX candidate_room ON candidate (space, level, authority, at, bytes);
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
CREATE TABLE row_seal (
  of   TEXT NOT NULL,
  row  ANY NOT NULL,
  seal BLOB NOT NULL,
  PRIMARY KEY (of, row)
) STRICT, WITHOUT ROWID;
CREATE TABLE table_seal (
  of   TEXT PRIMARY KEY,
  rows INTEGER NOT NULL,
  sum  BLOB NOT NULL,
  seal BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE registry_skill (
  registry_skill INTEGER PRIMARY KEY,
  space          INTEGER NOT NULL REFERENCES space,
  skill_id       TEXT NOT NULL,
  status         TEXT NOT NULL CHECK (status IN ('active', 'deprecated', 'revoked')),
  versions       INTEGER NOT NULL,
  created_at     INTEGER NOT NULL,
  updated_at     INTEGER NOT NULL,
  UNIQUE (space, skill_id)
) STRICT;
CREATE INDEX registry_skill_updated ON registry_skill (space, updated_at, registry_skill);
CREATE TABLE registry_skill_text (
  registry_skill INTEGER PRIMARY KEY REFERENCES registry_skill,
  name           TEXT NOT NULL,
  description    TEXT NOT NULL,
  tags           TEXT NOT NULL,
  triggers       TEXT NOT NULL,
  warnings       TEXT NOT NULL,
  status_reason  TEXT
) STRICT;
CREATE TABLE registry_version (
  registry_version INTEGER PRIMARY KEY,
  registry_skill   INTEGER NOT NULL REFERENCES registry_skill,
  number           INTEGER NOT NULL,
  version_id       TEXT NOT NULL,
  uploaded_at      INTEGER NOT NULL,
  principal        TEXT NOT NULL,
  agent_id         TEXT NOT NULL,
  agent_name       TEXT NOT NULL,
  agent_owner      TEXT,
  chain_key        TEXT,
  format           TEXT NOT NULL CHECK (format IN ('markdown', 'json')),
  schema_version   INTEGER NOT NULL,
  bytes            INTEGER NOT NULL,
  content_hash     BLOB NOT NULL,
  signing_key_id   TEXT,
  key              BLOB,
  signature        BLOB,
  UNIQUE (registry_skill, number),
  UNIQUE (registry_skill, version_id)
) STRICT;
CREATE TABLE registry_version_body (
  registry_version INTEGER PRIMARY KEY REFERENCES registry_version,
  encoding         TEXT NOT NULL CHECK (encoding IN ('whole', 'delta')),
  packed           BLOB NOT NULL
) STRICT;
CREATE TABLE chain (
  chain        INTEGER PRIMARY KEY,
  space        INTEGER NOT NULL REFERENCES space,
  chain_key    TEXT NOT NULL,
  adapter      TEXT NOT NULL CHECK (adapter IN ('binary', 'jsonl')),
  parent       INTEGER REFERENCES chain,
  shared       INTEGER NOT NULL,
  created_at   INTEGER NOT NULL,
  updated_at   INTEGER NOT NULL,
  length       INTEGER NOT NULL,
  head         BLOB NOT NULL,
  pinned       INTEGER NOT NULL,
  UNIQUE (space, chain_key)
) STRICT;
CREATE TABLE thought (
  thought        INTEGER PRIMARY KEY,
  chain          INTEGER NOT NULL REFERENCES chain,
  position       INTEGER NOT NULL,
  schema_version INTEGER NOT NULL,
  thought_id     TEXT NOT NULL,
  at             INTEGER NOT NULL,
  session_id     TEXT,
  agent_id       TEXT NOT NULL,
  signing_key_id TEXT,
  thought_type   TEXT NOT NULL,
  role           TEXT NOT NULL,
  confidence     REAL,
  importance     REAL NOT NULL,
  digest         BLOB NOT NULL,
  previous       BLOB NOT NULL,
  hash           BLOB NOT NULL,
  UNIQUE (chain, position)
) STRICT;
CREATE INDEX thought_by_id ON thought (thought_id);
CREATE INDEX thought_by_hash ON thought (hash);
CREATE TABLE thought_body (
  thought   INTEGER PRIMARY KEY REFERENCES thought,
  salt      BLOB NOT NULL,
  content   TEXT NOT NULL,
  tags      TEXT NOT NULL,
  concepts  TEXT NOT NULL,
  signature BLOB
) STRICT;
CREATE TABLE thought_link (
  thought    INTEGER NOT NULL REFERENCES thought,
  place      INTEGER NOT NULL,
  kind       TEXT NOT NULL CHECK (kind IN ('refers', 'supports', 'contradicts', 'supersedes', 'caused_by')),
  position   INTEGER,
  target     INTEGER REFERENCES thought,
  ref        TEXT,
  valid_at   INTEGER,
  invalid_at INTEGER,
  PRIMARY KEY (thought, place)
) STRICT, WITHOUT ROWID;
CREATE INDEX thought_link_to ON thought_link (target, kind);
CREATE TABLE thought_mark (
  thought   INTEGER PRIMARY KEY REFERENCES thought,
  state     TEXT NOT NULL CHECK (state IN ('masked', 'erased')),
  marked_at INTEGER NOT NULL
) STRICT;
CREATE TABLE chain_agent (
  chain_agent  INTEGER PRIMARY KEY,
  chain        INTEGER NOT NULL REFERENCES chain,
  agent_id     TEXT NOT NULL,
  display_name TEXT NOT NULL,
  owner        TEXT,
  description  TEXT,
  status       TEXT NOT NULL CHECK (status IN ('active', 'revoked')),
  UNIQUE (chain, agent_id)
) STRICT;
CREATE TABLE chain_alias (
  chain_alias INTEGER PRIMARY KEY,
  chain_agent INTEGER NOT NULL REFERENCES chain_agent,
  alias       TEXT NOT NULL
) STRICT;
CREATE INDEX chain_alias_of ON chain_alias (chain_agent);
CREATE TABLE chain_agent_key (
  chain_agent_key INTEGER PRIMARY KEY,
  chain_agent INTEGER NOT NULL REFERENCES chain_agent,
  key_id      TEXT NOT NULL,
  algorithm   TEXT NOT NULL,
  public_key  BLOB NOT NULL,
  added_at    INTEGER NOT NULL,
  revoked_at  INTEGER,
  UNIQUE (chain_agent, key_id)
) STRICT;
CREATE TABLE chain_activity (
  chain_agent    INTEGER PRIMARY KEY REFERENCES chain_agent,
  thoughts       INTEGER NOT NULL,
  first_position INTEGER NOT NULL,
  last_position  INTEGER NOT NULL,
  first_at       INTEGER NOT NULL,
  last_at        INTEGER NOT NULL
) STRICT;
CREATE TABLE event (
  space    INTEGER NOT NULL REFERENCES space,
  at_ms    INTEGER NOT NULL,
  event_id TEXT NOT NULL,
  message  INTEGER NOT NULL REFERENCES message,
  PRIMARY KEY (space, at_ms, event_id, message)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX event_named ON event (space, event_id) WHERE event_id <> '';
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
CREATE TABLE toc_outbox (
  conversation INTEGER NOT NULL,
  day          INTEGER NOT NULL, taken INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (conversation, day)
) STRICT, WITHOUT ROWID;
CREATE TABLE toc_node (
  toc_node     INTEGER PRIMARY KEY,
  space        INTEGER NOT NULL REFERENCES space,
  level        INTEGER NOT NULL CHECK (level BETWEEN 1 AND 5),
  node_id      TEXT NOT NULL,
  parent       INTEGER REFERENCES toc_node,
  starts       INTEGER NOT NULL,
  ends         INTEGER NOT NULL,
  conversation INTEGER,
  day          INTEGER,
  members      BLOB,
  version      INTEGER NOT NULL,
  stale        INTEGER NOT NULL CHECK (stale >= 0),
  bullets      TEXT NOT NULL DEFAULT '[]',
  words        TEXT NOT NULL DEFAULT '[]',
  keywords     TEXT NOT NULL DEFAULT '[]',
  UNIQUE (space, node_id)
) STRICT;
CREATE INDEX toc_child ON toc_node (parent, starts, node_id);
CREATE INDEX toc_level ON toc_node (space, level, starts, node_id);
CREATE INDEX toc_of_day ON toc_node (conversation, day) WHERE level = 5;
CREATE INDEX toc_stale ON toc_node (level, toc_node) WHERE stale > 0;
CREATE TABLE grip (
  grip         INTEGER PRIMARY KEY,
  space        INTEGER NOT NULL REFERENCES space,
  grip_id      TEXT NOT NULL,
  segment      INTEGER NOT NULL REFERENCES toc_node,
  message      INTEGER NOT NULL,
  last_message INTEGER NOT NULL,
  begins       INTEGER NOT NULL,
  ends         INTEGER NOT NULL,
  written      TEXT,
  UNIQUE (space, grip_id)
) STRICT;
CREATE INDEX grip_segment ON grip (segment);
CREATE TABLE toc_title (
  toc_node INTEGER PRIMARY KEY REFERENCES toc_node,
  title    TEXT NOT NULL
) STRICT;
CREATE TABLE scheduled_job (
  name          TEXT PRIMARY KEY,
  paused        INTEGER NOT NULL CHECK (paused IN (0, 1)),
  run_count     INTEGER NOT NULL,
  error_count   INTEGER NOT NULL,
  skip_count    INTEGER NOT NULL,
  failures      INTEGER NOT NULL,
  last_run      INTEGER,
  last_duration INTEGER NOT NULL,
  last_result   TEXT NOT NULL CHECK (last_result IN ('unspecified', 'success', 'failed', 'skipped')),
  skip_reason   TEXT CHECK (skip_reason IN ('paused', 'overlap')),
  error_key     TEXT,
  error         TEXT
) STRICT, WITHOUT ROWID;
CREATE TABLE chunk (
  chunk           INTEGER PRIMARY KEY,
  space           INTEGER NOT NULL REFERENCES space,
  chunk_id        TEXT NOT NULL,
  conversation_id TEXT NOT NULL,
  type            TEXT NOT NULL CHECK (type IN ('fact', 'preference', 'pattern', 'note', 'decision')),
  tokens          INTEGER NOT NULL,
  source          TEXT NOT NULL CHECK (source IN ('interaction', 'import', 'derived')),
  confidence      REAL NOT NULL,
  created_at      INTEGER NOT NULL,
  archived_at     INTEGER,
  revision        INTEGER NOT NULL,
  digest          BLOB NOT NULL,
  UNIQUE (space, chunk_id)
) STRICT;
CREATE UNIQUE INDEX chunk_by_revision ON chunk (space, revision);
CREATE INDEX chunk_of_space ON chunk (space);
CREATE INDEX chunk_of_conversation ON chunk (space, conversation_id);
CREATE INDEX chunk_by_time ON chunk (space, conversation_id, created_at);
CREATE INDEX chunk_archived ON chunk (space) WHERE archived_at IS NOT NULL;
CREATE TABLE chunk_body (
  chunk   INTEGER PRIMARY KEY REFERENCES chunk,
  content TEXT NOT NULL,
  tags    TEXT NOT NULL,
  extra   TEXT
) STRICT;
CREATE TABLE chunk_link (
  chunk     INTEGER NOT NULL REFERENCES chunk,
  place     INTEGER NOT NULL,
  kind      TEXT NOT NULL CHECK (kind IN ('context_of', 'follows', 'related_to', 'supports', 'contradicts')),
  target    INTEGER REFERENCES chunk,
  target_id TEXT,
  strength  REAL NOT NULL,
  PRIMARY KEY (chunk, place),
  CHECK ((target IS NULL) <> (target_id IS NULL))
) STRICT, WITHOUT ROWID;
CREATE INDEX chunk_link_to ON chunk_link (target, kind);
CREATE INDEX chunk_link_named ON chunk_link (target_id) WHERE kind <> 'context_of' AND target_id IS NOT NULL;
CREATE TABLE chunk_tag (
  tag          INTEGER NOT NULL,
  chunk        INTEGER NOT NULL,
  conversation INTEGER NOT NULL,
  PRIMARY KEY (tag, chunk)
) STRICT, WITHOUT ROWID;
CREATE TABLE chunk_access (
  chunk   INTEGER PRIMARY KEY REFERENCES chunk,
  count   INTEGER NOT NULL,
  last_at INTEGER NOT NULL
) STRICT;
CREATE TABLE removed_chunk (
  removed_chunk INTEGER PRIMARY KEY,
  space         INTEGER NOT NULL REFERENCES space,
  chunk_id      TEXT NOT NULL,
  revision      INTEGER NOT NULL,
  UNIQUE (space, chunk_id)
) STRICT;
CREATE UNIQUE INDEX removed_chunk_by_revision ON removed_chunk (space, revision);
CREATE TABLE "event_place" (
  seq           INTEGER NOT NULL,
  space         TEXT NOT NULL,
  matter        TEXT NOT NULL CHECK (matter IN ('shared', 'private', 'sealed')),
  place         INTEGER NOT NULL,
  place_private INTEGER NOT NULL,
  place_shared  INTEGER NOT NULL,
  PRIMARY KEY (space, place)
) STRICT, WITHOUT ROWID;
CREATE TABLE former_identity (
  former_identity INTEGER PRIMARY KEY,
  check_value     TEXT NOT NULL,
  public_key      BLOB,
  renewed_at      INTEGER NOT NULL
) STRICT;
CREATE TABLE former_space_key (
  former_identity INTEGER NOT NULL REFERENCES former_identity,
  space           INTEGER NOT NULL REFERENCES space,
  wrapped         BLOB NOT NULL,
  created_at      INTEGER NOT NULL,
  PRIMARY KEY (former_identity, space)
) STRICT, WITHOUT ROWID;
CREATE INDEX turn_late ON turn (conversation, at, sequence) WHERE at < latest;
CREATE TABLE index_tail (
  one        INTEGER PRIMARY KEY CHECK (one = 1),
  indexed_to INTEGER NOT NULL
) STRICT;
INSERT INTO index_tail VALUES (1, 0);
CREATE INDEX message_apart ON message (conversation, at) WHERE apart = 1;
CREATE TABLE word_bitmap (
  place INTEGER PRIMARY KEY,
  word  TEXT NOT NULL,
  rows  BLOB NOT NULL
) STRICT;
INSERT INTO recall_index (recall_index, rank) VALUES ('secure-delete', 1);
