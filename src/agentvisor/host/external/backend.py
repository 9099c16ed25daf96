"""What an object store must do for AgentVisor, and how the one that a URL names is found."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import Protocol, cast
from urllib.parse import urlsplit

from agentvisor.core.errors import InvalidInput

GROUP = "agentvisor.storage"
"""Entry points of this group are backends of other packages: the name is the URL's scheme, the object an `Open`."""

SCHEMES = ("file", "s3", "gs", "az")
"""What is built in, by obstore."""


_TEXT = 300
"""Characters of somebody else's error that are shown."""


class Backend(Protocol):
    """An object store. Paths are relative, of `A-Z a-z 0-9 _ = - . /`. Objects never change once they are written.

    Whatever any method raises, except `FileNotFoundError` of `get`, means that the store does not answer for now: the
    call is made again, until `storage.retry_for` is over. Calls are made from one event loop, several at a time.
    """

    async def put(self, path: str, data: bytes) -> None:
        """Store an object, whole or not at all; it is durable when this returns."""
        ...

    async def get(self, path: str, start: int, length: int) -> bytes:
        """That part of an object, or less where it is shorter; `FileNotFoundError` where there is no such object."""
        ...

    async def delete(self, paths: Sequence[str]) -> None:
        """Delete objects; it is no error where one is gone already."""
        ...

    def list(self, prefix: str) -> AsyncIterator[str]:
        """The paths of all objects below `prefix`, which ends with a slash, as they are now."""
        ...


Open = Callable[[str, Mapping[str, str]], Backend]
"""Makes the backend of a URL with the options of the configuration (`storage.options`)."""


def open_backend(url: str, options: Mapping[str, str]) -> Backend:
    """The backend that a URL's scheme names; `InvalidInput` where there is none, or where it refuses the URL."""
    scheme = urlsplit(url).scheme
    plugged = _plugged(scheme)
    if plugged is None and scheme not in SCHEMES:
        known = ", ".join([*SCHEMES, *sorted(one.name for one in entry_points(group=GROUP))])
        raise InvalidInput(
            f"storage.url {shown(url)!r}: no backend for {scheme or 'no scheme'!r}; known: {known}. Others come with a "
            f"package that has an entry point of the group {GROUP}",
            field="storage.url",
        )
    try:
        if plugged is not None:
            return cast("Open", plugged.load())(url, options)
        # Only where it is used: the package is an extra, and takes its time to load.
        from agentvisor.host.external.obstore_backend import open_obstore

        return open_obstore(url, options)
    except InvalidInput:
        raise
    except Exception as error:
        raise InvalidInput(
            f"storage.url {shown(url)!r} cannot be used: {first_line(error)}", field="storage.url"
        ) from error


def _plugged(scheme: str) -> EntryPoint | None:
    return next(iter(entry_points(group=GROUP, name=scheme)), None)


def shown(url: str) -> str:
    """A URL as errors and logs may show it: without what may be a secret."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def first_line(error: BaseException) -> str:
    """The part of an error's text that a person reads."""
    text = str(error).strip()
    return text.splitlines()[0].strip()[:_TEXT] if text else type(error).__name__
