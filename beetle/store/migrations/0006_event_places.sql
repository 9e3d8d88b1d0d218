-- Which event of its space each row of the log is. The log's own numbers count the writes of all owners: who is no operator is
-- told these. `matter` says whom a row tells something that not all of the space may know; `place` counts every row of the
-- space, `place_private` those that are not sealed, `place_shared` those that everybody may know of.
CREATE TABLE event_place (
  seq           INTEGER PRIMARY KEY,
  space         TEXT NOT NULL,
  matter        TEXT NOT NULL CHECK (matter IN ('shared', 'private', 'sealed')),
  place         INTEGER NOT NULL,
  place_private INTEGER NOT NULL,
  place_shared  INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX event_place_in_space ON event_place (space, place);

-- Of an older row that does not say what it is about, the narrower is taken.
INSERT INTO event_place
SELECT seq, space, matter, row_number() OVER w, sum(matter <> 'sealed') OVER w, sum(matter = 'shared') OVER w
FROM (
  SELECT e.seq, e.space, CASE
    WHEN e.topic <> 'memory' THEN 'shared'
    WHEN NOT json_valid(e.subject) OR e.event = 'imported' THEN 'sealed'
    WHEN e.subject ->> '$.target' IN ('private_garden', 'soul_candidate') THEN 'sealed'
    WHEN e.event IN ('facts_forgotten', 'candidate_dropped') THEN 'private'
    WHEN e.subject ->> '$.privacy' IN ('subject_private', 'soul_private') THEN 'private'
    WHEN e.event GLOB 'fact_*' AND NOT EXISTS (
      SELECT 1 FROM fact f JOIN space s USING (space)
      WHERE s.memory_space_id = e.space AND f.record_id = e.subject ->> '$.record_id' AND f.visibility = 'shared'
    ) THEN 'private'
    WHEN e.event GLOB 'proposal_*' AND NOT EXISTS (
      SELECT 1 FROM proposal p JOIN space s USING (space)
      WHERE s.memory_space_id = e.space AND p.proposal_id = e.subject ->> '$.proposal_id' AND p.visibility = 'shared'
    ) THEN 'private'
    ELSE 'shared'
  END AS matter
  FROM event_log e WHERE e.space IS NOT NULL
)
WINDOW w AS (PARTITION BY space ORDER BY seq)
ORDER BY seq;

-- A policy is told by its number in its space; the key counts the policies of all.
ALTER TABLE policy ADD COLUMN number INTEGER;
UPDATE policy SET number = policy;
