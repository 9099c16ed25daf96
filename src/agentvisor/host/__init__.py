"""The host: it serves HTTP and gRPC, drives Temporal, and starts guests."""
