"""Thread state of one live attempt: a change is checked against the entry as it is, journalled, and then answered."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from time import time
from typing import cast

from agentvisor.core.errors import Conflict, InvalidInput
from agentvisor.core.ids import BlobKey
from agentvisor.core.keys import checked_key, checked_scope
from agentvisor.core.records import Blob
from agentvisor.core.thread import Thread
from agentvisor.core.thread_state import ChangeKind, StateChange, StateEntry
from agentvisor.host.blob_shelf import BlobShelf
from agentvisor.host.door import Door
from agentvisor.host.incoming import What
from agentvisor.protocol.thread_state import kind_of
from agentvisor.protocol.v1 import store_pb2

_OFF_LOOP = 256 * 1024
"""Bytes of JSON from which reading it leaves the event loop."""
_MAX_CHANGE_ID = 32

Fresh = Mapping[BlobKey, Blob]
TakeValues = Callable[
    [Sequence[store_pb2.Blob], Mapping[BlobKey, What], int], AbstractAsyncContextManager[dict[BlobKey, Blob]]
]


class AttemptState:
    """The part of an attempt's store that `agentvisor.thread_state` speaks with."""

    def __init__(
        self,
        thread: Thread,
        shelf: BlobShelf,
        door: Door,
        *,
        putting: asyncio.Lock,
        take_values: TakeValues,
        log: Callable[[Fresh, StateChange], asyncio.Future[None]],
    ) -> None:
        """`putting`: held while a change is checked, so that none comes in between."""
        self._thread = thread
        self._state = thread.store.state
        self._shelf = shelf
        self._door = door
        self._putting = putting
        self._take_values = take_values
        self._log = log

    async def change(self, asked: store_pb2.ChangeThreadState) -> store_pb2.StoreReply:
        """Change an entry; answered with its revision once that is durable, 0 where there was nothing to delete.

        `Conflict` where the entry's revision is not the expected one: nothing is changed then.
        """
        scope, key = checked_scope(asked.scope), checked_key(asked.key, "the key of thread state")
        kind, blob = kind_of(asked)
        what = What("thread state", key)
        async with self._putting:
            if (revision := self._state.made.get(asked.change_id)) is not None:
                return _changed(revision)  # its answer was lost
            known = self._state.get(scope, key)
            self._check_expected(asked, what, known)
            if kind is ChangeKind.DELETE and known is None:
                return _changed(0)
            if kind is ChangeKind.APPEND and known is not None and not known.is_list:
                raise InvalidInput(f"{what} holds no list: append adds to a list, or begins one", field="key")
            around = 0 if known is not None else StateEntry(scope, key, 0, 0).stored_bytes
            names = {blob: what} if blob is not None else {}
            async with self._take_values(asked.blobs, names, around) as fresh:
                is_list, items = await self._shape(what, blob) if kind is ChangeKind.SET else (False, 0)
                freed = self._freed(known, fresh) if kind is ChangeKind.SET else 0
                self._door.check_change(str(what), self._added(kind, fresh, blob) + around - freed)
                change = StateChange(
                    scope, key, kind, self._state.revision + 1, int(time() * 1000), blob, is_list, items,
                    asked.change_id[:_MAX_CHANGE_ID],
                )  # fmt: skip
                durable = self._log(fresh, change)
        await durable
        return _changed(change.revision)

    def _check_expected(self, asked: store_pb2.ChangeThreadState, what: What, known: StateEntry | None) -> None:
        if not asked.HasField("expected_revision"):
            return
        is_now = known.revision if known is not None else 0
        if asked.expected_revision == is_now:
            return
        wanted = f"revision {asked.expected_revision}" if asked.expected_revision else "no entry"
        found = f"is at revision {is_now}" if is_now else "does not exist"
        raise Conflict(
            f"{what} of thread {self._thread.thread_id} {found}, and {wanted} was expected: read it again, "
            "then change it",
            revision=str(is_now),
        )

    async def _shape(self, what: What, key: BlobKey | None) -> tuple[bool, int]:
        """Whether a value is a list, and of how many items."""
        data = await self._shelf.decoded(key) if key is not None else b""
        if not data.startswith(b"["):
            return False, 0
        try:
            items = await asyncio.to_thread(_items, data) if len(data) > _OFF_LOOP else _items(data)
        except (ValueError, RecursionError) as error:
            raise InvalidInput(f"{what} is not JSON: {error}", field="value") from error
        return True, items

    def _added(self, kind: ChangeKind, fresh: Fresh, blob: BlobKey | None) -> int:
        """Bytes that the state has more, as far as it is not replaced."""
        if kind is ChangeKind.DELETE:
            return 0
        item = 40 if kind is ChangeKind.APPEND and blob is not None else 0
        return item + sum(one.stored_bytes for one in fresh.values())

    def _freed(self, known: StateEntry | None, fresh: Fresh) -> int:
        """Bytes that are surely free once the entry is replaced."""
        if known is None or known.value is None:
            return 0
        store = self._thread.store
        old = store.blobs.get(known.value)
        is_needed = store.references.get(known.value, 0) > 1 or any(one.base == known.value for one in fresh.values())
        return 0 if old is None or is_needed else old.stored_bytes


def _items(data: bytes) -> int:
    return len(cast("list[object]", json.loads(data)))


def _changed(revision: int) -> store_pb2.StoreReply:
    return store_pb2.StoreReply(thread_state_changed=store_pb2.ThreadStateChanged(revision=revision))
