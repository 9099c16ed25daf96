"""Progress of long work, on standard error, and only where somebody looks at it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

Advance = Callable[[int], None]


@contextmanager
def progress(what: str, total: int | None, *, in_bytes: bool = False) -> Generator[Advance]:
    """Give what says how much more is done; in a pipe it shows nothing. `total`: None where it is not known."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    counted = DownloadColumn() if in_bytes else MofNCompleteColumn()
    columns = (TextColumn("{task.description}"), BarColumn(), counted, TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda more: bar.update(task, advance=more)
