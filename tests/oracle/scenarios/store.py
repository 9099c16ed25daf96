"""Items of the store."""

from tests.oracle.scenarios.scenario import scenario
from tests.oracle.speaking import Conversation


@scenario
async def store_items(to: Conversation) -> None:
    store, space = to.client.store, [to.mark, "things"]
    await to.say("put", store.put_item(space, key="a", value={"n": 1, "tags": ["x"]}))
    await to.say("get", store.get_item(space, key="a"))
    await to.say("put again", store.put_item(space, key="a", value={"n": 2}))
    await to.say("get again", store.get_item(space, key="a"))
    for number, key in enumerate("bcd"):
        await store.put_item(space, key=key, value={"n": number, "kind": "letter"})
    await store.put_item([to.mark, "others"], key="z", value={"n": 9})
    await to.say("search", store.search_items(space))
    await to.say("by value", store.search_items(space, filter={"kind": "letter", "n": 1}))
    await to.say("by prefix", store.search_items([to.mark], limit=10))
    await to.say("page", store.search_items(space, limit=2, offset=1))
    await to.say("namespaces", store.list_namespaces(prefix=[to.mark]))
    await to.say("namespaces by suffix", store.list_namespaces(prefix=[to.mark], suffix=["others"]))
    await to.say("namespaces to a depth", store.list_namespaces(prefix=[to.mark], max_depth=1))
    await to.say("delete", store.delete_item(space, key="a"))
    await to.say("get deleted", store.get_item(space, key="a"))
    await to.say("delete again", store.delete_item(space, key="a"))
    await to.say("get from nowhere", store.get_item([to.mark, "nope"], key="a"))


@scenario
async def store_refuses(to: Conversation) -> None:
    store = to.client.store
    await to.say("empty namespace", store.put_item([], key="a", value={}))
    await to.say("empty label", store.put_item([to.mark, ""], key="a", value={}))
    await to.say("a dot", store.put_item([f"{to.mark}.b"], key="a", value={}))
    bad = {
        "value that is none": {"namespace": [to.mark], "key": "a", "value": 1},
        "no key": {"namespace": [to.mark], "value": {}},
        "reserved": {"namespace": ["langgraph", to.mark], "key": "a", "value": {}},
    }
    for what, body in bad.items():
        await to.request(what, "PUT", "/store/items", json=body, body=False)
