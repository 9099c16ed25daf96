"""What stands behind `agentvisor.langgraph`, file by file."""
