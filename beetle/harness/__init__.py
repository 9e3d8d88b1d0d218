"""The harness: runs fixtures in throw-away stores and holds what they show to gates. Only where a profile allows it."""
