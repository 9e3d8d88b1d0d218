-- First reports were kept with what their callers had said, which no erasure took along. Those of operations whose report
-- may hold some of it go, and those that do not name their operation: their keys are unknown from now on. A report begins
-- with {"lifecycle": {"operation": NAME, "changed": in MessagePack, behind one byte, or three where it has more than 15
-- fields.
DELETE FROM idempotency WHERE idempotency IN (
  SELECT idempotency FROM (
    SELECT idempotency, start, instr(substr(start, 23), x'A76368616E676564') AS behind FROM (
      SELECT idempotency, substr(report, CASE WHEN substr(report, 1, 1) = x'DE' THEN 4 ELSE 2 END, 64) AS start
      FROM idempotency
    )
  )
  WHERE substr(start, 1, 21) <> x'A96C6966656379636C6584A96F7065726174696F6E' OR behind = 0
  OR CAST(substr(start, 23, behind - 1) AS TEXT) IN (
    'batch', 'chain.add_agent_alias', 'chain.add_agent_key', 'chain.append', 'chain.append_retrospective',
    'chain.disable_agent', 'chain.revoke_agent_key', 'chain.set_agent_description', 'chain.upsert_agent',
    'chunk.create', 'chunk.export_tree', 'chunk.import_tree', 'chunk.link', 'chunk.restore', 'chunk.update',
    'device.add', 'device.rotate_key', 'device.update', 'harness.run', 'host_key.enroll', 'host_key.revoke',
    'long_term.policy', 'memory.close', 'memory.import', 'memory.import_space', 'skill_registry.deprecate',
    'skill_registry.revoke', 'skill_registry.upload', 'snapshot.create', 'snapshot.restore', 'transcript.lifecycle'
  )
);
