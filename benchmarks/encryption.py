"""Milliseconds and bytes per super-step with encryption and without, measured in one run, in turns.

    python benchmarks/encryption.py [--rounds 5] [--steps 100]

The conversation of superstep.py (1.5 KB a message, durability sync) on two hosts of one Temporal server (dev server,
SQLite), each with a guest of its own. Prints medians and their ratio.
"""

import argparse
import asyncio
import os
import platform
import shutil
import statistics
import tempfile
from base64 import b64encode
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from time import process_time

from superstep import HERE, free_port, ours
from temporalio.api.common.v1 import Payload

from agentvisor.host.app import running_host
from agentvisor.host.codec.keyring import Key, Keyring
from agentvisor.host.codec.payloads import opened, sealed
from agentvisor.host.codec.places import Place
from agentvisor.host.config import load_config
from agentvisor.host.temporal_client import client_of
from agentvisor.host.temporal_server import EmbeddedTemporal
from agentvisor.host.threads_read import ThreadReader


def settings_of(folder: Path, *, encrypts: bool) -> Path:
    folder.mkdir()
    text = (
        f"agents:\n  conversation:\n    entrypoint: {HERE / 'conversation.py'}:agent\n    framework: function\n"
        f"http:\n  port: {free_port()}\ntemporal:\n  task_queue: {folder.name}\n"
    )
    if encrypts:
        key, index = (b64encode(os.urandom(32)).decode() for _ in range(2))
        text += f"encryption:\n  keys: [{{id: k, key: {key}}}]\n  index_key: {index}\n"
    (folder / "agentvisor.yaml").write_text(text)
    return folder / "agentvisor.yaml"


async def measured(rounds: int, steps: int, folder: Path) -> dict[str, list[dict[str, float]]]:
    found: dict[str, list[dict[str, float]]] = {"plain": [], "encrypted": []}
    async with AsyncExitStack() as stack:
        server = EmbeddedTemporal(data_dir=folder / "data", port=free_port(), ui_port=free_port())
        await stack.enter_async_context(server)
        places: dict[str, tuple[str, ThreadReader]] = {}
        for name in found:
            config = load_config(settings_of(folder / name, encrypts=name == "encrypted"), environ={})
            client = await client_of(config, address=server.address)
            host = await stack.enter_async_context(running_host(config, client))
            places[name] = host.url, ThreadReader(client)
        for number in range(rounds + 1):
            for name, (url, reader) in places.items():
                one = await ours(url, reader, steps)
                if number:  # the first warms up
                    found[name].append(one)
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=100)
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="agentvisor-bench-"))
    try:
        found = asyncio.run(measured(given.rounds, given.steps, folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"python benchmarks/encryption.py --rounds {given.rounds} --steps {given.steps}")
    print(
        f"{platform.platform()}, Python {platform.python_version()}, load {os.getloadavg()[0]:.1f} at the end, medians"
    )
    medians = {
        name: {key: statistics.median(one[key] for one in ones) for key in ("milliseconds", "bytes")}
        for name, ones in found.items()
    }
    for name, one in medians.items():
        ratio = {key: one[key] / medians["plain"][key] for key in one}
        print(
            f"{name:10s}{one['milliseconds']:8.2f} ms/step, x {ratio['milliseconds']:.2f};"
            f"{one['bytes'] / 1024:8.0f} KB of history, x {ratio['bytes']:.2f}"
        )
    say_processor_time()


def say_processor_time() -> None:
    """Of encrypting and decrypting alone: it does not depend on what else the machine does."""
    key, place = Key("k", os.urandom(32)), Place("default", "thread")
    for size in (200, 2_000, 20_000, 200_000):
        words = b"".join(os.urandom(12).hex().encode() + b" words of a message " for _ in range(size // 44 + 1))
        plain = Payload(metadata={"encoding": b"binary/plain"}, data=words[:size])
        there = sealed(plain, key, place)
        times = [spent(lambda: sealed(plain, key, place)), spent(lambda: opened(there, Keyring([key]), place))]  # noqa: B023
        print(
            f"{size:7d} bytes: {times[0]:.3f} ms of processor time to encrypt, {times[1]:.3f} to decrypt; "
            f"{there.ByteSize()} bytes are sent"
        )


def spent(work: Callable[[], object], times: int = 200) -> float:
    work()
    began = process_time()
    for _ in range(times):
        work()
    return (process_time() - began) / times * 1_000


if __name__ == "__main__":
    main()
