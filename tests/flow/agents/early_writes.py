"""The slow tools, but each checkpoint of the first attempt is sent only after the first writes that belong to it."""

import os
import threading
from concurrent.futures import Future

from agents import slow_tools
from agents.effects import effect
from agentvisor.client.socketpair import Channel
from agentvisor.protocol.v1.store_pb2 import StoreReply, StoreRequest

SECONDS = 10
graph = slow_tools.graph


def install() -> None:
    plain = Channel.call
    written: dict[str, threading.Event] = {}

    def event(checkpoint_id: str) -> threading.Event:
        return written.setdefault(checkpoint_id, threading.Event())

    def call(channel: Channel, request: StoreRequest) -> "Future[StoreReply]":
        if request.HasField("put_writes"):
            answer = plain(channel, request)
            answer.add_done_callback(lambda _: event(request.put_writes.checkpoint_id).set())
            return answer
        if request.HasField("put"):
            return _later(channel, request)
        return plain(channel, request)

    def _later(channel: Channel, request: StoreRequest) -> "Future[StoreReply]":
        answer: Future[StoreReply] = Future()

        def send() -> None:
            if event(request.put.checkpoint.checkpoint_id).wait(SECONDS):
                effect("wrote before its checkpoint")
            answer.set_result(plain(channel, request).result())

        threading.Thread(target=send, daemon=True).start()
        return answer

    Channel.call = Channel.submit = call  # type: ignore[method-assign]


if os.environ["AGENTVISOR_ATTEMPT"] == "1":
    install()
