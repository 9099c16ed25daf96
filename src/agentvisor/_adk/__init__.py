"""What `agentvisor.adk` is made of: Google ADK's sessions on a thread's state."""
