"""Lives of shelves: filled, changed, compacted in each way, and ended."""

from collections.abc import Awaitable, Callable

from tests.support.shelving import ShelfHost, shelf_host
from tests.support.waiting import until

from agentvisor.core.shelf import Change, ChangeKind, ShelfName, ShelfSettings
from agentvisor.host.shelf_places import workflow_id
from agentvisor.host.temporal_calls import shelf_calls

NAMESPACE = ("recorded",)
_QUICK = ShelfSettings(erase_after_ms=300, linger_ms=300, compact_updates=15)


def place(deployment: str) -> str:
    """The id of the workflow whose history is recorded."""
    return workflow_id(deployment, ShelfName("items", "", NAMESPACE))


async def shelf_compacted_in_each_way(temporal: str, deployment: str) -> None:
    """By the number of updates, after a removal and an expiry, and because a version asks for it."""
    async with shelf_host(temporal, deployment, _QUICK, erases=False) as host:
        await _fill(host)
        await until(lambda: host.has_compacted(*NAMESPACE))
        before = await _current(host)
        await host.delete([*NAMESPACE], "k1")
        await host.put([*NAMESPACE], "short", {"v": 1}, ttl_ms=100)
        await _until_another(host, before)
        before = await _current(host)
        await host.put([*NAMESPACE], "read", {"v": 1}, ttl_ms=60_000)
        await host.get([*NAMESPACE], "read")
        await shelf_calls(host.client).update(place(deployment), "compact", b"", update_id="compact")
        await _until_another(host, before)
        await host.put([*NAMESPACE], "last", {"v": 1})


async def shelf_that_ends(temporal: str, deployment: str) -> None:
    """Emptied by a removal and by an expiry."""
    name = ShelfName("items", "", NAMESPACE)
    async with shelf_host(temporal, deployment, _QUICK, erases=False) as host:
        both = [Change(ChangeKind.SET, "a", b"{}"), Change(ChangeKind.SET, "b", b"{}", 200)]
        await host.shelves.change(name, both)
        await host.shelves.change(name, [Change(ChangeKind.REMOVE, "a")])
        handle = host.client.get_workflow_handle(place(deployment))

        async def has_ended() -> bool:
            status = (await handle.describe()).status
            return status is not None and status.name == "COMPLETED"

        await until(has_ended)


async def _fill(host: ShelfHost) -> None:
    for number in range(18):
        await host.put([*NAMESPACE], f"k{number % 4}", {"n": number})


async def _current(host: ShelfHost) -> str:
    return (await host.client.get_workflow_handle(place(host.deployment)).describe()).run_id


async def _until_another(host: ShelfHost, before: str) -> None:
    async def is_another() -> bool:
        return await _current(host) != before

    await until(is_another)


SHELF_SCENARIOS: dict[str, Callable[[str, str], Awaitable[None]]] = {
    scenario.__name__: scenario for scenario in (shelf_compacted_in_each_way, shelf_that_ends)
}
