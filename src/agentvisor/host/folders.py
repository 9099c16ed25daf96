"""A folder that a host keeps things in must be one it can write to, or an error that says which and what to do."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryFile

from agentvisor.core.errors import Unavailable


def require_writable(folder: Path) -> None:
    """Create the folder if it is missing; `Unavailable` where it cannot be, or where no file can be made in it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise Unavailable(
            f"the data folder {folder} cannot be written to ({error.strerror}): choose another with --data-dir, "
            "AGENTVISOR_DEV_DATA_DIR or dev.data_dir in agentvisor.yaml",
            folder=str(folder),
        ) from error
