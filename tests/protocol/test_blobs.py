"""Blobs decode to what was encoded, whatever they start from, and bytes that lie are refused."""

import contextlib
import os
import random
import resource
import time

import ormsgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentvisor.core.errors import Corrupt, ValueTooLarge
from agentvisor.protocol import blobs, splice
from agentvisor.protocol.blobs import Limits, Stored, blob_key, decode, encode, stored
from agentvisor.protocol.compression import compress, decompress
from agentvisor.protocol.v1 import store_pb2

pytestmark = pytest.mark.thorough

LIMITS = Limits()
MAX = 1 << 30


def whole(data: bytes) -> Stored:
    return stored(encode("msgpack", data, None, LIMITS), data, None)


def message(number: int, size: int = 1500) -> dict[str, object]:
    words = random.Random(number)
    return {"type": "ai", "id": str(number), "content": " ".join(f"w{words.randrange(3000)}" for _ in range(size // 5))}


def conversation(length: int) -> list[dict[str, object]]:
    return [message(number) for number in range(length)]


# --- keys ----------------------------------------------------------------------------------------------------------


def test_the_key_tells_type_and_bytes_apart() -> None:
    assert blob_key("ab", b"c") != blob_key("a", b"bc")
    assert blob_key("null", b"") != blob_key("bytes", b"")
    assert blob_key("msgpack", b"x") == blob_key("msgpack", b"x")
    assert len(blob_key("msgpack", b"x")) == 32


# --- round trips ---------------------------------------------------------------------------------------------------

pieces = st.lists(st.binary(max_size=400) | st.binary(max_size=3).map(lambda few: few * 300), max_size=12).map(b"".join)


@given(pieces, pieces, st.integers(0, 5000), st.integers(0, 5000))
@settings(max_examples=300, deadline=None)
def test_what_is_encoded_against_any_base_decodes_to_itself(base: bytes, new: bytes, cut: int, at: int) -> None:
    edited = base[:at] + new + base[at + cut % 50 :]
    for value in (new, base + new, edited, base[cut:] + new, b"\x91" + base, base):
        blob = encode("msgpack", value, whole(base), LIMITS)
        assert decode(blob, base if blob.base else None, MAX) == value
        assert blob.size == len(value)


@given(pieces, pieces, st.integers(0, 5000), st.integers(0, 50))
@settings(max_examples=300, deadline=None)
def test_runs_rebuild_the_value(base: bytes, new: bytes, at: int, cut: int) -> None:
    for value in (new, base[:at] + new + base[at + cut :], base + new):
        runs = splice.find_runs(base, value)
        assert splice.unpack(splice.pack(runs, base, value), base, len(value)) == value


@pytest.mark.parametrize("length", [1, 14, 15, 16, 17, 255, 256])
@pytest.mark.parametrize(
    "wrap",
    [
        pytest.param(lambda items: items, id="list"),
        pytest.param(lambda items: {"before": "x" * 64, "items": items, "after": "y" * 64}, id="list inside a dict"),
        pytest.param(lambda items: ormsgpack.Ext(7, ormsgpack.packb(items)), id="extension around a list"),
    ],
)
def test_an_appended_list_is_a_splice_whatever_its_headers_grow_to(length: int, wrap: object) -> None:
    assert callable(wrap)
    before, after = (ormsgpack.packb(wrap(conversation(count))) for count in (length, length + 1))
    blob = encode("msgpack", after, whole(before), LIMITS)
    assert decode(blob, before, MAX) == after
    if length > 1:
        assert blob.encoding == store_pb2.ENCODING_SPLICE
        assert len(blob.data) < 1200


def test_a_list_of_65536_grows_its_header_once_more() -> None:
    before, after = (ormsgpack.packb(list(range(count))) for count in (65535, 65536))
    blob = encode("msgpack", after, whole(before), LIMITS)
    assert (blob.encoding, decode(blob, before, MAX)) == (store_pb2.ENCODING_SPLICE, after)
    assert len(blob.data) < 32


def test_a_replaced_last_element_costs_about_that_element() -> None:
    before = ormsgpack.packb([*conversation(100), message(1000)])
    after = ormsgpack.packb([*conversation(100), message(1001)])
    blob = encode("msgpack", after, whole(before), LIMITS)
    assert blob.encoding == store_pb2.ENCODING_SPLICE
    assert len(blob.data) < 1200


def test_a_replaced_element_in_the_middle_costs_about_that_element() -> None:
    items = conversation(100)
    before, after = ormsgpack.packb(items), ormsgpack.packb([*items[:40], message(1001, 800), *items[41:]])
    blob = encode("msgpack", after, whole(before), LIMITS)
    assert blob.encoding == store_pb2.ENCODING_SPLICE
    assert len(blob.data) < 1200


def test_a_shuffled_list_is_a_patch() -> None:
    items = conversation(100)
    shuffled = random.Random(1).sample(items, 100)
    before, after = ormsgpack.packb(items), ormsgpack.packb(shuffled)
    blob = encode("msgpack", after, whole(before), LIMITS)
    assert blob.encoding == store_pb2.ENCODING_PATCH
    assert len(blob.data) < len(before) // 20
    assert decode(blob, before, MAX) == after


def test_small_and_incompressible_values_are_stored_as_they_are() -> None:
    noise = os.urandom(50_000)
    for value in (b"", b"small", noise):
        blob = encode("bytes", value, None, LIMITS)
        assert (blob.encoding, blob.data) == (store_pb2.ENCODING_RAW, value)
        assert decode(blob, None, MAX) == value


def test_a_value_with_nothing_in_common_starts_fresh() -> None:
    blob = encode("bytes", os.urandom(50_000), whole(os.urandom(50_000)), LIMITS)
    assert (blob.base, blob.depth) == (b"", 0)


# --- chains --------------------------------------------------------------------------------------------------------


def chain(values: list[bytes], limits: Limits = LIMITS) -> list[store_pb2.Blob]:
    made: list[store_pb2.Blob] = []
    last: Stored | None = None
    for value in values:
        blob = encode("msgpack", value, last, limits)
        assert decode(blob, last.data if last and blob.base else None, MAX) == value
        last = stored(blob, value, last if blob.base else None)
        made.append(blob)
    return made


def test_a_growing_conversation_stores_a_small_multiple_of_its_final_size() -> None:
    values = [ormsgpack.packb(conversation(length)) for length in range(1, 201)]
    made = chain(values)
    assert sum(len(blob.data) for blob in made) < 5 * len(
        made[-1].data if not made[-1].base else compress(values[-1], level=3)
    )
    assert max(blob.depth for blob in made) <= LIMITS.patch_chain


def test_chains_are_no_longer_than_the_limit() -> None:
    values = [ormsgpack.packb(conversation(length)) for length in range(1, 40)]
    assert max(blob.depth for blob in chain(values, Limits(patch_chain=5))) == 5
    assert {blob.depth for blob in chain(values, Limits(patch_chain=0))} == {0}


def test_a_value_that_changes_much_at_every_step_does_not_grow_a_chain_of_more_than_twice_a_fresh_start() -> None:
    shuffler = random.Random(3)
    items = conversation(200)
    values = [ormsgpack.packb(shuffler.sample(items, 60)) for _ in range(40)]
    last: Stored | None = None
    for value in values:
        blob = encode("msgpack", value, last, LIMITS)
        last = stored(blob, value, last if blob.base else None)
        assert last.chain_bytes <= 3 * len(compress(value, level=3))


def test_one_more_message_on_725_kb_takes_well_under_a_millisecond_and_about_a_kilobyte() -> None:
    items = conversation(500)
    before, after = ormsgpack.packb(items[:-1]), ormsgpack.packb(items)
    assert 600_000 < len(before) < 900_000
    predecessor = whole(before)
    best = 1.0
    for _ in range(20):
        start = time.perf_counter()
        blob = encode("msgpack", after, predecessor, LIMITS)
        best = min(best, time.perf_counter() - start)
    assert blob.ByteSize() < 1200
    # Half of it is SHA-256; ten times the target, for machines without SHA instructions that do other things too.
    assert best < 0.010


# --- bytes that lie ------------------------------------------------------------------------------------------------


def test_a_wrong_base_is_refused() -> None:
    before, after = ormsgpack.packb(conversation(50)), ormsgpack.packb(conversation(51))
    shuffled = ormsgpack.packb(conversation(50)[::-1])
    for blob in (encode("msgpack", after, whole(before), LIMITS), encode("msgpack", shuffled, whole(before), LIMITS)):
        assert blob.base
        other = bytearray(before)
        other[len(other) // 2] ^= 1
        for wrong in (None, b"", bytes(other), before[:-100]):
            with pytest.raises(Corrupt):
                decode(blob, wrong, MAX)


@pytest.mark.parametrize("encoding", [1, 2, 3, 4])
def test_a_wrong_size_key_type_or_data_is_refused(encoding: int) -> None:
    before = ormsgpack.packb(conversation(20))
    blob = {
        1: encode("msgpack", b"raw", None, LIMITS),
        2: encode("msgpack", before, None, LIMITS),
        3: encode("msgpack", ormsgpack.packb(conversation(20)[::-1]), whole(before), LIMITS),
        4: encode("msgpack", ormsgpack.packb(conversation(21)), whole(before), LIMITS),
    }[encoding]
    assert blob.encoding == encoding
    base = before if blob.base else None
    decode(blob, base, MAX)
    lies = [
        {"size": blob.size + 1},
        {"size": blob.size - 1},
        {"size": 0},
        {"key": bytes(32)},
        {"type": "bytes"},
        {"data": blob.data[:-1]},
        {"data": blob.data + b"x"},
        {"data": b""},
        {"encoding": 9},
    ]
    for lie in lies:
        wrong = store_pb2.Blob()
        wrong.CopyFrom(blob)
        for name, value in lie.items():
            setattr(wrong, name, value)
        with pytest.raises(Corrupt):
            decode(wrong, base, MAX)


def test_a_value_over_the_limit_is_refused_before_it_is_decoded() -> None:
    blob = store_pb2.Blob(encoding=store_pb2.ENCODING_ZSTD, data=b"not even zstd", size=1001)
    with pytest.raises(ValueTooLarge, match="1001 bytes"):
        decode(blob, None, 1000)


@pytest.mark.parametrize("encoding", [store_pb2.ENCODING_ZSTD, store_pb2.ENCODING_PATCH])
def test_a_zstd_bomb_is_refused_without_being_produced(encoding: store_pb2.Encoding.ValueType) -> None:
    bomb = compress(bytes(500_000_000), level=1)
    assert len(bomb) < 50_000
    before = peak_memory()
    with pytest.raises(Corrupt):
        decode(store_pb2.Blob(encoding=encoding, data=bomb, size=1000), b"base", MAX)
    assert peak_memory() - before < 64 * 1024 * 1024


def test_a_splice_cannot_make_more_than_it_declares() -> None:
    base = b"x" * 10_000
    repeated = splice.pack([splice.Run(0, 0, 10_000)] * 10, base, base * 10)
    assert splice.unpack(repeated, base, 100_000) == base * 10
    for size in (1000, 99_999, 100_001):
        with pytest.raises(Corrupt):
            splice.unpack(repeated, base, size)
    bomb = splice.pack([], b"", b"")[:1] + bytes([1]) + compress(bytes(10_000_000), level=1)
    with pytest.raises(Corrupt):
        splice.unpack(bomb, base, 1000)


@given(st.binary(max_size=200), st.binary(max_size=100), st.integers(0, 10_000))
@settings(max_examples=500, deadline=None)
def test_any_bytes_are_refused_or_are_the_value(data: bytes, base: bytes, size: int) -> None:
    for encoding in (1, 2, 3, 4):
        blob = store_pb2.Blob(encoding=store_pb2.Encoding.ValueType(encoding), data=data, size=size, key=bytes(32))
        with pytest.raises(Corrupt):
            decode(blob, base, MAX)
    with contextlib.suppress(Corrupt):
        assert len(splice.unpack(data, base, size)) == size


def test_decompression_takes_nothing_but_the_one_frame() -> None:
    frame = compress(b"a" * 1000, level=3)
    assert decompress(frame, size=1000) == b"a" * 1000
    for wrong in (frame + b"x", frame + frame, frame[:-1], b""):
        with pytest.raises(Corrupt):
            decompress(wrong, size=1000)


def test_a_depth_and_its_base_are_those_of_the_predecessor() -> None:
    before = ormsgpack.packb(conversation(20))
    predecessor = Stored(b"k" * 32, "msgpack", before, 7, 5000, 5000, len(before))
    blob = encode("msgpack", ormsgpack.packb(conversation(21)), predecessor, LIMITS)
    assert (blob.base, blob.depth) == (b"k" * 32, 8)
    after = stored(blob, b"", predecessor)
    assert after.chain_bytes == 5000 + len(blob.data)
    assert blobs.stored(encode("msgpack", before, None, LIMITS), before, None).depth == 0


def peak_memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
