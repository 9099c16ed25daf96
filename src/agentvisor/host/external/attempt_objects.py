"""The objects of one attempt: what it writes, and what of its thread's may be deleted.

Nothing is deleted because somebody counted that it is needed no more. It is deleted because the workflow's own state,
read while this attempt is the one that may write, does not name it, and nothing that is still to be applied can.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace

from agentvisor.core.errors import NotFound, Unavailable
from agentvisor.core.ids import AttemptId, ThreadId
from agentvisor.core.records import Blob
from agentvisor.host.external.places import folder_of, home_of, incarnation_in
from agentvisor.host.external.storage import ExternalStorage, Verify

_TIDY_EVERY = 30.0
"""Seconds between two looks at what has become garbage while a run goes on."""
_APPLIED_TRIES = 60
_APPLIED_PAUSE = 0.5
"""A quiet log is folded after a second, one that is not after three."""
_ENDED_TRIES = 50
_ENDED_PAUSE = 0.2


@dataclass(frozen=True, slots=True)
class Outlines:
    """What the workflow's state holds of blobs, at one moment."""

    incarnation: str
    active: AttemptId | None
    """The attempt that may write."""
    applied_seq: int
    """The last operation of that attempt which was applied."""
    stored_bytes: int
    """Size of the whole state."""
    blobs: list[Blob] = field(default_factory=list[Blob])
    """Without their data: those in external storage, and those that are worth moving there."""

    @property
    def locations(self) -> set[str]:
        return {blob.location for blob in self.blobs if blob.is_external}


class AttemptObjects:
    """Writes for one attempt, and deletes behind it."""

    def __init__(
        self,
        storage: ExternalStorage,
        thread_id: ThreadId,
        incarnation: str,
        attempt: AttemptId,
        *,
        outlines: Callable[[], Awaitable[Outlines]],
        has_ended: Callable[[], bool],
    ) -> None:
        self.storage = storage
        self._thread_id = thread_id
        self._incarnation = incarnation
        self._attempt = attempt
        self.outlines = outlines
        self._has_ended = has_ended
        self._home = home_of(thread_id)
        self._folder = folder_of(thread_id, incarnation)
        self._names = storage.names(self._folder)
        self._written: dict[str, int | None] = {}
        """Paths that this attempt wrote, with the number of the operation that names each, once it is logged."""
        self._seen: set[str] = set()
        """Paths that the state named when it was last looked at."""
        self._tidied_at = 0.0
        self._deleting = asyncio.Lock()
        """What the state named must not be compared by two at a time."""
        self._forgot_seq = 0
        self._waits_for_forgetting = False

    # --- writing ---------------------------------------------------------------------------------------------------

    async def write(self, blob: Blob, what: str) -> Blob:
        """Store the blob's data durably; the blob without it, to be logged afterwards."""
        path = self._names.new(blob.key)
        self._written[path] = None
        what = f"{what} of thread {self._thread_id} ({len(blob.data)} bytes)"
        try:
            await self.storage.write(path, blob.data, what, self._has_ended)
        except BaseException:
            self._discard([path])  # it may have come there all the same
            raise
        return replace(blob, data=b"", location=path, stored_size=len(blob.data))

    async def own(self, blob: Blob, verify: Verify) -> Blob:
        """A blob of another thread's as one of this thread's, with an object of its own. `Corrupt`."""
        path = self._names.new(blob.key)
        self._written[path] = None
        try:
            return await self.storage.copied(blob, path, verify)
        except BaseException:
            self._discard([path])
            raise

    def logged(self, blobs: list[Blob], seq: int) -> None:
        """The log names them now, from this operation on."""
        self._written.update((blob.location, seq) for blob in blobs if blob.is_external)
        now = asyncio.get_running_loop().time()
        if now - self._tidied_at > _TIDY_EVERY:
            self._tidied_at = now
            self.storage.begin(f"values of {self._thread_id} that nothing needs", self._tidy())

    def forgot(self, seq: int) -> None:
        """The log has an operation of this number that removes checkpoints: what only they needed can go soon."""
        self._forgot_seq = max(self._forgot_seq, seq)
        if not self._waits_for_forgetting:
            self._waits_for_forgetting = True
            self.storage.begin(f"values of {self._thread_id} that were removed", self._tidy_once_forgotten())

    def discard(self, blobs: list[Blob]) -> None:
        """They were not logged, and will not be."""
        self._discard([blob.location for blob in blobs if blob.is_external])

    def _discard(self, paths: list[str]) -> None:
        for path in paths:
            self._written.pop(path, None)
        if paths:
            self.storage.begin(f"values of {self._thread_id} that were not stored", self.storage.delete(paths))

    # --- deleting --------------------------------------------------------------------------------------------------

    async def sweep(self) -> None:
        """Delete what earlier attempts wrote and the state does not name: their hosts died before they could log it.

        So goes what is left of earlier threads of this id, whose deletion was cut off.

        The list is older than the look at the state, and an attempt that is the current one then was so at the time
        of the list: nothing in it is a later attempt's, or a later thread's.
        """
        async with self._deleting:
            listed = await self.storage.below(self._home)
            state = await self.outlines()
            if not self._is_current(state):
                return
            self._seen = state.locations
            ours = [one for one in listed if incarnation_in(self._home, one) is not None]
            await self.storage.delete([one for one in ours if one not in self._seen and not self._names.gave(one)])

    async def _tidy(self) -> None:
        """Delete what the state named and does not name any more; and what was logged, applied, and is not needed."""
        async with self._deleting:
            state = await self.outlines()
            if not self._is_current(state):
                return
            here = state.locations
            applied = {path for path, seq in self._written.items() if seq is not None and seq <= state.applied_seq}
            doomed = (self._seen | applied) - here
            await self.storage.delete(sorted(doomed))
            self._seen = here
            for path in applied:
                self._written.pop(path, None)

    async def _tidy_once_forgotten(self) -> None:
        """Delete as soon as the state has applied what removes checkpoints; where the attempt ends first, then."""
        try:
            for _ in range(_APPLIED_TRIES):
                state = await self.outlines()
                if not self._is_current(state):
                    return
                if state.applied_seq >= self._forgot_seq:
                    await self._tidy()
                    return
                await asyncio.sleep(_APPLIED_PAUSE)
        finally:
            self._waits_for_forgetting = False

    async def after_end(self) -> None:
        """The attempt is over: once the state has taken in its log, what that does not name can go."""
        if not self._written and not self._seen:
            return
        for _ in range(_ENDED_TRIES):
            try:
                state = await self.outlines()
            except NotFound:
                state = None
            except Unavailable:
                state = Outlines("", self._attempt, 0, 0)
            if state is None or (state.incarnation and state.incarnation != self._incarnation):
                # The thread was deleted, perhaps while an object of it was on its way.
                await self.storage.delete_below(self._folder)
                return
            if state.active != self._attempt:
                # Only its own: a next attempt may be writing already.
                doomed = (self._seen | self._written.keys()) - state.locations
                await self.storage.delete(sorted(doomed))
                return
            await asyncio.sleep(_ENDED_PAUSE)

    def _is_current(self, state: Outlines) -> bool:
        return state.active == self._attempt and state.incarnation == self._incarnation
