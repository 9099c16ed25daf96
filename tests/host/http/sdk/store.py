"""Methods of the store."""

from tests.host.http.sdk.table import Client, of


def _space(client: Client, *more: str) -> list[str]:
    return [client.mark["mark"], *more]


@of("store.put_item")
async def put_item(client: Client) -> None:
    await client.store.put_item(_space(client), key="a", value={"n": 1})
    await client.store.put_item(_space(client), key="a", value={"n": 2})
    assert (await client.store.get_item(_space(client), key="a"))["value"] == {"n": 2}


@of("store.get_item")
async def get_item(client: Client) -> None:
    await client.store.put_item(_space(client, "x"), key="a", value={"deep": {"list": [1, None, "é"]}})
    found = await client.store.get_item(_space(client, "x"), key="a")
    assert (found["namespace"], found["key"]) == (_space(client, "x"), "a")
    assert found["value"] == {"deep": {"list": [1, None, "é"]}}


@of("store.delete_item")
async def delete_item(client: Client) -> None:
    await client.store.put_item(_space(client), key="a", value={})
    await client.store.delete_item(_space(client), key="a")
    assert await client.store.get_item(_space(client), key="a") is None


@of("store.search_items")
async def search_items(client: Client) -> None:
    for number, key in enumerate("abc"):
        await client.store.put_item(_space(client, "x"), key=key, value={"n": number, "even": number % 2 == 0})
    await client.store.put_item(_space(client, "y"), key="d", value={"n": 3, "even": False})
    found = await client.store.search_items(_space(client, "x"), filter={"even": True})
    assert {one["key"] for one in found["items"]} == {"a", "c"}
    assert len((await client.store.search_items(_space(client)))["items"]) == 4


@of("store.list_namespaces")
async def list_namespaces(client: Client) -> None:
    for name in "xy":
        await client.store.put_item(_space(client, name), key="a", value={})
    found = await client.store.list_namespaces(prefix=_space(client))
    assert sorted(found["namespaces"]) == [_space(client, "x"), _space(client, "y")]
