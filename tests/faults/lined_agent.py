"""The agent of `agentvisor torture`, whose channel to its supervisor does what a test's signs say (FaultScene.tell)."""

import os
import signal
import threading
from concurrent.futures import Future
from pathlib import Path

from tortured_agent import graph

from agentvisor.client.socketpair import Channel
from agentvisor.protocol.v1.store_pb2 import StoreReply, StoreRequest

__all__ = ["graph"]

_plain = Channel.call


def _sign(name: str) -> bool:
    return Path(os.environ["TORTURE_RECORDS"], f"{os.environ['AGENTVISOR_THREAD_ID']}.{name}").exists()


def _call(channel: Channel, request: StoreRequest) -> Future[StoreReply]:
    writes = request.WhichOneof("kind") in ("put", "put_writes")
    answer = _plain(channel, request)
    if writes and _sign("twice"):
        # The agent hears of the second delivery: it is answered like the first.
        answer = _plain(channel, request)
    if writes and _sign("lost") and os.environ["AGENTVISOR_ATTEMPT"] == "1":
        # It is sent, and nobody hears the answer.
        answer.add_done_callback(lambda _: os.kill(os.getpid(), signal.SIGKILL))
        threading.Event().wait()
    return answer


Channel.call = Channel.submit = _call  # type: ignore[method-assign]
