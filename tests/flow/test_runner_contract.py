"""What holds for an agent of every framework: the contract of its runner, on real servers.

An agent of the contract replies "<how many inputs it has heard>: <the last one>". "ask" makes it ask "Which?", "ask
two" makes it ask "left?" and "right?" at once; "die" has a step that finishes and one in which the first process dies;
"fail" raises in the user's file, "keep" stores what cannot be stored, "wait" never returns, "stream" tells WORDS.
"""

import asyncio
import json
from collections.abc import Generator

import pytest
from tests.flow.conftest import Project
from tests.flow.contract import FRAMEWORKS, WORDS, Framework
from tests.flow.deaths import VictimThread
from tests.support.temporal import TemporalProcess

pytestmark = [pytest.mark.flow, pytest.mark.timeout(300)]
of_every_framework = pytest.mark.parametrize("framework", FRAMEWORKS, ids=str)

NAMES = {one.name: one.entrypoint for one in FRAMEWORKS}


@pytest.fixture(scope="module")
def contract(tmp_path_factory: pytest.TempPathFactory, temporal: str) -> Generator[Project]:
    """A host with the contract's agents."""
    project = Project(tmp_path_factory.mktemp("contract"), temporal, "zygote", NAMES)
    project.host(FOLDER=str(project.folder))
    yield project
    for host in project.hosts:
        host.stop()


@pytest.fixture
def thread(contract: Project) -> VictimThread:
    return VictimThread(contract, contract.hosts[0])


def ended(thread: VictimThread, run_id: str, *, well: bool = True) -> dict[str, object]:
    run = thread.ended(run_id, seconds=60)
    assert not well or run["status"] == "success", f"{run['error']}\n{thread.told()}"
    return run


def asked(thread: VictimThread) -> dict[str, str]:
    """The ids of what waits for an answer, by what is asked."""
    waiting = thread.client.threads.get_state(thread.id)["interrupts"]
    return {next(side for side in ("Which", "left", "right") if side in json.dumps(one)): one["id"] for one in waiting}


@of_every_framework
def test_a_thread_remembers_across_runs_each_in_a_process_of_its_own(
    thread: VictimThread, framework: Framework
) -> None:
    for number, text in enumerate(("tea", "coffee", "water"), 1):
        ended(thread, framework.say(thread, text))
        assert framework.heard(thread) == f"{number}: {text}"
    assert len({one["pid"] for one in thread.effects()}) == 3
    assert thread.status() == "idle"


@of_every_framework
@pytest.mark.parametrize("order", [("left", "right"), ("right", "left"), ("both",)], ids="-".join)
def test_two_questions_are_answered_in_any_order_and_in_part(
    thread: VictimThread, framework: Framework, order: tuple[str, ...]
) -> None:
    ended(thread, framework.say(thread, "ask two"))
    assert set(asked(thread)) == {"left", "right"}
    assert thread.status() == "interrupted"
    for side in order:
        ids = asked(thread)
        sides = ("left", "right") if side == "both" else (side,)
        ended(thread, framework.answer(thread, {ids[one]: one.upper() for one in sides}))
        assert side != order[0] or set(asked(thread)) == {"left", "right"} - set(sides)
    assert framework.heard(thread) == "heard left LEFT, right RIGHT"
    assert (asked(thread), thread.status()) == ({}, "idle")


@of_every_framework
def test_a_run_whose_process_is_killed_goes_on_after_the_last_finished_step(
    thread: VictimThread, framework: Framework
) -> None:
    run = ended(thread, framework.say(thread, "die"))
    assert [one["ending"] for one in run["attempts"]] == ["agent_signal", "completed"]  # type: ignore[attr-defined]
    did = thread.did()
    assert (did["did first"], did["began second"], did["did second"]) == (1, 2, 1)
    assert "survived" in framework.heard(thread)
    # The input was heard once, whichever process heard it.
    ended(thread, framework.say(thread, "tea"))
    assert framework.heard(thread) == "2: tea"


@of_every_framework
def test_events_come_in_the_order_in_which_they_are_told(thread: VictimThread, framework: Framework) -> None:
    events = list(
        thread.client.runs.stream(
            thread.id,
            framework.name,
            input=framework.given("stream"),
            stream_mode=["custom", "messages-tuple", "updates"],
        )
    )
    assert [word for word in framework.words([one.data for one in events]) if word in WORDS] == list(WORDS)
    numbers = [int(str(one.id)) for one in events if one.id]
    assert numbers == sorted(numbers)
    assert not [one for one in events if one.event == "error"]


@of_every_framework
def test_an_exception_is_the_runs_error_and_the_log_has_the_users_traceback(
    thread: VictimThread, framework: Framework
) -> None:
    run = ended(thread, framework.say(thread, "fail"), well=False)
    assert run["status"] == "error"
    assert "no customer 42" in json.dumps(run["error"])
    assert [one["ending"] for one in run["attempts"]] == ["agent_error"]  # type: ignore[attr-defined]
    told = thread.host.log.read_text().splitlines()  # type: ignore[union-attr]
    (raised,) = [line for line in map(json.loads, told) if line.get("run") == run["run_id"] and "traceback" in line]
    assert f"contract_{framework.name}.py" in raised["traceback"]
    assert 'raise LookupError("no customer 42")' in raised["traceback"]
    # What failed was not taken in twice, and does not stand in the way.
    ended(thread, framework.say(thread, "tea"))
    assert framework.heard(thread).endswith(": tea")


@of_every_framework
def test_a_value_that_cannot_be_stored_is_named_and_harms_nothing(thread: VictimThread, framework: Framework) -> None:
    ended(thread, framework.say(thread, "tea"))
    run = ended(thread, framework.say(thread, "keep"), well=False)
    if framework.kept:
        assert run["status"] == "error"
        assert framework.kept in json.dumps(run["error"]), run["error"]
    ended(thread, framework.say(thread, "coffee"))
    assert framework.heard(thread).endswith(": coffee")


@of_every_framework
def test_after_a_cancel_a_new_input_works(thread: VictimThread, framework: Framework) -> None:
    run = framework.say(thread, "wait")
    thread.until_it("waits")
    thread.client.runs.cancel(thread.id, run)
    assert ended(thread, run, well=False)["status"] == "interrupted"
    ended(thread, framework.say(thread, "tea"))
    assert framework.heard(thread).endswith(": tea")


def test_questions_are_answered_after_the_host_and_temporal_were_killed(
    own_project: Project, temporal_process: TemporalProcess
) -> None:
    own_project.names = NAMES
    host = own_project.host(FOLDER=str(own_project.folder))
    threads = {framework: VictimThread(own_project, host) for framework in FRAMEWORKS}
    for framework, thread in threads.items():
        ended(thread, framework.say(thread, "ask"))
    temporal_process.kill()
    host.kill()
    asyncio.run(temporal_process.start())
    again = own_project.host(FOLDER=str(own_project.folder))
    for framework, thread in threads.items():
        thread.on(again)
        assert (set(asked(thread)), thread.status()) == ({"Which"}, "interrupted")
        ended(thread, framework.answer(thread, {asked(thread)["Which"]: "TEA"}))
        assert framework.heard(thread) == "heard TEA"
        assert (asked(thread), thread.status()) == ({}, "idle")
