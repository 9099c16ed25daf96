"""Every method of LangGraph's JavaScript client has the effect that it promises, on a real host."""

import json
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.support.dev_process import DevProcess

HERE = Path(__file__).parent
SCRIPT = HERE / "sdk_methods.mjs"
SECONDS = 110

_NAMES = {
    "assistants": "get getGraph getSchemas getSubgraphs create update delete search count getVersions setLatest",
    "threads": (
        "create get copy update delete prune search count getState updateState patchState getHistory joinStream stream"
    ),
    "runs": "stream create createBatch wait list get cancel cancelMany join joinStream delete",
    "crons": "createForThread create update delete search count",
    "store": "putItem getItem deleteItem searchItems listNamespaces",
}
METHODS = [f"{group}.{name}" for group, names in _NAMES.items() for name in names.split()]

pytestmark = [pytest.mark.flow, pytest.mark.system("node", "npm"), pytest.mark.timeout(180)]


@cache
def report_of(url: str) -> tuple[dict[str, Any], dict[str, str | None]]:
    """What the script says: which methods the client has, and what was wrong with each."""
    if not (HERE / "node_modules").is_dir():
        pytest.skip("needs the packages of tests/js (make setup installs them where npm is)")
    told = subprocess.run(["node", str(SCRIPT), url], capture_output=True, text=True, timeout=SECONDS, check=False)
    lines = [json.loads(line) for line in told.stdout.splitlines() if line.startswith("{")]
    assert told.returncode == 0, told.stdout[-2000:] + told.stderr[-4000:]
    assert lines, told.stderr[-4000:]
    return lines[0], {line["method"]: line["wrong"] for line in lines[1:]}


def test_every_method_of_the_client_is_called(served: DevProcess) -> None:
    names, wrong = report_of(served.url)

    assert sorted(names["methods"]) == sorted(METHODS)
    assert sorted(wrong) == sorted(METHODS)


@pytest.mark.parametrize("method", METHODS)
def test_a_method_does_what_it_promises(served: DevProcess, method: str) -> None:
    _, wrong = report_of(served.url)

    assert wrong[method] is None, wrong[method]
