"""What the host logs: every event is in the table, and no secret and no contents are in a line."""

import ast
import io
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import structlog

import agentvisor.host
from agentvisor.host.config_telemetry import LogConfig
from agentvisor.host.config_tree import Config
from agentvisor.host.log_events import EVENTS
from agentvisor.host.log_secrets import secrets_of, without_messages
from agentvisor.host.logs import configure_logs

HOST = Path(agentvisor.host.__file__).parent
ROOT = HOST.parents[2]
LEVELS = {"debug": "debug", "info": "info", "warning": "warning", "error": "error", "exception": "error"}


def logged() -> Iterator[tuple[str, str, str]]:
    """Each event that a file of the host logs: its name, its level, and where."""
    for path in sorted(HOST.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call):
                continue
            where = f"{path.relative_to(HOST)}:{node.lineno}"
            match node.func, node.args:
                case ast.Attribute(value=ast.Name("log") | ast.Attribute(attr="_log"), attr=level), [first, *_]:
                    if level in LEVELS:
                        assert isinstance(first, ast.Constant), (
                            f"{where}: an event's name is written where it is logged"
                        )
                        yield str(first.value), LEVELS[level], where
                case ast.Name("noted"), [ast.Constant(level), ast.Constant(event)]:
                    yield str(event), str(level), where
                case _:
                    pass


ELSEWHERE = {"library", "request"}
"""Logged at more than one level (host/logs.py, host/http/observing.py)."""


def test_every_event_is_in_the_table_with_its_level_and_every_row_is_logged() -> None:
    found = list(logged())
    assert len(found) > 50
    unknown = [f"{where}: {event}" for event, _, where in found if event not in EVENTS]
    assert unknown == [], "add them to host/log_events.py"
    wrong = [f"{where}: {event} at {level}" for event, level, where in found if EVENTS[event].level != level]
    assert wrong == []
    assert EVENTS.keys() - {event for event, _, _ in found} == ELSEWHERE


def test_names_are_words_with_underscores() -> None:
    assert [one for one in EVENTS if not one.replace("_", "").isalpha() or not one.islower()] == []


def test_the_page_of_events_is_fresh() -> None:
    script = ROOT / "scripts" / "generate_logs_page.py"
    done = subprocess.run([sys.executable, script, "--check"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# --- secrets ---------------------------------------------------------------------------------------------------------


@contextmanager
def configured(config: LogConfig | None = None, **options: Any) -> Iterator[io.StringIO]:
    """Logs as configured, into a text; undone at the end."""
    root, written = logging.getLogger(), io.StringIO()
    level, handlers = root.level, root.handlers[:]
    try:
        with patch.object(sys, "stderr", written):
            configure_logs(config, **options)
            yield written
    finally:
        structlog.reset_defaults()
        root.handlers[:] = handlers
        root.setLevel(level)
        logging.captureWarnings(capture=False)


def lines(written: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in written.getvalue().splitlines()]


log = structlog.get_logger("test")

SAID = {
    "a bearer": "sent Authorization: Bearer canary.canary-canary",
    "a key of ours": "with av_canarycanarycanarycanarycanary",
    "a password in a URL": "postgresql://user:canary@db/x",
    "a user in a URL": "https://canarycanary@host/x",
    "a header": "x-api-key: canary12",
    "an assignment": 'OPENAI_API_KEY="canary12"',
    "a query": "https://host/hook?token=canary&x=1",
    "a known value": "it says canary-of-an-owner here",
}


@pytest.mark.parametrize("said", SAID.values(), ids=SAID.keys())
@pytest.mark.parametrize("contents", [False, True], ids=["without contents", "with contents"])
def test_a_secret_in_a_text_is_hidden(said: str, contents: bool) -> None:  # noqa: FBT001
    with configured(LogConfig(contents=contents), secrets=["canary-of-an-owner"]) as written:
        log.info("agent_output", line=said, deep={"list": [said]})
        try:
            raise ValueError(said)
        except ValueError:
            log.exception("attempt_failed")
    assert "canary" not in written.getvalue()
    assert "***" in written.getvalue()


@pytest.mark.parametrize("name", ["authorization", "X-Api-Key", "ticket", "operator_key", "webhook_secret", "password"])
def test_a_field_that_is_called_a_secret_is_hidden(name: str) -> None:
    with configured() as written:
        log.info("agent_output", **{name: "canary"}, headers={name: "canary"})
    assert "canary" not in written.getvalue()


def test_what_a_configuration_keeps_secret_is_known() -> None:
    config = Config.model_validate(
        {
            "agents": {"a": {"entrypoint": "m:f", "env": {"OPENAI_API_KEY": "canary-env", "MODEL": "large"}}},
            "http": {
                "operator_key": "canary-operator-of-32-characters!",
                "peer_key": "canary-peer-of-32-characters-ok!",
            },
            "storage": {"options": {"aws_secret_access_key": "canary-storage", "region": "eu"}},
        }
    )
    assert {one for one in secrets_of(config) if "canary" in one} == {
        "canary-env",
        "canary-operator-of-32-characters!",
        "canary-peer-of-32-characters-ok!",
        "canary-storage",
    }
    assert not {"large", "eu", "m:f"} & set(secrets_of(config))


# --- contents --------------------------------------------------------------------------------------------------------


def quoting(given: str) -> None:
    try:
        raise KeyError(f"{given} inner\nmore of {given}")
    except KeyError as error:
        raise ExceptionGroup(given, [ValueError(f"{given}\n  File {given}"), TypeError()]) from error


def test_an_exception_is_shown_with_its_place_and_class_and_without_what_it_says() -> None:
    with configured() as written:
        try:
            quoting("canary")
        except ExceptionGroup:
            log.exception("attempt_failed", text="a " + "canary")
    (line,) = lines(written)
    shown = line["exception"].replace('quoting("canary")', "")  # a line of the source
    assert "canary" not in shown
    assert "text" not in line
    for kind in ("KeyError", "ExceptionGroup", "ValueError", "TypeError"):
        assert kind in shown
    assert "in quoting" in shown


def test_errors_say_what_they_say_where_that_is_asked_for() -> None:
    with configured(LogConfig(contents=True)) as written:
        try:
            quoting("canary")
        except ExceptionGroup:
            log.exception("attempt_failed", text="in words")
    (line,) = lines(written)
    assert "more of canary" in line["exception"]
    assert line["text"] == "in words"


def test_a_traceback_that_was_cut_at_its_beginning_shows_no_message() -> None:
    cut = "of a canary\nThe end of a canary\n\nDuring handling of the above exception, another exception occurred:\n\n"
    rest = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    g()\nValueError: canary\n  canary'
    shown = without_messages(cut + rest)
    assert "canary" not in shown
    assert shown.endswith("    g()\nValueError: (not shown: log.contents)")


# --- lines -----------------------------------------------------------------------------------------------------------


def test_libraries_log_through_the_same_renderer_with_the_same_fields() -> None:
    with configured() as written, structlog.contextvars.bound_contextvars(thread="t", run="r", attempt=2, trace_id="x"):
        logging.getLogger("uvicorn.error").warning("Invalid %s", "canary")
        logging.getLogger("temporalio.activity").warning("failed", extra={"temporal_activity": {"workflow_id": "w"}})
        logging.getLogger("httpx").info("not at this level")
        log.info("agent_started", agent="a", pid=1)
    uvicorn, temporal, ours = lines(written)
    assert (uvicorn["event"], uvicorn["logger"], uvicorn["message"]) == ("library", "uvicorn.error", "Invalid %s")
    assert (temporal["event"], temporal["thread"], uvicorn["thread"]) == ("library", "w", "t")
    assert list(ours)[:7] == ["timestamp", "level", "event", "thread", "run", "attempt", "trace_id"]
    assert [uvicorn[name] for name in ("run", "attempt", "trace_id")] == ["r", 2, "x"]


@pytest.mark.parametrize("level, told", [("debug", 3), ("info", 2), ("warning", 1), ("error", 0)])
def test_the_level_is_configured(level: Any, told: int) -> None:
    with configured(LogConfig(level=level)) as written:
        log.debug("request")
        log.info("host_started")
        log.warning("read_again")
    assert len(lines(written)) == told


def test_the_format_is_configured() -> None:
    with configured(LogConfig(format="console")) as written:
        log.info("host_started", url="u")
    assert "host_started" in written.getvalue()
    assert not written.getvalue().startswith("{")
