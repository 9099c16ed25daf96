"""Plain agents that the tests run in guests."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import agentvisor
from agentvisor import thread_state
from agentvisor.client.socketpair import own_channel
from agentvisor.protocol.v1.guest_pb2 import Outcome
from agentvisor.protocol.v1.store_pb2 import Projection, StoreRequest


def echo(input):
    print("got", input)
    print("warned", file=sys.stderr)
    return {"got": input}


def with_context(input, context):
    return {
        "thread": context.thread_id,
        "run": context.run_id,
        "attempt": context.attempt,
        "metadata": context.metadata,
        "command": context.command,
    }


def with_option(input, loud=False):  # noqa: FBT002
    return {"loud": loud}


async def coroutine(input):
    await asyncio.sleep(0)
    return [input]


def generator(input):
    yield {"at": 1}
    yield {"at": 2}
    return "returned"


async def async_generator(input):
    yield {"at": 1}
    yield {"at": 2}


def boom(input):
    return helper()


def helper():
    raise ValueError("boom!")


def boom_odd(input):
    raise ValueError("\ud800 \x00 \xe9")


def boom_long(input):
    raise ValueError("x" * 5_000_000)


class Silent(Exception):
    def __str__(self):
        raise RuntimeError("no")


def boom_silent(input):
    raise Silent


def returns_much(input):
    return "x" * 9_000_000


def not_json(input):
    return {"steps": [1, {2, 3}]}


def event_not_json(input):
    yield object()


def exits(input):
    sys.exit(input)


def exits_at_once(input):
    os._exit(input)


def becomes_true(input):
    os.execv("/bin/true", ["true"])


def garbles(input):
    # The beginning of a message of 64 KiB, of which what follows is taken for the rest.
    own_channel()._socket.sendall(b"\x00\x00\x01\x00garbage")
    return "lost"


def dies(input):
    os.kill(os.getpid(), input)


def paused(input):
    return {"x": 1, "__interrupt__": [{"value": "sure?", "id": "1"}]}


async def asks_in_a_group(input):
    """As people run things side by side: the group raises what its tasks have raised in a group."""

    async def ask(number):
        await asyncio.sleep(0)
        return agentvisor.interrupt(number)

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(ask(number)) for number in range(2)]
    return [task.result() for task in tasks]


async def cannot_tell_in_a_group(input):
    """One of the tasks that an effect is made of does not know whether it happened."""

    async def send():
        raise agentvisor.UnknownOutcome("the bank did not answer in time")

    async def charge():
        async with asyncio.TaskGroup() as group:
            group.create_task(send())

    return await agentvisor.once("charge", charge)


def forks(input):
    """A child that ends as programs do: it returns, exits, or raises."""
    child = os.fork()
    if child == 0:
        if input == "exits":
            sys.exit(0)
        if input == "raises":
            raise ValueError("of the child")
        return "of the child"
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def updates_at_once(input):
    """Sixteen threads, each with changes of its own to the same object."""
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda number: thread_state.update("seen", {str(number): number}), range(160)))
    return len(thread_state.get("seen"))


def environment(input):
    return dict(os.environ)


def leaves_a_file(input):
    workspace = Path(os.environ["AGENTVISOR_WORKSPACE"])
    workspace.mkdir()
    (workspace / "left").touch()
    print(workspace, flush=True)
    time.sleep(300 * bool(input))


def sleeps(input):
    print("sleeping", flush=True)
    time.sleep(300)


async def sleeps_async(input):
    print("sleeping", flush=True)
    await asyncio.sleep(300)


def stubborn(input):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    print("sleeping", flush=True)
    time.sleep(300)


def parent(input):
    """Has a child, a child in a session of its own, and a daemon that was forked twice."""
    subprocess.Popen(["sleep", "300"])
    subprocess.Popen(["sleep", "301"], start_new_session=True)
    subprocess.Popen(["sh", "-c", "setsid sleep 302 & exit 0"], start_new_session=True).wait()
    # Without its environment, it is found by its family alone.
    subprocess.Popen(["sh", "-c", "env -i setsid sleep 303 & exit 0"]).wait()
    print("family", flush=True)
    if input != "leave":
        time.sleep(300)
    return "left"


def hides(input):
    for _ in range(3):
        subprocess.Popen(["sleep", "304"], env={}, start_new_session=True)
    print("hidden", flush=True)
    time.sleep(300)


def floods(input):
    for index in range(input):
        print(f"line {index} {'x' * 90}")


def lingers(input):
    threading.Thread(target=time.sleep, args=(300,)).start()
    return "done"


def calls(input):
    channel = own_channel()
    futures = [channel.call(StoreRequest(project=Projection(checkpoint_id=str(index)))) for index in range(input)]
    return sum(future.result().HasField("stored") for future in futures)


def crosses(input):
    reply = own_channel().call(StoreRequest(thread_id=input, project=Projection(checkpoint_id="1"))).result()
    return [reply.WhichOneof("kind"), reply.error.code, reply.error.message]


def says_much_then_dies(input):
    channel = own_channel()
    for index in range(input):
        channel.call(StoreRequest(project=Projection(checkpoint_id=str(index))))
        print(index)
    os.kill(os.getpid(), signal.SIGKILL)


def breaks_rules(input):
    own_channel()._socket.sendall(b"\xff\xff\xff\xff garbage")
    time.sleep(300)


def makes_way(input):
    print("ready", flush=True)
    while not own_channel().drain_asked:
        time.sleep(0.01)
    own_channel().send_outcome(Outcome(kind=Outcome.KIND_DRAINED))
    os._exit(0)


def holds_still(input):
    print("sleeping", flush=True)
    os.kill(os.getppid(), signal.SIGSTOP)
    time.sleep(300)
