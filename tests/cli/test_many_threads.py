"""Thousands of threads are listed in pages, each once."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest

from agentvisor.cli import usage
from agentvisor.cli.commands import app

MANY = 450


class Search(BaseHTTPRequestHandler):
    """`POST /threads/search` of a host on which a thread is made between two pages."""

    asked: ClassVar[list[dict[str, Any]]] = []

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        Search.asked.append(body)
        made = 1 if body["offset"] else 0
        names = [f"new-{number}" for number in range(made)] + [f"t{number}" for number in range(MANY)]
        end = body["offset"] + body["limit"]
        shown = [{"thread_id": one, "status": body.get("status", "idle")} for one in names[body["offset"] : end]]
        answer = json.dumps(shown).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        if len(names) > end:
            self.send_header("x-pagination-next", str(end))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def url() -> Iterator[str]:
    Search.asked.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Search) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def listed(url: str, capsys: pytest.CaptureFixture[str], *more: str) -> list[str]:
    assert usage.run(app, "agentvisor", ["threads", "list", "--url", url, "--json", *more]) == 0
    return [one["thread_id"] for one in json.loads(capsys.readouterr().out)]


def test_all_threads_are_listed_each_once(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert listed(url, capsys, "--all") == [f"t{number}" for number in range(MANY)]
    assert [(one["offset"], one["limit"]) for one in Search.asked] == [(0, 200), (200, 200), (400, 200)]


@pytest.mark.parametrize("limit", [1, 200, 201, 300])
def test_no_more_are_asked_for_than_are_wanted(url: str, capsys: pytest.CaptureFixture[str], limit: int) -> None:
    found = listed(url, capsys, "--limit", str(limit), "--status", "busy")
    assert found == [f"t{number}" for number in range(limit - (limit > 200))]
    assert sum(one["limit"] for one in Search.asked) == limit
    assert {one["status"] for one in Search.asked} == {"busy"}
