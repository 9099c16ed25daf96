"""Values of all sizes through a host and a real Temporal server: where they go, and that they come back."""

from dataclasses import replace

import pytest
from tests.external.conftest import Place
from tests.support.agents import ScriptedAgent, ScriptedGuests
from tests.support.host import EngineHost, Knobs, engine_host, new_thread, whole
from tests.support.large import Saver, noise
from tests.support.scene import make_compaction_due, until_compacted
from tests.support.waiting import until

from agentvisor.core.errors import Corrupt, StateTooLarge, StorageUnavailable, ValueTooLarge
from agentvisor.core.ids import ThreadId
from agentvisor.core.runs import RunKind, RunStatus
from agentvisor.host.blob_shelf import TOO_LARGE
from agentvisor.host.render_typed import render

pytestmark = pytest.mark.flow

MB = 1_000_000
SIZES = [int(1.9 * MB), int(2.1 * MB), 5 * MB]
QUICK = Knobs(heartbeat_timeout=2.0, idle_heartbeat=0.2)


def outside(host: EngineHost, thread_id: ThreadId) -> Saver:
    """The saver of a client outside any run."""
    return Saver(lambda request: host.call(thread_id, request))


@pytest.mark.parametrize("size", [*SIZES, pytest.param(50 * MB, marks=pytest.mark.slow)])
async def test_a_large_value_is_stored_outside_and_read_back(
    temporal: str, queue: str, place: Place, size: int
) -> None:
    thread_id, value = new_thread(), noise(size)
    async with engine_host(temporal, queue, knobs=QUICK, external=place.storage()) as host:
        await outside(host, thread_id).put(0, {"big": value, "small": b"x" * 100})
        assert await outside(host, thread_id).values() == {"big": value, "small": b"x" * 100}
        (key,) = place.keys()
        assert host.live(thread_id).id.attempt == 1
        thread = await host.threads.get(thread_id)
        assert thread.incarnation in key
        assert (await host.threads.storage(thread_id)).state_bytes < 10_000
        blobs = await host.threads.blobs(thread_id, list(thread.store.references))
        assert sorted(len(data) for _, data in blobs.values()) == [100, size]


@pytest.mark.parametrize("size", SIZES)
async def test_without_external_storage_it_is_refused_by_name_and_nothing_is_stored(
    temporal: str, queue: str, size: int
) -> None:
    thread_id = new_thread()
    async with engine_host(temporal, queue, knobs=QUICK) as host:
        saver = outside(host, thread_id)
        await saver.put(0, {"big": b"small yet"})
        with pytest.raises(ValueTooLarge, match=r"max_inline_value.*storage\.url"):
            await saver.put(1, {"big": noise(size)})
        assert await saver.values() == {"big": b"small yet"}


async def test_three_channels_that_do_not_fit_together_go_outside(temporal: str, queue: str, place: Place) -> None:
    thread_id, values = new_thread(), {name: noise(900_000, name) for name in "abc"}
    async with engine_host(temporal, queue, knobs=QUICK, external=place.storage()) as host:
        await outside(host, thread_id).put(0, values)
        assert await outside(host, thread_id).values() == values
        assert len(place.keys()) in {2, 3}
        assert host.live(thread_id).id.attempt == 1


async def test_without_external_storage_three_such_channels_are_refused_with_their_names(
    temporal: str, queue: str
) -> None:
    async with engine_host(temporal, queue, knobs=QUICK) as host:
        thread_id = new_thread()
        with pytest.raises(StateTooLarge, match=r"storage\.url.*'a' \(900000 bytes\)"):
            await outside(host, thread_id).put(0, {name: noise(900_000, name) for name in "abc"})
        await outside(host, thread_id).put(0, {"a": noise(900_000)})  # one of them fits


async def test_where_a_thread_is_full_its_older_values_make_room(temporal: str, queue: str, place: Place) -> None:
    thread_id = new_thread()
    async with engine_host(temporal, queue, knobs=QUICK, external=place.storage()) as host:
        saver, values = outside(host, thread_id), {}
        for number, name in enumerate("abcdef"):
            values[name] = noise(400_000, name)
            await saver.put(number, values)
        assert place.keys()
        assert await outside(host, thread_id).values() == values


async def test_a_change_of_a_large_value_is_a_small_difference_here(temporal: str, queue: str, place: Place) -> None:
    thread_id, value = new_thread(), noise(3 * MB)
    async with engine_host(temporal, queue, knobs=QUICK, external=place.storage()) as host:
        saver = outside(host, thread_id)
        await saver.put(0, {"big": value})
        await saver.put(1, {"big": value + b"and more"})
        assert len(place.keys()) == 1
        assert await outside(host, thread_id).values() == {"big": value + b"and more"}


async def test_what_a_task_wrote_is_the_same_object_as_the_channel_that_follows(
    temporal: str, queue: str, place: Place
) -> None:
    thread_id, value = new_thread(), noise(2 * MB)
    async with engine_host(temporal, queue, knobs=QUICK, external=place.storage()) as host:
        saver = outside(host, thread_id)
        await saver.put(0, {"in": b"1"})
        await saver.write(0, "task", {"out": value})
        assert await outside(host, thread_id).written() == {"out": value}
        await outside(host, thread_id).put(1, {"out": value})  # by a process that does not know that it is there
        assert len(place.keys()) == 1
        assert await outside(host, thread_id).values(1) == {"out": value}


async def test_writes_over_the_limit_of_a_super_step_go_outside_instead_of_being_dropped(
    temporal: str, queue: str, place: Place
) -> None:
    thread_id, values = new_thread(), {f"c{n}": noise(300_000, n) for n in range(6)}
    async with engine_host(temporal, queue, knobs=QUICK, external=place.storage()) as host:
        saver = outside(host, thread_id)
        await saver.put(0, {"in": b"1"})
        for channel, value in values.items():
            await saver.write(0, f"task {channel}", {channel: value})
        assert await outside(host, thread_id).written() == values
        assert place.keys()


async def test_a_delta_channels_large_write_goes_outside(temporal: str, queue: str, place: Place) -> None:
    thread_id, value = new_thread(), noise(3 * MB)
    async with engine_host(temporal, queue, knobs=QUICK, external=place.storage()) as host:
        saver = outside(host, thread_id)
        await saver.put(0, {"in": b"1"})
        await saver.write(0, "task", {"out": value}, delta=True)
        assert await outside(host, thread_id).written() == {"out": value}


async def test_a_damaged_object_is_found_out(temporal: str, queue: str, s3_place: Place, s3: object) -> None:
    thread_id = new_thread()
    async with engine_host(temporal, queue, knobs=QUICK, external=s3_place.storage()) as host:
        await outside(host, thread_id).put(0, {"big": noise(2 * MB)})
        (key,) = s3_place.keys()
        s3.write(key, noise(2 * MB, "other"))
        path = key.removeprefix("some/prefix/")
        thread = await host.threads.get(thread_id)

        async def found_out(how: str) -> None:
            with pytest.raises(Corrupt, match=f"channel 'big' of thread {thread_id}.*{path}.*{how}"):
                await Saver(lambda request: host.call(thread_id, request), thread_id).values()
            (shown,) = [render(*one) for one in (await host.threads.blobs(thread_id, thread.store.references)).values()]
            assert isinstance(shown, dict)
            assert shown["__type__"] == "corrupt"
            assert path in str(shown["error"])

        await found_out("do not match")
        s3.write(key, b"short")
        await found_out("too short")
        s3.delete(key)
        await found_out("gone")


async def test_an_agents_large_values_leave_its_heartbeats_alone(temporal: str, queue: str, place: Place) -> None:
    thread_id, value = new_thread(), noise(20 * MB)

    async def agent(self: ScriptedAgent) -> None:
        saver = Saver(self.call)
        for number in range(3):
            await saver.put(number, {"big": value[: -1 - number]})
        assert await Saver(self.call).values() == {"big": value[:-3]}

    guests = ScriptedGuests(agent=agent)
    async with engine_host(temporal, queue, knobs=QUICK, guests=guests, external=place.storage()) as host:
        run = await host.threads.wait_run(thread_id, await host.start_run(thread_id, "agent"))
        assert run.status is RunStatus.SUCCESS, run.error_message
        assert len(run.attempts) == 1


async def test_what_nothing_needs_any_more_is_deleted(temporal: str, queue: str, place: Place) -> None:
    thread_id = new_thread()
    knobs = Knobs(heartbeat_timeout=2.0, checkpoint_history=1, session_idle=0.3)
    async with engine_host(temporal, queue, knobs=knobs, external=place.storage()) as host:
        saver = outside(host, thread_id)
        for number in range(4):
            await saver.put(number, {"big": noise(2 * MB, number)})
        await until(lambda: len(place.keys()) == 1)  # the session ends, and looks back
        assert await outside(host, thread_id).values() == {"big": noise(2 * MB, 3)}
        await whole(host.threads, thread_id)


async def test_before_a_compaction_leaves_values_out_they_go_outside(temporal: str, queue: str, place: Place) -> None:
    thread_id = new_thread()
    knobs = Knobs(heartbeat_timeout=4.0, idle_heartbeat=0.2, compact_events=100, compaction_bytes=400_000)
    async with engine_host(temporal, queue, knobs=knobs, external=place.storage()) as host:
        saver = outside(host, thread_id)
        for number in range(8):  # 800 KB in all, of which a compaction could carry the half
            await saver.put(number, {"value": noise(100_000, number)})
        await make_compaction_due(host.threads, thread_id, events=110)
        await until_compacted(host.threads, thread_id)
        assert place.keys()
        thread = await whole(host.threads, thread_id)
        assert not thread.left_out
        for number in range(8):
            assert await outside(host, thread_id).values(number) == {"value": noise(100_000, number)}


async def test_what_is_shown_at_once_is_bounded(temporal: str, queue: str, place: Place) -> None:
    thread_id = new_thread()
    async with engine_host(temporal, queue, knobs=QUICK, external=place.storage()) as host:
        await outside(host, thread_id).put(0, {"a": noise(2 * MB, "a"), "b": noise(2 * MB, "b")})
        host.threads._values = replace(host.threads._values, max_value=3 * MB)
        thread = await host.threads.get(thread_id)
        found = await host.threads.blobs(thread_id, list(thread.store.references))
        assert sorted(kind for kind, _ in found.values()) == [TOO_LARGE, "bytes"]
        (marker,) = [render(*one) for one in found.values() if one[0] == TOO_LARGE]
        assert marker == {"__type__": "too_large", "type": TOO_LARGE, "size": 2 * MB}


async def test_a_host_without_the_storage_says_what_is_missing(temporal: str, queue: str, place: Place) -> None:
    thread_id = new_thread()
    async with engine_host(temporal, queue, knobs=QUICK, external=place.storage()) as host:
        await outside(host, thread_id).put(0, {"big": noise(2 * MB), "small": b"1"})
    async with engine_host(temporal, queue, name="h2", knobs=QUICK) as host:
        with pytest.raises(StorageUnavailable, match=r"set storage\.url"):
            await outside(host, thread_id).values()


async def test_an_update_of_the_state_keeps_its_large_values_outside_and_leaves_none_where_it_fails(
    temporal: str, queue: str, place: Place
) -> None:
    value = noise(int(2.1 * MB))

    async def made(self: ScriptedAgent) -> None:
        await Saver(self.call).put(0, {"big": value})

    async def refused(self: ScriptedAgent) -> None:
        await Saver(self.call).put(1, {"big": value[::-1]})
        raise ValueError("no such node")

    thread_id = new_thread()
    guests = ScriptedGuests(made=made, refused=refused)
    async with engine_host(temporal, queue, knobs=QUICK, guests=guests, external=place.storage()) as host:
        for agent, status in (("made", RunStatus.SUCCESS), ("refused", RunStatus.ERROR)):
            run_id = await host.start_run(thread_id, agent, kind=RunKind.UPDATE)
            assert (await host.threads.wait_run(thread_id, run_id)).status is status
        assert await outside(host, thread_id).values() == {"big": value}
        await until(lambda: len(place.keys()) == 1)
