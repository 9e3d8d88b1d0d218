-- A commit writes each page that it touches. The place of an event stands where it is looked for, by its space: one tree, where
-- there were two.
CREATE TABLE event_place_in_order (
  seq           INTEGER NOT NULL,
  space         TEXT NOT NULL,
  matter        TEXT NOT NULL CHECK (matter IN ('shared', 'private', 'sealed')),
  place         INTEGER NOT NULL,
  place_private INTEGER NOT NULL,
  place_shared  INTEGER NOT NULL,
  PRIMARY KEY (space, place)
) STRICT, WITHOUT ROWID;
INSERT INTO event_place_in_order
SELECT seq, space, matter, place, place_private, place_shared FROM event_place ORDER BY space, place;
DROP TABLE event_place;
ALTER TABLE event_place_in_order RENAME TO event_place;
