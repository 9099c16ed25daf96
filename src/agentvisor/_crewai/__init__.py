"""CrewAI's crews and flows on a thread: what of them is finished is kept, and laid over the live objects again."""
