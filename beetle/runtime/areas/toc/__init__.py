"""The table of contents: how it is built, shown and searched."""
