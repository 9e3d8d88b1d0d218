-- Chunks: linked notes. `revision` grows with each change of any chunk of the space. `digest` is keyed, over the body and
-- the links.
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

-- `tags` is a JSON array, `extra` an object of what an imported file has besides.
CREATE TABLE chunk_body (
  chunk   INTEGER PRIMARY KEY REFERENCES chunk,
  content TEXT NOT NULL,
  tags    TEXT NOT NULL,
  extra   TEXT
) STRICT;

-- Links of a chunk, `place` from 0: to another chunk of the space, or to what is named and is no chunk here. A
-- `related_to` stands once and leads both ways.
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

-- By keyed digests of 63 bits: which chunks have a tag, and of which conversation each is.
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

-- Chunks that were deleted for good, so that who follows the revisions learns of it.
CREATE TABLE removed_chunk (
  removed_chunk INTEGER PRIMARY KEY,
  space         INTEGER NOT NULL REFERENCES space,
  chunk_id      TEXT NOT NULL,
  revision      INTEGER NOT NULL,
  UNIQUE (space, chunk_id)
) STRICT;
CREATE UNIQUE INDEX removed_chunk_by_revision ON removed_chunk (space, revision);
