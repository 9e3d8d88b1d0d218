"""Transcripts: commit, read, search, lifecycle, repair."""
