"""OWNRETRY and UNCFOLD: the server does not order heartbeats, so one that comes late must lose nothing."""

import pytest
from tests.support.host import Knobs, Role, engine_host, new_thread, whole
from tests.support.proxy import HEARTBEAT, TemporalProxy
from tests.support.waiting import until
from tests.support.writing import numbers, put

from agentvisor.host.journal import Journal

pytestmark = pytest.mark.flow


async def lost_after_a_late_heartbeat(temporal: str, proxy: TemporalProxy, queue: str) -> set[int]:
    """A heartbeat is held back, newer ones are acknowledged, it lands, the host falls silent: what is then missing."""
    thread_id, knobs = new_thread(), Knobs(heartbeat_timeout=1.2)
    async with (
        engine_host(temporal, queue, role=Role.WORKFLOWS) as other,
        engine_host(proxy.address, queue, name="victim", knobs=knobs, role=Role.ATTEMPTS) as victim,
    ):
        await victim.call(thread_id, put(0))
        held = proxy.hold(HEARTBEAT, matches=lambda request: b"00000001" in request)
        await victim.call(thread_id, put(1))
        assert held.caught == 1
        for number in range(2, 6):
            await victim.call(thread_id, put(number))
        silence = proxy.refuse(HEARTBEAT)
        assert [code.name for code in await proxy.deliver_held()] == ["OK"]
        journal = victim.live(thread_id).journal

        async def timed_out() -> bool:
            return (await other.threads.get(thread_id)).active is None

        await until(timed_out)
        silence.lift()
        await until(lambda: journal.is_fenced)
        thread = await whole(other.threads, thread_id)
    return {0, 1, 2, 3, 4, 5} - numbers(thread)


async def test_ownretry_uncfold_a_heartbeat_that_lands_after_a_newer_acknowledged_one_loses_nothing(
    temporal: str, proxy: TemporalProxy, queue: str
) -> None:
    assert await lost_after_a_late_heartbeat(temporal, proxy, queue) == set()


async def test_ownretry_uncfold_without_the_rule_the_late_heartbeat_erases_acknowledged_operations(
    temporal: str, proxy: TemporalProxy, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What the SDK's own retry, or a journal that trusts plain heartbeats again, amounts to.
    monkeypatch.setattr(Journal, "_uncertain", property(lambda _self: False, lambda _self, _value: None), raising=False)
    assert await lost_after_a_late_heartbeat(temporal, proxy, queue) == {2, 3, 4, 5}
