"""A host of its own, to be killed: `python -m tests.host.guest_host FOLDER START_METHOD` prints "family" once its agent
has one."""

import asyncio
import sys
from pathlib import Path

from tests.guest.hosting import AGENTS, Hosting, configured

from agentvisor.host.guests import Guests


async def main(folder: str, start_method: str) -> None:
    agents = {"parent": {"entrypoint": f"{AGENTS}/plain.py:parent", "framework": "function"}}
    async with Guests(configured(Path(folder), agents, start_method)) as guests:
        running, kept = await Hosting(guests).start("parent")
        await kept.printed("family")
        print("family", flush=True)
        await running.ended


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
