"""Guests as the host meets them: real supervisors, zygotes and agents, which are really killed."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.guest.hosting import AGENTS, Hosting, configured
from tests.host.guest_processes import alive, command, tree, until

from agentvisor.core.errors import Conflict, UnknownAgent
from agentvisor.core.owners import EVERYONE, Owner
from agentvisor.host.guests import Guests
from agentvisor.protocol.v1.guest_pb2 import DrainAgent, ToAgent
from agentvisor.protocol.v1.run_pb2 import Ending

pytestmark = pytest.mark.flow

PLAIN = AGENTS / "plain.py"


def plain(name: str, **more: Any) -> dict[str, Any]:
    return {"entrypoint": f"{PLAIN}:{name}", "framework": "function", **more}


def is_def(line: str) -> bool:
    return line.startswith(("def ", "async def "))


@pytest.fixture(params=["zygote", "exec"])
def start_method(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
async def host(tmp_path: Path, start_method: str) -> AsyncIterator[Hosting]:
    names = [line.split("def ")[1].split("(")[0] for line in PLAIN.read_text().splitlines() if is_def(line)]
    agents = {name: plain(name) for name in names}
    agents["environment"] = plain("environment", env={"MY_KEY": "mine"})
    async with Guests(configured(tmp_path, agents, start_method)) as guests:
        yield Hosting(guests)


def sent(value: object) -> bytes:
    return json.dumps(value).encode()


def output(end: Any) -> Any:
    assert end.outcome is not None, end
    return json.loads(end.outcome.output)


# --- what an agent is given, and what comes of it --------------------------------------------------------------------


async def test_an_agent_gets_its_input_and_its_return_value_is_the_output(host: Hosting) -> None:
    end, kept = await host.run("echo", input=sent({"a": 1}))
    assert (end.ending, output(end)) == (Ending.ENDING_COMPLETED, {"got": {"a": 1}})
    assert (kept.lines, kept.errors) == (["got {'a': 1}"], ["warned"])


@pytest.mark.parametrize(
    "agent, expected, events",
    [
        ("coroutine", [7], []),
        ("generator", "returned", [{"at": 1}, {"at": 2}]),
        ("async_generator", {"at": 2}, [{"at": 1}, {"at": 2}]),
        ("with_option", {"loud": False}, []),
    ],
)
async def test_every_kind_of_function_is_an_agent(host: Hosting, agent: str, expected: Any, events: list[Any]) -> None:
    end, kept = await host.run(agent, input=sent(7))
    assert output(end) == expected
    assert [(mode, json.loads(data)) for mode, _, data in kept.streamed] == [("custom", event) for event in events]


async def test_a_second_argument_is_the_context(host: Hosting) -> None:
    end, _ = await host.run("with_context", thread="th", run="ru", attempt=2, command=sent({"resume": "yes"}))
    assert output(end) == {"thread": "th", "run": "ru", "attempt": 2, "metadata": {}, "command": {"resume": "yes"}}


async def test_an_agent_sees_its_run_and_its_own_variables_and_nothing_of_the_hosts(
    host: Hosting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOST_SECRET", "canary")
    end, _ = await host.run("environment", thread="th", run="ru", attempt=3)
    seen = output(end)
    assert (seen["AGENTVISOR_THREAD_ID"], seen["AGENTVISOR_RUN_ID"], seen["AGENTVISOR_ATTEMPT"]) == ("th", "ru", "3")
    assert seen["MY_KEY"] == "mine"
    assert "canary" not in json.dumps(seen)


async def test_an_output_with_an_interrupt_is_a_pause(host: Hosting) -> None:
    end, _ = await host.run("paused")
    assert end.ending == Ending.ENDING_PAUSED


async def test_what_is_asked_in_tasks_of_a_group_is_a_pause_and_no_error(host: Hosting) -> None:
    end, _ = await host.run("asks_in_a_group", input=sent(None))
    assert end.ending == Ending.ENDING_PAUSED, end


async def test_an_effect_whose_task_in_a_group_cannot_tell_is_asked_about(host: Hosting) -> None:
    end, kept = await host.run("cannot_tell_in_a_group", input=sent(None))
    assert end.ending == Ending.ENDING_PAUSED, end
    assert [one.kind for one in kept.thread.store.questions.waiting] == ["effect_unknown"]


async def test_threads_that_update_the_same_object_at_once_all_come_through(host: Hosting) -> None:
    end, _ = await host.run("updates_at_once", input=sent(None))
    assert output(end) == 160


# --- how an agent ends -----------------------------------------------------------------------------------------------


async def test_an_exception_is_told_from_the_users_first_line_on(host: Hosting) -> None:
    end, _ = await host.run("boom")
    assert (end.ending, end.code) == (Ending.ENDING_AGENT_ERROR, 70)
    assert end.outcome is not None
    assert (end.outcome.error_type, end.outcome.error_message) == ("ValueError", "boom!")
    first, second, *_ = [line.strip() for line in end.outcome.traceback.splitlines() if line.startswith("  File")]
    assert (first.split(", in ")[1], second.split(", in ")[1]) == ("boom", "helper")
    assert str(PLAIN) in first


@pytest.mark.parametrize(
    "how, code, told", [("returns", 0, ""), ("exits", 0, ""), ("raises", 1, "ValueError: of the child")]
)
async def test_a_process_that_an_agent_forks_ends_as_a_program_does(
    host: Hosting, how: str, code: int, told: str
) -> None:
    end, kept = await host.run("forks", input=sent(how))
    assert output(end) == code
    assert "".join(kept.errors[-1:]) == told


@pytest.mark.parametrize("agent, place", [("not_json", "output['steps'][1]"), ("event_not_json", "event")])
async def test_what_is_not_json_is_refused_with_its_place(host: Hosting, agent: str, place: str) -> None:
    end, _ = await host.run(agent)
    assert end.ending == Ending.ENDING_AGENT_ERROR
    assert f"{place} is not JSON" in end.message


@pytest.mark.parametrize(
    "agent, error, message",
    [
        ("boom_odd", "ValueError", "\\ud800 \x00 \xe9"),
        ("boom_silent", "Silent", "its text is not known: __str__ raised RuntimeError"),
        ("boom_long", "ValueError", "x" * 10_000),
    ],
)
async def test_an_exception_keeps_its_class_and_its_message_however_odd(
    host: Hosting, agent: str, error: str, message: str
) -> None:
    end, _ = await host.run(agent)
    assert (end.ending, end.code) == (Ending.ENDING_AGENT_ERROR, 70)
    assert end.outcome is not None
    assert end.outcome.error_type == error
    assert end.outcome.error_message.startswith(message)
    assert len(end.outcome.error_message.encode()) <= 16_000
    assert len(end.outcome.traceback.encode()) <= 16_000
    assert f'"{PLAIN}"' in end.outcome.traceback


async def test_a_result_that_no_message_can_carry_is_an_error_that_says_so(host: Hosting) -> None:
    end, _ = await host.run("returns_much")
    assert end.ending == Ending.ENDING_AGENT_ERROR
    assert end.outcome is not None
    assert end.outcome.error_type == "ValueTooLarge"
    assert "over the limit of 8388608" in end.message


@pytest.mark.parametrize("agent", ["exits", "exits_at_once"])
async def test_an_exit_code_is_reported_as_it_was(host: Hosting, agent: str) -> None:
    end, _ = await host.run(agent, input=sent(3))
    assert (end.ending, end.code) == (Ending.ENDING_AGENT_ERROR, 3)


async def test_a_plain_agent_may_end_itself_without_an_error(host: Hosting) -> None:
    end, _ = await host.run("exits", input=sent(0))
    assert (end.ending, output(end)) == (Ending.ENDING_COMPLETED, None)


@pytest.mark.parametrize("agent", ["exits_at_once", "becomes_true"])
async def test_a_process_that_ends_with_code_0_without_a_last_word_has_not_completed(host: Hosting, agent: str) -> None:
    end, _ = await host.run(agent, input=sent(0))
    assert (end.ending, end.outcome) == (Ending.ENDING_AGENT_ERROR, None)
    assert end.message == "the agent's process ended with code 0 before the agent had returned"


async def test_a_last_word_that_garbage_swallowed_is_not_a_success(host: Hosting) -> None:
    end, _ = await host.run("garbles")
    assert (end.ending, end.outcome) == (Ending.ENDING_AGENT_ERROR, None)


@pytest.mark.parametrize("preload", [False, True])
async def test_a_module_that_ends_its_process_has_not_completed(
    tmp_path: Path, start_method: str, *, preload: bool
) -> None:
    agent = tmp_path / "leaves.py"
    agent.write_text("import os\nos._exit(0)\n")
    agents = {"leaves": {"entrypoint": f"{agent}:agent", "framework": "function", "preload": preload}}
    async with Guests(configured(tmp_path, agents, start_method)) as guests:
        end, _ = await Hosting(guests).run("leaves")
    assert end.ending == Ending.ENDING_AGENT_ERROR


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT])
async def test_a_signal_is_reported_as_a_signal(host: Hosting, number: signal.Signals) -> None:
    end, _ = await host.run("dies", input=sent(int(number)))
    assert (end.ending, end.code) == (Ending.ENDING_AGENT_SIGNAL, int(number))
    end, _ = await host.run("exits", input=sent(128 + number))
    assert (end.ending, end.code) == (Ending.ENDING_AGENT_ERROR, 128 + number)


async def test_all_that_an_agent_said_before_it_was_killed_arrives_in_order(host: Hosting) -> None:
    end, kept = await host.run("says_much_then_dies", input=sent(500))
    assert end.ending == Ending.ENDING_AGENT_SIGNAL
    assert [request.project.checkpoint_id for request in kept.requests] == [str(index) for index in range(500)]
    assert kept.lines == [str(index) for index in range(500)]


async def test_many_calls_at_once_are_all_answered(host: Hosting) -> None:
    end, kept = await host.run("calls", input=sent(1000))
    assert output(end) == 1000
    assert [request.project.checkpoint_id for request in kept.requests] == [str(index) for index in range(1000)]


async def test_an_agent_that_breaks_the_rules_of_its_channel_is_killed(host: Hosting) -> None:
    end, _ = await host.run("breaks_rules")
    assert (end.ending, end.code) == (Ending.ENDING_AGENT_SIGNAL, signal.SIGKILL)
    assert "broke the rules of its channel" in end.message


async def test_an_agent_cannot_use_another_thread(host: Hosting) -> None:
    end, kept = await host.run("crosses", thread="mine", input=sent("yours"))
    kind, code, message = output(end)
    assert (kind, code) == ("error", "permission_refused")
    assert "mine" in message
    assert kept.requests == []
    end, _ = await host.run("crosses", thread="mine", run="again", input=sent("mine"))
    assert output(end)[0] == "stored"


# --- output ----------------------------------------------------------------------------------------------------------


async def test_output_beyond_the_limit_is_counted_not_kept(tmp_path: Path) -> None:
    config = configured(tmp_path, {"floods": plain("floods")}, log_bytes_per_run=10_000)
    async with Guests(config) as guests:
        end, kept = await Hosting(guests).run("floods", input=sent(1000))
    assert end.ending == Ending.ENDING_COMPLETED
    written = sum(len(f"line {index} {'x' * 90}\n") for index in range(1000))
    assert kept.dropped == written - sum(len(line) + 1 for line in kept.lines)
    assert kept.lines[0].startswith("line 0 ")
    assert 9_800 < written - kept.dropped <= 10_000


# --- cancel ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("agent", ["sleeps", "sleeps_async"])
async def test_a_cancelled_agent_ends_at_once(host: Hosting, agent: str) -> None:
    running, kept = await host.start(agent)
    await kept.printed("sleeping")
    running.cancel(grace_seconds=60)
    end = await asyncio.wait_for(running.ended, 5)
    assert end.ending == Ending.ENDING_CANCELLED
    assert end.outcome is not None


async def test_an_agent_that_will_not_end_is_killed_after_the_grace(host: Hosting) -> None:
    running, kept = await host.start("stubborn")
    await kept.printed("sleeping")
    running.cancel(grace_seconds=0.1)
    end = await asyncio.wait_for(running.ended, 5)
    assert (end.ending, end.code, end.outcome) == (Ending.ENDING_CANCELLED, signal.SIGKILL, None)


async def test_a_killed_agent_ends_as_cancelled(host: Hosting) -> None:
    running, kept = await host.start("sleeps")
    await kept.printed("sleeping")
    running.kill()
    end = await asyncio.wait_for(running.ended, 5)
    assert (end.ending, end.code) == (Ending.ENDING_CANCELLED, signal.SIGKILL)


# --- leftovers -------------------------------------------------------------------------------------------------------


async def family_of(host: Hosting, **arguments: Any) -> tuple[Any, set[int]]:
    """An agent with four descendants, and all processes of its guest."""
    running, kept = await host.start("parent", **arguments)
    await kept.printed("family")
    await until(lambda: sleepers(running.pid) == 4)
    return running, tree(host.guests.pids()["parent"])


def sleepers(root: int) -> int:
    return sum(command(pid).startswith("sleep 30") for pid in tree(root))


async def test_what_an_agent_leaves_behind_ends_with_it(host: Hosting) -> None:
    running, kept = await host.start("parent", input=sent("leave"))
    end = await asyncio.wait_for(running.ended, 5)
    assert output(end) == "left"
    await kept.printed("family")
    assert sleepers(host.guests.pids()["parent"]) == 0


@pytest.mark.parametrize("end", ["itself", "cancel", "kill"])
async def test_what_is_in_an_agents_workspace_goes_with_it(host: Hosting, tmp_path: Path, end: str) -> None:
    running, kept = await host.start("leaves_a_file", input=sent(end != "itself"))
    await until(lambda: bool(kept.lines))
    workspace = Path(kept.lines[0])
    if end == "cancel":
        running.cancel(grace_seconds=60)
    elif end == "kill":
        running.kill()
    await asyncio.wait_for(running.ended, 10)
    await until(lambda: not workspace.exists())
    # In the guest's folder: where a whole host is killed, the next one removes that.
    (guest,) = (tmp_path / "data" / "guests").iterdir()
    assert workspace.parent == guest


async def test_killing_an_agent_ends_its_family_and_spares_its_neighbours(host: Hosting) -> None:
    one, family = await family_of(host, thread="one", run="one")
    neighbour, kept = await host.start("parent", thread="two", run="two")
    await kept.printed("family")
    await until(lambda: sleepers(neighbour.pid) == 4)
    others = tree(neighbour.pid)
    family -= others
    os.kill(one.pid, signal.SIGKILL)
    end = await asyncio.wait_for(one.ended, 5)
    assert (end.ending, end.code) == (Ending.ENDING_AGENT_SIGNAL, signal.SIGKILL)
    assert not [pid for pid in alive(family) if command(pid).startswith("sleep 30")]
    assert set(alive(others)) == others


async def test_killing_the_supervisor_leaves_nothing_alive(host: Hosting) -> None:
    running, family = await family_of(host)
    os.kill(host.guests.pids()["parent"], signal.SIGKILL)
    await until(lambda: not alive(family), seconds=2)
    end = await asyncio.wait_for(running.ended, 5)
    assert end.ending == Ending.ENDING_GUEST_GONE


@pytest.mark.parametrize(
    "order", [("supervisor", "zygote"), ("zygote", "supervisor"), ("supervisor", "zygote", "agent"),
              ("agent", "zygote", "supervisor"), ("zygote", "agent", "supervisor")]
)  # fmt: skip
async def test_what_hides_from_a_guest_that_is_killed_at_once_ends_too(host: Hosting, order: tuple[str, ...]) -> None:
    stranger = subprocess.Popen(["sleep", "304"], env={}, start_new_session=True)
    try:
        running, kept = await host.start("hides")
        await kept.printed("hidden")
        supervisor = host.guests.pids()["hides"]
        await until(lambda: sum(command(pid).startswith("sleep 304") for pid in tree(supervisor)) == 3)
        family = tree(supervisor)
        zygote = next(pid for pid in family if "agentvisor.guest.zygote" in command(pid) and pid != running.pid)
        pids = {"supervisor": supervisor, "zygote": zygote, "agent": running.pid}
        # Stopped, none can do anything about the others' death.
        for pid in pids.values():
            os.kill(pid, signal.SIGSTOP)
        for victim in order:
            os.kill(pids[victim], signal.SIGKILL)
        end = await asyncio.wait_for(running.ended, 10)
        assert end.ending == Ending.ENDING_GUEST_GONE
        assert (alive(family), alive([stranger.pid])) == ([], [stranger.pid])
    finally:
        stranger.kill()
        stranger.wait()


async def test_a_new_guest_takes_the_next_run_after_one_was_killed(host: Hosting) -> None:
    running, _ = await family_of(host)
    os.kill(host.guests.pids()["parent"], signal.SIGKILL)
    await asyncio.wait_for(running.ended, 5)
    end, _ = await host.run("parent", attempt=2, input=sent("leave"))
    assert output(end) == "left"


async def test_a_frozen_supervisor_is_killed_and_reported_as_unresponsive(tmp_path: Path, start_method: str) -> None:
    config = configured(tmp_path, {"sleeps": plain("sleeps")}, start_method, heartbeat="200ms")
    async with Guests(config) as guests:
        host = Hosting(guests)
        running, kept = await host.start("sleeps")
        await kept.printed("sleeping")
        family = tree(guests.pids()["sleeps"])
        os.kill(guests.pids()["sleeps"], signal.SIGSTOP)
        end = await asyncio.wait_for(running.ended, 10)
    assert end.ending == Ending.ENDING_GUEST_UNRESPONSIVE
    assert not alive(family)


async def host_with_a_family(tmp_path: Path, start_method: str) -> tuple[subprocess.Popen[bytes], set[int]]:
    """A host in a process of its own, and all that has come of the agent that runs on it."""
    host = subprocess.Popen(
        [sys.executable, "-m", "tests.host.guest_host", str(tmp_path), start_method],
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    assert host.stdout is not None
    assert await asyncio.to_thread(host.stdout.readline) == b"family\n"
    await until(lambda: sleepers(host.pid) == 4)
    family = tree(host.pid)
    return host, family


async def test_killing_the_host_leaves_nothing_alive(tmp_path: Path, start_method: str) -> None:
    host, family = await host_with_a_family(tmp_path, start_method)
    host.kill()
    host.wait()
    await until(lambda: not alive(family), seconds=2)


async def test_killing_host_and_supervisor_together_leaves_nothing_alive(tmp_path: Path, start_method: str) -> None:
    host, family = await host_with_a_family(tmp_path, start_method)
    supervisor = next(pid for pid in family if "agentvisor.guest.supervisor" in command(pid))
    os.kill(supervisor, signal.SIGSTOP)
    host.kill()
    os.kill(supervisor, signal.SIGKILL)
    host.wait()
    await until(lambda: not alive(family), seconds=2)


async def test_the_next_host_clears_what_a_killed_one_left(tmp_path: Path) -> None:
    config = configured(tmp_path, {"echo": plain("echo")})
    async with Guests(config) as guests:
        await guests.prewarm("echo")
        (living,) = (tmp_path / "data" / "guests").iterdir()
        abandoned = living.with_name("abandoned")
        abandoned.mkdir()
        (abandoned / "lock").touch()
        leftover = subprocess.Popen(["sleep", "300"], env={"AGENTVISOR_GUEST_ID": "abandoned"}, process_group=0)
        spared = subprocess.Popen(["sleep", "300"], env={"AGENTVISOR_GUEST_ID": "abandoned2"}, process_group=0)
        try:
            async with Guests(config):
                assert list((tmp_path / "data" / "guests").iterdir()) == [living]
                assert (alive([leftover.pid]), alive([spared.pid])) == ([], [spared.pid])
        finally:
            for process in (leftover, spared):
                process.kill()
                process.wait()


async def test_a_start_that_is_given_up_leaves_nothing_running(tmp_path: Path, start_method: str) -> None:
    async with Guests(configured(tmp_path, {"parent": plain("parent")}, start_method)) as guests:
        host = Hosting(guests)
        # Before its guest is ready, and while the process is being started.
        for warm in (False, True):
            starting = asyncio.create_task(host.start("parent", run=f"given-up-{warm}"))
            if warm:
                await guests.prewarm("parent")
                await asyncio.sleep(0)
            starting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await starting
        (guest,) = guests._guests.values()
        assert guest._agents == {}
        # The guest takes other runs, and is the same.
        running, _ = await host.start("parent")
        assert alive([running.pid])
        assert list(guests._guests.values()) == [guest]


@pytest.mark.parametrize("preload", [False, True])
async def test_a_guest_is_warm_once_its_imports_are_done_or_have_killed_its_zygote(
    tmp_path: Path, *, preload: bool
) -> None:
    (tmp_path / "leaves.py").write_text("import os\nos._exit(0)\n")
    (tmp_path / "slow.py").write_text("import time\ntime.sleep(1)\nagent = print\n")
    agents = {
        name: {"entrypoint": f"{tmp_path}/{name}.py:agent", "framework": "function", "preload": preload}
        for name in ("leaves", "slow")
    }
    loop = asyncio.get_running_loop()
    async with Guests(configured(tmp_path, agents)) as guests:
        await asyncio.wait_for(guests.prewarm("leaves"), 20)
        began = loop.time()
        await asyncio.wait_for(guests.prewarm("slow"), 20)
        assert loop.time() - began > (1 if preload else 0)


@pytest.mark.parametrize("asked", [False, True])
async def test_only_who_was_asked_makes_way(tmp_path: Path, *, asked: bool) -> None:
    async with Guests(configured(tmp_path, {"makes_way": plain("makes_way")})) as guests:
        running, kept = await Hosting(guests).start("makes_way")
        await kept.printed("ready")
        if asked:
            running.drain()
        else:
            running._tell(ToAgent(drain=DrainAgent()))
        ended = await asyncio.wait_for(running.ended, 20)
        assert ended.ending == (Ending.ENDING_HOST_STOPPED if asked else Ending.ENDING_AGENT_ERROR)


async def test_a_host_that_leaves_ends_its_guests(tmp_path: Path, start_method: str) -> None:
    async with Guests(configured(tmp_path, {"parent": plain("parent")}, start_method)) as guests:
        host = Hosting(guests)
        running, family = await family_of(host)
    assert not alive(family)
    assert (await running.ended).ending == Ending.ENDING_GUEST_GONE
    assert list((tmp_path / "data" / "guests").iterdir()) == []


# --- the zygote ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("start_method", ["zygote"], indirect=True)
async def test_the_death_of_a_zygote_is_the_death_of_its_agents_and_the_next_run_gets_a_new_one(host: Hosting) -> None:
    running, family = await family_of(host)
    supervisor = host.guests.pids()["parent"]
    zygote = next(pid for pid in family if "agentvisor.guest.zygote" in command(pid) and pid != running.pid)
    os.kill(zygote, signal.SIGKILL)
    end = await asyncio.wait_for(running.ended, 5)
    assert (end.ending, end.message) == (Ending.ENDING_GUEST_GONE, "the zygote died, and its agents with it")
    assert alive(family) == [supervisor]
    end, _ = await host.run("parent", attempt=2, input=sent("leave"))
    assert output(end) == "left"
    assert host.guests.pids()["parent"] == supervisor


async def test_a_frozen_zygote_is_killed_and_the_next_run_gets_a_new_one(host: Hosting) -> None:
    # The agent stops its zygote. Its end would be heard from there, so nobody would hear of it.
    running, _ = await host.start("holds_still")
    supervisor = host.guests.pids()["holds_still"]
    end = await asyncio.wait_for(running.ended, 30)
    assert (end.ending, end.message) == (Ending.ENDING_GUEST_GONE, "the zygote died, and its agents with it")
    assert not alive([running.pid])
    end, _ = await host.run("echo", input=sent(1))
    assert output(end) == {"got": 1}
    assert host.guests.pids()["holds_still"] == supervisor


@pytest.mark.parametrize("start_method", ["zygote"], indirect=True)
async def test_an_agent_is_forked_from_a_zygote_without_another_thread(host: Hosting) -> None:
    running, kept = await host.start("sleeps")
    await kept.printed("sleeping")
    zygote = int(Path(f"/proc/{running.pid}/stat").read_text().rpartition(")")[2].split()[1])
    assert "agentvisor.guest.zygote" in command(zygote)
    assert len(list(Path(f"/proc/{zygote}/task").iterdir())) == 1


async def test_a_zygote_with_a_second_thread_does_not_fork_and_the_agent_runs_all_the_same(tmp_path: Path) -> None:
    agent = tmp_path / "threaded.py"
    agent.write_text(
        "import threading, time, os\n"
        "threading.Thread(target=time.sleep, args=(300,), daemon=True).start()\n"
        "def agent(input):\n"
        "    return open('/proc/self/cmdline').read()\n"
    )
    agents = {"threaded": {"entrypoint": f"{agent}:agent", "framework": "function", "preload": True}}
    async with Guests(configured(tmp_path, agents)) as guests:
        end, _ = await Hosting(guests).run("threaded")
    assert "agentvisor.guest.agent" in output(end)


async def test_a_preloaded_agent_that_ends_its_process_is_reported_by_its_run(tmp_path: Path) -> None:
    agent = tmp_path / "leaves.py"
    agent.write_text("import os\nos._exit(7)\n")
    agents = {"leaves": {"entrypoint": f"{agent}:agent", "framework": "function", "preload": True}}
    async with Guests(configured(tmp_path, agents)) as guests:
        end, _ = await Hosting(guests).run("leaves")
    assert (end.ending, end.code) == (Ending.ENDING_AGENT_ERROR, 7)


async def test_a_preloaded_agent_was_imported_once(tmp_path: Path) -> None:
    agent = tmp_path / "counted.py"
    agent.write_text(
        "import os\n"
        "with open(os.path.dirname(__file__) + '/imports', 'a') as f: f.write('x')\n"
        "def agent(input):\n"
        "    return __name__\n"
    )
    agents = {"counted": {"entrypoint": f"{agent}:agent", "framework": "function", "preload": True}}
    async with Guests(configured(tmp_path, agents)) as guests:
        host = Hosting(guests)
        ends = [await host.run("counted", run=f"r{index}") for index in range(3)]
    assert [output(end) for end, _ in ends] == ["counted"] * 3
    assert (tmp_path / "imports").read_text() == "x"


async def test_a_thread_that_never_ends_does_not_hold_the_run(
    tmp_path: Path, start_method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Guests(configured(tmp_path, {"lingers": plain("lingers")}, start_method)) as guests:
        end, _ = await Hosting(guests).run("lingers")
    assert (end.ending, output(end)) == (Ending.ENDING_COMPLETED, "done")
    assert end.message == "the agent did not end after its outcome"


# --- the pool --------------------------------------------------------------------------------------------------------


async def test_runs_of_an_agent_share_a_guest_until_its_code_changes(host: Hosting) -> None:
    first, kept = await host.start("sleeps", run="1")
    await kept.printed("sleeping")
    old = host.guests.pids()["sleeps"]
    second, kept = await host.start("sleeps", run="2")
    await kept.printed("sleeping")
    assert host.guests.pids()["sleeps"] == old
    host.guests.reload()
    third, kept = await host.start("sleeps", run="3")
    await kept.printed("sleeping")
    new = host.guests.pids()["sleeps"]
    assert new != old
    first.kill()
    await first.ended
    assert alive([old]) == [old]
    second.kill()
    await second.ended
    await until(lambda: not alive([old]))
    assert alive([new, third.pid]) == [new, third.pid]


async def test_what_works_for_one_owner_shares_no_guest_with_what_works_for_another(host: Hosting) -> None:
    running = {}
    for run, owner in enumerate([EVERYONE, Owner("anna"), Owner("bert"), Owner("anna")]):
        agent, kept = await host.start("sleeps", run=str(run), owner=owner)
        await kept.printed("sleeping")
        running.setdefault(owner, []).append(agent.pid)
    guests = {owner: host.guests.pids(owner)["sleeps"] for owner in running}
    assert len(set(guests.values())) == 3
    for owner, agents in running.items():
        assert set(agents) <= set(tree(guests[owner])), "each in the guest of its owner"


async def test_a_guest_of_an_owner_ends_when_it_has_had_nothing_to_do_for_a_while(tmp_path: Path) -> None:
    anna = Owner("anna")
    config = configured(tmp_path, {"sleeps": plain("sleeps"), "echo": plain("echo")}, idle_timeout="300ms")
    async with Guests(config) as guests:
        host = Hosting(guests)
        await host.run("echo", input=sent(1), run="of nobody")
        working, kept = await host.start("sleeps", run="long", owner=anna)
        await kept.printed("sleeping")
        await host.run("echo", input=sent(1), run="short", owner=anna)
        of_nobody, sleeper, idle = guests.pids()["echo"], guests.pids(anna)["sleeps"], guests.pids(anna)["echo"]
        await until(lambda: not alive([idle]))
        assert alive([sleeper, of_nobody]) == [sleeper, of_nobody], "one works, one is for all"
        end, _ = await host.run("echo", input=sent(2), run="again", owner=anna)
        assert output(end) == {"got": 2}
        working.kill()
        await working.ended
        await until(lambda: not alive([sleeper]))
        assert alive([of_nobody]) == [of_nobody]


async def test_many_owners_leave_few_guests_behind(tmp_path: Path) -> None:
    owners = [Owner(f"owner {number}") for number in range(4)]
    config = configured(tmp_path, {"echo": plain("echo"), "sleeps": plain("sleeps")}, "exec", max_idle_guests=2)
    async with Guests(config) as guests:
        host = Hosting(guests)
        working, kept = await host.start("sleeps", run="long", owner=owners[0])
        await kept.printed("sleeping")
        supervisors = []
        for number, owner in enumerate(owners):
            await host.run("echo", input=sent(1), run=str(number), owner=owner)
            supervisors.append(guests.pids(owner)["echo"])
        await until(lambda: alive(supervisors) == supervisors[2:])
        assert alive([working.pid]) == [working.pid], "a guest that is at work stays"


async def test_an_attempt_runs_once(host: Hosting) -> None:
    await host.start("sleeps")
    with pytest.raises(Conflict, match="runs already"):
        await host.start("sleeps")


async def test_an_unknown_agent_is_named_with_those_there_are(host: Hosting) -> None:
    with pytest.raises(UnknownAgent, match=r"no agent 'ecko'; configured: .*echo"):
        await host.start("ecko")


async def test_a_folder_with_a_long_name_has_guests_too(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 30)
    folder.mkdir()
    async with Guests(configured(folder, {"echo": plain("echo")}, "exec")) as guests:
        end, _ = await Hosting(guests).run("echo", input=sent(1))
    assert output(end) == {"got": 1}


# --- code that does not load -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "entrypoint, error, message",
    [
        ("broken.py:agent", "ModuleNotFoundError", "No module named 'agentvisor.no_such_module'"),
        ("broken_deep.py:agent", "RuntimeError", "no key"),
        ("plain.py:ecko", "AttributeError", "has no 'ecko'; did you mean 'echo'?"),
    ],
)
async def test_code_that_does_not_load_is_told_in_the_users_terms(
    tmp_path: Path, start_method: str, entrypoint: str, error: str, message: str
) -> None:
    config = configured(tmp_path, {"a": {"entrypoint": f"{AGENTS}/{entrypoint}"}}, start_method)
    async with Guests(config) as guests:
        end, _ = await Hosting(guests).run("a")
    assert end.ending == Ending.ENDING_COULD_NOT_START
    assert end.outcome is not None
    assert end.outcome.error_type == error
    assert message in end.message
    frames = [line for line in end.outcome.traceback.splitlines() if line.startswith("  File")]
    assert not frames or str(AGENTS) in frames[0]
