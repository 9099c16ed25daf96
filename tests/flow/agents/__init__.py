"""Agents as users write them; the flow tests run them in real hosts."""
