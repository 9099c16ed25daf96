"""Watches an agent's journalled operations from outside the product: notes what was acknowledged, kills in between."""

import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from threading import Lock

from agents import signs
from agents.effects import effect
from agentvisor.client.socketpair import Channel
from agentvisor.protocol.v1.store_pb2 import StoreReply, StoreRequest

JOURNALLED = ("put", "put_writes", "project")
Answer = Future[StoreReply]
Call = Callable[[Channel, StoreRequest], Answer]


def install() -> None:
    """Note acknowledgements as effects, and obey the test's signs.

    "kill" is "before:3" or "after:1": the first attempt dies at that operation. "delay" is how many seconds pending
    writes take to be sent.
    """
    watch = _Watch(Channel.call)

    def call(channel: Channel, request: StoreRequest) -> Answer:
        return watch.call(channel, request)

    Channel.call = Channel.submit = call  # type: ignore[method-assign]


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class _Watch:
    def __init__(self, plain: Call) -> None:
        self._plain = plain
        self._lock = Lock()
        self._count = 0

    def call(self, channel: Channel, request: StoreRequest) -> Answer:
        kind = request.WhichOneof("kind")
        if kind not in JOURNALLED:
            return self._plain(channel, request)
        with self._lock:
            self._count += 1
            number = self._count
        if _armed() == f"before:{number}":
            die()
        if kind == "put_writes":
            time.sleep(float(signs.read("delay") or 0))
        answer = self._plain(channel, request)
        answer.add_done_callback(lambda done: _note(request, done))
        if _armed() == f"after:{number}":
            answer.add_done_callback(lambda _: die())
            # Whatever would follow this operation does not.
            threading.Event().wait()
        return answer


def _armed() -> str:
    return signs.read("kill") if os.environ["AGENTVISOR_ATTEMPT"] == "1" else ""


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
