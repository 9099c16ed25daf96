"""Messages come out of a byte stream as they went in, however it is cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentvisor.core.errors import InvalidInput, ValueTooLarge
from agentvisor.protocol.frames import MAX_FRAME, Frames, frame


@given(st.lists(st.binary(max_size=50)), st.data())
def test_messages_come_out_as_they_went_in(messages: list[bytes], data: st.DataObject) -> None:
    stream = b"".join(frame(message) for message in messages)
    frames, found = Frames(), list[bytes]()
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        found += frames.feed(stream[:size])
        stream = stream[size:]
    assert found == messages
    assert not frames.unfinished


def test_a_stream_that_ends_inside_a_message_says_so() -> None:
    frames = Frames()
    assert list(frames.feed(frame(b"whole") + frame(b"cut")[:-1])) == [b"whole"]
    assert frames.unfinished


def test_a_message_over_the_limit_is_not_sent() -> None:
    assert len(frame(bytes(MAX_FRAME))) == MAX_FRAME + 4
    with pytest.raises(ValueTooLarge, match=str(MAX_FRAME)):
        frame(bytes(MAX_FRAME + 1))


def test_a_length_over_the_limit_ends_the_stream_before_anything_is_kept() -> None:
    frames = Frames()
    with pytest.raises(InvalidInput, match="4294967295 bytes"):
        list(frames.feed(b"\xff\xff\xff\xff"))
