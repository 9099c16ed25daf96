"""The event protocol of LangGraph's newer clients: commands to a thread, and what happens on it as numbered events."""
