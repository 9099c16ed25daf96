"""What an agent prints is cut into lines, bounded, and cannot do anything to who reads it."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentvisor.guest.output import MAX_LINE, Budget, Lines, escape, pump


@given(st.lists(st.binary(max_size=40).filter(lambda line: b"\n" not in line), min_size=1), st.data())
def test_lines_come_out_as_they_were_printed(lines: list[bytes], data: st.DataObject) -> None:
    stream, cutter, found = b"\n".join(lines), Lines(), list[bytes]()
    while stream:
        size = data.draw(st.integers(1, len(stream)))
        found += cutter.feed(stream[:size])
        stream = stream[size:]
    found += cutter.end()
    assert found == (lines[:-1] if not lines[-1] else lines)


def test_a_line_without_end_is_cut() -> None:
    lines = Lines()
    cut = lines.feed(b"x" * (2 * MAX_LINE + 1)) + lines.end()
    assert [len(line) for line in cut] == [MAX_LINE, MAX_LINE, 1]


@pytest.mark.parametrize(
    "printed, shown",
    [
        (b"plain", "plain"),
        (b"tab\there", "tab\there"),
        ("grüße ✓".encode(), "grüße ✓"),
        (b"\x1b[31mred\x1b[0m", r"\x1b[31mred\x1b[0m"),
        (b"50%\r100%\r", r"50%\r100%"),
        (b"bad \xff utf-8", r"bad \xff utf-8"),
        ("a\u202eb\u2028c\u200bd".encode(), r"a\u202eb\u2028c\u200bd"),
        (b"\x00\x07\x9b", r"\x00\x07\x9b"),
    ],
)
def test_what_could_harm_a_terminal_or_forge_a_line_is_shown_as_text(printed: bytes, shown: str) -> None:
    assert escape(printed) == shown


async def test_past_the_budget_bytes_are_counted_at_once_and_at_the_end() -> None:
    reader = asyncio.StreamReader()
    emitted: list[tuple[bool, list[str], int]] = []

    async def emit(stderr: bool, lines: list[str], dropped: int) -> None:  # noqa: FBT001
        emitted.append((stderr, lines, dropped))
        if len(emitted) == 1:
            reader.feed_data(b"more\n" * 3)
            reader.feed_eof()

    reader.feed_data(b"12345\n12345\n12345\n")
    await pump(reader, stderr=True, budget=Budget(12), emit=emit)
    assert emitted == [(True, ["12345", "12345"], 6), (True, [], 15)]
