-- The rest of the SDK: tool registries, background jobs, devices, transports, proposals.

-- What a host registered of its tools, in short. A later registration of the same id replaces the tools.
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

-- The conversation that an observation is about, for one whose turn is not there yet; experience is read by registry.
ALTER TABLE tool_observation ADD COLUMN channel_id TEXT;
ALTER TABLE tool_observation ADD COLUMN conversation_id TEXT;
CREATE INDEX tool_observation_known
  ON tool_observation (space, registry_id, tool_id, schema_fingerprint);
CREATE INDEX tool_observation_untied ON tool_observation (space, turn_id) WHERE turn IS NULL AND turn_id IS NOT NULL;
DROP INDEX tool_observation_tool;

-- Work that is done later. It runs as the principal, in the scope, that left it; `subject` holds ids and counts alone.
-- A lease ends by itself, so that work of a process that died is taken up again.
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

-- Skills are listed by what was changed last, and by how often; every page says how many there are.
CREATE INDEX skill_counted ON skill (space, enabled, retired);
CREATE INDEX skill_updated ON skill (space, updated_at, name);
CREATE INDEX skill_revisions ON skill (space, revision, name);

-- Up to where a conversation was looked through by maintenance.
CREATE TABLE maintained (
  conversation INTEGER PRIMARY KEY REFERENCES conversation,
  sequence     INTEGER NOT NULL,
  at           INTEGER NOT NULL
) STRICT;

-- A device's key is random, so one salted SHA-256 of it is enough; the key itself is kept nowhere. `generation` counts
-- the keys and states: what was verified for an older one counts no more.
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

-- What an operator changed of a communication entry; one that is not here is as the profile has it.
CREATE TABLE transport (
  transport  INTEGER PRIMARY KEY,
  name       TEXT NOT NULL UNIQUE,
  enabled    INTEGER NOT NULL CHECK (enabled IN (0, 1)),
  endpoint   TEXT,
  principal  TEXT NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;

-- What someone would have changed, and nobody has yet. Its text stands apart, so that it can be erased.
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
