"""How the commands print: events of a run as they come, tables, JSON."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping, Sequence

from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from agentvisor.cli.http import StreamedEvent
from agentvisor.host.render_typed import Json

_WIDEST = 400
_WORD, _LAST = 40, 12
"""Cells of a terminal that a table's column may need so that no word of it is broken; and that its last one has."""
_CONTROLS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
"""What a terminal may take for a command, but for the end of a line; and half characters, which no output takes."""


def as_json(value: Json) -> str:
    """On one line; no terminal takes a part of it for a command."""
    return _harmless(json.dumps(value, ensure_ascii=False))


def print_json(value: Json) -> None:
    """For people and for jq."""
    print(_harmless(json.dumps(value, ensure_ascii=False, indent=2)))


def _harmless(text: str) -> str:
    """JSON without the controls and half characters that it may have within texts: their escapes mean the same."""
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def cell(text: str) -> str:
    """A text on one line, whatever an agent has put into it."""
    return _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", " ".join(text.split()))


def plain(text: str) -> str:
    """A text of several lines, as harmless."""
    return _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text)


def is_seen() -> bool:
    """Whether a person looks at what is printed."""
    return sys.stdout.isatty()


def cut(text: str, most: int) -> str:
    """As much of a text as a person wants to see of it; in a pipe all."""
    return text if len(text) <= most or not is_seen() else text[: most - 1] + "…"


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table that fits a terminal; in a pipe each row is a line, and nothing is cut."""
    cells = [[cell(one) for one in row] for row in rows]
    if not is_seen():
        widths = [max(map(cell_len, column)) for column in zip(columns, *cells, strict=True)]
        for row in (columns, *cells):
            padded = (one + " " * (width - cell_len(one)) for one, width in zip(row, widths, strict=True))
            print("  ".join(padded).rstrip())
        return
    console = Console(soft_wrap=False, highlight=False)
    widths = _widths(console.width, list(zip(columns, *cells, strict=True)))
    if widths is None:
        _print_records(console, columns, cells)
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column, width in zip(columns, widths, strict=True):
        table.add_column(column, overflow="fold", width=width)
    for row in cells:
        table.add_row(*map(escape, row))
    console.print(table)


def _widths(room: int, columns: Sequence[Sequence[str]]) -> list[int] | None:
    """Of the columns, the last made narrower before others; None where a word would be broken of any but the last.

    An id that is broken cannot be copied.
    """
    widths = [max(map(cell_len, column)) for column in columns]
    over = sum(widths) + 2 * (len(widths) - 1) - room
    for number in reversed(range(len(widths))):
        least = _LAST if number == len(widths) - 1 else min(_WORD, _longest_word(columns[number]))
        cut = max(0, min(over, widths[number] - least))
        widths[number] -= cut
        over -= cut
    return widths if over <= 0 else None


def _longest_word(column: Sequence[str]) -> int:
    return max(cell_len(word) for one in column for word in one.split(" "))


def _print_records(console: Console, columns: Sequence[str], cells: Sequence[Sequence[str]]) -> None:
    """Rows that a terminal is too narrow for: one field a line, a blank line between two; what is empty is left out."""
    if not cells:
        console.print("  ".join(columns), markup=False)
    for number, row in enumerate(cells):
        if number:
            console.print()
        record = Table(box=None, pad_edge=False, show_header=False)
        record.add_column(style="bold", no_wrap=True)
        record.add_column(overflow="fold")
        for name, value in zip(columns, row, strict=True):
            if value:
                record.add_row(escape(name), escape(value))
        console.print(record)


class EventPrinter:
    """Prints a run's events."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet
        self._console = Console(highlight=False)
        self._errors = Console(stderr=True, highlight=False)
        self._in_text = False

    def begin(self, thread: str) -> None:
        self._line(f"[dim]thread[/] {escape(thread)}")

    def show(self, event: StreamedEvent) -> None:
        """One event; a model's text is joined as it comes."""
        mode, _, namespace = event.event.partition("|")
        where = f"[dim]{escape(namespace)}[/] " if namespace else ""
        match mode, event.data:
            case "metadata", {"run_id": run_id, "attempt": attempt}:
                again = "" if attempt == 1 else f" [yellow]attempt {attempt}[/]"
                self._line(f"[dim]run[/] {run_id}{again}")
            case "messages", [dict() as message, *_]:
                self._message(message)
            case "updates", dict() as update:
                for node, change in update.items():
                    self._line(f"{where}[green]{escape(node)}[/] {_short(change)}")
            case "gap", _:
                self._line("[yellow]some events were missed[/]")
            case "error" | "values" | "messages", _:
                pass  # said at the end
            case _:
                self._line(f"{where}[cyan]{escape(mode)}[/] {_short(event.data)}")

    def failed(self, run: Mapping[str, Json]) -> None:
        """Why the run did not succeed."""
        self._end_text()
        error = run.get("error")
        text = f"{error['error']}: {error['message']}" if isinstance(error, dict) else f"run {run['status']}"
        self._errors.print(f"[red]{escape(plain(text))}[/]", soft_wrap=True)

    def end(self, state: Mapping[str, Json], answer: str) -> None:
        """The values, and the question that the thread waits with; `answer`: the command that answers it."""
        self._end_text()
        print_json(state.get("values"))
        waiting = state.get("interrupts")
        for interrupt in waiting if isinstance(waiting, list) else ():
            value = interrupt.get("value") if isinstance(interrupt, dict) else interrupt
            self._line(f"[yellow]waits for an answer[/] {_short(value)}")
        if waiting:
            self._line(f"answer with: agentvisor {escape(answer)}")

    def _message(self, message: Mapping[str, Json]) -> None:
        content = message.get("content")
        if self._quiet or not isinstance(content, str) or message.get("type") not in ("AIMessageChunk", "ai"):
            return
        self._in_text = self._in_text or bool(content)
        self._console.print(_CONTROLS.sub("", content), end="", markup=False, soft_wrap=True)

    def _line(self, text: str) -> None:
        self._end_text()
        if not self._quiet:
            self._console.print(plain(text), soft_wrap=True)

    def _end_text(self) -> None:
        if self._in_text:
            self._console.print()
            self._in_text = False


def _short(value: Json) -> str:
    return escape(cut(as_json(value), _WIDEST))
