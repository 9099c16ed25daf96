"""Check `data-folder`: guests' sockets and the embedded Temporal's database can be written, and have room to grow."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from tempfile import TemporaryFile

from agentvisor.host.checks.finding import Finding, failed, ok, warning
from agentvisor.host.config import Config

NAME = "data-folder"
_PROBE = 1 << 20
_FEW = 256 << 20
_CHOOSE = "or choose another folder: --data-dir, AGENTVISOR_DEV_DATA_DIR or dev.data_dir"
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def check_data_folder(config: Config) -> Finding:
    """Writes a megabyte there, brings it to the disk, and removes it; a folder that is missing is not made."""
    folder = config.dev.data_dir
    there = _nearest(folder)
    seen = str(folder) if there == folder else f"{folder} (to be made in {there})"
    try:
        with TemporaryFile(dir=there) as probe:
            probe.write(bytes(_PROBE))
            probe.flush()
            os.fsync(probe.fileno())
        free = shutil.disk_usage(there).free
    except OSError as error:
        if error.errno in _FULL:
            return failed(NAME, f"{seen}: the disk is full ({error.strerror})", f"make room there, {_CHOOSE}")
        return failed(NAME, f"{seen} cannot be written to ({error.strerror})", f"let this user write there, {_CHOOSE}")
    room = f"{free / (1 << 30):.1f} GiB free"
    if free < _FEW:
        return warning(NAME, f"{seen}: {free >> 20} MiB free", f"make room there, {_CHOOSE}")
    return ok(NAME, f"{seen}: can be written to, {room}")


def _nearest(folder: Path) -> Path:
    """The folder, or the nearest above it that is there."""
    return next((one for one in (folder, *folder.parents) if one.exists()), folder)
