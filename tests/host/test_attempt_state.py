"""What an attempt takes of saves and thread state, refuses, and carries across a compaction; on a real server."""

import asyncio
import itertools
from base64 import b64encode
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from random import randbytes
from typing import Any
from uuid import uuid4

import pytest
from tests.support.agents import Guided
from tests.support.host import Knobs, engine_host, new_thread
from tests.support.scene import make_compaction_due, until_compacted
from tests.support.state_writer import Writer
from tests.support.writing import put

from agentvisor.client import saves
from agentvisor.client.known import Known
from agentvisor.core.errors import Conflict, InvalidInput, NotFound, StateTooLarge, ValueTooLarge
from agentvisor.core.records import Checkpoint as CheckpointRecord
from agentvisor.core.runs import RunStatus
from agentvisor.host.threads_copy import copy_head
from agentvisor.protocol.v1.store_pb2 import ChangeThreadState, DeleteThread, ListCheckpoints, StoreRequest

pytestmark = pytest.mark.flow


@asynccontextmanager
async def agent(temporal: str, knobs: Knobs | None = None, **more: Any) -> AsyncGenerator[Writer]:
    """An agent that lives until the block ends, and its run with it."""
    guided, thread_id = Guided(), new_thread()
    async with engine_host(temporal, f"q-{uuid4().hex[:8]}", knobs=knobs, guests=guided.guests, **more) as host:
        run_id = await host.start_run(thread_id, "agent")
        await asyncio.wait_for(guided.ready.wait(), 30)
        yield Writer(host, thread_id, guided, Known())
        guided.leave.set()
        run = await asyncio.wait_for(host.threads.wait_run(thread_id, run_id), 60)
        assert run.status is RunStatus.SUCCESS


@asynccontextmanager
async def client(temporal: str, **more: Any) -> AsyncGenerator[Writer]:
    """A client outside any run."""
    async with engine_host(temporal, f"q-{uuid4().hex[:8]}", **more) as host:
        yield Writer(host, new_thread(), None, Known())


def logged_bytes(one: Writer) -> int:
    return sum(request.ByteSize() for request in one.sent)


async def test_a_thousand_appends_cost_about_a_thousand_times_the_first(temporal: str) -> None:
    def item(number: int) -> object:
        return {"id": uuid4().hex, "author": "agent", "number": number, "text": "what was said and done " * 20}

    async with agent(temporal) as one:
        costs: list[int] = []
        for number in range(1_000):
            before = logged_bytes(one)
            await one.append("events", item(number))
            costs.append(logged_bytes(one) - before)
        assert max(costs) <= costs[0] + 64
        assert sum(costs[900:]) <= 1.5 * sum(costs[1:101])
        # Whoever begins anew reads all of it, and the end of it by itself.
        fresh = one._replace(known=Known())
        items = await fresh.do(fresh.state.items(fresh.at("events"), 990))
        assert [each["number"] for each in items] == [*range(990, 1_000)]  # type: ignore[index]
        whole = await fresh.get("events")
        assert [each["number"] for each in whole] == [*range(1_000)]  # type: ignore[union-attr]
        entry = (await one.thread()).store.state.get("", "events")
        assert entry is not None
        assert len(entry.items) == 1_000


async def test_saves_and_state_cross_a_compaction_under_a_live_agent(temporal: str) -> None:
    async with agent(temporal, Knobs(compact_events=25)) as one:
        first, revision = await one.save("plan", {"n": 1}), await one.set("k", [1])
        await make_compaction_due(one.host.threads, one.thread_id)
        await until_compacted(one.host.threads, one.thread_id)
        assert await one.save("plan", {"n": 2}) > first
        assert await one.append("k", 2) > revision
        with pytest.raises(Conflict):
            await one.set("k", "late", revision)
        assert (await one.load(first), await one.load(), await one.get("k")) == ({"n": 1}, {"n": 2}, [1, 2])
        assert (await one.thread()).compactions >= 1


async def test_a_client_outside_reads_what_it_and_others_wrote_before_and_after_its_session(temporal: str) -> None:
    async with client(temporal, knobs=Knobs(session_idle=0.3)) as one:
        assert (await one.get("k"), await one.load(), await one.do(one.state.keys(one.thread_id, "", ""))) == (
            None, None, [],
        )  # fmt: skip
        made = await one.save("plan", {"a": 1})
        await one.set("k", {"b": 2})
        await one.append("list", 1)
        assert not (await one.call(StoreRequest(list=ListCheckpoints()))).listed.checkpoints
        live = one.host.live(one.thread_id)
        await asyncio.wait_for(live.journal.until_fenced(), 30)
        fresh = one._replace(known=Known())
        assert not (await fresh.call(StoreRequest(list=ListCheckpoints()))).listed.checkpoints
        everywhere = await one.host.sessions.call(None, StoreRequest(list=ListCheckpoints(all_threads=True)))
        assert one.thread_id not in {each.thread_id for each in everywhere.listed.checkpoints}
        assert (await fresh.load(made), await fresh.get("k"), await fresh.get("list")) == ({"a": 1}, {"b": 2}, [1])
        assert await fresh.do(fresh.state.keys(fresh.thread_id, "", "k")) == ["k"]
        assert await fresh.do(fresh.state.delete(fresh.at("k"), None))
        assert [one.key for one in await fresh.do(saves.listed(fresh.thread_id, None, None))] == ["plan"]


async def test_a_change_that_comes_twice_counts_once(temporal: str) -> None:
    async with client(temporal) as one:
        await one.append("list", 1)
        again = one.sent[-1]
        replies = [await one.call(again) for _ in range(3)]
        assert len({reply.thread_state_changed.revision for reply in replies}) == 1
        first = await one.set("k", 1, 0)
        assert (await one.call(one.sent[-1])).thread_state_changed.revision == first  # and is no conflict
        await one.call(StoreRequest(delete_thread=DeleteThread()))
        assert await one.get("list") is None


async def test_another_threads_save_is_not_found_and_an_unknown_one_says_so(temporal: str) -> None:
    async with client(temporal) as one:
        made = await one.save("plan", 1)
        other = one._replace(thread_id=new_thread())
        await other.save("plan", 2)
        with pytest.raises(NotFound, match="may be another thread's"):
            await other.load(made)
        assert await other.load() == 2


async def test_a_guest_cannot_put_a_save_out_of_order_or_under_a_key_that_is_none(temporal: str) -> None:
    async with agent(temporal) as one:
        for namespace, found in (("|save|k", "ids of saves"), ("|save|", "is empty"), ("|save|" + "k" * 257, "256")):
            request = put(0, namespace=namespace)
            with pytest.raises(InvalidInput, match="no id of a save" if found == "ids of saves" else found):
                await one.call(request)
        for change in (ChangeThreadState(key=""), ChangeThreadState(key="k" * 257), ChangeThreadState(scope="s" * 257)):
            change.delete = True
            with pytest.raises(InvalidInput):
                await one.call(StoreRequest(change_thread_state=change))
        assert not [*(await one.host.threads.read(one.thread_id)).store.all_checkpoints()]


async def test_what_is_too_large_is_refused_by_its_key_and_nothing_is_stored(temporal: str) -> None:
    large = b64encode(randbytes(2_400_000)).decode()
    async with agent(temporal, Knobs(max_state=400_000)) as one:
        for work in (one.set, one.append, one.save):
            with pytest.raises(ValueTooLarge, match=r"'big key'.*storage\.max_inline_value"):
                await work("big key", large)
        part = large[:200_000]
        await one.set("k", part)
        await one.save("s", large[200_000:400_000])
        for work in (one.set, one.append):
            with pytest.raises(StateTooLarge, match=r"storage\.max_state.*thread state 'more' adds"):
                await work("more", large[400_000:600_000])
        with pytest.raises(StateTooLarge, match=r"storage\.max_state.*'s' \("):
            await one.save("s", large[:600_000])
        assert await one.do(one.state.keys("", "", "")) == ["k"]
        # What it is full of can be replaced by something else of its size, and deleted.
        await one.set("k", large[600_000:800_000])
        assert await one.do(one.state.delete(one.at("k"), None))
        await one.set("more", part)


async def test_a_value_that_was_deleted_is_sent_again(temporal: str) -> None:
    value = "".join(uuid4().hex for _ in range(100))
    async with agent(temporal) as one:
        for _ in range(3):
            await one.set("k", value)
            await one.append("list", value)
            assert (await one.get("k"), await one.get("list")) == (value, [value])
            assert await one.do(one.state.delete(one.at("k"), None))
            assert await one.do(one.state.delete(one.at("list"), None))


async def test_changes_of_an_object_side_by_side_are_all_there(temporal: str) -> None:
    async with agent(temporal) as one:
        updates = [one.do(one.state.update(one.at("o"), {f"k{n}": n}, None)) for n in range(8)]
        await asyncio.gather(*updates)
        assert await one.get("o") == {f"k{n}": n for n in range(8)}


async def test_a_full_thread_counts_what_was_deleted_as_free(temporal: str) -> None:
    async with agent(temporal, Knobs(max_state=200_000)) as one:
        for number in range(20):
            await one.set("k", "".join(uuid4().hex for _ in range(1_500)))
            await one.set(f"k{number}", number)
            assert await one.do(one.state.delete(one.at("k"), None))


async def test_a_copy_has_no_thread_state_and_the_latest_save_where_no_graph_ran(temporal: str) -> None:
    async with client(temporal) as one:
        await one.save("plan", {"n": 1})
        await one.save("plan", {"n": 2})
        await one.set("k", 1)
        copy = await copy_head(one.host.threads, one.thread_id)
        of_copy = one._replace(thread_id=copy.thread_id, known=Known())
        assert (await of_copy.load(), await of_copy.get("k")) == ({"n": 2}, None)
        assert len(await of_copy.do(saves.listed(copy.thread_id, None, None))) == 1


async def test_saves_made_side_by_side_are_all_there_in_the_order_of_their_ids(temporal: str) -> None:
    async with agent(temporal) as one:
        made = await asyncio.gather(*(one.save(f"k{number % 3}", number) for number in range(30)))
        assert len(set(made)) == 30
        found = await one.do(saves.listed("", None, None))
        assert [each.id for each in found] == sorted(made, reverse=True)
        assert all(later.id > earlier.id for later, earlier in itertools.pairwise(found))
        records = [*(await one.host.threads.read(one.thread_id, saves=True)).store.all_checkpoints()]
        assert all(isinstance(record, CheckpointRecord) and record.run_id == "r" for record in records)


async def test_progress_is_what_a_save_or_a_change_of_state_is(temporal: str) -> None:
    for work in ("save", "append"):
        async with agent(temporal) as one:
            await (one.save("k", 1) if work == "save" else one.append("k", 1))
            run = [*(await one.host.threads.get(one.thread_id)).runs.values()][-1]
            assert run.attempts[-1].progressed, work
