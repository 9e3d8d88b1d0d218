-- What became of the jobs that run by the clock, and which of them are paused. `last_run` in microseconds, `last_duration`
-- in milliseconds. `failures` counts those in a row; `error` is built of ids and kinds.
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
