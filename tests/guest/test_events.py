"""Events travel in batches, in order, and none is left behind."""

import asyncio

from agentvisor.guest.events import BATCH_BYTES, EVENT_BYTES, Events
from agentvisor.protocol.v1.guest_pb2 import StreamEvents


class Batches:
    def __init__(self) -> None:
        self.sent: list[list[bytes]] = []
        self.came = asyncio.Event()

    def send_events(self, events: StreamEvents) -> None:
        self.sent.append([event.data for event in events.events])
        self.came.set()


async def test_events_of_the_same_moment_travel_together() -> None:
    batches = Batches()
    events = Events(batches)
    for text in (b"1", b"2", b"3"):
        events.send("custom", ("child:1",), text)
    assert batches.sent == []
    await asyncio.wait_for(batches.came.wait(), 1)
    assert batches.sent == [[b"1", b"2", b"3"]]


async def test_a_full_batch_does_not_wait() -> None:
    batches = Batches()
    events = Events(batches)
    events.send("values", (), b"x" * BATCH_BYTES)
    assert len(batches.sent) == 1
    events.send("values", (), b"last")
    events.flush()
    assert batches.sent[1] == [b"last"]
    events.flush()
    assert len(batches.sent) == 2


async def test_an_event_that_no_message_could_carry_tells_its_size_and_ends_no_run() -> None:
    batches = Batches()
    events = Events(batches)
    events.send("values", (), b"x" * (EVENT_BYTES + 1))
    events.flush()
    assert batches.sent == [[b'{"__type__":"too_large","size":%d}' % (EVENT_BYTES + 1)]]
