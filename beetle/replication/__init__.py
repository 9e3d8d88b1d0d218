"""The litestream sidecar: where it copies the store to, how it is started, watched and stopped, and its subcommands."""
