"""Pure values and decisions: standard library only; clocks, ids and chance are arguments."""
