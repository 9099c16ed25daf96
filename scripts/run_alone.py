"""Runs the tests that failed beside others once more, alone and several times over; fails unless each passes each time.

Tests on real servers share two cores with another worker's: a deadline that is missed there says nothing. A test that
fails alone, or more than a few that fail, is a bug. What failed first is told again at the end.

    python scripts/run_alone.py EXIT_CODE_OF_THE_FIRST_RUN
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import cast

TIMES = 3
MOST = 5
"""More failures than this have a common cause."""
TESTS_FAILED = 1
"""Exit code of a pytest that ran all tests, of which some failed (pytest.ExitCode)."""


def main(first_code: int) -> int:
    """The exit code: that of the first run, or 0 where what failed in it was only disturbed."""
    failed = _failed() if first_code == TESTS_FAILED else []
    if not 0 < len(failed) <= MOST:
        return first_code
    for turn in range(1, TIMES + 1):
        print(f"Alone, {turn} of {TIMES}: {', '.join(failed)}", flush=True)
        command = [sys.executable, "-m", "pytest", "-q", "--tb=native", "-p", "no:cacheprovider", *failed]
        if subprocess.run(command, check=False).returncode:
            return first_code
    for test in failed:
        print(f"DISTURBED: {test} failed beside other tests and passed {TIMES} times alone", flush=True)
    return 0


def _failed() -> list[str]:
    known = Path(".pytest_cache/v/cache/lastfailed")
    return list(cast("dict[str, bool]", json.loads(known.read_text()))) if known.exists() else []


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1])))
