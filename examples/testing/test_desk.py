"""The desk is killed, and what it had finished is done once."""

from pathlib import Path

import pytest

from agentvisor.testing import kill, points

HERE = Path(__file__).parent
QUESTION = {"messages": [{"role": "user", "content": "I want my money back for order 7."}]}


@pytest.fixture(scope="session")
def agentvisor_project():
    return {"desk": {"entrypoint": f"{HERE / 'scripted.py'}:graph", "preload": True}}


def looked_up(thread):
    lines = (HERE / "looked_up.txt").read_text().splitlines()
    return sorted(line.removeprefix(f"{thread.id} ") for line in lines if line.startswith(thread.id))


def payments(thread):
    return len(list((HERE / "payments").glob(f"{thread.id}-*")))


def test_the_desk_pays(agentvisor_host):
    thread = agentvisor_host.thread()
    run = thread.run("desk", QUESTION)
    assert run.status == "success", run.error
    assert thread.values["messages"][-1]["content"] == "You have your money back."
    assert looked_up(thread) == ["customer", "order"]
    assert payments(thread) == 1


def test_a_look_up_that_has_finished_is_not_done_again(agentvisor_host):
    thread = agentvisor_host.thread()
    # The third: after those of the input and of the model, the first of the two look-ups to finish.
    thread.inject(kill(at="after:put_writes:3"))
    run = thread.run("desk", QUESTION)
    assert run.endings == ["agent_signal", "completed"]
    assert looked_up(thread).count("order") == 1
    assert payments(thread) == 1


def test_wherever_the_desk_dies_it_pays_once(agentvisor_host):
    threads = {point: agentvisor_host.thread() for point in points(6, "put_writes")}
    for point, thread in threads.items():
        thread.inject(kill(at=point))
    runs = [thread.start("desk", QUESTION) for thread in threads.values()]
    assert {run.wait().status for run in runs} == {"success"}
    assert {point: payments(thread) for point, thread in threads.items()} == dict.fromkeys(threads, 1)


def test_whatever_dies_it_pays_once(agentvisor_host, agentvisor_chance):
    thread = agentvisor_host.thread()
    thread.inject(*agentvisor_chance.faults(2, targets=("agent", "guest", "host"), within=8))
    assert thread.run("desk", QUESTION).status == "success"
    assert payments(thread) == 1
