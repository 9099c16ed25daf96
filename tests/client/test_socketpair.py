"""The agent process's channel: the task first, then calls, events and the last word; nobody waits for ever."""

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Generator

import pytest
from tests.support.waiting_sync import until

from agentvisor.client import socketpair
from agentvisor.client.socketpair import Channel, own_channel
from agentvisor.core.errors import Unavailable, ValueTooLarge
from agentvisor.protocol.frames import MAX_FRAME, Frames, frame
from agentvisor.protocol.v1.guest_pb2 import (
    AgentTask,
    CancelAgent,
    DrainAgent,
    FromAgent,
    Outcome,
    StoreAnswer,
    StreamEvent,
    StreamEvents,
    ToAgent,
)
from agentvisor.protocol.v1.store_pb2 import GetCheckpoint, StoreReply, StoreRequest

TASK = ToAgent(task=AgentTask(thread_id="t", run_id="r", attempt=2))
CALL = StoreRequest(get=GetCheckpoint())


@pytest.fixture
def pair() -> Generator[tuple[Channel, socket.socket]]:
    ours, theirs = socket.socketpair()
    channel = Channel(ours.detach())
    yield channel, theirs
    channel.close()
    theirs.close()


def tell(theirs: socket.socket, *messages: ToAgent) -> None:
    theirs.sendall(b"".join(frame(message.SerializeToString()) for message in messages))


def heard(theirs: socket.socket, count: int) -> list[FromAgent]:
    frames, messages = Frames(), list[FromAgent]()
    while len(messages) < count:
        messages += [FromAgent.FromString(raw) for raw in frames.feed(theirs.recv(1 << 16))]
    return messages


def test_the_task_is_received_first_and_what_came_with_it_is_not_lost(pair: tuple[Channel, socket.socket]) -> None:
    channel, theirs = pair
    cancelled = threading.Event()
    tell(theirs, TASK, ToAgent(cancel=CancelAgent()))
    assert channel.receive_task() == TASK.task
    assert channel.task.attempt == 2
    assert not cancelled.is_set()
    channel.start_reader(cancelled.set)
    assert cancelled.wait(10)


def test_that_it_shall_make_way_is_known_once_the_host_says_so(pair: tuple[Channel, socket.socket]) -> None:
    channel, theirs = pair
    tell(theirs, TASK)
    channel.receive_task()
    channel.start_reader(lambda: None)
    assert not channel.drain_asked
    tell(theirs, ToAgent(drain=DrainAgent()))
    until(lambda: channel.drain_asked)


def test_events_and_the_last_word_arrive_in_order(pair: tuple[Channel, socket.socket]) -> None:
    channel, theirs = pair
    tell(theirs, TASK)
    channel.receive_task()
    channel.start_reader(lambda: None)
    for number in range(3):
        channel.send_events(StreamEvents(events=[StreamEvent(mode="custom", data=b"%d" % number)]))
    channel.send_outcome(Outcome(kind=Outcome.KIND_COMPLETED))
    said = heard(theirs, 4)
    assert [one.events.events[0].data for one in said[:3]] == [b"0", b"1", b"2"]
    assert said[3].outcome.kind == Outcome.KIND_COMPLETED


def test_answers_may_come_in_any_order(pair: tuple[Channel, socket.socket]) -> None:
    channel, theirs = pair
    tell(theirs, TASK)
    channel.receive_task()
    channel.start_reader(lambda: None)
    futures = [channel.call(CALL) for _ in range(3)]
    ids = [one.call.id for one in heard(theirs, 3)]
    for id_ in reversed(ids):
        reply = StoreReply()
        reply.found.tuple.checkpoint.namespace = str(id_)
        tell(theirs, ToAgent(answer=StoreAnswer(id=id_, reply=reply)))
    assert [future.result(10).found.tuple.checkpoint.namespace for future in futures] == [str(id_) for id_ in ids]


def test_a_supervisor_that_goes_before_the_task_is_an_error(pair: tuple[Channel, socket.socket]) -> None:
    channel, theirs = pair
    theirs.close()
    with pytest.raises(Unavailable):
        channel.receive_task()


@pytest.mark.parametrize("last", [b"", b"\x05\x00", b"\xff\xff\xff\xff", b"\x02\x00\x00\x00\xff\xff"])
def test_when_the_supervisor_is_gone_or_makes_no_sense_every_call_fails(
    pair: tuple[Channel, socket.socket], last: bytes
) -> None:
    channel, theirs = pair
    tell(theirs, TASK)
    channel.receive_task()
    channel.start_reader(lambda: None)
    waiting = channel.call(CALL)
    heard(theirs, 1)
    theirs.sendall(last)
    theirs.shutdown(socket.SHUT_WR)
    with pytest.raises(Unavailable, match="may or may not be stored"):
        waiting.result(10)
    with pytest.raises(Unavailable):
        channel.call(CALL).result(10)
    with pytest.raises(Unavailable):
        channel.send_outcome(Outcome())


def test_a_message_over_the_limit_fails_and_the_next_one_passes(pair: tuple[Channel, socket.socket]) -> None:
    channel, theirs = pair
    tell(theirs, TASK)
    channel.receive_task()
    channel.start_reader(lambda: None)
    with pytest.raises(ValueTooLarge):
        channel.call(StoreRequest(get=GetCheckpoint(namespace="x" * MAX_FRAME))).result(10)
    channel.call(CALL)
    assert heard(theirs, 1)[0].call.request == CALL


def test_a_forked_process_cannot_tear_frames_apart(pair: tuple[Channel, socket.socket]) -> None:
    channel, theirs = pair
    tell(theirs, TASK)
    channel.receive_task()
    read, write = os.pipe()
    child = os.fork()  # before the reader: this process has one thread
    if child == 0:
        error = channel.call(CALL).exception(10)
        os.write(write, type(error).__name__.encode())
        os._exit(0)
    os.waitpid(child, 0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        assert pipe.read() == b"Unavailable"


@pytest.mark.thorough
def test_a_process_that_the_agent_starts_is_told_why_it_has_no_channel() -> None:
    program = "from agentvisor.langgraph import AgentVisorCheckpointer as C; C().get_tuple({})"
    environment = {**os.environ, "AGENTVISOR_CHANNEL_FD": "3", "AGENTVISOR_THREAD_ID": "t"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert "not the agent's own" in done.stderr


def test_the_runners_channel_is_the_sdks(pair: tuple[Channel, socket.socket], monkeypatch: pytest.MonkeyPatch) -> None:
    channel, theirs = pair
    monkeypatch.setattr(socketpair, "_own", [])
    monkeypatch.setenv(socketpair.CHANNEL_FD, str(channel._socket.fileno()))
    with pytest.raises(Unavailable):
        own_channel()
    tell(theirs, TASK)
    channel.receive_task()
    channel.start_reader(lambda: None)
    assert own_channel() is channel
