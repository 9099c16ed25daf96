"""`agentvisor threads export` and `agentvisor threads import`: a thread as a file, for another host or a bad day."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import Annotated
from uuid import uuid4

import typer

from agentvisor.cli.facts import fields, text, thread_path
from agentvisor.cli.http import Key, Url, connected
from agentvisor.cli.options import AsJson, ThreadId
from agentvisor.cli.progress import Advance, progress
from agentvisor.cli.show import print_json
from agentvisor.core.errors import Conflict, InvalidInput, Unavailable

_PIECE = 256 * 1024


def export(
    thread_id: ThreadId,
    *,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to write; - for standard output. Default: THREAD.agentvisor."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", "-f", help="Replace the file where it exists.")] = False,
    url: Url = None,
    key: Key = None,
    json: AsJson = False,
) -> None:
    """Write all of a thread into a file: checkpoints, values, pending writes, runs, thread state, effects, metadata.

    The file is checked as it comes; one that is not whole is not kept. A run that is at work goes on.

    Example: agentvisor threads export order-7 -o order-7.agentvisor
    """
    place = thread_path(thread_id)
    target = output or Path(f"{thread_id.replace(':', '_')}.agentvisor")
    to_output = str(target) == "-"
    there = os.path.exists(target) and not _is_stream(target)  # noqa: PTH110 - Path's raises where a name is too long
    if not to_output and there and not force:
        raise Conflict(f"{target} exists already: name another file with --output, or replace it with --force")
    if to_output and sys.stdout.isatty():
        raise InvalidInput(
            "a file of a thread is nothing for a terminal: name it with --output, or send it into a pipe"
        )
    with connected(url, key) as host, host.download(f"{place}/export") as answer:
        size = answer.headers.get("x-export-size", "")
        total = int(size) if size.isdecimal() else None
        with progress(thread_id, total, in_bytes=True) as advance, _written(target, to_output) as write:
            size_written = _checked(answer.iter_bytes(_PIECE), write, advance)
    if json and not to_output:
        print_json({"thread_id": thread_id, "file": str(target), "bytes": size_written})
    elif not to_output and not _is_stream(target):
        print(f"{target}  {size_written} bytes")


def _checked(pieces: Iterator[bytes], write: Callable[[bytes], object], advance: Advance) -> int:
    """Write what comes, and find that it is a whole file; the number of its bytes."""
    from agentvisor.protocol.exports import Reader  # it loads protobuf, and no Tab shall wait for that

    reader, size = Reader("what the host sent"), 0
    for piece in pieces:
        for _ in reader.feed(piece):
            pass
        write(piece)
        size += len(piece)
        advance(len(piece))
    reader.close()
    return size


def _is_stream(target: Path) -> bool:
    """Whether it is a pipe or a device, such as /dev/stdout: what is written to, never replaced."""
    try:
        mode = target.stat().st_mode
    except OSError:
        return False
    return not (S_ISREG(mode) or S_ISDIR(mode))


@contextmanager
def _written(target: Path, to_output: bool) -> Generator[Callable[[bytes], object]]:  # noqa: FBT001
    """Where the file's bytes go; it is there under its name once it is whole and on disk."""
    if to_output:
        yield sys.stdout.buffer.write
        sys.stdout.buffer.flush()
        return
    if _is_stream(target):
        with target.open("wb") as stream:
            yield stream.write
        return
    target = Path(os.path.realpath(target))  # what a link leads to is replaced, not the link
    begun = target.with_name(f"{target.name}.{uuid4().hex[:8]}.part")
    try:
        with begun.open("xb") as file:
            yield file.write
            file.flush()
            os.fsync(file.fileno())
        begun.replace(target)
    except OSError as error:
        raise Unavailable(f"{target} cannot be written: {error.strerror}") from error
    finally:
        with suppress(OSError):
            begun.unlink(missing_ok=True)


def import_(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="File that `threads export` has made; - reads standard input.")
    ],
    *,
    thread: Annotated[str | None, typer.Option("--thread", help="Id to import under. Default: the file's.")] = None,
    url: Url = None,
    key: Key = None,
    json: AsJson = False,
) -> None:
    """Create the thread that a file holds: all at once, or not at all. It belongs to whose key this is.

    A thread of that id must not exist. A run that had not ended when the file was made is there as interrupted; what
    waits for an answer waits here, and what tasks have done is not done again. Prints the thread's id.

    Example: agentvisor threads import order-7.agentvisor --url https://other-host:8090
    """
    with _opened(file) as source, connected(url, key) as host:
        size = None if file == "-" else os.fstat(source.fileno()).st_size
        query = {"thread_id": thread} if thread is not None else {}
        with progress(file, size, in_bytes=True) as advance:
            made = host.upload("/threads/import", _pieces(source, advance), **query)
    if json:
        print_json(made)
    else:
        print(text(fields(made), "thread_id"))


def _pieces(source: BufferedReader, advance: Advance) -> Iterator[bytes]:
    while piece := source.read1(_PIECE):  # what is here: who fills a pipe may be slow
        yield piece
        advance(len(piece))


@contextmanager
def _opened(file: str) -> Generator[BufferedReader]:
    if file == "-":
        with open(sys.stdin.fileno(), "rb", closefd=False) as given:
            yield given
        return
    try:
        source = Path(file).open("rb")  # noqa: SIM115 - closed below: what fails later is no failure to open it
    except OSError as error:
        raise InvalidInput(f"{file} cannot be read: {error.strerror}") from error
    with source:
        yield source
