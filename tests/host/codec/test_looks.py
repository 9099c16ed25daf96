"""However many wait for a thread that does not answer, few looks are made at why."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from tests.support.waiting import until

from agentvisor.core.errors import Sealed
from agentvisor.host.codec.looks import Looks


class Watched:
    """Looks that are counted, and held until they are let go."""

    def __init__(self, error: Sealed | None = None) -> None:
        self.begun: list[str] = []
        self.cancelled: list[str] = []
        self.go = asyncio.Event()
        self.error = error

    def at(self, name: str) -> Callable[[], Coroutine[Any, Any, None]]:
        async def look() -> None:
            self.begun.append(name)
            try:
                await self.go.wait()
            except asyncio.CancelledError:
                self.cancelled.append(name)
                raise
            if self.error is not None:
                raise self.error

        return look


async def begun(watched: Watched, *names: str) -> None:
    await until(lambda: watched.begun == [*names])


async def test_those_who_wait_for_one_thread_share_one_look_and_each_gets_its_error() -> None:
    looks, watched = Looks(), Watched(Sealed("written with key 'gone'", reason="unknown_key"))
    asking = [asyncio.create_task(looks.at("t", watched.at("t"))) for _ in range(50)]
    await begun(watched, "t")
    watched.go.set()
    errors = await asyncio.gather(*asking, return_exceptions=True)
    assert watched.begun == ["t"]
    assert {(type(one), str(one)) for one in errors} == {(Sealed, "written with key 'gone'")}
    assert len({id(one) for one in errors}) == 50
    assert all(isinstance(one, Sealed) and one.details == {"reason": "unknown_key"} for one in errors)


@pytest.mark.parametrize("error", [None, Sealed("written with key 'gone'")])
async def test_what_was_seen_counts_for_a_moment_and_then_it_is_looked_again(error: Sealed | None) -> None:
    for fresh, times in ((60.0, 1), (0.0, 3)):
        looks, watched = Looks(fresh=fresh), Watched(error)
        watched.go.set()
        said = [await asyncio.gather(looks.at("t", watched.at("t")), return_exceptions=True) for _ in range(3)]
        assert [repr(one) for (one,) in said] == [repr(error)] * 3
        assert watched.begun == ["t"] * times


async def test_there_are_few_looks_at_a_time_and_whoever_finds_no_room_does_not_wait() -> None:
    looks, watched = Looks(most=2), Watched()
    asking = [asyncio.create_task(looks.at(name, watched.at(name))) for name in ("a", "b")]
    await begun(watched, "a", "b")
    await asyncio.wait_for(looks.at("c", watched.at("c")), 10)
    assert watched.begun == ["a", "b"]
    watched.go.set()
    await asyncio.gather(*asking)
    await looks.at("c", watched.at("c"))
    assert watched.begun == ["a", "b", "c"]


async def test_a_look_goes_on_for_those_who_still_wait_and_ends_with_the_last() -> None:
    looks, watched = Looks(), Watched()
    first, second = (asyncio.create_task(looks.at("t", watched.at("t"))) for _ in range(2))
    await begun(watched, "t")
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    assert watched.cancelled == []
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    assert watched.cancelled == ["t"]
    watched.go.set()
    await looks.at("t", watched.at("t"))
    assert watched.begun == ["t", "t"], "what was broken off has seen nothing"
