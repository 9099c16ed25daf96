"""LangGraph's JavaScript client reads threads' events, answers questions and is told what was wrong, on a real host."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.support.dev_process import DevProcess

HERE = Path(__file__).parent
SCRIPT = HERE / "event_protocol.mjs"
SECONDS = 90

pytestmark = [pytest.mark.flow, pytest.mark.system("node", "npm"), pytest.mark.timeout(180)]


def _node(*arguments: str) -> str:
    told = subprocess.run(["node", *arguments], capture_output=True, text=True, timeout=SECONDS, check=False)
    assert told.returncode == 0, told.stdout[-2000:] + told.stderr[-4000:]
    return told.stdout


@pytest.mark.parametrize("transport", ["sse", "websocket"])
def test_the_client_reads_a_threads_events_and_answers(served: DevProcess, transport: str) -> None:
    if not (HERE / "node_modules").is_dir():
        pytest.skip("needs the packages of tests/js (make setup installs them where npm is)")
    found: dict[str, Any] = json.loads(_node(str(SCRIPT), served.url, transport))

    talking = found["talking"]
    # The tool's result is told to those who follow messages, too, as a message below its call.
    assert talking["messages"] == ["hello big world", "", "3"]
    # The client names a call when it begins and when it ends.
    assert {json.dumps(one) for one in talking["tools"]} == {json.dumps(["add", {"a": 1, "b": 2}, "3"])}
    assert talking["values"] == ["human", "ai", "ai", "tool"]
    assert talking["tree"] == "completed"
    assert found["again"] == 3
    assert found["outer"] == ["inner"]
    assert found["asking"] == {
        "payload": "go on?",
        "ends": ["running", "interrupted", "running", "completed"],
        "values": {"by": 1, "count": 4},
        "stale": "no_such_interrupt",
        "inject": "unknown_command",
    }
    assert found["failing"] == {
        "end": {"event": "failed", "graph_name": "failing", "error": "boom"},
        "refused": "invalid_argument",
    }
