"""Crews on real hosts: a task that has ended is not run again, whatever ends the process."""

import pytest
from tests._crewai.conftest import Desk
from tests._crewai.thread import DeskThread
from tests.flow.deaths import kill

pytestmark = [pytest.mark.flow, pytest.mark.crewai]


def test_a_finished_task_is_not_run_again_after_the_agent_is_killed(desk: Desk) -> None:
    thread = DeskThread(desk)
    thread.tell("hold")
    run = thread.start("crew", {"order": "7"})
    kill(thread.until_it("began booking"))
    thread.until_it("began booking", 2)
    thread.tell("gate")
    ended = thread.ended(run)
    assert ended["status"] == "success", ended["error"]
    did = thread.did()
    assert (did["looked up 7"], did["booked"], did["told with booked"]) == (1, 1, 1)
    assert thread.values() == {"raw": "Dear customer, it is done.", "json_dict": None, "pydantic": None}
