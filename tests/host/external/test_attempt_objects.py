"""What an attempt may delete, and what it must leave, by what the workflow's state says at that moment."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

import pytest

from agentvisor.core.errors import NotFound
from agentvisor.core.ids import AttemptId, BlobKey, RunId, ThreadId
from agentvisor.core.records import Blob, Encoding
from agentvisor.host.external import attempt_objects
from agentvisor.host.external.attempt_objects import AttemptObjects, Outlines
from agentvisor.host.external.storage import ExternalStorage

OURS, NEXT = AttemptId(RunId("r"), 1), AttemptId(RunId("r"), 2)


@dataclass
class Shelf:
    """Objects in memory."""

    objects: dict[str, bytes] = field(default_factory=dict[str, bytes])

    async def put(self, path: str, data: bytes) -> None:
        self.objects[path] = data

    async def get(self, path: str, start: int, length: int) -> bytes:
        return self.objects[path][start : start + length]

    async def delete(self, paths: Sequence[str]) -> None:
        for path in paths:
            self.objects.pop(path, None)

    async def list(self, prefix: str) -> AsyncIterator[str]:
        for path in [path for path in self.objects if path.startswith(prefix)]:
            yield path


class Stage:
    """A thread whose state the test sets, and the attempts that write for it."""

    def __init__(self) -> None:
        self.shelf = Shelf()
        self.storage = ExternalStorage(self.shelf, "shelf://", retry_for=1)
        self.active: AttemptId | None = OURS
        self.applied = 0
        self.incarnation = "one"
        self.exists = True
        self.named: list[Blob] = []

    async def outlines(self) -> Outlines:
        if not self.exists:
            raise NotFound("gone")
        return Outlines(self.incarnation, self.active, self.applied, 0, list(self.named))

    def attempt(self, attempt: AttemptId = OURS) -> AttemptObjects:
        return AttemptObjects(
            self.storage, ThreadId("t"), "one", attempt, outlines=self.outlines, has_ended=lambda: False
        )

    @property
    def there(self) -> set[str]:
        return set(self.shelf.objects)


@pytest.fixture
def stage() -> Stage:
    return Stage()


def blob(name: bytes) -> Blob:
    return Blob(BlobKey(name * 32), "bytes", Encoding.RAW, name, None, 1, 0)


async def test_a_sweep_deletes_what_earlier_attempts_left_and_nothing_else(stage: Stage) -> None:
    before = stage.attempt()
    kept, _lost = await before.write(blob(b"1"), "channel"), await before.write(blob(b"2"), "channel")
    stage.named = [kept]
    ours = stage.attempt()
    mine = await ours.write(blob(b"3"), "channel")
    await stage.shelf.put("t/another/object", b"of an earlier thread of that id, whose deletion was cut off")
    await stage.shelf.put("t/another/one/object", b"of a thread of a longer id")
    await ours.sweep()
    assert stage.there == {kept.location, mine.location, "t/another/one/object"}


async def test_an_attempt_that_is_not_the_current_one_any_more_deletes_nothing(stage: Stage) -> None:
    ours, later = stage.attempt(), stage.attempt(NEXT)
    theirs = await later.write(blob(b"1"), "channel")
    stage.active = NEXT
    await ours.sweep()
    assert stage.there == {theirs.location}


async def test_what_was_needed_is_deleted_only_once_the_state_has_applied_that_it_is_not(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempt_objects, "_TIDY_EVERY", 0)
    ours = stage.attempt()
    first = await ours.write(blob(b"1"), "channel")
    ours.logged([first], seq=1)
    second = await ours.write(blob(b"2"), "channel")
    await ours._tidy()  # neither is applied: the state names none of them
    assert stage.there == {first.location, second.location}
    ours.logged([second], seq=2)
    stage.applied, stage.named = 2, [second]
    await ours._tidy()
    assert stage.there == {second.location}
    stage.named = []
    await ours._tidy()  # it was named, and is not
    assert stage.there == set()


async def test_after_its_end_an_attempt_deletes_its_own_that_are_not_named_and_none_of_the_next(stage: Stage) -> None:
    ours, later = stage.attempt(), stage.attempt(NEXT)
    kept, lost = await ours.write(blob(b"1"), "channel"), await ours.write(blob(b"2"), "channel")
    theirs = await later.write(blob(b"3"), "channel")
    ending = asyncio.create_task(ours.after_end())
    await asyncio.sleep(0)
    assert lost.location in stage.there  # its log is not taken in yet
    stage.active, stage.named = NEXT, [kept]
    await ending
    assert stage.there == {kept.location, theirs.location}


@pytest.mark.parametrize("gone", ["deleted", "begun anew"])
async def test_the_end_of_the_thread_is_the_end_of_its_folder_and_no_other(stage: Stage, gone: str) -> None:
    ours = stage.attempt()
    await ours.write(blob(b"1"), "channel")
    await stage.shelf.put("t/two/object", b"of the next thread of that id")
    stage.exists = gone != "deleted"
    stage.incarnation = "two"
    await ours.after_end()
    assert stage.there == {"t/two/object"}


async def test_a_copy_has_an_object_of_its_own(stage: Stage) -> None:
    ours = stage.attempt()
    original = await ours.write(blob(b"1"), "channel")
    compared: list[bytes] = []

    async def verify(_: Blob, data: bytes) -> None:
        compared.append(data)

    copy = await ours.own(original, verify)
    assert compared == [b"1"]
    assert copy.location != original.location
    await stage.storage.delete([original.location])
    assert await stage.storage.read(copy) == b"1"


async def test_what_checkpoints_needed_that_were_removed_goes_once_the_state_has_applied_that(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempt_objects, "_APPLIED_PAUSE", 0)
    before = stage.attempt()
    old, new = await before.write(blob(b"1"), "channel"), await before.write(blob(b"2"), "channel")
    stage.named = [old, new]
    ours = stage.attempt()
    await ours.sweep()
    stage.named = [new]  # what it will be once it is applied
    ours.forgot(7)
    for _ in range(5):
        await asyncio.sleep(0)
    assert stage.there == {old.location, new.location}
    stage.applied = 7
    async with asyncio.timeout(5):
        while stage.there != {new.location}:
            await asyncio.sleep(0)
