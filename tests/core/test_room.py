"""How a thread's room is divided."""

from hypothesis import given
from hypothesis import strategies as st

from agentvisor.core.room import reserve_of, room_in


@given(st.integers(1_000, 1_950_000))
def test_each_may_fill_a_little_more_than_the_one_before(limit: int) -> None:
    room = room_in(limit)
    assert limit // 2 < room.growth < room.beginnings < room.runs < limit
    assert 0 < room.step < (room.beginnings - room.growth) / 8


def test_the_reserve_is_small() -> None:
    assert [reserve_of(one) for one in (20_000, 60_000, 300_000, 1_800_000)] == [5_000, 8_192, 18_750, 65_536]
