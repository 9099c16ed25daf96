"""docs/external-storage.md: every block of it runs, or is what a user sees."""

import re
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
import yaml
from tests.external.conftest import Place
from tests.external.test_large_values import MB, QUICK, outside
from tests.support.host import engine_host, new_thread
from tests.support.large import noise

from agentvisor.core.errors import StorageUnavailable, ValueTooLarge
from agentvisor.host.config import load_config
from agentvisor.host.config_settings import SETTINGS
from agentvisor.host.external import open_external
from agentvisor.host.external.storage import ExternalStorage
from agentvisor.protocol.blobs import Limits

PAGE = (Path(__file__).parents[2] / "docs" / "external-storage.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def blocks(kind: str) -> list[str]:
    return [text for found, text in BLOCKS if found == kind]


def test_every_block_is_of_a_kind_that_is_tested_here() -> None:
    assert {kind for kind, _ in BLOCKS} == {"yaml", "toml", "python", "text"}


@pytest.mark.parametrize("text", blocks("yaml"))
def test_every_configuration_opens_a_storage(text: str, tmp_path: Path) -> None:
    (tmp_path / "agentvisor.yaml").write_text(text)
    config = load_config(tmp_path, environ={})
    assert config.storage.url == yaml.safe_load(text)["storage"]["url"]
    assert isinstance(open_external(config.storage), ExternalStorage)


def test_settings_are_as_the_table_says() -> None:
    table = PAGE.partition("| setting | default | meaning |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| `(storage\.\w+)` \| (\S.*?) \| ", table, re.MULTILINE)
    assert len(rows) == 5
    for path, default in rows:
        assert SETTINGS[path].default == default


@pytest.mark.flow
async def test_the_backend_on_the_page_carries_a_thread(
    temporal: str, queue: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (code,), (entry,) = blocks("python"), blocks("toml")
    group = tomllib.loads(entry)["project"]["entry-points"]["agentvisor.storage"]
    ((scheme, target),) = group.items()
    module = ModuleType(target.partition(":")[0])
    exec(compile(code, "page", "exec"), module.__dict__)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    info = tmp_path / "shelf-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shelf\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[agentvisor.storage]\n{scheme} = {target}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    place = Place(f"{scheme}://here", {}, lambda: list(module.SHELF.objects))
    thread_id = new_thread()
    async with engine_host(temporal, queue, knobs=QUICK, external=place.storage()) as host:
        await outside(host, thread_id).put(0, {"big": noise(2 * MB)})
        assert len(place.keys()) == 1
        assert await outside(host, thread_id).values() == {"big": noise(2 * MB)}


@pytest.mark.flow
async def test_the_errors_on_the_page_are_those_that_are_raised(
    temporal: str, queue: str, s3_place: Place, s3: object
) -> None:
    too_large, down = (" ".join(text.split()) for text in blocks("text"))
    async with engine_host(temporal, queue, knobs=QUICK) as host:
        with pytest.raises(ValueTooLarge) as refused:
            await outside(host, new_thread()).put(0, {"photo": noise(2_100_041)}, limits=Limits())
        assert str(refused.value) == too_large
    from tests.support.object_store import S3, Mood

    assert isinstance(s3, S3)
    s3.front.set(Mood.GONE)
    async with engine_host(temporal, queue, knobs=QUICK, external=s3_place.storage(retry_for=0.5)) as host:
        thread_id = new_thread()
        with pytest.raises(StorageUnavailable) as failed:
            await outside(host, thread_id).put(0, {"photo": noise(2_100_041)})
        told = str(failed.value).replace(thread_id, "t-1").replace(s3_place.url, "s3://my-bucket/agentvisor")
        assert told.startswith(down.replace("60 s", "0.5 s").removesuffix("..."))
