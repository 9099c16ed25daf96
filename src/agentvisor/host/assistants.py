"""Assistants of every owner, with their versions: kept on shelves, but for what the configuration says.

The current version of each is an item of one shelf of its owner; versions that were current before are items of a
shelf for each assistant. A version is put there before another takes its place, so that whatever is cut off between the
two is done again with the same outcome, and none is lost.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import time
from uuid import UUID, uuid4, uuid5

import structlog

from agentvisor.core.assistants import (
    Assistant,
    Patch,
    brought_back,
    contains,
    decoded,
    next_version,
)
from agentvisor.core.errors import Conflict, InvalidInput, NotFound, StateTooLarge, UnknownAgent, ValueTooLarge
from agentvisor.core.shelf import Change, ChangeKind, ShelfName
from agentvisor.host.shelves import Shelves

log: structlog.typing.FilteringBoundLogger = structlog.get_logger("agentvisor.assistants")

_CURRENT = "assistants"
_VERSIONS = "assistant_versions"
_TRIES = 20
"""At an assistant that others change at the same time."""


_NAMESPACE = UUID("6ba7b821-9dad-11d1-80b4-00c04fd430c8")
"""LangGraph's, so that its clients find an assistant by the id that they compute."""


def system_id(agent: str) -> str:
    """The id of the assistant that an agent of the configuration is."""
    return str(uuid5(_NAMESPACE, agent))


def system_assistant(agent: str, started_at_ms: int = 0) -> Assistant:
    """What an agent of the configuration is as long as nobody has changed it."""
    return Assistant(
        system_id(agent),
        agent,
        agent,
        metadata={"created_by": "system"},
        created_at_ms=started_at_ms,
        updated_at_ms=started_at_ms,
        versioned_at_ms=started_at_ms,
    )


@dataclass(frozen=True, slots=True)
class AssistantDefaults:
    """What the configuration says of assistants."""

    agents: tuple[str, ...]
    started_at_ms: int
    max_bytes: int = 256 * 1024


class Assistants:
    """The assistants of every owner; each call says whose it is for."""

    def __init__(self, shelves: Shelves, defaults: AssistantDefaults) -> None:
        self._shelves = shelves
        self._defaults = defaults
        self._system = {system_id(agent): agent for agent in defaults.agents}

    # --- reads -----------------------------------------------------------------------------------------------------

    async def find(self, owner: str, named: str) -> Assistant:
        """The assistant of that id, or the one that an agent of that name is.

        `NotFound` for an id that no assistant has, `UnknownAgent` for what is neither id nor name.
        """
        return (await self._find(owner, named))[0]

    async def _find(self, owner: str, named: str) -> tuple[Assistant, int]:
        """With its revision; 0: only the configuration has it."""
        assistant_id = self._id_of(named)
        found = (await self._shelves.read(_current(owner), keys=[assistant_id])).items
        if found:
            return decoded(found[0].value), found[0].revision
        if assistant_id in self._system:
            return self._as_configured(assistant_id), 0
        raise NotFound(f"assistant {assistant_id} does not exist", assistant_id=assistant_id)

    def _id_of(self, named: str) -> str:
        if named in self._defaults.agents:
            return system_id(named)
        try:
            return str(UUID(named))
        except ValueError:
            raise UnknownAgent(
                f"there is no agent {named[:80]!r}: {self.listed()} (nor is it an assistant's id, which is a UUID)",
                agent=named[:80],
            ) from None

    def _as_configured(self, assistant_id: str) -> Assistant:
        return system_assistant(self._system[assistant_id], self._defaults.started_at_ms)

    def listed(self) -> str:
        """Which agents there are, in words."""
        names = ", ".join(sorted(self._defaults.agents))
        return (
            f"this host has {names}" if names else "this host has none (agents in agentvisor.yaml, or langgraph.json)"
        )

    def check_agent(self, graph_id: str) -> None:
        """Refuse an agent that is not configured."""
        if graph_id not in self._defaults.agents:
            raise NotFound(f"there is no agent {graph_id[:80]!r}: {self.listed()}", graph_id=graph_id[:80])

    async def all(self, owner: str) -> list[Assistant]:
        """Every assistant that the owner has, those of the configuration too."""
        stored = [decoded(item.value) for item in (await self._shelves.read(_current(owner))).items]
        changed = {one.assistant_id for one in stored}
        return [*(self._as_configured(one) for one in self._system if one not in changed), *stored]

    async def search(
        self, owner: str, *, metadata: dict[str, object], graph_id: str | None, name: str | None
    ) -> list[Assistant]:
        """Those whose metadata holds this, of an agent, with this in their name (capitals or not)."""
        if graph_id is not None:
            self.check_agent(graph_id)
        part = None if name is None else name.casefold()
        return [
            one
            for one in await self.all(owner)
            if (graph_id is None or one.graph_id == graph_id)
            and (part is None or part in one.name.casefold())
            and contains(dict(one.metadata), metadata)
        ]

    async def versions(self, owner: str, named: str) -> list[Assistant]:
        """Every version of an assistant, the newest first."""
        current, _ = await self._find(owner, named)
        found = {current.version: current}
        for item in (await self._shelves.read(_versions(owner, current.assistant_id))).items:
            before = decoded(item.value)
            found.setdefault(before.version, before)
        return [found[number] for number in sorted(found, reverse=True)]

    # --- writes ----------------------------------------------------------------------------------------------------

    async def create(self, owner: str, assistant: Assistant, *, exist_ok: bool) -> Assistant:
        """Create one; `Conflict` where its id is taken, unless that is fine: then it stays as it is."""
        self.check_agent(assistant.graph_id)
        assistant_id = assistant.assistant_id
        try:
            if assistant_id in self._system:
                raise Conflict("")
            await self._store(owner, assistant, expected=0)
        except Conflict:
            if not exist_ok:
                raise Conflict(f"assistant {assistant_id} exists already", assistant_id=assistant_id) from None
            return await self.find(owner, assistant_id)
        return assistant

    async def update(self, owner: str, named: str, patch: Patch) -> Assistant:
        """Make another version of it the current one."""
        if patch.graph_id is not None:
            self.check_agent(patch.graph_id)
        return await self._replaced(owner, named, lambda before: next_version(before, patch, _now_ms()))

    async def set_latest(self, owner: str, named: str, version: int) -> Assistant:
        """Make an earlier version the current one again, all of it. `NotFound` where there is no such version."""
        wanted = next((one for one in await self.versions(owner, named) if one.version == version), None)
        if wanted is None:
            raise NotFound(f"assistant {named} has no version {version}", assistant_id=named[:80])
        return await self._replaced(owner, named, lambda before: brought_back(before, wanted, _now_ms()))

    async def _replaced(self, owner: str, named: str, follows: Callable[[Assistant], Assistant]) -> Assistant:
        for _ in range(_TRIES):
            try:
                before, revision = await self._find(owner, named)
            except NotFound:
                # Deleted meanwhile: so is what was kept of it here since.
                await self._forget_versions(owner, self._id_of(named))
                raise
            after = follows(before)
            # First: it says the same however often it is said. If the second is not reached, nothing has happened.
            self._check_size(after)
            await self._keep(owner, before)
            try:
                await self._store(owner, after, expected=revision)
            except Conflict:
                continue  # somebody else was faster: on top of that
            return after
        raise Conflict(f"assistant {named} is changed by others all the time: try again", assistant_id=named[:80])

    async def _keep(self, owner: str, version: Assistant) -> None:
        """Keep it among the versions; where there is no room, the oldest of them go: it can be changed for ever."""
        shelf = _versions(owner, version.assistant_id)
        kept = Change(ChangeKind.SET, str(version.version), version.encoded())
        gone: list[str] = []
        while True:
            try:
                await self._shelves.change(shelf, [*(Change(ChangeKind.REMOVE, one) for one in gone), kept])
                break
            except StateTooLarge:
                there = {item.key for item in (await self._shelves.read(shelf)).items} - {*gone, kept.key}
                if not there:
                    raise
                gone += sorted(there, key=int)[: max(1, len(there) // 4)]
        if gone:
            log.warning("assistant_versions_dropped", assistant=version.assistant_id, versions=gone)

    async def delete(self, owner: str, named: str) -> None:
        """Delete one with its versions. One of the configuration becomes again what that says.

        `Conflict` where there is nothing to delete, since only the configuration has it.
        """
        assistant, revision = await self._find(owner, named)
        assistant_id = assistant.assistant_id
        if not revision:
            raise Conflict(
                f"assistant {assistant_id} is the agent {assistant.graph_id!r} of the configuration: take it out there",
                assistant_id=assistant_id,
            )
        await self._forget_versions(owner, assistant_id)
        await self._shelves.change(_current(owner), [Change(ChangeKind.REMOVE, assistant_id)])
        # What somebody has just replaced, and kept for an assistant that is gone now.
        await self._forget_versions(owner, assistant_id)

    async def _forget_versions(self, owner: str, assistant_id: str) -> None:
        shelf = _versions(owner, assistant_id)
        kept = (await self._shelves.read(shelf)).items
        if kept:
            await self._shelves.change(shelf, [Change(ChangeKind.REMOVE, item.key) for item in kept])

    async def _store(self, owner: str, assistant: Assistant, *, expected: int) -> None:
        self._check_size(assistant)
        change = Change(ChangeKind.SET, assistant.assistant_id, assistant.encoded(), expected_revision=expected)
        try:
            await self._shelves.change(_current(owner), [change])
        except StateTooLarge as error:
            raise StateTooLarge(
                f"the assistants would take {error.details.get('size')} bytes together, the limit is "
                f"{error.details.get('limit')} (storage.max_state): delete some, or keep less in them",
                **error.details,
            ) from error

    def _check_size(self, assistant: Assistant) -> None:
        size = len(assistant.encoded())
        if size > self._defaults.max_bytes:
            raise ValueTooLarge(
                f"the assistant has {size} bytes with its config, context and metadata, the limit is "
                f"{self._defaults.max_bytes} (storage.max_record): keep large data in the store",
                size=str(size),
                limit=str(self._defaults.max_bytes),
            )


def new_assistant(graph_id: str, assistant_id: str | None) -> Assistant:
    """One that begins now; `InvalidInput` where the id that was given is none."""
    now = _now_ms()
    try:
        checked = str(UUID(assistant_id)) if assistant_id else str(uuid4())
    except ValueError:
        raise InvalidInput("assistant_id must be a UUID", field="assistant_id") from None
    return Assistant(checked, graph_id, "", created_at_ms=now, updated_at_ms=now, versioned_at_ms=now)


def _current(owner: str) -> ShelfName:
    return ShelfName(_CURRENT, owner, ())


def _versions(owner: str, assistant_id: str) -> ShelfName:
    return ShelfName(_VERSIONS, owner, (assistant_id,))


def _now_ms() -> int:
    return int(time() * 1000)
