"""An error is told from the user's own first line on."""

import runpy
from pathlib import Path

import pytest

from agentvisor.guest.plain_json import encode
from agentvisor.guest.user_traceback import MAX_BYTES, UserTraceback, readable


def frames(told: UserTraceback) -> list[str]:
    return [line.split('"')[1] for line in told.text.splitlines() if line.startswith("  File")]


def caught(file: Path, text: str) -> UserTraceback:
    file.write_text(text)
    with pytest.raises(BaseException) as error:
        runpy.run_path(str(file))
    return UserTraceback.of(error.value)


def test_what_a_library_called_is_kept_below_the_users_line(tmp_path: Path) -> None:
    file = tmp_path / "agent.py"
    told = caught(file, "import json\njson.loads('{')\n")
    seen = frames(told)
    # This test called it, so it is a user too; what pytest did before is not shown.
    assert seen[0] == __file__
    assert seen.index(str(file)) < len(seen) - 1
    assert told.error_type == "JSONDecodeError"


def test_causes_are_told_the_same_way(tmp_path: Path) -> None:
    told = caught(
        tmp_path / "agent.py", "try:\n    {}['key']\nexcept KeyError as error:\n    raise ValueError from error\n"
    )
    assert "The above exception was the direct cause" in told.text
    assert (told.error_type, told.message) == ("ValueError", "ValueError")


def test_our_own_frames_are_left_out() -> None:
    with pytest.raises(Exception) as error:
        encode(object(), "output")
    told = UserTraceback.of(error.value)
    assert frames(told)[0] == __file__


class Odd(Exception):
    def __str__(self) -> str:
        raise SystemExit(3)


def chained(length: int) -> Exception:
    error = last = ValueError("last")
    for _ in range(length):
        last.__cause__ = last = ValueError("earlier")
    return error


@pytest.mark.parametrize(
    "error, error_type, message",
    [
        (ValueError("\ud800 é"), "ValueError", "\\ud800 é"),
        (Odd(), "Odd", "its text is not known: __str__ raised SystemExit"),
        (chained(10_000), "ValueError", "last"),
    ],
    ids=["surrogate", "silent", "chain"],
)
def test_every_error_is_told_however_odd(error: Exception, error_type: str, message: str) -> None:
    told = UserTraceback.of(error)
    assert (told.error_type, told.message) == (error_type, message)
    assert max(len(part.encode()) for part in told) <= MAX_BYTES


def test_the_message_of_a_group_tells_what_is_in_it() -> None:
    inner = ExceptionGroup("inner", [KeyError("b"), Odd()])
    told = UserTraceback.of(ExceptionGroup("tools failed", [ValueError("a"), inner]))
    assert told.message == (
        "tools failed (2 sub-exceptions): ValueError: a; KeyError: 'b'; "
        "Odd: its text is not known: __str__ raised SystemExit"
    )


def test_of_a_large_group_the_first_are_told_each_in_short() -> None:
    error: ExceptionGroup[Exception] = ExceptionGroup(
        "all", [ValueError(f"{number} " + "x" * 2_000) for number in range(1_000)]
    )
    for _ in range(2_000):
        error = ExceptionGroup("deep", [error])
    message = UserTraceback.of(error).message
    assert message.startswith("deep (1 sub-exception): ValueError: 0 xxx")
    assert "ValueError: 9 xxx" in message
    assert message.endswith("xxx; ...")
    assert len(message.encode()) <= MAX_BYTES


@pytest.mark.parametrize("letter", ["x", "é", "€", "𐍈"])
def test_a_long_text_keeps_its_beginning_and_its_end(letter: str) -> None:
    kept = readable("begin" + letter * 1_000_000 + "end")
    assert kept.startswith(f"begin{letter}")
    assert kept.endswith(f"{letter}end")
    assert 15_900 < len(kept.encode()) <= MAX_BYTES
