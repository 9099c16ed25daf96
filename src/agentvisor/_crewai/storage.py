"""The name of the folder that CrewAI is given for its files, where the user gives it none: it goes with the process."""

FOLDER = "agentvisor-crewai"
