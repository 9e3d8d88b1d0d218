"""The messages of the gRPC service, for its server and its client."""
