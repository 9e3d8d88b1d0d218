-- Seals: keyed digests of rows as the runtime wrote them, so that a row that was changed, added or removed by another
-- program is found. A turn is sealed with its messages, host refs and attrs, in its own row; what was committed before this
-- migration has none. `row` is the integer key, or a keyed digest of another primary key.
ALTER TABLE turn ADD COLUMN seal BLOB;

CREATE TABLE row_seal (
  of   TEXT NOT NULL,
  row  ANY NOT NULL,
  seal BLOB NOT NULL,
  PRIMARY KEY (of, row)
) STRICT, WITHOUT ROWID;

-- How many rows of a table are sealed, and the exclusive or of their seals; sealed itself.
CREATE TABLE table_seal (
  of   TEXT PRIMARY KEY,
  rows INTEGER NOT NULL,
  sum  BLOB NOT NULL,
  seal BLOB NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO meta SELECT 'unsealed_turns', max(turn) FROM turn HAVING count(*);
