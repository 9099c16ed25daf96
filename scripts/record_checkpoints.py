"""Record a thread as this environment's AgentVisor and LangGraph store it, for tests/golden.

`python scripts/record_checkpoints.py` in an environment with the versions to record; once for each release. A recording
that is there stays: a thread may have been written by it.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests.golden.recording import FOLDER, name, record  # noqa: E402 - after the path


def main() -> None:
    path = FOLDER / name()
    if path.exists():
        print(path.relative_to(ROOT), "is there")
        return
    FOLDER.mkdir(exist_ok=True)
    path.write_bytes(record())
    print(path.relative_to(ROOT), path.stat().st_size)


if __name__ == "__main__":
    main()
