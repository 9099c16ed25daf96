"""What CrewAI reads of the environment when it is imported: it reports to nobody, and writes where the run may write.

Importing this file knows nothing of CrewAI and costs nothing; it comes before the agent's own file is loaded.
"""

from __future__ import annotations

import os
from pathlib import Path

from agentvisor._crewai.storage import FOLDER

QUIET = {
    "CREWAI_DISABLE_TELEMETRY": "true",
    "CREWAI_TRACING_ENABLED": "false",
    "CREWAI_DISABLE_VERSION_CHECK": "true",
}
"""What an agent's own environment says counts more."""

STORAGE = "CREWAI_STORAGE_DIR"


def set_environment() -> None:
    """For this process: what CrewAI writes goes with its workspace, however the process ends."""
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    # A forked process has its own workspace, and the name of its parent's folder.
    if Path(os.environ.get(STORAGE, FOLDER)).name == FOLDER:
        os.environ[STORAGE] = str(Path(os.environ["AGENTVISOR_WORKSPACE"], FOLDER))
