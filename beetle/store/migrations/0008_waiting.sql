-- What waits has an id of its own space, so that it can be decided; a level (who may know of it), and the bytes that it takes:
-- the queue of each level is bounded. A private fact that waits is sealed: `sealed` holds its text instead of the columns.
ALTER TABLE candidate ADD COLUMN waiting_id TEXT;
ALTER TABLE candidate ADD COLUMN level TEXT NOT NULL DEFAULT 'shared' CHECK (level IN ('shared', 'private', 'sealed'));
ALTER TABLE candidate ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE candidate_body ADD COLUMN sealed BLOB;

UPDATE candidate SET
  waiting_id = 'w-' || lower(hex(randomblob(8))),
  level = CASE
    WHEN target IN ('private_garden', 'soul_candidate') OR privacy = 'soul_private' THEN 'sealed'
    WHEN privacy = 'subject_private' THEN 'private'
    ELSE 'shared'
  END,
  bytes = length(CAST(evidence AS BLOB)) + coalesce(
    (SELECT length(CAST(topic AS BLOB)) + length(CAST(content AS BLOB)) + length(CAST(keywords AS BLOB))
     FROM candidate_body b WHERE b.candidate = candidate.candidate),
    (SELECT length(sealed) FROM private_item i WHERE i.space = candidate.space AND i.record_id = candidate.record_id),
    0
  );

CREATE UNIQUE INDEX candidate_named ON candidate (space, waiting_id);
CREATE INDEX candidate_room ON candidate (space, level, authority, at, bytes);
