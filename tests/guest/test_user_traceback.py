"""An error is told from the user's own first line on."""

import runpy
from pathlib import Path

import pytest

from agentvisor.guest.plain_json import encode
from agentvisor.guest.user_traceback import UserTraceback


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
