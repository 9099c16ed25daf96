"""What stands behind `agentvisor.strands`, file by file."""
