"""Parts come in any order, twice, too large, or not at all."""

import pytest

from agentvisor.core.errors import Corrupt, InvalidInput, ValueTooLarge
from agentvisor.host.external.uploads import Uploads
from agentvisor.protocol.v1.store_pb2 import PutPart


def part(offset: int, data: bytes, total: int, upload: bytes = b"one") -> PutPart:
    return PutPart(upload=upload, offset=offset, data=data, total=total)


@pytest.fixture
def uploads() -> Uploads:
    return Uploads(1000, "storage.max_value")


async def test_parts_make_the_whole_in_any_order_and_count_once(uploads: Uploads) -> None:
    for offset, data in ((4, b"5678"), (0, b"1234"), (4, b"5678"), (8, b"9")):
        await uploads.take(part(offset, data, 9))
    assert await uploads.collect(b"one", 9) == b"123456789"


async def test_a_part_that_is_missing_is_asked_for_again(uploads: Uploads) -> None:
    await uploads.take(part(0, b"1234", 8))
    with pytest.raises(Corrupt, match="sent again"):
        await uploads.collect(b"one", 8)
    with pytest.raises(Corrupt):
        await uploads.collect(b"never heard of", 8)


async def test_an_upload_is_collected_once(uploads: Uploads) -> None:
    await uploads.take(part(0, b"1234", 4))
    await uploads.collect(b"one", 4)
    with pytest.raises(Corrupt):
        await uploads.collect(b"one", 4)


@pytest.mark.parametrize(
    "offset, data, total", [(0, b"", 4), (2, b"1234", 4), (5, b"1", 4), (0, b"1" * (2 << 20), 3 << 20)]
)
async def test_a_part_that_cannot_be_one_is_refused(offset: int, data: bytes, total: int) -> None:
    with pytest.raises(InvalidInput):
        await Uploads(8 << 20, "storage.max_value").take(part(offset, data, total))


async def test_a_total_that_changes_is_refused(uploads: Uploads) -> None:
    await uploads.take(part(0, b"1234", 8))
    with pytest.raises(InvalidInput):
        await uploads.take(part(4, b"5678", 9))


async def test_too_large_a_value_is_refused_at_its_first_part(uploads: Uploads) -> None:
    with pytest.raises(ValueTooLarge, match=r"1001 bytes.*limit is 1000.*storage\.max_value"):
        await uploads.take(part(0, b"1", 1001))


async def test_what_waits_longest_makes_room(uploads: Uploads) -> None:
    for number in range(6):
        await uploads.take(part(0, b"x" * 900, 900, upload=str(number).encode()))
    assert await uploads.collect(b"5", 900) == b"x" * 900
    with pytest.raises(Corrupt):
        await uploads.collect(b"0", 900)
