"""What an agent did, written where its death cannot undo it: one line a side effect, appended to a file."""

import json
import os
import time


def effect(what: str) -> None:
    """Append a line; one write call, so that parallel ones do not mix."""
    by = {"thread": os.environ["AGENTVISOR_THREAD_ID"], "attempt": int(os.environ["AGENTVISOR_ATTEMPT"])}
    line = json.dumps({"what": what, **by, "pid": os.getpid(), "at": time.time()})
    file = os.open(os.environ["EFFECTS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(file, f"{line}\n".encode())
    finally:
        os.close(file)
