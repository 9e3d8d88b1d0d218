-- Thought chains: append-only ledgers of typed thoughts, and the registry of each chain's agents.

-- `shared` thoughts of a branch are its parent's. `length` and `head` are of the newest thought, which the event `pinned`
-- tells too.
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

-- Each is hashed with the hash of the one before: docs/chain-format.md. Of what was erased the row stays.
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

-- Refs and relations of a thought, `place` from 0 in their order: to a thought of its chain by its place and key, or to any
-- record by a ref.
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

-- Thoughts that are masked, or whose body was erased.
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

-- What an agent has written of its chain: follows from the thoughts.
CREATE TABLE chain_activity (
  chain_agent    INTEGER PRIMARY KEY REFERENCES chain_agent,
  thoughts       INTEGER NOT NULL,
  first_position INTEGER NOT NULL,
  last_position  INTEGER NOT NULL,
  first_at       INTEGER NOT NULL,
  last_at        INTEGER NOT NULL
) STRICT;
