"""The contract between SDK, guest and host: generated messages, and what both ends do with them."""
