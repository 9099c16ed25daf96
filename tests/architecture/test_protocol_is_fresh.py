"""The generated protocol that is checked in is what its proto files generate."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_generated_protocol_is_fresh() -> None:
    check = [sys.executable, str(ROOT / "scripts" / "generate_protocol.py"), "--check"]
    done = subprocess.run(check, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
