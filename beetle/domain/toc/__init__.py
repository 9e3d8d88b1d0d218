"""The table of contents: calendar, segments, sentences and keywords. No clock, no I/O."""
