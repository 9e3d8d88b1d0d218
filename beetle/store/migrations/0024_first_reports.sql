-- First reports were kept with what their callers had said, which no erasure took along. Those of operations that answer
-- records go, and those that do not name their operation: their keys are unknown from now on. A report begins with
-- {"lifecycle": {"operation": NAME in MessagePack, behind one byte, or three where it has more than 15 fields.
DELETE FROM idempotency WHERE idempotency IN (
  SELECT idempotency FROM (
    SELECT idempotency, substr(report, CASE WHEN substr(report, 1, 1) = x'DE' THEN 4 ELSE 2 END, 64) AS start
    FROM idempotency
  )
  WHERE substr(start, 1, 21) <> x'A96C6966656379636C6584A96F7065726174696F6E'
    OR CAST(substr(start, 23) AS TEXT) GLOB 'batch*'
    OR CAST(substr(start, 23) AS TEXT) GLOB 'chain.*'
    OR CAST(substr(start, 23) AS TEXT) GLOB 'chunk.*'
    OR CAST(substr(start, 23) AS TEXT) GLOB 'device.*'
    OR CAST(substr(start, 23) AS TEXT) GLOB 'harness.*'
    OR CAST(substr(start, 23) AS TEXT) GLOB 'host_key.*'
    OR CAST(substr(start, 23) AS TEXT) GLOB 'long_term.policy*'
    OR CAST(substr(start, 23) AS TEXT) GLOB 'memory.close*'
    OR CAST(substr(start, 23) AS TEXT) GLOB 'skill_registry.*'
    OR CAST(substr(start, 23) AS TEXT) GLOB 'snapshot.*'
    OR CAST(substr(start, 23) AS TEXT) GLOB 'transcript.lifecycle*'
);
