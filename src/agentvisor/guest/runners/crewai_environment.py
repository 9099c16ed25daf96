"""What CrewAI reads of the environment when it is imported: it reports to nobody, and writes where the run may write.

Importing this file knows nothing of CrewAI and costs nothing; it comes before the agent's own file is loaded.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

QUIET = {
    "CREWAI_DISABLE_TELEMETRY": "true",
    "CREWAI_TRACING_ENABLED": "false",
    "CREWAI_DISABLE_VERSION_CHECK": "true",
}
"""What an agent's own environment says counts more."""

STORAGE = "CREWAI_STORAGE_DIR"
WORKSPACE = "AGENTVISOR_WORKSPACE"
_PREFIX = "agentvisor-crewai-"


def set_environment(run_id: str) -> None:
    """For one run: what it leaves behind goes with it, and an attempt clears what a killed one has left."""
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    if not Path(os.environ.get(STORAGE, _PREFIX)).name.startswith(_PREFIX):
        return
    folder = Path(os.environ.get(WORKSPACE) or tempfile.gettempdir()) / f"{_PREFIX}{run_id}"
    shutil.rmtree(folder, ignore_errors=True)
    atexit.register(_remove, folder, os.getpid())
    os.environ[STORAGE] = str(folder)


def _remove(folder: Path, owner: int) -> None:
    # A forked process inherits what is to be done at exit.
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)
