"""Each guest's folder, locked while its host lives: so a host finds what one that was killed has left."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from agentvisor.host.leftovers import end_leftovers

LOCK = "lock"
ELSEWHERE = "elsewhere"
"""A link to the temporary folder of a guest's socket, where its own folder's path is too long for one."""


@contextmanager
def guest_folder(parent: Path, guest_id: str) -> Generator[Path]:
    """A folder for one guest, which only this user may enter; gone afterwards."""
    folder = parent / guest_id
    # Under its name it is locked from the first moment on: until then it is nobody's to clear.
    unlocked = parent / f".{guest_id}"
    unlocked.mkdir(parents=True, mode=0o700)
    # The kernel lets go of the lock when this process ends, however it ends; guests do not inherit it.
    lock = os.open(unlocked / LOCK, os.O_CREAT | os.O_RDWR, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        unlocked.rename(folder)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def clear_abandoned(parent: Path) -> None:
    """End what is alive of guests whose host is not, and remove their folders; blocks while that ends."""
    for folder in sorted(parent.glob("[!.]*/")):
        try:
            lock = os.open(folder / LOCK, os.O_RDWR)
        except FileNotFoundError:
            # Its host is removing it at this moment.
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue
        else:
            end_leftovers(folder.name)
            if (folder / ELSEWHERE).is_symlink():
                shutil.rmtree((folder / ELSEWHERE).readlink(), ignore_errors=True)
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(lock)
