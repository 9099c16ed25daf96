"""A webhook hears of a run's end at least once, whatever is killed; and it is not told of what was deleted."""

import pytest
from tests.flow.conftest import Project
from tests.flow.deaths import VictimThread, victim_host
from tests.support.waiting_sync import until
from tests.support.webhooks import receiving

pytestmark = pytest.mark.flow

ALLOWED = {"AGENTVISOR_HTTP_WEBHOOK_ALLOW_PRIVATE": "true"}
FEW = {"wanted": 3, "pause": 0}


def test_a_host_that_is_killed_while_it_tells_is_stood_in_for_by_another(zygote_project: Project) -> None:
    with receiving() as receiver:
        receiver.hold.clear()
        thread = VictimThread(zygote_project, victim_host(zygote_project, ALLOWED))
        run = thread.graph("steps", FEW, webhook=receiver.url("/killed"))
        deleted = VictimThread(zygote_project, thread.host)
        deleted.graph("steps", FEW, webhook=receiver.url("/deleted"))
        until(lambda: receiver.at("/killed") and receiver.at("/deleted"), seconds=30)
        thread.host.kill()
        receiver.hold.set()
        thread.on(victim_host(zygote_project, ALLOWED))
        deleted.on(thread.host)
        deleted.client.threads.delete(deleted.id)
        # The killed one is given up after 10 s without a sign of it.
        until(lambda: len(receiver.at("/killed")) == 2, seconds=40)
        first, second = receiver.at("/killed")
        assert {one.headers["webhook-id"] for one in (first, second)} == {run}
        assert [one.told["values"]["done"] for one in (first, second)] == [[1, 2, 3]] * 2
        assert len(receiver.at("/deleted")) == 1
