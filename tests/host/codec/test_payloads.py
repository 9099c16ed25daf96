"""A payload is what it was where it was written, and nothing anywhere else or in any other form."""

import os
from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st
from temporalio.api.common.v1 import Payload
from temporalio.converter import ActivitySerializationContext, WorkflowSerializationContext

from agentvisor.core.errors import Corrupt, Sealed
from agentvisor.host.codec.keyring import Key, Keyring
from agentvisor.host.codec.payloads import ENCODING, REFUSED, SealingCodec, opened, sealed
from agentvisor.host.codec.places import NOWHERE, Place, place

OLD, NEW = Key("old", b"o" * 32), Key("new", b"n" * 32)
HERE = WorkflowSerializationContext("default", "thread-a")
THERE = WorkflowSerializationContext("default", "thread-b")
PLAIN = Payload(metadata={"encoding": b"binary/plain"}, data=b"what nobody may see")
LIMIT = 2 * 1024 * 1024


def codec(*keys: Key, required: bool = True) -> SealingCodec:
    return SealingCodec(Keyring(keys), required=required)


async def written(payload: Payload = PLAIN, key: Key = NEW) -> Payload:
    (one,) = await codec(key).with_context(HERE).encode([payload])
    return one


def changed(payload: Payload, **metadata: bytes) -> Payload:
    other = Payload()
    other.CopyFrom(payload)
    for name, value in metadata.items():
        other.metadata[name.replace("_", "-")] = value
    return other


@given(st.binary(max_size=3_000), st.text(max_size=40), st.text(max_size=40))
def test_a_payload_comes_back_as_it_was(data: bytes, namespace: str, workflow: str) -> None:
    payload, where = Payload(metadata={"encoding": b"binary/plain"}, data=data), Place(namespace, workflow)
    assert opened(sealed(payload, NEW, where), Keyring([NEW]), where) == payload


async def test_nothing_of_it_can_be_seen_and_it_says_with_which_key_and_where_it_was_written() -> None:
    one = await written()
    assert PLAIN.data not in one.SerializeToString()
    assert one.metadata["encoding"] == ENCODING
    assert one.metadata["agentvisor-key"] == b"new"
    assert one.metadata["agentvisor-place"] == b'["default","thread-a"]'
    assert one.data != (await written()).data


async def test_an_activity_of_the_thread_reads_what_the_thread_wrote() -> None:
    context = ActivitySerializationContext("default", "1", "run", "queue", "thread-a", "agentvisor.thread", False)
    assert await codec(NEW).with_context(context).decode([await written()]) == [PLAIN]


async def test_what_is_moved_to_another_thread_or_namespace_is_refused_and_the_error_names_both() -> None:
    one = await written()
    with pytest.raises(Corrupt, match=r"thread-b of namespace default .* written for thread-a"):
        await codec(NEW).with_context(THERE).decode([one])
    for elsewhere in (WorkflowSerializationContext("other", "thread-a"), None):
        reader = codec(NEW) if elsewhere is None else codec(NEW).with_context(elsewhere)
        with pytest.raises(Corrupt):
            await reader.decode([one])


async def test_a_payload_that_is_made_to_name_another_thread_is_refused() -> None:
    forged = changed(await written(), agentvisor_place=b'["default","thread-b"]')
    with pytest.raises(Corrupt, match="does not decrypt"):
        await codec(NEW).with_context(THERE).decode([forged])


@pytest.mark.parametrize("where", range(0, 80, 7))
async def test_a_changed_or_cut_payload_is_refused(where: int) -> None:
    one = await written()
    bad = bytearray(one.data)
    bad[where % len(bad)] ^= 1
    for data in (bytes(bad), one.data[: where % len(one.data)], b"", one.data + b"\0"):
        broken = Payload(metadata=dict(one.metadata), data=data)
        with pytest.raises(Corrupt, match=r"thread-a of namespace default .*damaged or cut"):
            await codec(NEW).with_context(HERE).decode([broken])


@pytest.mark.parametrize(
    "place",
    [
        b"", b"{}", b"[1,2]", b'["a"]', b"\xff", b"[" * 16_000, b"[" * 100_000,
        b'["\\ud800","thread-a"]', b'["%s","thread-a"]' % (b"n" * 100_000),
    ],
)  # fmt: skip
async def test_a_place_that_is_none_is_damage_and_no_crash(place: bytes) -> None:
    """In a worker everything else than damage would be tried again for ever."""
    bad = changed(await written(), agentvisor_place=place)
    with pytest.raises(Corrupt, match="does not say where"):
        await codec(NEW).with_context(HERE).decode([bad])
    (refused,) = await codec(NEW).in_workers().with_context(HERE).decode([bad])
    assert refused.metadata["encoding"] == REFUSED


async def test_a_key_that_is_not_there_is_named() -> None:
    with pytest.raises(Sealed, match=r"thread-a .*key 'new', which this host does not have: add it to encryption.keys"):
        await codec(OLD).with_context(HERE).decode([await written()])
    with pytest.raises(Sealed, match="'new'"):
        await codec(required=False).with_context(HERE).decode([await written()])


async def test_an_error_shows_little_of_an_id_that_no_key_can_have() -> None:
    bad = changed(await written(), agentvisor_key=b"q" * 1_000_000)
    with pytest.raises(Sealed, match=r"q{33}'") as refused:
        await codec(NEW).with_context(HERE).decode([bad])
    assert len(str(refused.value)) < 500


async def test_another_key_under_the_same_id_is_told_from_damage() -> None:
    """Damage is left out; what a mistake in a configuration would leave out is lost."""
    wrong = Key("new", b"w" * 32)
    with pytest.raises(Sealed, match="another key 'new'"):
        await codec(wrong).with_context(HERE).decode([await written()])


async def test_after_a_rotation_the_old_key_reads_and_the_new_one_writes() -> None:
    rotated = SealingCodec(Keyring([OLD, NEW], "new"), required=True).with_context(HERE)
    assert await rotated.decode([await written(key=OLD)]) == [PLAIN]
    (one,) = await rotated.encode([PLAIN])
    assert one.metadata["agentvisor-key"] == b"new"


async def test_plaintext_is_refused_where_encryption_is_required_and_read_where_it_is_not() -> None:
    with pytest.raises(Sealed, match=r"thread-a .*not encrypted.*encryption.required"):
        await codec(NEW).with_context(HERE).decode([PLAIN])
    assert await codec(NEW, required=False).with_context(HERE).decode([PLAIN]) == [PLAIN]
    assert await codec(required=False).with_context(HERE).encode([PLAIN]) == [PLAIN]


async def test_in_a_worker_damage_becomes_something_that_is_no_value_and_a_missing_key_stays_an_error() -> None:
    cut = Payload(metadata=dict((await written()).metadata), data=b"cut")
    worker = codec(NEW).in_workers()
    (refused,) = await worker.with_context(HERE).decode([cut])
    assert refused.metadata["encoding"] == REFUSED
    with pytest.raises(Sealed):
        await codec(OLD).in_workers().with_context(HERE).decode([await written()])
    with pytest.raises(Sealed):
        await worker.with_context(HERE).decode([PLAIN])


async def test_what_the_sdk_gives_no_place_passes_for_nothing_that_has_one() -> None:
    (nowhere,) = await codec(NEW).encode([PLAIN])
    assert await codec(NEW).decode([nowhere]) == [PLAIN]
    with pytest.raises(Corrupt):
        await codec(NEW).with_context(HERE).decode([nowhere])
    assert place("", "") == NOWHERE


def test_all_firings_of_a_cron_are_one_place() -> None:
    fired = place("default", "agentvisor-cron:q:c1-2026-11-30T20:00:00Z")
    assert fired == place("default", "agentvisor-cron:q:c1") != place("default", "agentvisor-cron:q:c2")
    assert place("default", "t-2026-11-30T20:00:00Z").workflow_id.endswith("Z")


def test_the_largest_that_is_let_in_stays_under_temporals_limit() -> None:
    """`storage.max_state` is at most 1,950,000 bytes, an id has some hundred characters."""
    largest = Payload(metadata={"encoding": b"binary/plain"}, data=os.urandom(1_950_000))
    where = Place("n" * 255, "t" * 1_000)
    added = sealed(largest, NEW, where).ByteSize() - 1_950_000
    assert added < 2_000
    assert 1_950_000 + added < LIMIT


def test_text_is_compressed_before_it_is_encrypted() -> None:
    text = Payload(metadata={"encoding": b"binary/plain"}, data=b"the same words again, " * 1_000)
    assert sealed(text, NEW, Place("default", "t")).ByteSize() < 1_000


def test_a_key_shows_nothing_of_itself() -> None:
    secret = b"s" * 32
    assert b64encode(secret).decode() not in repr(Key("k", secret)) + repr(vars(Keyring([Key("k", secret)])))
    with pytest.raises(ValueError, match="needs 32"):
        Key("k", b"short")
