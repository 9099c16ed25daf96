"""What CrewAI reads of the environment when it is imported: it reports to nobody, and writes where the run may write.

Importing this file knows nothing of CrewAI and costs nothing; it comes before the agent's own file is loaded.
"""

from __future__ import annotations

import atexit
import os
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
    parent = os.environ.get(WORKSPACE) or os.environ.get("TMPDIR") or "/tmp"  # noqa: S108 (named by the run)
    folder = Path(parent) / f"{_PREFIX}{run_id}"
    _remove(folder, os.getpid())
    atexit.register(_remove, folder, os.getpid())
    os.environ[STORAGE] = str(folder)


def _remove(folder: Path, owner: int) -> None:
    # A forked process inherits what is to be done at exit.
    if os.getpid() == owner and folder.exists():
        # Not before it is needed: every agent's process comes by here.
        import shutil

        shutil.rmtree(folder, ignore_errors=True)
