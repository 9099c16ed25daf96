"""docs/limits.md and docs/history-limits.md say what the code does, and their blocks run."""

import re
from pathlib import Path

import pytest
import yaml
from tests.flow.conftest import Project, called, client_of

from agentvisor.core import compaction
from agentvisor.core.shed import ShedStep
from agentvisor.host import metrics
from agentvisor.host.config import load_config
from agentvisor.host.config_settings import SETTINGS

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {name: (DOCS / f"{name}.md").read_text() for name in ("limits", "history-limits")}
BLOCKS = [
    (name, kind, text)
    for name, page in PAGES.items()
    for kind, text in re.findall(r"^```(\w+)\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
]


def test_every_block_is_of_a_kind_that_is_run_here() -> None:
    assert {kind for _, kind, _ in BLOCKS} == {"yaml", "python"}


@pytest.mark.parametrize("text", [text for _, kind, text in BLOCKS if kind == "yaml"])
def test_every_configuration_loads(text: str, tmp_path: Path) -> None:
    (tmp_path / "agentvisor.yaml").write_text(text)
    config = load_config(tmp_path, environ={})
    for section, settings in yaml.safe_load(text).items():
        for name, value in settings.items():
            assert getattr(getattr(config, section), name) == value


def test_the_defaults_are_as_the_pages_say() -> None:
    rows = re.findall(r"^\| `(storage\.\w+)` \| (\S+) \|", PAGES["limits"], re.MULTILINE)
    assert len(rows) == 10
    for path, default in rows:
        assert SETTINGS[path].default == default
    for path, default in re.findall(r"`(temporal\.\w+)` \((?:default )?(\S+?)\)", PAGES["history-limits"]):
        assert SETTINGS[path].default == default
    assert f"| signals | {compaction.SIGNALS} | {compaction.SIGNALS // 2} |" in PAGES["history-limits"]
    assert f"| updates | {compaction.UPDATES} | {compaction.UPDATES // 2} |" in PAGES["history-limits"]


def test_the_shedding_order_is_the_table() -> None:
    table = PAGES["history-limits"].partition("| step | what goes |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `(\w+)` ", table, re.MULTILINE) == [step.value for step in ShedStep]


def test_every_metric_that_is_named_exists() -> None:
    named = set(re.findall(r"`(agentvisor_\w+)`", "".join(PAGES.values())))
    assert named <= metrics.TABLE.keys()


@pytest.mark.flow
def test_what_shows_how_near_a_thread_is_runs(shared: Project, capsys: pytest.CaptureFixture[str]) -> None:
    thread, _ = called(client_of(shared.hosts[0]), "wide:fan_out", width=2, rounds=1)
    ((code),) = [text for _, kind, text in BLOCKS if kind == "python"]
    exec(code.replace("http://127.0.0.1:8090", shared.hosts[0].url), {"thread_id": thread})
    assert re.search(
        r"^0\.\d% of 1800000 bytes\n\d+ bytes with \d+ checkpoints in \d namespaces", capsys.readouterr().out
    )
