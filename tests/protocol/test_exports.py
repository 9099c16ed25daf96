"""Files of threads: whole ones are read in any pieces, and no other is taken for one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentvisor.core.errors import InvalidInput, StorageUnavailable
from agentvisor.protocol.exports import FORMAT, MAGIC, Reader, Writer, failed
from agentvisor.protocol.v1 import export_pb2, store_pb2, thread_pb2


def record(**kind: object) -> export_pb2.ExportRecord:
    return export_pb2.ExportRecord(**kind)  # pyright: ignore[reportArgumentType]


RECORDS = [
    record(thread=thread_pb2.Thread(thread_id="t", version=1)),
    record(value=store_pb2.Blob(key=b"k" * 32, type="msgpack", data=b"data")),
    record(part=b"more"),
]


def begun(form: int = FORMAT) -> tuple[Writer, bytes]:
    writer = Writer()
    return writer, writer.begin(export_pb2.ExportHeader(format=form, thread_id="t", made_by="9.9"))


def written() -> bytes:
    writer, data = begun()
    return data + b"".join(map(writer.record, RECORDS)) + writer.end()


FILE = written()


def read(data: bytes, at_a_time: int = 1 << 20) -> list[export_pb2.ExportRecord]:
    reader = Reader()
    found = [one for at in range(0, len(data), at_a_time) for one in reader.feed(data[at : at + at_a_time])]
    reader.close()
    return found


@given(st.integers(1, len(FILE)))
def test_a_file_is_read_in_pieces_of_any_size(size: int) -> None:
    assert read(FILE, size)[1:-1] == RECORDS


@given(st.integers(0, len(FILE) - 1))
def test_a_file_that_was_cut_off_anywhere_is_refused(length: int) -> None:
    with pytest.raises(InvalidInput, match=r"no exported thread|cut off"):
        read(FILE[:length])


@given(st.integers(0, len(FILE) - 1), st.integers(1, 255))
def test_a_file_with_another_byte_anywhere_is_refused_with_its_place(at: int, change: int) -> None:
    garbled = FILE[:at] + bytes([FILE[at] ^ change]) + FILE[at + 1 :]
    with pytest.raises(InvalidInput) as refused:
        read(garbled)
    assert int(refused.value.details["position"]) <= at


def test_a_file_of_something_else_is_refused_at_its_first_bytes() -> None:
    with pytest.raises(InvalidInput, match="agentvisor threads export"):
        next(Reader().feed(b"PK\x03\x04"), None)


def test_what_follows_the_end_is_refused() -> None:
    with pytest.raises(InvalidInput, match="follow its end"):
        read(FILE + b"x")
    with pytest.raises(InvalidInput):
        read(FILE + FILE)


def test_a_file_whose_records_were_put_in_another_order_or_left_out_is_refused() -> None:
    writer, data = begun()
    first, second, third = map(writer.record, RECORDS)
    end = writer.end()
    for other in (data + second + first + third + end, data + first + third + end, data[:18] + first + end):
        with pytest.raises(InvalidInput, match=r"hash|records came before|must be the header"):
            read(other)


def test_a_newer_format_says_what_to_do() -> None:
    _, data = begun(FORMAT + 1)
    with pytest.raises(InvalidInput, match=rf"format {FORMAT + 1}, made by AgentVisor 9.9.*upgrade this one"):
        read(data)


def test_a_host_that_could_not_go_on_says_so_in_the_file() -> None:
    _, data = begun()
    with pytest.raises(StorageUnavailable, match="could not finish the export: the bucket is gone"):
        read(data + failed("storage_unavailable", "the bucket is gone"))


def test_a_record_of_an_absurd_size_is_not_waited_for() -> None:
    with pytest.raises(InvalidInput, match="more than any has"):
        next(Reader().feed(MAGIC + b"\xff\xff\xff\xff"), None)
