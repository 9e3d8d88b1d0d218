"""The harness: runs fixtures in temporary stores and holds what they show to gates. Only where a profile allows it."""
