"""A slow reader gets everything in order; a reader that is gone hurts nobody."""

import asyncio
import socket

from agentvisor.guest.outgoing import Outgoing


async def test_a_slow_reader_gets_everything_in_order() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        theirs.setblocking(False)
        outgoing = Outgoing(ours)
        sent = [bytes([index % 256]) * 50_000 for index in range(100)]
        for data in sent:
            outgoing.write(data)
        assert outgoing.backlog > 0
        received = bytearray()
        while len(received) < sum(map(len, sent)):
            received += await asyncio.wait_for(asyncio.get_running_loop().sock_recv(theirs, 1 << 16), 5)
        assert bytes(received) == b"".join(sent)
        assert outgoing.backlog == 0
        outgoing.close()


async def test_what_the_other_end_said_before_it_was_gone_can_still_be_read() -> None:
    ours, theirs = socket.socketpair()
    with ours:
        ours.setblocking(False)
        outgoing = Outgoing(ours)
        theirs.send(b"last words")
        outgoing.write(b"never read")
        theirs.close()
        outgoing.write(b"nobody is there")
        assert await asyncio.get_running_loop().sock_recv(ours, 100) == b"last words"
        outgoing.close()
