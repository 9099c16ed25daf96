"""What `agentvisor doctor` looks at: a file for each thing that can be wrong beneath a host."""
