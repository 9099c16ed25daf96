"""What was acknowledged stays, whatever is killed, compacted or erased meanwhile; what was deleted is gone."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from uuid import uuid4

import pytest
from tests.flow.test_delete_canary import DELETE, in_temporal
from tests.support.proxy import LIST, proxy_to
from tests.support.shelving import ShelfHost, new_deployment, shelf_host
from tests.support.temporal import TemporalProcess
from tests.support.waiting import until

from agentvisor.core.errors import AgentVisorError, Conflict
from agentvisor.core.shelf import Change, ChangeKind, ShelfName, ShelfSettings

pytestmark = pytest.mark.flow

SMALL = ShelfSettings(erase_after_ms=200, linger_ms=200, compact_updates=10)
HASTY = ShelfSettings(erase_after_ms=1, linger_ms=1)


async def gathered(*work: Awaitable[None]) -> None:
    await asyncio.gather(*work)


async def test_two_hosts_write_through_many_compactions_and_nothing_is_lost(temporal: str) -> None:
    deployment = new_deployment()
    async with shelf_host(temporal, deployment, SMALL) as one, shelf_host(temporal, deployment, SMALL) as other:

        async def write(host: ShelfHost, name: str, reader: ShelfHost) -> None:
            for number in range(25):
                await host.put(["all"], f"{name}{number}", {"n": number})
                assert await reader.get(["all"], f"{name}{number}") == {"n": number}

        await gathered(write(one, "a", other), write(one, "b", other), write(other, "c", one))
        found = await other.search(["all"])
        assert sorted(found) == sorted(f"all/{name}{number}" for name in "abc" for number in range(25))


async def test_a_new_namespace_is_found_at_once_by_another_host_whose_list_lags_behind(temporal: str) -> None:
    deployment = new_deployment()
    async with proxy_to(temporal) as proxy, shelf_host(temporal, deployment) as one:
        lagging = proxy.stale(LIST)
        async with shelf_host(proxy.address, deployment) as other:
            assert await other.search([]) == {}
            assert await other.search(["users"]) == {}
            for number in range(3):
                await one.put(["users", str(number)], "k", {"n": number})
                assert sorted(await other.search(["users"])) == [f"users/{each}/k" for each in range(number + 1)]
                assert await other.namespaces([]) == [["users", str(each)] for each in range(number + 1)]
            assert lagging.caught > 6


async def test_owners_do_not_see_each_others_items(temporal: str) -> None:
    async with shelf_host(temporal, new_deployment()) as host:
        await host.put(["same", "place"], "k", {"of": "a"}, owner="a")
        await host.put(["same", "place"], "k", {"of": "b"}, owner="b")
        await host.put(["same"], "only b's", {}, owner="b")
        assert await host.get(["same", "place"], "k", owner="a") == {"of": "a"}
        assert await host.search([], owner="a") == {"same/place/k": {"of": "a"}}
        assert await host.namespaces([], owner="a") == [["same", "place"]]
        assert await host.search([]) == {}
        await host.delete(["same", "place"], "k", owner="a")
        assert await host.get(["same", "place"], "k", owner="b") == {"of": "b"}


async def test_two_deployments_on_one_temporal_share_nothing(temporal: str) -> None:
    async with shelf_host(temporal, new_deployment()) as one, shelf_host(temporal, new_deployment()) as other:
        await one.put(["same"], "k", {"of": "one"})
        assert await other.search([]) == {}
        assert await other.get(["same"], "k") is None


async def test_a_namespace_comes_and_goes(temporal: str) -> None:
    deployment = new_deployment()
    async with shelf_host(temporal, deployment, HASTY) as one, shelf_host(temporal, deployment, HASTY) as other:
        for number in range(8):
            await one.put(["n"], "k", {"n": number})
            assert await other.get(["n"], "k") == {"n": number}
            assert await other.namespaces(["n"]) == [["n"]]
            await other.delete(["n"], "k")
            assert await one.get(["n"], "k") is None
            assert await one.namespaces(["n"]) == []


async def test_a_put_into_a_namespace_that_is_being_erased_is_not_erased_with_it(temporal: str) -> None:
    async with proxy_to(temporal) as proxy, shelf_host(proxy.address, new_deployment(), HASTY) as host:
        await host.put(["n"], "k", {"n": 1})
        erased = proxy.hold(DELETE, times=1_000)
        await host.delete(["n"], "k")
        await erased.until_caught()
        putting = asyncio.create_task(host.put(["n"], "k", {"n": 2}))
        assert await host.get(["n"], "k") is None
        assert not (await asyncio.wait([putting], timeout=0.5))[0]  # a change that is acknowledged now would be erased
        erased.lift()
        await asyncio.wait_for(putting, 30)
        await proxy.deliver_held()  # what came to the server late
        assert await host.get(["n"], "k") == {"n": 2}
        assert await host.search([]) == {"n/k": {"n": 2}}


async def test_readers_find_what_was_there_before_through_every_compaction(temporal: str) -> None:
    deployment, often = new_deployment(), replace(SMALL, compact_updates=1)
    async with shelf_host(temporal, deployment, often) as one, shelf_host(temporal, deployment, often) as other:
        await one.put(["n"], "first", {"n": 0})
        written = asyncio.Event()

        async def read(host: ShelfHost) -> None:
            while not written.is_set():
                assert await host.get(["n"], "first") == {"n": 0}

        async def write() -> None:
            try:
                for number in range(80):
                    await one.put(["n"], f"k{number % 3}", {"n": number})
            finally:
                written.set()

        await gathered(write(), *(read(host) for host in (one, other) for _ in range(3)))
        assert await one.has_compacted("n")


async def test_of_two_that_change_the_same_revision_one_is_refused(temporal: str) -> None:
    deployment, name = new_deployment(), ShelfName("counted", "", ("counter",))
    async with shelf_host(temporal, deployment, SMALL) as one, shelf_host(temporal, deployment, SMALL) as other:

        async def count(host: ShelfHost) -> None:
            done = 0
            while done < 20:
                found = (await host.shelves.read(name, keys=["count"])).items
                number, revision = (int(found[0].value), found[0].revision) if found else (0, 0)
                more = Change(ChangeKind.SET, "count", str(number + 1).encode(), expected_revision=revision)
                with suppress(Conflict):
                    await host.shelves.change(name, [more])
                    done += 1

        await gathered(count(one), count(other))
        assert (await one.shelves.read(name, keys=["count"])).items[0].value == b"40"


async def test_all_of_a_change_is_refused_where_a_part_of_it_is(temporal: str) -> None:
    name = ShelfName("parts", "", ("one",))
    async with shelf_host(temporal, new_deployment()) as host:
        await host.shelves.change(name, [Change(ChangeKind.SET, "there", b"1", expected_revision=0)])
        both = [
            Change(ChangeKind.SET, "new", b"2", expected_revision=0),
            Change(ChangeKind.SET, "there", b"2", expected_revision=0),
        ]
        with pytest.raises(Conflict, match="revision 1"):
            await host.shelves.change(name, both)
        assert [(one.key, one.value) for one in (await host.shelves.read(name)).items] == [("there", b"1")]


async def test_what_was_acknowledged_outlives_a_killed_temporal(temporal_process: TemporalProcess) -> None:
    deployment = new_deployment()
    acknowledged: dict[str, object] = {}
    async with shelf_host(temporal_process.address, deployment, SMALL) as host:
        stopped = asyncio.Event()

        async def write(name: str) -> None:
            number = 0
            while not stopped.is_set():
                namespace = [name, str(number // 3)]  # every third put begins a namespace
                with suppress(AgentVisorError):
                    await host.put(namespace, f"k{number}", {"n": number})
                    acknowledged["/".join([*namespace, f"k{number}"])] = {"n": number}
                number += 1

        async with asyncio.TaskGroup() as writers:
            for name in ("a", "b", "c"):
                writers.create_task(write(name))
            for more in (20, 40):
                await until(lambda more=more: len(acknowledged) >= more)
                temporal_process.kill()
                await temporal_process.start()
            await until(lambda: len(acknowledged) >= 60)
            stopped.set()
        found = await host.search([])
        assert {key: found.get(key) for key in acknowledged} == acknowledged


async def test_an_item_that_was_deleted_leaves_temporal_and_its_neighbours_stay(
    temporal_process: TemporalProcess,
) -> None:
    canary = uuid4().hex
    async with shelf_host(temporal_process.address, new_deployment(), SMALL) as host:
        await host.put(["n"], "stays", {"v": 1})
        await host.put(["n"], canary, {"secret": canary})
        await host.put(["n"], "expires", {"secret": canary}, ttl_ms=100)
        await host.put(["n"], "stays", {"v": 2})
        assert in_temporal(temporal_process, canary)
        await host.delete(["n"], canary)
        await until(lambda: not in_temporal(temporal_process, canary), seconds=30)
        assert await host.search([]) == {"n/stays": {"v": 2}}


async def test_after_everything_was_deleted_nothing_of_it_is_in_temporal(temporal_process: TemporalProcess) -> None:
    canary, labels = uuid4().hex, uuid4().hex
    async with shelf_host(temporal_process.address, new_deployment(), SMALL) as host:
        for number in range(26):  # through compactions
            await host.put([labels, str(number % 2)], f"{canary}{number % 5}", {"secret": canary, "n": number})
        await host.put([labels, "expires"], "k", {"secret": canary}, ttl_ms=300)
        for key, namespace in [(one.rpartition("/")[2], one.split("/")[:-1]) for one in await host.search([labels])]:
            if namespace != [labels, "expires"]:
                await host.delete(namespace, key)
        for gone in (canary, labels):
            await until(lambda gone=gone: not in_temporal(temporal_process, gone), seconds=60)
        assert await host.search([]) == {}
        await host.put([labels, "0"], "k", {"again": True})
        assert await host.search([]) == {f"{labels}/0/k": {"again": True}}


async def test_a_namespace_continues_as_new_and_keeps_where_it_is_found(temporal: str) -> None:
    deployment = new_deployment()
    async with shelf_host(temporal, deployment, SMALL) as host:
        for number in range(35):
            await host.put(["long", "lived"], f"k{number % 7}", {"n": number})
        assert await host.has_compacted("long", "lived")
        # Far from the news, which lists only what is new: only Temporal's own list has it after a compaction.
        await host.shelves.forget_news(ShelfName("items", "", ("long", "lived")))
        await eventually(lambda: host.namespaces(["long"]), [["long", "lived"]])
        assert min((await host.search(["long"])).values(), key=str) == {"n": 28}


async def eventually(read: Callable[[], Awaitable[object]], wanted: object) -> None:
    async def agrees() -> bool:
        return await read() == wanted

    await until(agrees, seconds=30)


async def test_a_time_to_live_goes_on_while_no_host_is_there(temporal: str) -> None:
    deployment = new_deployment()
    async with shelf_host(temporal, deployment, SMALL) as host:
        await host.put(["n"], "short", {}, ttl_ms=300)
        await host.put(["n"], "long", {}, ttl_ms=600_000)
    async with shelf_host(temporal, deployment, SMALL) as host:
        await eventually(lambda: host.search([]), {"n/long": {}})
