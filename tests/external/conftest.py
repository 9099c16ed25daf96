"""External storages to test on: a folder, and a real S3 API that can be taken away."""

from collections.abc import Callable, Generator
from pathlib import Path
from uuid import uuid4

import pytest
from tests.support.object_store import S3, Mood, s3_server

from agentvisor.host.external.backend import Backend, open_backend
from agentvisor.host.external.obstore_backend import MARKER
from agentvisor.host.external.storage import ExternalStorage


@pytest.fixture(scope="session")
def s3_session(tmp_path_factory: pytest.TempPathFactory) -> Generator[S3]:
    with s3_server(tmp_path_factory.mktemp("s3")) as store:
        yield store


@pytest.fixture
def s3(s3_session: S3) -> Generator[S3]:
    """A store with nothing in it, in a good mood."""
    s3_session.front.set(Mood.FINE)
    s3_session.empty()
    yield s3_session
    s3_session.front.set(Mood.FINE)


class Place:
    """An external storage, and what is in it, seen from outside."""

    def __init__(self, url: str, options: dict[str, str], keys: Callable[[], list[str]]) -> None:
        self.url = url
        self.options = options
        self.keys = keys

    def backend(self) -> Backend:
        return open_backend(self.url, self.options)

    def storage(self, *, retry_for: float = 60.0) -> ExternalStorage:
        return ExternalStorage(self.backend(), self.url, retry_for=retry_for)


def folder_place(folder: Path) -> Place:
    def files() -> list[str]:
        return [str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() and path.name != MARKER]

    return Place(f"file://{folder}", {}, files)


@pytest.fixture(params=["file", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """Each kind of store."""
    if request.param == "file":
        return folder_place(tmp_path / "values")
    s3: S3 = request.getfixturevalue("s3")
    return Place(s3.url, s3.options, s3.keys)


@pytest.fixture
def s3_place(s3: S3) -> Place:
    return Place(s3.url, s3.options, s3.keys)


@pytest.fixture
def queue() -> str:
    """A task queue of the test's own."""
    return f"q-{uuid4().hex[:8]}"
