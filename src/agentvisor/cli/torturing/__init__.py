"""What `agentvisor torture` is made of: a stage of servers, lanes of runs, kills, the outside records, the truths."""
