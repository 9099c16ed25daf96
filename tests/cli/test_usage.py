"""What is typed wrongly is said in one line, with the nearest that is right; help tells of everything."""

import io
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import get_args

import pytest
from tests.cli.conftest import run_command
from typer.core import TyperGroup
from typer.main import get_command

from agentvisor.cli import exits, options, show, usage
from agentvisor.cli.asking import answer_of
from agentvisor.cli.commands import app
from agentvisor.cli.http import StreamedEvent
from agentvisor.cli.show import EventPrinter, as_json, cell, print_table
from agentvisor.cli.threads import _waiting
from agentvisor.cli.threads_diff import Difference
from agentvisor.core.errors import InvalidInput
from agentvisor.core.thread import ThreadStatus
from agentvisor.host.http import runs

pytestmark = pytest.mark.thorough


@pytest.mark.parametrize(
    "typed, says",
    [
        ("thraeds list", "Did you mean 'threads'?"),
        ("threads exprot t", "Did you mean 'export'?"),
        ("runs tial t", "Did you mean 'tail'?"),
        ("threads list --jsn", "Did you mean --json?"),
        ("threads show", "Missing argument 'THREAD'"),
        ("threads list --limit many", "Invalid value for '--limit'"),
        ("runs list t extra", "extra"),
        (
            "threads list --status waiting",
            "Invalid value for '--status': 'waiting' is not one of 'idle', 'busy', 'interrupted', 'error'",
        ),
        ("runs list t --status done", "'done' is not one of 'pending'"),
        ("threads list --url nonsense://x", "is no URL of a host: write it as http://127.0.0.1:8090"),
        ("threads list --url http://127.0.0.1:99999", "is no URL of a host"),
        ("threads list --url http://[::1", "is no URL of a host"),
        ("threads list --url=", "is no URL of a host"),
        ("threads list --key ключ", "the key has characters that no key has"),
        ("threads list --key key\\r", "the key has characters that no key has"),
        ("run a --input @/dev/null", "--input: /dev/null is no JSON text"),
        ("threads delete t", "delete with --yes"),
        ("encryption-key new --id a:b", "'a:b' is no id of a key"),
        ("threads list --key schlüssel", "the key has characters that no key has"),
        ("threads list --url http://ann:hunter2@:9", "'http://:9' is no URL of a host"),
    ],
)
def test_what_is_typed_wrongly_is_one_line_with_what_is_right(
    typed: str, says: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO())
    try:
        code: object = usage.run(app, "agentvisor", [one.replace("\\r", "\r") for one in typed.split()])
    except SystemExit as ended:
        code = ended.code
    printed = capsys.readouterr()
    assert says in printed.err
    assert len(printed.err.splitlines()) == 1
    assert printed.err.startswith("agentvisor: ")
    assert printed.out == ""
    assert code == 2


def test_a_password_in_a_url_is_not_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        usage.run(app, "agentvisor", ["threads", "list", "--url", "http://ann:hunter2@127.0.0.1:9"])
    said = capsys.readouterr().err
    assert "no AgentVisor host answers at http://127.0.0.1:9 " in said
    assert "hunter2" not in said


@pytest.mark.parametrize("typed", ["config", "config --json", "--help", "threads --help"])
def test_who_reads_only_the_beginning_causes_no_failure(typed: str) -> None:
    """As `| head -1` does under `set -o pipefail`."""
    reads, writes = os.pipe()
    os.close(reads)
    try:
        command = [sys.executable, "-m", "agentvisor.cli.main", *typed.split()]
        ended = subprocess.run(command, stdout=writes, stderr=subprocess.PIPE, check=False)
    finally:
        os.close(writes)
    assert (ended.returncode, ended.stderr) == (0, b"")


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="needs a disk that is always full")
def test_what_cannot_be_written_is_a_failure_of_one_line() -> None:
    command = [sys.executable, "-m", "agentvisor.cli.main", "config"]
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert ended.returncode == 7
    assert ended.stderr == "agentvisor: the output cannot be written: No space left on device\n"


def test_no_standard_output_is_no_failure() -> None:
    command = ["sh", "-c", f"{sys.executable} -m agentvisor.cli.main config >&-"]
    ended = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_status_can_be_asked_for_if_the_routes_know_it() -> None:
    assert {*options.RunStatusName} == {*get_args(runs.RunStatusName)}
    assert {*options.ThreadStatusName} == {one.value for one in ThreadStatus}


def test_a_proxy_that_is_none_is_said_to_be_none(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("HTTP_PROXY", "http_proxy"):
        monkeypatch.setenv(name, "nonsense://proxy")
    assert ended_by("threads", "list", "--url", "http://host.invalid") == 2
    assert "HTTP_PROXY" in capsys.readouterr().err


async def test_nothing_that_is_typed_after_a_group_shows_what_there_is() -> None:
    ended = await run_command("threads")
    assert ended.code == 2
    assert all(f" {one} " in ended.out for one in ("list", "diff", "export", "import"))


def commands() -> Iterator[tuple[str, object]]:
    def below(group: TyperGroup, path: str) -> Iterator[tuple[str, object]]:
        for name, one in group.commands.items():
            if isinstance(one, TyperGroup):
                yield from below(one, f"{path} {name}")
            else:
                yield f"{path} {name}".strip(), one

    root = get_command(app)
    assert isinstance(root, TyperGroup)
    return below(root, "")


def test_every_command_that_asks_a_host_can_be_told_which_and_speaks_to_programs() -> None:
    asks = {name: one for name, one in commands() if any(p.name == "url" for p in one.params)}  # pyright: ignore[reportAttributeAccessIssue]
    assert len(asks) > 15
    for name, one in asks.items():
        options = {flag for param in one.params for flag in param.opts}  # pyright: ignore[reportAttributeAccessIssue]
        assert {"--url", "--key", "--json"} <= options, name
        assert name == "answer" or "Example: agentvisor" in (one.help or ""), name  # pyright: ignore[reportAttributeAccessIssue]


def test_every_option_has_its_help() -> None:
    silent = [(name, p.name) for name, one in commands() for p in one.params if not getattr(p, "help", "x")]  # pyright: ignore[reportAttributeAccessIssue]
    assert silent == []


def test_every_exit_code_is_explained() -> None:
    named = {value for name, value in vars(exits).items() if name.isupper() and isinstance(value, int)}
    assert {0, *named, *exits.EXIT_CODES.values()} == exits.MEANINGS.keys()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
async def test_each_shell_is_given_its_completion(shell: str) -> None:
    shown = await run_command("--show-completion", shell, _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1")
    assert shown.code == 0
    assert "_AGENTVISOR_COMPLETE" in shown.out


async def completed(typed: str, **environment: str) -> list[str]:
    words = {"_AGENTVISOR_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(len(typed.split(" ")) - 1)}
    ended = await run_command(**words, **environment)
    assert ended.err == ""
    return ended.out.split()


async def test_commands_are_completed() -> None:
    assert await completed("agentvisor thr") == ["threads"]
    assert set(await completed("agentvisor runs ")) == {"list", "show", "cancel", "tail"}


@pytest.mark.parametrize("typed", ["agentvisor threads show ", "agentvisor runs show t ", "agentvisor agents show "])
async def test_where_no_host_answers_nothing_is_completed_and_nothing_said(typed: str) -> None:
    assert await completed(typed, AGENTVISOR_ENDPOINT="http://127.0.0.1:9") == []


@pytest.mark.parametrize(
    "said, schema, answer",
    [
        ("yes", {}, "yes"),
        ('"yes"', {}, "yes"),
        ("7", {}, 7),
        ("7", {"type": "string"}, "7"),
        ('"7"', {"type": "string"}, "7"),
        ("Y", {"type": "boolean"}, True),
        ("no", {"type": "boolean"}, False),
        ("b", {"enum": ["a", "b"]}, "b"),
        ("2", {"enum": [1, 2]}, 2),
        ('{"a": [1]}', {"type": "object"}, {"a": [1]}),
        ("1.5", {"type": "number"}, 1.5),
    ],
)
def test_an_answer_is_taken_as_it_was_meant(said: str, schema: dict[str, object], answer: object) -> None:
    assert answer_of(said, schema) == answer  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    "said, schema, says",
    [
        ("maybe", {"type": "boolean"}, "yes or no"),
        ("c", {"enum": ["a", "b"]}, '"a", "b"'),
        ("{a", {}, "not JSON"),
        ("seven", {"type": "integer"}, "not JSON"),
        ("true", {"type": "number"}, "a number"),
    ],
)
def test_an_answer_that_cannot_be_one_says_what_can(said: str, schema: dict[str, object], says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        answer_of(said, schema)  # pyright: ignore[reportArgumentType]


def test_what_an_agent_says_is_no_command_to_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    evil = "a\x1b]0;owned\x07\x9b31m\nb"
    assert "\x1b" not in as_json(evil)
    assert "\x9b" not in as_json(evil)
    assert not re.search(r"[\x00-\x1f\x7f-\x9f]", cell(evil))
    print_table(("x",), [(evil,)])
    assert capsys.readouterr().out.count("\n") == 2


def test_in_a_pipe_no_cell_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("id", "value"), [("i", "v" * 5000), ("longer", "")])
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["id      value", "i       " + "v" * 5000, "longer"]


THREADS = ("thread", "status", "updated", "waits for")
ROWS = [("0a3f6a50-8a54-4f6e-a9d0-1234567890ab", "interrupted", "2026-12-01 01:10:22", "Refund order 7? " * 9)]


@pytest.mark.parametrize("columns", [50, 60, 74, 75, 90, 120])
def test_however_narrow_a_terminal_is_ids_are_whole_and_no_text_is_lost(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], columns: int
) -> None:
    monkeypatch.setattr(show, "is_seen", lambda: True)
    monkeypatch.setenv("COLUMNS", str(columns))
    print_table(THREADS, [*ROWS, ("order-7", "idle", "2026-12-01 01:10:22", "")])
    shown = capsys.readouterr().out
    assert ROWS[0][0] in shown
    assert shown.count("Refund") == 9
    assert max(map(len, shown.splitlines())) <= columns
    assert ("\n\n" in shown) == (columns < 75), "one field a line, where columns do not fit beside each other"


def test_columns_stand_under_each_other_whatever_script_they_are_in(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("id", "value"), [("漢字", "wide"), ("é", "narrow")])
    assert capsys.readouterr().out.splitlines() == ["id    value", "漢字  wide", "é     narrow"]


def state(values: object, step: int, **more: object) -> dict[str, object]:
    return {
        "checkpoint_id": f"c{step}",
        "metadata": {"step": step},
        "values": values,
        "next": [],
        "tasks": [],
        "created_at": "t",
        **more,
    }


def test_a_difference_names_what_came_went_and_changed() -> None:
    before = state({"log": ["a", "b"], "old": 1, "same": {"x": 1}}, 1, next=["work"], tasks=[{"name": "work"}])
    after = state({"log": ["a", "b", "c"], "new": 2, "same": {"x": 1}}, 2)
    found = Difference(before, after)  # pyright: ignore[reportArgumentType]
    lines = list(found.lines())
    assert lines[:2] == ["--- c1  step 1  t", "+++ c2  step 2  t"]
    assert lines[2:9] == ["@@ log changed @@", " [", '   "a",', '-  "b"', '+  "b",', '+  "c"', " ]"]
    assert {"@@ new added @@", "+2", "@@ old removed @@", "-1", "@@ next @@", "-work", "-work unfinished"} <= {*lines}
    assert not [line for line in lines if "same" in line]
    shown = found.as_json()
    assert shown["values"] == {
        "added": {"new": 2},
        "removed": {"old": 1},
        "changed": {"log": {"from": ["a", "b"], "to": ["a", "b", "c"]}},
    }


def test_no_difference_is_said() -> None:
    same = state({"a": 1}, 1)
    assert [*Difference(same, same).lines()][-1] == "nothing changed in this graph itself"  # pyright: ignore[reportArgumentType]
    assert [*Difference({}, same).lines()][:3] == ["--- (nothing)", "+++ c1  step 1  t", "@@ a added @@"]  # pyright: ignore[reportArgumentType]


def test_what_begins_as_the_head_of_a_difference_does_is_shown() -> None:
    before, after = state({}, 1, next=["--drop"]), state({}, 2, next=["++keep"])
    lines = [*Difference(before, after).lines()]  # pyright: ignore[reportArgumentType]
    assert lines[2:] == ["@@ next @@", "---drop", "+++keep"]


async def test_what_no_output_can_take_is_shown_all_the_same(nowhere: str) -> None:
    half = "half \ud800 of one"
    assert json.loads(as_json(half)) == half
    assert half not in (as_json(half).encode().decode(), cell(half).encode().decode())
    ended = await run_command("threads", "list", "--url", f"{nowhere}/漢字", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert (ended.code, len(ended.err.splitlines())) == (7, 1)


def test_what_an_agent_raises_is_no_command_to_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    printer = EventPrinter(quiet=False)
    printer.failed({"status": "error", "error": {"error": "ValueError", "message": "a\x1b]0;owned\x07\ud800 [b]"}})
    exits.say(InvalidInput("c\x1b[2J"))
    shown = capsys.readouterr().err
    assert "[b]" in shown
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\ud800-\udfff]", shown)


def ended_by(*typed: str) -> object:
    try:
        return usage.run(app, "agentvisor", [*typed])
    except SystemExit as ended:
        return ended.code


@pytest.mark.parametrize("named", ["a/b", "", "..", "x" * 256, "white space"])
@pytest.mark.parametrize("typed", ["threads show", "threads export", "runs list", "run asking --thread"])
def test_what_is_no_id_is_refused_with_the_rule(
    typed: str, named: str, nowhere: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended_by(*typed.split(), named, "--url", nowhere) == 2
    assert "use 1 to 255 characters of" in capsys.readouterr().err


class Answers(BaseHTTPRequestHandler):
    """A program that is no host of ours; the path says what it answers with."""

    def do_GET(self) -> None:
        said = self.path.split("/")[1]
        status, kind, body = {
            "page": (200, "text/html", b"<html>"),
            "json": (400, "application/json", b'{"code": 13, "detail": "missing csrf token"}'),
            "proxy": (502, "text/html", b"<h1>Bad Gateway</h1>"),
            "moved": (307, "text/plain", b""),
            "nothing": (404, "application/json", b'{"code": "not_found", "message": "Not Found"}'),
            "later": (429, "application/json", b'{"code": "too_many", "message": "close a stream"}'),
        }[said]
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        if status == 307:
            self.send_header("location", "https://host.example/x")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.mark.parametrize(
    "typed, path, says",
    [
        ("threads history t", "page", "is no AgentVisor host (HTTP 200, text/html)"),
        ("threads history t", "json", "is no AgentVisor host (HTTP 400"),
        ("threads export t -o -", "proxy", "is no AgentVisor host (HTTP 502"),
        ("threads export t -o -", "moved", "points to https://host.example/x"),
        ("threads history t", "moved", "points to https://host.example/x"),
        ("threads history t", "later", "close a stream"),
        ("threads history t", "nothing", "has nothing at /nothing/threads/t/history: is that its own address"),
    ],
)
def test_what_is_no_host_is_said_to_be_none(
    typed: str, path: str, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}/{path}"
        assert ended_by(*typed.split(), "--url", url) == 7
        server.shutdown()
    said = capsys.readouterr().err
    assert says in said
    assert len(said.splitlines()) == 1


def test_a_thread_whose_name_is_too_long_for_a_file_is_no_crash(
    nowhere: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended_by("threads", "export", "x" * 255, "--url", nowhere) == 7
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize("typed", ["-h", "threads -h", "interrupts -h", "runs tail -h"])
def test_the_short_option_helps_too(typed: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended_by(*typed.split()) == 0
    assert "Usage: agentvisor" in capsys.readouterr().out


def test_in_a_pipe_no_question_and_no_event_is_cut(capsys: pytest.CaptureFixture[str]) -> None:
    long = "q" * 1000
    EventPrinter(quiet=False).show(StreamedEvent("updates", {"ask": {"value": long}}, "1"))
    assert long in capsys.readouterr().out
    assert long in _waiting({"interrupts": {"task": [{"value": long}]}})
