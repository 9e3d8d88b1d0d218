"""gRPC: RPCs of `memory.MemoryService` are decoded, dispatched as operations, and their reports encoded."""
