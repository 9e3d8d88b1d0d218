-- The table of contents over evidence: years, months, weeks, days and the segments of sessions. No content stands in it: a
-- bullet and a keyword are places in a message's body. The exception is what a model has written of a segment, which goes
-- at once when the state of an event of its day changes.

CREATE INDEX message_at ON message (conversation, at);

-- Days (since the epoch) of conversations whose events have changed.
CREATE TABLE toc_outbox (
  conversation INTEGER NOT NULL,
  day          INTEGER NOT NULL,
  PRIMARY KEY (conversation, day)
) STRICT, WITHOUT ROWID;

-- level: 1 year, 2 month, 3 week, 4 day, 5 segment. Times in milliseconds. `conversation` and `day` are a segment's.
-- `members` is a digest of the events that a segment was cut from. `stale` counts what has changed below since bullets and
-- words were made. `bullets` are ids of grips, `words` places in bodies with how often each word stands there, `keywords`
-- the places of those that are shown.
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

-- A bullet's events: from one of a session to another, and the place of the sentence in the first. `written` is a model's.
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

-- What a model calls a segment.
CREATE TABLE toc_title (
  toc_node INTEGER PRIMARY KEY REFERENCES toc_node,
  title    TEXT NOT NULL
) STRICT;

INSERT INTO toc_outbox
SELECT DISTINCT conversation, (at - (at % 86400000000 + 86400000000) % 86400000000) / 86400000000
FROM message WHERE visibility = 'shared';
