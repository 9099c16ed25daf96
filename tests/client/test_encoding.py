"""Records and writes come back as they were, and lies about their size are refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentvisor.client.encoding import MAX_RECORD, MAX_WRITE, pack_record, pack_write, unpack_record, unpack_write
from agentvisor.core.errors import Corrupt
from agentvisor.protocol.v1 import store_pb2

kinds = st.sampled_from(["msgpack", "null", "msgpack+aes", "x+zstd1", "+zstd1", "x+zstd1+zstd1"])
contents = st.binary(max_size=300) | st.binary(max_size=4).map(lambda few: few * 200)


@given(kinds, contents)
def test_a_record_comes_back_as_it_was(kind: str, data: bytes) -> None:
    assert unpack_record(*pack_record((kind, data))) == (kind, data)


@given(kinds, contents, st.integers(-4, 100))
def test_a_write_comes_back_as_it_was(kind: str, data: bytes, idx: int) -> None:
    write = pack_write(idx, "channel", (kind, data))
    assert (write.idx, write.channel) == (idx, "channel")
    assert len(write.data) <= len(data)
    assert unpack_write(write) == (kind, data)


def test_lies_are_refused() -> None:
    kind, frame = pack_record(("msgpack", b"abc" * 1000))
    assert kind == "msgpack+zstd1"
    for lie in (frame[:-1], frame + b"x", b"\x01" + frame[1:], (MAX_RECORD + 1).to_bytes(4, "little") + frame[4:], b""):
        with pytest.raises(Corrupt):
            unpack_record(kind, lie)
    write = pack_write(0, "c", ("msgpack", b"abc" * 1000))
    for size in (1, 2999, 3001, MAX_WRITE + 1):
        with pytest.raises(Corrupt):
            unpack_write(store_pb2.Write(type="msgpack", data=write.data, size=size))


def test_a_record_as_langgraph_writes_it_is_a_fraction_of_itself() -> None:
    record = (
        b"\x86\xa1v\x04\xa2ts\xd9 2026-11-30T06:01:12.975716+00:00\xa2id\xd9$1f1ec837-26c2-6623-800a-1cbb3286a613"
        b"\xb0channel_versions\x84\xa9__start__\xb300000002.b4613d50aa\xa8messages\xb300000011.f0f970d9bb"
        b"\xabbranch:to:a\xb300000011.f0f970d9bb\xa1n\xb300000012.0177f950cc\xadversions_seen\x83\xa9__input__\x80"
        b"\xa9__start__\x81\xa9__start__\xb300000001.42e2877bdd\xa1a\x81\xabbranch:to:a\xb300000010.74d52084ee"
    )
    assert len(pack_record(("msgpack", record))[1]) < 0.45 * len(record)
