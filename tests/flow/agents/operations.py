"""Watches an agent's journalled operations from outside the product: notes what was acknowledged, and delays writes."""

import os
import signal
import time
from collections.abc import Callable
from concurrent.futures import Future

from agents import signs
from agents.effects import effect
from agentvisor.client.socketpair import Channel
from agentvisor.protocol.v1.store_pb2 import StoreReply, StoreRequest

JOURNALLED = ("put", "put_writes", "project")
Answer = Future[StoreReply]
Call = Callable[[Channel, StoreRequest], Answer]


def install() -> None:
    """Note acknowledgements as effects; the sign "delay" is how many seconds pending writes take to be sent."""
    plain: Call = Channel.call

    def call(channel: Channel, request: StoreRequest) -> Answer:
        if request.WhichOneof("kind") not in JOURNALLED:
            return plain(channel, request)
        if request.WhichOneof("kind") == "put_writes":
            time.sleep(float(signs.read("delay") or 0))
        answer = plain(channel, request)
        answer.add_done_callback(lambda done: _note(request, done))
        return answer

    Channel.call = Channel.submit = call  # type: ignore[method-assign]


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _note(request: StoreRequest, done: Answer) -> None:
    if done.exception() is not None or done.result().HasField("error"):
        return
    effect(f"operation {request.WhichOneof('kind')}")
    if request.WhichOneof("kind") == "put":
        checkpoint = request.put.checkpoint
        effect(f"stored step {int(checkpoint.metadata.fields['step'].number_value)}")
        effect(f"stored {checkpoint.checkpoint_id}")
    for write in request.put_writes.writes:
        if not write.channel.startswith(("__", "branch:")):
            effect(f"acknowledged {write.channel.removeprefix('out_')}")
