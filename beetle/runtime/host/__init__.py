"""The process around the pipeline: configuration, profile, identity, model, sessions, jobs, metrics."""
