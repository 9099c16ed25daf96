"""The thread workflow and what turns Temporal's events into the moves of core; replayed for ever (B16)."""
