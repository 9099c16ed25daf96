"""Arguments and options that several commands have, each with its help and what the shell completes it with."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from agentvisor.cli import complete


class ThreadStatusName(StrEnum):
    """As the routes take it."""

    IDLE = "idle"
    BUSY = "busy"
    INTERRUPTED = "interrupted"
    ERROR = "error"


class RunStatusName(StrEnum):
    """As the routes take it."""

    PENDING = "pending"
    RUNNING = "running"
    SUCCESS = "success"
    ERROR = "error"
    TIMEOUT = "timeout"
    INTERRUPTED = "interrupted"


ThreadId = Annotated[str, typer.Argument(metavar="THREAD", help="Id of the thread.", autocompletion=complete.threads)]
RunId = Annotated[str, typer.Argument(metavar="RUN", help="Id of the run.", autocompletion=complete.runs)]
InNamespace = Annotated[
    str,
    typer.Option(
        "--namespace",
        metavar="NAMESPACE",
        help="Of a subgraph, as `node:task`; `threads diff` names them. Default: the thread's own graph.",
        autocompletion=complete.namespaces,
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON value.")]
Limit = Annotated[int, typer.Option("--limit", min=1, max=1000, help="How many at most.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
