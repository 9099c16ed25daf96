"""A workflow that answers slowly is not made slower by the look at why."""

import asyncio
from typing import Any, cast

import pytest
from temporalio.client import Client

from agentvisor.core.errors import Sealed
from agentvisor.host.codec import reading


async def test_an_answer_that_comes_late_does_not_wait_for_the_look_at_why(monkeypatch: pytest.MonkeyPatch) -> None:
    looking, cancelled = asyncio.Event(), asyncio.Event()

    async def never(*_: Any) -> None:
        looking.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    async def late() -> str:
        await looking.wait()
        return "here"

    monkeypatch.setattr(reading, "check_readable", never)
    monkeypatch.setattr(reading, "_SOON", 0.01)
    answer = await asyncio.wait_for(reading.answered(cast("Client", None), "t", late()), 10)
    assert answer == "here"
    assert cancelled.is_set()


async def test_what_cannot_be_read_is_said_while_the_answer_does_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    given_up = asyncio.Event()

    async def sealed(*_: Any) -> None:
        raise Sealed("written with key 'gone'")

    async def silent() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            given_up.set()
        return ""

    monkeypatch.setattr(reading, "check_readable", sealed)
    monkeypatch.setattr(reading, "_SOON", 0.01)
    with pytest.raises(Sealed, match="gone"):
        await asyncio.wait_for(reading.answered(cast("Client", None), "t", silent()), 10)
    assert given_up.is_set()


async def test_all_who_read_through_one_client_look_at_a_thread_once(monkeypatch: pytest.MonkeyPatch) -> None:
    class Anybody:
        """A client that is asked nothing."""

    read: list[str] = []

    async def beginning(_client: Any, workflow_id: str) -> None:
        read.append(workflow_id)
        await asyncio.sleep(0)

    monkeypatch.setattr(reading, "_read_beginning", beginning)
    client, another = cast("Client", Anybody()), cast("Client", Anybody())
    asked = [reading.check_readable(client, thread) for thread in ("t", "u") * 100]
    await asyncio.gather(*asked)
    assert sorted(read) == ["t", "u"]
    await reading.check_readable(another, "t")
    assert sorted(read) == ["t", "t", "u"]
