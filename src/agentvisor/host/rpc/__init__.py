"""The host's gRPC ends: one per guest, and one for clients outside any guest."""
