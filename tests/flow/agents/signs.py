"""Files by which a test tells the agents of one thread what to do, and when."""

import os
import time
from pathlib import Path

PAUSE = 0.01


def sign(name: str) -> Path:
    """The file; a test that shares its host has one for each thread."""
    return Path(os.environ["FOLDER"]) / f"{os.environ['AGENTVISOR_THREAD_ID']}.{name}"


def read(name: str) -> str:
    """What the test wrote there; nothing where there is no such file."""
    file = sign(name) if "FOLDER" in os.environ else None
    return file.read_text() if file is not None and file.exists() else ""


def wait_for(name: str) -> None:
    """Wait until the file is there: that of this thread, or that of the whole project."""
    places = [Path(os.environ[name.upper()])] if name.upper() in os.environ else []
    places += [sign(name)] if "FOLDER" in os.environ else []
    while not any(place.exists() for place in places):
        time.sleep(PAUSE)
