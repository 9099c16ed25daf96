"""Generated from proto/agentvisor/protocol/v1 by scripts/generate_protocol.py."""
