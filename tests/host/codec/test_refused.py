"""What a host refuses to take is counted by where it came from and why; what it takes is not."""

from pathlib import Path

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.converter import WorkflowSerializationContext

from agentvisor.core.errors import Corrupt, Sealed
from agentvisor.core.records import Blob, BlobKey, Encoding
from agentvisor.host.codec.keyring import Key, Keyring
from agentvisor.host.codec.objects import ObjectCipher
from agentvisor.host.codec.payloads import SealingCodec
from agentvisor.host.codec.refused import Refused
from agentvisor.host.external.backend import open_backend
from agentvisor.host.external.storage import ExternalStorage
from agentvisor.host.metrics import REFUSED_PAYLOADS

KEY, OTHER, WRONG = Key("k", b"k" * 32), Key("other", b"o" * 32), Key("k", b"w" * 32)
HERE = WorkflowSerializationContext("default", "here")
PLAIN = Payload(metadata={"encoding": b"binary/plain"}, data=b"something")
PATH = "thread/here/value.mark.1.encrypted"


def counted() -> dict[tuple[str, str], float]:
    """What has been refused so far, by source and reason; each that there can be, from the start."""
    (metric,) = REFUSED_PAYLOADS.collect()
    return {
        (one.labels["source"], one.labels["reason"]): one.value for one in metric.samples if one.name.endswith("_total")
    }


def grown(before: dict[tuple[str, str], float]) -> dict[tuple[str, str], float]:
    return {labels: value - before[labels] for labels, value in counted().items() if value != before[labels]}


def codec(*keys: Key) -> SealingCodec:
    return SealingCodec(Keyring(keys), required=True)


async def payload(of: Refused) -> tuple[SealingCodec, Payload]:
    """A payload that is refused for this reason, and whom by."""
    where = WorkflowSerializationContext("default", "there") if of is Refused.MOVED else HERE
    (one,) = await codec(KEY).with_context(where).encode([PLAIN])
    match of:
        case Refused.PLAINTEXT:
            return codec(KEY), PLAIN
        case Refused.UNKNOWN_KEY:
            return codec(OTHER), one
        case Refused.OTHER_KEY:
            return codec(WRONG), one
        case Refused.MOVED:
            return codec(KEY), one
        case Refused.DAMAGED:
            return codec(KEY), Payload(metadata=dict(one.metadata), data=one.data[:-1])


@pytest.mark.parametrize("reason", Refused)
async def test_a_payload_that_is_refused_is_counted_by_reason_for_readers_and_in_workers(reason: Refused) -> None:
    host, bad = await payload(reason)
    before = counted()
    with pytest.raises((Sealed, Corrupt)) as refused:
        await host.with_context(HERE).decode([bad])
    assert refused.value.details["reason"] == reason.value
    assert grown(before) == {("temporal", reason.value): 1}

    worker = host.in_workers().with_context(HERE)
    if isinstance(refused.value, Corrupt):
        await worker.decode([bad])
    else:
        with pytest.raises(Sealed):
            await worker.decode([bad])
    assert grown(before) == {("temporal", reason.value): 2}


async def test_what_is_taken_is_not_counted() -> None:
    before = counted()
    sealing = codec(KEY).with_context(HERE)
    assert await sealing.decode(await sealing.encode([PLAIN])) == [PLAIN]
    assert grown(before) == {}


async def test_an_object_that_is_refused_is_counted_and_one_that_is_gone_is_not(tmp_path: Path) -> None:
    backend = open_backend(tmp_path.as_uri(), {})

    def storage(cipher: ObjectCipher | None) -> ExternalStorage:
        return ExternalStorage(backend, tmp_path.as_uri(), retry_for=1, cipher=cipher)

    ours = storage(ObjectCipher(Keyring([KEY]), "default"))
    blob = Blob(BlobKey(b"k" * 32), "json", Encoding.RAW, b"", None, 5, 0, location=PATH, stored_size=5)
    await ours.write(PATH, b"value", "a value")
    before = counted()
    assert await ours.read(blob) == b"value"
    assert grown(before) == {}

    for cipher in (None, ObjectCipher(Keyring([OTHER]), "default"), ObjectCipher(Keyring([WRONG]), "default")):
        with pytest.raises(Sealed):
            await storage(cipher).read(blob)
    with pytest.raises(Corrupt):
        await storage(ObjectCipher(Keyring([KEY]), "another")).read(blob)
    await ours.delete([PATH])
    with pytest.raises(Corrupt, match="is gone"):
        await ours.read(blob)
    counts = {"unknown_key": 2, "other_key": 1, "damaged": 1}
    assert grown(before) == {("storage", reason): number for reason, number in counts.items()}
