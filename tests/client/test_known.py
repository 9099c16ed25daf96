"""What is known is bounded, by thread, and forgotten with it."""

from agentvisor.client.known import ChannelName, CheckpointName, Held, Known
from agentvisor.client.line import Line
from agentvisor.protocol.blobs import Stored


def line(number: int, size: int) -> Line:
    return Line.of([Stored(number.to_bytes(32), "bytes", bytes(size), 0, size, size, size)], [])


def test_values_are_held_up_to_a_number_of_bytes_and_those_used_last_stay() -> None:
    known = Known(max_value_bytes=1000)
    names = [ChannelName("t", "", str(number)) for number in range(4)]
    for number in range(3):
        known.set_line(names[number], line(number, 300))
    assert known.line(names[0]) is not None
    known.set_line(names[3], line(3, 300))
    assert [known.line(name) is not None for name in names] == [True, False, True, True]
    # That its bytes are gone does not mean that it is not stored.
    assert known.is_stored("t", (1).to_bytes(32))
    known.set_line(names[0], line(9, 2000))
    assert all(known.line(name) is None for name in names)


def test_threads_are_apart() -> None:
    known = Known()
    known.set_line(ChannelName("a", "", "x"), line(1, 10))
    known.set_channels(CheckpointName("a", "", "1"), {"x": Held("v1", b"k")})
    assert known.is_stored("a", (1).to_bytes(32))
    assert not known.is_stored("b", (1).to_bytes(32))
    assert known.holding(ChannelName("b", "", "x"), "v1") is None
    assert known.holding(ChannelName("a", "", "x"), "v1") == b"k"
    assert known.holding(ChannelName("a", "", "x"), "v2") is None
    assert known.holding(ChannelName("a", "ns", "x"), "v1") is None
    known.set_line(ChannelName("b", "", "x"), line(2, 10))
    known.forget("a")
    assert not known.is_stored("a", (1).to_bytes(32))
    assert not known.is_stored("a", b"k")
    assert known.channels(CheckpointName("a", "", "1")) is None
    assert known.line(ChannelName("a", "", "x")) is None
    assert known.line(ChannelName("b", "", "x")) is not None
