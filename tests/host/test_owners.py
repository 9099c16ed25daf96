"""The one door to threads, as an owner has it: another owner's thread does not exist, whatever is asked of it."""

import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable
from uuid import uuid4

import pytest
import pytest_asyncio
from temporalio import workflow
from tests.host.test_threads import completes, spec
from tests.support.agents import ScriptedAgent
from tests.support.host import EngineHost, engine_host, new_thread
from tests.support.waiting import until
from tests.support.writing import put

from agentvisor.core.errors import Conflict, NotFound, PermissionRefused
from agentvisor.core.ids import BlobKey, RunId, ThreadId
from agentvisor.core.owners import EVERYONE, Owner
from agentvisor.core.thread import Thread
from agentvisor.core.thread_status import ThreadStatus
from agentvisor.host.threads import Threads
from agentvisor.host.threads_copy import copy_head, read_whole
from agentvisor.host.workflow.thread import ThreadWorkflow
from agentvisor.protocol.v1 import store_pb2
from agentvisor.protocol.v1.guest_pb2 import Outcome

pytestmark = [pytest.mark.flow, pytest.mark.asyncio(loop_scope="module")]

ANNA, BERT = Owner("anna"), Owner("bert' OR '1' = '1")
RUN = RunId("r-of-anna")
KEY = BlobKey(put(1).put.blobs[0].key)
"""Of a value that she has stored."""

Ask = Callable[[Threads, ThreadId], Awaitable[object]]

ABOUT_A_THREAD: dict[str, Ask] = {
    "get": lambda door, named: door.get(named),
    "whole": lambda door, named: door.whole(named),
    "read": lambda door, named: door.read(named),
    "state": lambda door, named: door.state(named),
    "page": lambda door, named: door.page(named, store_pb2.ListCheckpoints(), 10),
    "blobs": lambda door, named: door.blobs(named, [KEY]),
    "stored_blobs": lambda door, named: door.stored_blobs(named, [KEY]),
    "part": lambda door, named: door.part(named, KEY, 0, 10),
    "storage": lambda door, named: door.storage(named),
    "update_metadata": lambda door, named: door.update_metadata(named, {"mine": True}),
    "set_lifetime": lambda door, named: door.set_lifetime(named, None, {"mine": True}),
    "delete": lambda door, named: door.delete(named),
    "start_run": lambda door, named: door.start_run(named, spec(), create=False, thread_metadata={}),
    "cancel_run": lambda door, named: door.cancel_run(named, RUN),
    "close_interrupts": lambda door, named: door.close_interrupts(named),
    "runs": lambda door, named: door.runs(named),
    "get_run": lambda door, named: door.get_run(named, RUN),
    "until_gone": lambda door, named: door.until_gone(named, RUN),
    "until_told": lambda door, named: door.until_told(named, RUN),
    "wait_run": lambda door, named: door.wait_run(named, RUN),
}
"""Every method of the door that is about a thread which exists: one that is missing here fails a test below."""

OTHERS = {
    "of": "narrows the door",
    "create": "test_an_id_that_another_owner_has_is_taken",
    "create_from": "test_a_copy_belongs_to_whom_the_thread_belonged",
    "create_imported": "test_who_imports_a_thread_owns_it (tests/host/http/test_flow_export.py)",
    "search": "test_a_search_finds_ones_own",
    "busy": "a search",
    "interrupted": "test_what_waits_is_ones_own",
    "count": "test_what_waits_is_ones_own",
    "shelf_of": "of values that were read already",
    "version": "a number, and a read of the thread follows it (thread_watch.py): test_flow_owners.py asks its routes",
    "began_ms": "a time, of a thread that a search of one's own has found",
    "erase_expired": "asked by the thread's own workflow, with its owner",
    "attempt_ended": "a hint of this host's own attempts",
}


async def test_every_method_of_the_door_has_its_row() -> None:
    methods = {name for name, _ in inspect.getmembers(Threads, inspect.isfunction) if not name.startswith("_")}
    assert methods == ABOUT_A_THREAD.keys() | OTHERS.keys()


async def contents(engine: EngineHost, thread_id: ThreadId) -> object:
    """All that a caller could have changed."""
    thread = await read_whole(engine.threads, thread_id)
    runs = {run_id: (run.status, run.cancel_requested) for run_id, run in thread.runs.items() if run.is_agent}
    return thread.metadata, runs, thread.store.checkpoints, thread.store.state


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def engine(temporal: str) -> AsyncGenerator[EngineHost]:
    async with engine_host(temporal, f"q-{uuid4().hex[:8]}") as host:
        yield host


@pytest_asyncio.fixture(loop_scope="module")
async def annas(engine: EngineHost) -> ThreadId:
    """A thread of hers with a checkpoint and a finished run."""
    thread_id = new_thread()
    engine.guests.scripts["agent"] = completes
    door = engine.threads.of(ANNA)
    await door.create(thread_id, {"team": "a"}, exist_ok=False)
    await engine.sessions.of(ANNA).call(thread_id, put(1))
    await door.start_run(thread_id, spec(RUN), create=False, thread_metadata={})
    await door.wait_run(thread_id, RUN)
    return thread_id


@pytest.mark.parametrize("name", ABOUT_A_THREAD)
async def test_anothers_thread_does_not_exist(engine: EngineHost, annas: ThreadId, name: str) -> None:
    missing = new_thread()
    with pytest.raises(NotFound) as there_is_none:
        await ABOUT_A_THREAD[name](engine.threads.of(BERT), missing)
    before = await contents(engine, annas)

    with pytest.raises(NotFound) as not_his:
        await ABOUT_A_THREAD[name](engine.threads.of(BERT), annas)

    assert not_his.value.message == there_is_none.value.message.replace(missing, annas), "told apart"
    assert await contents(engine, annas) == before, "it had an effect"


@pytest.mark.parametrize("name", ABOUT_A_THREAD)
async def test_a_thread_of_nobody_is_the_operators(engine: EngineHost, name: str) -> None:
    thread_id = new_thread()
    await engine.threads.create(thread_id, {}, exist_ok=False)
    with pytest.raises(NotFound, match="does not exist"):
        await ABOUT_A_THREAD[name](engine.threads.of(BERT), thread_id)
    assert (await engine.threads.get(thread_id)).owner == EVERYONE


async def test_the_operator_reads_and_changes_what_all_own(engine: EngineHost, annas: ThreadId) -> None:
    await engine.threads.update_metadata(annas, {"seen": True})
    thread = await engine.threads.of(ANNA).get(annas)
    assert (thread.owner, b"seen" in thread.metadata) == (ANNA, True)
    await engine.threads.delete(annas)
    with pytest.raises(NotFound):
        await engine.threads.of(ANNA).get(annas)


async def test_an_id_that_another_owner_has_is_taken(engine: EngineHost, annas: ThreadId) -> None:
    for exist_ok in (False, True):
        with pytest.raises(Conflict, match="exists already"):
            await engine.threads.of(BERT).create(annas, {}, exist_ok=exist_ok)
    with pytest.raises(NotFound):
        await engine.threads.of(BERT).start_run(annas, spec(), create=True, thread_metadata={})
    assert list((await engine.threads.get(annas)).runs) == [RUN]


async def test_a_search_finds_ones_own(engine: EngineHost) -> None:
    mark, ids = uuid4().hex, dict[Owner, ThreadId]()
    for owner in (ANNA, BERT, EVERYONE):
        ids[owner] = new_thread()
        await engine.threads.of(owner).create(ids[owner], {"mark": mark}, exist_ok=False)

    async def found(owner: Owner) -> set[ThreadId]:
        door = engine.threads.of(owner)
        return set(await door.search(metadata={"mark": mark}, status=None, ids=None, limit=10, offset=0))

    async def all_found() -> bool:
        return await found(EVERYONE) == {*ids.values()}

    await until(all_found)
    assert (await found(ANNA), await found(BERT)) == ({ids[ANNA]}, {ids[BERT]})
    named = await engine.threads.of(BERT).search(
        metadata={}, status=None, ids=[ids[ANNA], ids[BERT]], limit=10, offset=0
    )
    assert named == [ids[BERT]]


async def test_what_waits_is_ones_own(engine: EngineHost) -> None:
    async def asks(agent: ScriptedAgent) -> Outcome:
        del agent
        return Outcome(kind=Outcome.KIND_PAUSED)

    engine.guests.scripts["agent"] = asks
    thread_id, door = new_thread(), engine.threads.of(ANNA)
    await door.create(thread_id, {}, exist_ok=False)
    run = await door.start_run(thread_id, spec(), create=False, thread_metadata={})
    await door.wait_run(thread_id, run.run_id)

    async def waits(owner: Owner) -> set[ThreadId]:
        return {one for one, _ in await engine.threads.of(owner).interrupted(None, 1000)}

    async def found() -> bool:
        return thread_id in await waits(ANNA)

    await until(found)
    assert thread_id not in await waits(BERT)
    assert thread_id in await waits(EVERYONE)
    counts = [await engine.threads.of(one).count(ThreadStatus.INTERRUPTED) for one in (ANNA, BERT, EVERYONE)]
    assert counts == [len(await waits(one)) for one in (ANNA, BERT, EVERYONE)]


async def test_an_owner_stays_through_a_compaction(engine: EngineHost, annas: ThreadId) -> None:
    handle = engine.client.get_workflow_handle(annas)
    first = (await handle.describe()).run_id
    await handle.execute_update("compact", b"", result_type=bytes)

    async def compacted() -> bool:
        return (await handle.describe()).run_id != first

    await until(compacted)
    assert (await engine.threads.of(ANNA).get(annas)).owner == ANNA

    async def found() -> bool:
        door = engine.threads.of(ANNA)
        return await door.search(metadata={}, status=None, ids=[annas], limit=1, offset=0) == [annas]

    await until(found)


async def test_a_copy_belongs_to_whom_the_thread_belonged(engine: EngineHost, annas: ThreadId) -> None:
    for door in (engine.threads.of(ANNA), engine.threads):
        copy = await copy_head(door, annas)
        assert (await engine.threads.of(ANNA).get(copy.thread_id)).owner == ANNA
    with pytest.raises(NotFound):
        await copy_head(engine.threads.of(BERT), annas)


async def test_who_creates_a_thread_from_another_owns_it(engine: EngineHost, annas: ThreadId) -> None:
    """Whatever it is made of: nobody makes a thread in another's name."""
    source: Thread = await read_whole(engine.threads.of(ANNA), annas)
    source.thread_id = new_thread()
    source.runs.clear()
    await engine.threads.of(BERT).create_from(source)
    assert (await engine.threads.get(source.thread_id)).owner == BERT


async def test_an_owners_door_gives_nobody_elses(engine: EngineHost) -> None:
    own = engine.threads.of(ANNA)
    assert own.of(ANNA) is not own
    for other in (BERT, EVERYONE):
        with pytest.raises(PermissionRefused):
            own.of(other)


async def test_every_update_of_a_thread_asks_for_whom(engine: EngineHost, annas: ThreadId) -> None:
    """One that does not would let everybody in who knows a thread's id."""
    updates = workflow._Definition.must_from_class(ThreadWorkflow).updates
    unasked = {str(name) for name, one in updates.items() if one.validator is None}
    assert unasked == {"compact"}, "changes nothing that anybody sees; sent by `agentvisor migrate` only"


# --- clients outside a run -------------------------------------------------------------------------------------------


WRITES: dict[str, store_pb2.StoreRequest] = {
    "put": put(7),
    "prune": store_pb2.StoreRequest(prune=store_pb2.PruneThread(strategy="keep_latest")),
    "delete_thread": store_pb2.StoreRequest(delete_thread=store_pb2.DeleteThread()),
    "copy_thread": store_pb2.StoreRequest(copy_thread=store_pb2.CopyThread(target_thread_id=f"t-{uuid4().hex}")),
    "change_thread_state": store_pb2.StoreRequest(
        change_thread_state=store_pb2.ChangeThreadState(key="k", delete=True)
    ),
    "delete_for_runs": store_pb2.StoreRequest(delete_for_runs=store_pb2.DeleteForRuns(run_ids=[RUN])),
    "get": store_pb2.StoreRequest(get=store_pb2.GetCheckpoint()),
    "list": store_pb2.StoreRequest(list=store_pb2.ListCheckpoints()),
    "get_blobs": store_pb2.StoreRequest(get_blobs=store_pb2.GetBlobs(keys=[KEY])),
}


@pytest.mark.parametrize("held", [True, False], ids=["her session is open", "no session"])
@pytest.mark.parametrize("name", WRITES)
async def test_a_client_of_another_meets_no_thread(
    engine: EngineHost, annas: ThreadId, name: str, *, held: bool
) -> None:
    """As where there is none, reply for reply; also while her own session is open on the same host."""
    hers, his = engine.sessions.of(ANNA), engine.sessions.of(BERT)
    if held:
        await hers.call(annas, put(2))
    before = await contents(engine, annas)

    reply = await his.call(annas, WRITES[name])
    missing = new_thread()
    of_none = await his.call(missing, WRITES[name])

    assert await contents(engine, annas) == before, "it had an effect"
    if name == "put":  # which begins a thread of one's own
        assert (reply.error.code, of_none.WhichOneof("kind")) == ("not_found", "stored")
    else:
        assert str(reply).replace(annas, missing) == str(of_none)
    if held:
        again = await hers.call(annas, put(3))
        assert again.WhichOneof("kind") == "stored", "her session went on"


async def test_a_list_of_all_threads_is_of_ones_own(engine: EngineHost, annas: ThreadId) -> None:
    everything = store_pb2.StoreRequest(list=store_pb2.ListCheckpoints(all_threads=True))
    hers = await engine.sessions.of(ANNA).call(None, everything)
    his = await engine.sessions.of(BERT).call(None, everything)
    assert annas in {one.thread_id for one in hers.listed.checkpoints}
    assert annas not in {one.thread_id for one in his.listed.checkpoints}
