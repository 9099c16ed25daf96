"""`python -m agentvisor.cli.probe [URL]`: a host's probe for containers, which have no curl; 0 where it answers 200.

It starts every few seconds for as long as a container lives: so it imports nothing but what it needs.
"""

from __future__ import annotations

import os
import sys
from http.client import HTTPConnection
from urllib.parse import urlsplit, urlunsplit

_SECONDS = 4.0
_USAGE = "usage: python -m agentvisor.cli.probe [http://127.0.0.1:8090/readyz]"


def probe(url: str) -> str:
    """What is wrong; empty where the host answers 200."""
    parts = urlsplit(url)
    if parts.scheme != "http" or not parts.hostname:
        return f"{url!r} is no address of a host; {_USAGE}"
    connection = HTTPConnection(parts.hostname, parts.port or 80, timeout=_SECONDS)
    try:
        connection.request("GET", urlunsplit(("", "", parts.path or "/", parts.query, "")))
        answer = connection.getresponse()
        said = answer.read(500).decode(errors="replace")
    except OSError as error:
        return f"{url} does not answer: {error}"
    finally:
        connection.close()
    return "" if answer.status == 200 else f"{url} answers {answer.status}: {said}"


def main(arguments: list[str]) -> int:
    """The exit code: 0 or 1, with a line on standard error that says why."""
    port = os.environ.get("AGENTVISOR_HTTP_PORT") or "8090"
    wrong = probe(arguments[0] if arguments else f"http://127.0.0.1:{port}/readyz")
    if wrong:
        print(wrong, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
