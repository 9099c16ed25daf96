"""What a warm process does before it imports CrewAI: forking needs a process with one thread."""

from __future__ import annotations

import os

from agentvisor.guest.runners.crewai_environment import set_environment

# numpy starts a thread for each processor when it is imported. What an agent's `env` says counts more; then each run
# starts as a process of its own.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
set_environment()
