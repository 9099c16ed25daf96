"""A temporary folder of a whole test session, its workers and all that they start: whatever a kill leaves goes with it.

Hosts, guests and Temporal servers that tests kill cannot clean up. They inherit TMPDIR, and so does pytest's own folder
(`--basetemp` names another, to look at after a failure).
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest

_KEY = pytest.StashKey[Path]()


def begin(config: pytest.Config) -> None:
    """Make it, in the process that starts the workers; those find it in their environment."""
    if hasattr(config, "workerinput"):
        return
    # Short: sockets are in there, and their paths have at most 107 bytes.
    folder = Path(tempfile.mkdtemp(prefix="av-"))
    folder.chmod(0o711)  # PostgreSQL, which refuses to be root, has its folder in there
    config.stash[_KEY] = folder
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder)


def end(config: pytest.Config) -> None:
    """Remove it, once the workers have ended."""
    folder = config.stash.get(_KEY, None)
    if folder is None:
        return
    shutil.rmtree(folder, ignore_errors=True)
    if folder.exists():
        raise pytest.UsageError(f"{folder} could not be removed: something that the tests started still writes there")
