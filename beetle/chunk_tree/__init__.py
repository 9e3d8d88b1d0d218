"""The JSON tree of chunks: one file a chunk, three index files, an archive that carries them, and their folder."""
