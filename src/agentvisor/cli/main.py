"""The program `agentvisor`: gathers the commands, and says what to install where the host's packages are missing."""

from __future__ import annotations

import sys

_MISSING = """\
agentvisor: the command line needs the packages of the host, and {name} is missing.
Install them with: pip install 'agentvisor[host]'"""


def main() -> None:
    """Run the command line; exits with the code of `agentvisor.cli.exits`."""
    try:
        from agentvisor.cli.commands import app
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "agentvisor":
            raise
        print(_MISSING.format(name=error.name), file=sys.stderr)
        sys.exit(2)
    app(prog_name="agentvisor")


if __name__ == "__main__":
    main()
