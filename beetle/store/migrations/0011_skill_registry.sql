-- Uploaded skills: versions that are never changed, each held whole or as what differs from the one before. What is said
-- of a skill is that of its latest version. Content stands apart, by integer key, so that it can be erased.
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

-- `key` is the public key that the signature was verified with, so that anybody can verify it again.
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
