"""Kills its own process before or after the Nth journalled operation of the first attempt, from outside the product."""

import os
import signal
from concurrent.futures import Future
from threading import Lock

from agents.effects import effect
from agentvisor.client.socketpair import Channel
from agentvisor.protocol.v1.store_pb2 import StoreReply, StoreRequest

_WRITES = ("put", "put_writes")


def install() -> None:
    """Arm the kill point that KILL_AT names ("before:3", "after:1"), and note which tasks were acknowledged."""
    when, _, number = os.environ.get("KILL_AT", "").partition(":")
    armed = int(number or 0) if os.environ.get("AGENTVISOR_ATTEMPT") == "1" else 0
    plain_call = Channel.call
    lock = Lock()
    count = 0

    def call(self: Channel, request: StoreRequest) -> "Future[StoreReply]":
        nonlocal count
        if request.WhichOneof("kind") not in _WRITES:
            return plain_call(self, request)
        with lock:
            count += 1
            mine = count
        if when == "before" and mine == armed:
            os.kill(os.getpid(), signal.SIGKILL)
        answer = plain_call(self, request)
        answer.add_done_callback(lambda done: _acknowledged(request, done))
        if when == "after" and mine == armed:
            answer.result(timeout=10)
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    Channel.call = call  # type: ignore[method-assign]


def _acknowledged(request: StoreRequest, done: "Future[StoreReply]") -> None:
    if done.exception() is not None or done.result().HasField("error"):
        return
    effect(f"ack {request.WhichOneof('kind')}")
    for write in request.put_writes.writes:
        if write.channel.startswith("out_"):
            effect(f"acknowledged {write.channel.removeprefix('out_')}")
