"""Threads searched and counted."""

from tests.oracle.scenarios.scenario import scenario
from tests.oracle.speaking import Conversation


async def _three(to: Conversation) -> list[str]:
    """Three threads: idle with values, interrupted, and one that nothing ran on."""
    threads, runs, mark = to.client.threads, to.client.runs, {"mark": to.mark}
    first = await to.thread(
        "first", metadata={**mark, "n": 1, "on": True, "f": 1.5, "q'": 'it"s', "deep": {"a": 1, "b": 2}}
    )
    second = await to.thread("second", metadata={**mark, "n": 2})
    third = await to.thread("third", metadata={**mark, "n": 3})
    await runs.wait(first, "steps", input={"count": 1})
    await runs.wait(second, "asks", input={"count": 5})
    await to.settled(lambda: _all(to, {first, second, third}))
    await to.settled(lambda: threads.search(metadata=mark, status="interrupted"))
    await to.settled(lambda: threads.search(metadata={**mark, "graph_id": "asks"}))
    return [first, second, third]


async def _all(to: Conversation, named: set[str]) -> bool:
    return {one["thread_id"] for one in await to.client.threads.search(metadata={"mark": to.mark})} == named


@scenario
async def search_filters(to: Conversation) -> None:
    threads, mark = to.client.threads, {"mark": to.mark}
    first, second, third = await _three(to)
    ids = ["thread_id"]
    await to.say("by mark", threads.search(metadata=mark, sort_by="created_at", sort_order="asc"))
    await to.say("by number", threads.search(metadata={**mark, "n": 1}, select=ids))
    await to.say("by boolean", threads.search(metadata={**mark, "on": True}, select=ids))
    await to.say("by float", threads.search(metadata={**mark, "f": 1.5}, select=ids))
    await to.say("by text of a number", threads.search(metadata={**mark, "n": "1"}, select=ids))
    await to.say("by a part of an object", threads.search(metadata={**mark, "deep": {"a": 1}}, select=ids))
    await to.say("by null", threads.search(metadata={**mark, "n": None}, select=ids))
    await to.say("by graph", threads.search(metadata={**mark, "graph_id": "steps"}, select=ids))
    for status in ("idle", "busy", "interrupted", "error"):
        asked = {"metadata": mark, "status": status}
        await to.say(f"status {status}", threads.search(**asked, select=ids, sort_by="created_at"))
        await to.say(f"count {status}", threads.count(**asked))
    await to.say("by ids", threads.search(ids=[second, third], select=ids, sort_by="created_at"))
    await to.say("by ids and mark", threads.search(ids=[second, first], metadata={**mark, "n": 1}, select=ids))
    await to.say("by values and number", threads.search(metadata={**mark, "n": 1}, values={"count": 2}, select=ids))
    await to.say(
        "by other values and number", threads.search(metadata={**mark, "n": 2}, values={"count": 2}, select=ids)
    )
    await to.say("by a quoted text", threads.search(metadata={**mark, "q'": 'it"s'}, select=ids))
    await to.say("by values", threads.search(metadata=mark, values={"count": 2}, select=ids))
    await to.say("by values of a question", threads.search(metadata=mark, values={"count": 6}, select=ids))
    await to.say("by other values", threads.search(metadata=mark, values={"count": 3}, select=ids))
    await to.say("by a value that nobody has", threads.search(metadata=mark, values={"nope": 1}, select=ids))
    await to.say("count by values", threads.count(metadata=mark, values={"count": 2}))
    await to.say("count", threads.count(metadata=mark))
    await to.say("count of nothing", threads.count(metadata={"mark": f"no {to.mark}"}))


@scenario
async def search_pages(to: Conversation) -> None:
    threads, mark = to.client.threads, {"mark": to.mark}
    await _three(to)
    pages = ("x-pagination-total", "x-pagination-next")
    for limit, offset in ((2, 0), (2, 2), (3, 0), (1, 5)):
        body = {"metadata": mark, "limit": limit, "offset": offset, "select": ["thread_id"], "sort_by": "created_at"}
        await to.request(f"limit {limit} offset {offset}", "POST", "/threads/search", headers=pages, json=body)
    for key in ("created_at", "updated_at", "thread_id", "status", "state_updated_at"):
        for order in ("asc", "desc"):
            found = await threads.search(metadata=mark, sort_by=key, sort_order=order)  # type: ignore[arg-type]
            sorted_so = sorted(found, key=lambda one: one[key] or "", reverse=order == "desc")  # type: ignore[literal-required]
            in_order = [one[key] for one in found] == [one[key] for one in sorted_so]  # type: ignore[literal-required]
            to.note(f"sorted by {key} {order}", [len(found), in_order])
    newest = await threads.search(metadata=mark, select=["thread_id", "metadata"])
    to.note("unsorted", [one["metadata"]["n"] for one in newest])


@scenario
async def search_select_and_extract(to: Conversation) -> None:
    threads, mark = to.client.threads, {"mark": to.mark}
    first, second, _ = await _three(to)
    await to.say("select", threads.search(ids=[first], select=["thread_id", "status", "metadata"]))
    await to.say("select values", threads.search(ids=[first], select=["values"]))
    await to.say("select interrupts", threads.search(ids=[second], select=["interrupts"]))
    paths = {
        "count": "values.count", "last": "values.log[-1]", "none": "values.nope.deeper", "first": "values.log[0]",
        "far": "values.log[9]", "n": "metadata.n", "deep": "metadata.deep.a",
    }  # fmt: skip
    await to.say("extract", threads.search(ids=[first], select=["thread_id"], extract=paths))
    await to.say(
        "extract all",
        threads.search(metadata=mark, select=["thread_id"], extract={"n": "metadata.n"}, sort_by="created_at"),
    )
    await to.say("extract a list", threads.search(ids=[first], select=["thread_id"], extract={"log": "values.log"}))
    await to.say("extract without select", threads.search(ids=[first], extract={"n": "metadata.n"}))
    await to.say(
        "extract a question", threads.search(ids=[second], select=["thread_id"], extract={"asked": "interrupts"})
    )


@scenario
async def search_refuses(to: Conversation) -> None:
    bad: dict[str, object] = {
        "unknown status": {"status": "nope"},
        "unknown sort": {"sort_by": "nope"},
        "unknown order": {"sort_by": "created_at", "sort_order": "up"},
        "unknown select": {"select": ["nope"]},
        "limit 0": {"limit": 0},
        "limit 1001": {"limit": 1001},
        "negative offset": {"offset": -1},
        "ids that are none": {"ids": ["not-a-uuid"]},
        "metadata that is none": {"metadata": []},
        "values that are none": {"values": []},
        "extract of an unknown root": {"extract": {"a": "nope.b"}},
        "extract of no path": {"extract": {"a": ""}},
        "extract of a bad path": {"extract": {"a": "values.log[x]"}},
        "extract of eleven": {"extract": {f"a{one}": "values.a" for one in range(11)}},
        "extract of a bad name": {"extract": {"a'b": "values.a"}},
        "unknown field": {"nope": 1},
        "a list": [],
    }
    for what, body in bad.items():
        await to.request(what, "POST", "/threads/search", json=body, body=False)
    for what in ("unknown status", "metadata that is none", "unknown field"):
        await to.request(f"count: {what}", "POST", "/threads/count", json=bad[what], body=False)
