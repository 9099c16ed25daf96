"""Encryption of all that Temporal and external storage see (docs/encryption.md)."""
