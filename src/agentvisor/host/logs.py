"""Structured logs on stderr: one event name each (log_events.py), with thread, run and attempt where there are such."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger
from typing_extensions import override

from agentvisor.host.config_telemetry import LogConfig
from agentvisor.host.log_secrets import Secrets, with_exception, without_contents

log: structlog.typing.FilteringBoundLogger = structlog.get_logger("agentvisor.logs")

_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
_FIRST = ("timestamp", "level", "event", "thread", "run", "attempt", "trace_id")
_LIBRARY_CHARS = 500
_TELLTALES = ("temporal_workflow", "temporal_activity")


def configure_logs(config: LogConfig | None = None, *, secrets: Iterable[str] = (), json: bool | None = None) -> None:
    """Log as the configuration says: lines for people on a terminal, JSON elsewhere (or as asked).

    Args:
        config: the section `log`; none: its defaults, until the configuration is read.
        secrets: values that are never shown, wherever they stand.
        json: whatever the configuration says.
    """
    config = config or LogConfig()
    on_terminal = sys.stderr.isatty()
    as_json = json if json is not None else {"json": True, "console": False}.get(config.format, not on_terminal)
    level = _LEVELS[config.level]
    contents: list[Processor] = [] if config.contents else [without_contents]
    renderer: Processor = (
        structlog.processors.JSONRenderer() if as_json else structlog.dev.ConsoleRenderer(colors=on_terminal)
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            with_exception,
            *contents,
            Secrets(secrets),
            *([_in_order] if as_json else []),
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        # Configured twice: before the configuration is read, and as it says.
        cache_logger_on_first_use=False,
    )
    _take_libraries(level, contents=config.contents)


def log_workflow(level: str, event: str, fields: Mapping[str, str]) -> None:
    """Log what a workflow has noted (workflow/hearing.py)."""
    log.log(_LEVELS[level], event, **fields)


def _take_libraries(level: int, *, contents: bool) -> None:
    """Log what libraries say as events of ours, from one level higher on."""
    root = logging.getLogger()
    for handler in [one for one in root.handlers if isinstance(one, _Libraries)]:
        root.removeHandler(handler)
    root.addHandler(_Libraries(contents=contents))
    root.setLevel(min(logging.ERROR, max(logging.INFO, level + 10)))
    # What is not caught is told by whoever waits for it, or by Python itself.
    logging.captureWarnings(capture=True)


class _Libraries(logging.Handler):
    """Passes on the records of the standard library's logging."""

    def __init__(self, *, contents: bool) -> None:
        super().__init__()
        self._contents = contents

    @override
    def emit(self, record: logging.LogRecord) -> None:
        # Whoever logs is not to fail by it, and logging's own report of that would show what the record holds.
        with suppress(Exception):
            fields = _of_temporal(record)
            log.log(
                record.levelno,
                "library",
                logger=record.name,
                message=self._message(record),
                exc_info=record.exc_info if record.exc_info and record.exc_info[1] is not None else None,
                **fields,
            )

    def _message(self, record: logging.LogRecord) -> str:
        """What it says; without contents, its first line as the library's author wrote it, before values came in."""
        if self._contents:
            core: object = getattr(getattr(record, "temporal_log", None), "fields", None)
            return f"{record.getMessage()} {core}" if core else record.getMessage()
        said = record.getMessage() if record.name == "py.warnings" else str(record.msg)
        return said.partition("\n")[0][:_LIBRARY_CHARS]


def _of_temporal(record: logging.LogRecord) -> dict[str, str]:
    """The thread that a record of Temporal's SDK is about: its workflow."""
    for name in _TELLTALES:
        known: object = getattr(record, name, None)
        if isinstance(known, dict) and "workflow_id" in known:
            return {"thread": str(known["workflow_id"])}  # pyright: ignore[reportUnknownArgumentType]
    return {}


def _in_order(_logger: WrappedLogger, _name: str, event: EventDict) -> EventDict:
    """What every line has first, for whoever reads JSON by eye."""
    return {**{name: event[name] for name in _FIRST if name in event}, **event}
