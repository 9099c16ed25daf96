"""The store does not answer: the run waits, its heartbeats do not; then it goes on, or fails and says why."""

import asyncio

import pytest
from tests.external.conftest import Place
from tests.external.test_large_values import MB, QUICK, outside
from tests.support.agents import ScriptedAgent, ScriptedGuests
from tests.support.host import Knobs, engine_host, new_thread
from tests.support.large import Saver, noise
from tests.support.object_store import S3, Mood
from tests.support.waiting import until

from agentvisor.core.errors import StorageUnavailable
from agentvisor.core.runs import RunStatus

pytestmark = pytest.mark.flow

BAD_MOODS = [Mood.GONE, Mood.FAILING, Mood.HANGING]


@pytest.mark.parametrize("mood", BAD_MOODS)
async def test_a_run_waits_for_a_store_that_is_away_and_goes_on_in_the_same_attempt(
    temporal: str, queue: str, s3: S3, s3_place: Place, mood: Mood
) -> None:
    thread_id = new_thread()

    async def agent(self: ScriptedAgent) -> None:
        saver = Saver(self.call)
        await saver.put(0, {"big": noise(2 * MB)})
        s3.front.set(mood)
        came = s3.front.connections
        putting = asyncio.create_task(saver.put(1, {"big": noise(2 * MB, 1)}))
        # Other calls are not held up, and the attempt outlives several heartbeat timeouts.
        for number in range(5):
            await saver.write(0, f"t{number}", {"out": b"small"})
        commits = host.live(thread_id).journal.commits
        await until(lambda: host.live(thread_id).journal.commits > commits + 20)
        assert mood is Mood.GONE or s3.front.connections > came
        assert not putting.done()
        s3.front.set(Mood.FINE)
        await putting
        await saver.put(2, {"big": noise(2 * MB, 2)})

    guests = ScriptedGuests(agent=agent)
    external = s3_place.storage(retry_for=30)
    async with engine_host(temporal, queue, knobs=QUICK, guests=guests, external=external) as host:
        run = await host.threads.wait_run(thread_id, await host.start_run(thread_id, "agent"))
        assert run.status is RunStatus.SUCCESS, run.error_message
        assert len(run.attempts) == 1
        for number in range(3):
            assert await outside(host, thread_id).values(number) == {"big": noise(2 * MB, number)}


@pytest.mark.parametrize("mood", BAD_MOODS)
async def test_a_store_that_stays_away_fails_the_run_with_the_channel_and_the_url_and_loses_nothing(
    temporal: str, queue: str, s3: S3, s3_place: Place, mood: Mood
) -> None:
    thread_id = new_thread()
    seen: list[StorageUnavailable] = []

    async def agent(self: ScriptedAgent) -> None:
        saver = Saver(self.call)
        await saver.put(0, {"big": noise(2 * MB)})
        s3.front.set(mood)
        try:
            await saver.put(1, {"big": noise(2 * MB, 1), "small": b"1"})
        except StorageUnavailable as error:
            seen.append(error)
        await saver.put(2, {"small": b"still works"})  # what does not need the store goes on
        raise seen[0]

    guests = ScriptedGuests(agent=agent)
    async with engine_host(
        temporal, queue, knobs=QUICK, guests=guests, external=s3_place.storage(retry_for=1.5)
    ) as host:
        run = await host.threads.wait_run(thread_id, await host.start_run(thread_id, "agent"))
        assert run.status is RunStatus.ERROR
        assert len(run.attempts) == 1
        for part in ("channel 'big'", thread_id, s3_place.url, "1.5 s", "storage.retry_for", "start a new run"):
            assert part in run.error_message
        thread = await host.threads.read(thread_id)
        assert {int(one) for one in thread.store.checkpoints[thread.store.get("").checkpoint.namespace]} == {0, 2}  # type: ignore[arg-type,union-attr]
        with pytest.raises(StorageUnavailable, match="could not be read"):
            await outside(host, thread_id).values(0)
        s3.front.set(Mood.FINE)
        assert await outside(host, thread_id).values(0) == {"big": noise(2 * MB)}
        # What half came of the failed value is deleted.
        await until(lambda: len(s3.keys()) == 1)


async def test_a_cancelled_run_does_not_wait_for_the_store(temporal: str, queue: str, s3: S3, s3_place: Place) -> None:
    thread_id = new_thread()

    async def agent(self: ScriptedAgent) -> None:
        s3.front.set(Mood.GONE)
        putting = asyncio.create_task(Saver(self.call).put(0, {"big": noise(2 * MB)}))
        await self.cancelled.wait()
        await putting

    guests = ScriptedGuests(agent=agent)
    knobs = Knobs(heartbeat_timeout=4, idle_heartbeat=0.2)
    async with engine_host(
        temporal, queue, knobs=knobs, guests=guests, external=s3_place.storage(retry_for=600)
    ) as host:
        run_id = await host.start_run(thread_id, "agent")
        await until(lambda: guests.started)
        await host.threads.cancel_run(thread_id, run_id)
        run = await asyncio.wait_for(host.threads.wait_run(thread_id, run_id), 15)
        assert run.status is RunStatus.INTERRUPTED


async def test_a_session_outlives_its_idle_time_while_it_waits_for_the_store(
    temporal: str, queue: str, s3: S3, s3_place: Place
) -> None:
    thread_id = new_thread()
    knobs = Knobs(heartbeat_timeout=2.0, idle_heartbeat=0.2, session_idle=0.3)
    async with engine_host(temporal, queue, knobs=knobs, external=s3_place.storage(retry_for=30)) as host:
        saver = outside(host, thread_id)
        await saver.put(0, {"small": b"1"})
        s3.front.set(Mood.GONE)
        putting = asyncio.create_task(saver.put(1, {"big": noise(2 * MB)}))
        live = host.live(thread_id)
        commits = live.journal.commits
        await until(lambda: live.journal.commits > commits + 8)  # heartbeats over more than its idle time
        s3.front.set(Mood.FINE)
        await putting
        assert await outside(host, thread_id).values() == {"big": noise(2 * MB)}


async def test_regular_writes_are_dropped_and_no_error_where_the_store_stays_away(
    temporal: str, queue: str, s3: S3, s3_place: Place
) -> None:
    thread_id = new_thread()
    async with engine_host(temporal, queue, knobs=QUICK, external=s3_place.storage(retry_for=0.5)) as host:
        saver = outside(host, thread_id)
        await saver.put(0, {"small": b"1"})
        s3.front.set(Mood.FAILING)
        await saver.write(0, "regular", {"out": noise(2 * MB)})
        with pytest.raises(StorageUnavailable, match="task state to channel 'out'"):
            await saver.write(0, "state", {"out": noise(2 * MB)}, delta=True)
        assert await saver.written() == {}
        s3.front.set(Mood.FINE)
        await saver.write(0, "regular", {"out": noise(2 * MB)})
        assert await outside(host, thread_id).written() == {"out": noise(2 * MB)}
