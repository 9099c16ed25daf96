"""Methods of crons; that they run by the clock is tested with the clock."""

from typing import Any

from tests.host.http.sdk.table import Client, of

NEW_YEAR = "0 0 1 1 *"


async def _cron(client: Client, thread: str) -> str:
    made: Any = await client.crons.create_for_thread(thread, "waiting", schedule=NEW_YEAR, input={"count": 1})
    return made["cron_id"]


async def _crons(client: Client, thread: str) -> list[Any]:
    return await client.crons.search(thread_id=thread)


@of("crons.create_for_thread")
async def create_for_thread(client: Client) -> None:
    thread = await client.thread()
    cron = await _cron(client, thread)
    assert [(one["cron_id"], one["schedule"]) for one in await _crons(client, thread)] == [(cron, NEW_YEAR)]


@of("crons.create")
async def create(client: Client) -> None:
    made: Any = await client.crons.create("waiting", schedule=NEW_YEAR, input={"count": 1}, metadata=client.mark)
    found = await client.crons.search(metadata=client.mark)
    assert [one["cron_id"] for one in found] == [made["cron_id"]]
    await client.crons.delete(made["cron_id"])


@of("crons.update")
async def update(client: Client) -> None:
    thread = await client.thread()
    await client.crons.update(await _cron(client, thread), schedule="0 0 2 1 *", enabled=False)
    [found] = await _crons(client, thread)
    assert (found["schedule"], found["enabled"]) == ("0 0 2 1 *", False)


@of("crons.delete")
async def delete(client: Client) -> None:
    thread = await client.thread()
    await client.crons.delete(await _cron(client, thread))
    assert await _crons(client, thread) == []


@of("crons.search")
async def search(client: Client) -> None:
    thread, other = await client.thread(), await client.thread()
    cron, _ = await _cron(client, thread), await _cron(client, other)
    found = await client.crons.search(thread_id=thread, assistant_id=await client.assistant("waiting"))
    assert [one["cron_id"] for one in found] == [cron]


@of("crons.count")
async def count(client: Client) -> None:
    thread = await client.thread()
    for _ in range(2):
        await _cron(client, thread)
    assert await client.crons.count(thread_id=thread) == 2
