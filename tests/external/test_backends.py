"""What every backend must do; the built-in ones and one that is plugged in by an entry point."""

import sys
from collections.abc import AsyncIterator, Generator, Mapping, Sequence
from pathlib import Path

import pytest
from obstore.exceptions import GenericError
from tests.external.conftest import Place, folder_place
from tests.external.test_large_values import MB, QUICK, outside
from tests.support.host import engine_host, new_thread
from tests.support.large import noise
from tests.support.object_store import S3

from agentvisor.core.errors import InvalidInput
from agentvisor.core.ids import ThreadId
from agentvisor.host.external.backend import Backend, open_backend, shown
from agentvisor.host.external.obstore_backend import MARKER
from agentvisor.host.external.places import Names, folder_of


class Cupboard:
    """A backend as a user writes one: objects in memory."""

    def __init__(self, url: str, options: Mapping[str, str]) -> None:
        self.url = url
        self.options = options
        self.objects: dict[str, bytes] = {}

    async def put(self, path: str, data: bytes) -> None:
        self.objects[path] = data

    async def get(self, path: str, start: int, length: int) -> bytes:
        if path not in self.objects:
            raise FileNotFoundError(path)
        return self.objects[path][start : start + length]

    async def delete(self, paths: Sequence[str]) -> None:
        for path in paths:
            self.objects.pop(path, None)

    async def list(self, prefix: str) -> AsyncIterator[str]:
        for path in list(self.objects):
            if path.startswith(prefix):
                yield path


opened: list[Cupboard] = []


def open_cupboard(url: str, options: Mapping[str, str]) -> Cupboard:
    opened.append(Cupboard(url, options))
    return opened[-1]


@pytest.fixture
def cupboard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[str]:
    """The URL of a backend that an installed package brings."""
    info = tmp_path / "cupboards-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: cupboards\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[agentvisor.storage]\ncupboard = plugged_cupboards:open_cupboard\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setitem(sys.modules, "plugged_cupboards", sys.modules[__name__])
    yield "cupboard://somebody:secret@shelf/2?key=secret"
    opened.clear()


@pytest.fixture(params=["file", "s3", "plugged"])
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Backend:
    match request.param:
        case "file":
            return folder_place(tmp_path / "values").backend()
        case "s3":
            s3: S3 = request.getfixturevalue("s3")
            return open_backend(s3.url, s3.options)
        case _:
            return open_backend(request.getfixturevalue("cupboard"), {})


async def listed(backend: Backend, prefix: str) -> list[str]:
    return sorted([path async for path in backend.list(prefix)])


@pytest.mark.flow
async def test_what_was_put_is_got_in_any_part(backend: Backend) -> None:
    data = noise(3 * MB)
    await backend.put("t=2E1/i/key.a.1", data)
    assert await backend.get("t=2E1/i/key.a.1", 0, len(data)) == data
    assert await backend.get("t=2E1/i/key.a.1", 1_000_000, 7) == data[1_000_000:1_000_007]


@pytest.mark.flow
async def test_less_comes_back_where_an_object_is_shorter(backend: Backend) -> None:
    await backend.put("t/i/key", b"short")
    assert len(await backend.get("t/i/key", 0, 10)) < 10
    assert await backend.get("t/i/key", 10, 10) == b""


@pytest.mark.flow
async def test_an_object_that_is_not_there_is_file_not_found(backend: Backend) -> None:
    with pytest.raises(FileNotFoundError):
        await backend.get("t/i/none", 0, 1)


@pytest.mark.flow
async def test_deleting_what_is_gone_is_no_error_and_leaves_nothing_else(backend: Backend) -> None:
    paths = [f"t/i/{number}" for number in range(5)]
    for path in paths:
        await backend.put(path, b"x")
    await backend.delete([paths[1], "t/i/none", *paths[3:]])
    assert await listed(backend, "t/i/") == [paths[0], paths[2]]


@pytest.mark.flow
async def test_a_list_is_of_one_folder_with_all_below(backend: Backend) -> None:
    for path in ("t/i/1", "t/i/2", "t/other/1", "t2/i/1"):
        await backend.put(path, b"x")
    assert await listed(backend, "t/i/") == ["t/i/1", "t/i/2"]
    assert await listed(backend, "t/") == ["t/i/1", "t/i/2", "t/other/1"]
    assert await listed(backend, "none/") == []


async def test_a_folder_goes_with_its_last_object(tmp_path: Path) -> None:
    backend = folder_place(tmp_path / "values").backend()
    await backend.put("thread/incarnation/key", b"x")
    await backend.delete(["thread/incarnation/key"])
    assert [path for path in (tmp_path / "values").rglob("*") if path.name != MARKER] == []


async def test_a_folder_that_is_away_is_a_store_that_does_not_answer(tmp_path: Path) -> None:
    folder, away = tmp_path / "values", tmp_path / "away"
    backend = folder_place(folder).backend()
    await backend.put("t/i/1", b"x")
    folder.rename(away)
    await refuses_everything(backend)
    assert not folder.exists()
    folder.mkdir()  # what is left of a disk that is not mounted
    await refuses_everything(backend)
    assert list(folder.iterdir()) == []
    folder.rmdir()
    away.rename(folder)
    assert await backend.get("t/i/1", 0, 1) == b"x"


@pytest.mark.flow
async def test_a_bucket_that_is_away_is_a_store_that_does_not_answer(s3: S3) -> None:
    await refuses_everything(open_backend("s3://no-such-bucket/prefix", s3.options))


async def refuses_everything(backend: Backend) -> None:
    for call in (
        backend.put("t/i/2", b"x"),
        backend.get("t/i/1", 0, 1),
        backend.delete(["t/i/1"]),
        listed(backend, "t/"),
    ):
        with pytest.raises((OSError, GenericError)) as refused:
            await call
        assert not isinstance(refused.value, FileNotFoundError)


@pytest.mark.parametrize("url", ["ftp://there", "values", "file://relative/path", "s3:/bucket", "cupboard://none"])
def test_a_url_that_cannot_be_is_refused_with_what_can(url: str) -> None:
    with pytest.raises(InvalidInput, match=r"storage\.url"):
        open_backend(url, {})


def test_an_unknown_option_is_refused_by_name() -> None:
    with pytest.raises(InvalidInput, match="regoin"):
        open_backend("s3://bucket/prefix", {"regoin": "us-east-1"})


def test_a_url_is_shown_without_secrets(cupboard: str) -> None:
    assert shown(cupboard) == "cupboard://shelf/2"


@pytest.mark.flow
async def test_a_thread_lives_on_a_backend_that_was_plugged_in(temporal: str, queue: str, cupboard: str) -> None:
    place = Place(cupboard, {"drawer": "3"}, lambda: list(opened[-1].objects))
    thread_id = new_thread()
    async with engine_host(temporal, queue, knobs=QUICK, external=place.storage()) as host:
        await outside(host, thread_id).put(0, {"big": noise(2 * MB)})
        assert opened[-1].options == {"drawer": "3"}
        assert await outside(host, thread_id).values() == {"big": noise(2 * MB)}
        await host.threads.delete(thread_id)
        assert place.keys() == []


def test_folders_of_threads_are_their_own_and_can_be_names_of_files() -> None:
    names = ["a", "A", "..", ".", "a:b", "a_b", "a.b", "x" * 255]
    folders = [folder_of(ThreadId(name), "i") for name in names]
    assert len({*folders}) == len(names)
    assert all(0 < len(part) <= 255 and set(part) - {"."} for one in folders for part in one.rstrip("/").split("/"))
    assert folder_of(ThreadId("a"), "1") != folder_of(ThreadId("a"), "2")


def test_a_path_is_given_once_and_known_again() -> None:
    ours, others = Names("t/i/", ""), Names("t/i/", "")
    given = [ours.new(b"k" * 32) for _ in range(3)]  # type: ignore[arg-type]
    assert len({*given}) == 3
    assert all(ours.gave(path) and not others.gave(path) for path in given)
