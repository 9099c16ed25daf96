"""Where a thread's values are in an object store: `<thread id>/<incarnation>/<key>.<attempt>.<number>`.

A name is used for one upload and never again. So nothing that deletes an object can take away one that was written
meanwhile, be it the same value's: no list of what may be deleted has to be kept in step with what is written.
"""

from __future__ import annotations

import re
from secrets import token_hex

from agentvisor.core.ids import BlobKey, ThreadId

_PLAIN = re.compile(r"[A-Za-z0-9_-]")
_LONGEST = 200
"""Characters of a folder's name; file systems take 255 bytes."""


def folder_of(thread_id: ThreadId, incarnation: str) -> str:
    """The folder of one thread, with its slash; another thread of the same id has another."""
    return f"{home_of(thread_id)}{incarnation}/"


def home_of(thread_id: ThreadId) -> str:
    """The folder of all threads that ever had this id, with its slash."""
    name = "".join(one if _PLAIN.match(one) else f"={ord(one):02X}" for one in thread_id)
    return f"{_parts(name)}/"


def incarnation_in(home: str, path: str) -> str | None:
    """Of which thread in this folder an object is; None where it is of another id, whose folder is within this one."""
    incarnation, *rest = path.removeprefix(home).split("/")
    return incarnation if path.startswith(home) and len(rest) == 1 else None


def _parts(name: str) -> str:
    """A long name as folders within folders."""
    return "/".join(name[at : at + _LONGEST] for at in range(0, len(name), _LONGEST))


class Names:
    """Paths in one thread's folder, that no other attempt gives."""

    def __init__(self, folder: str, suffix: str) -> None:
        """See `ExternalStorage.names`, which knows the suffix.

        `suffix`: of encrypted objects, whose names do not tell their content's hash either; empty of others.
        """
        self._folder = folder
        self._suffix = suffix
        self._mark = token_hex(8)
        self._count = 0

    def new(self, key: BlobKey) -> str:
        """A path for one upload of a value."""
        self._count += 1
        name = token_hex(16) if self._suffix else key.hex()
        return f"{self._folder}{name}.{self._mark}.{self._count}{self._suffix}"

    def gave(self, path: str) -> bool:
        """Whether the path is one of these."""
        return path.startswith(self._folder) and path.split(".")[1:2] == [self._mark]
