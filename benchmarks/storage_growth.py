"""What a thread stores against the state that it ends with: a conversation of 400 messages, and 50 turns with tools.

    python benchmarks/storage_growth.py

Each with the default history (100 checkpoints), for which the aims hold, and with all of it kept. The peer is
LangGraph's SqliteSaver, run on the same graphs; its bytes are those of its database file. Ours are the thread's encoded
state, as a compaction carries it, and all that was written to Temporal.
"""

import asyncio
import platform
import shutil
import socket
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
from growth_agents import grow
from langgraph.checkpoint.sqlite import SqliteSaver

from agentvisor.core.ids import ThreadId
from agentvisor.host.app import running_host
from agentvisor.host.config import load_config
from agentvisor.host.temporal_client import connect
from agentvisor.host.temporal_server import EmbeddedTemporal
from agentvisor.host.threads_read import ThreadReader

HERE = Path(__file__).parent
AIMS = {"conversation": ("1.5 times its final state", lambda stored, state: stored <= 1.5 * state),
        "tools": ("1 MB", lambda stored, _: stored < 1_000_000)}  # fmt: skip
COLUMNS = ("", "final state", "stored", "x state", "written", "SqliteSaver", "checkpoints")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def sqlite(kind: str, folder: Path) -> int:
    file = folder / f"{kind}.db"
    with SqliteSaver.from_conn_string(str(file)) as saver:
        grow(saver, kind, {"configurable": {"thread_id": "t"}})
        saver.conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return file.stat().st_size


async def measure(folder: Path, history: int, peers: dict[str, int]) -> bool:
    folder = folder / str(history)
    folder.mkdir()
    (folder / "agentvisor.yaml").write_text(
        f"agents:\n  growth:\n    entrypoint: {HERE / 'growth_agents.py'}:agent\n    framework: function\n"
        f"http:\n  port: {free_port()}\ntemporal:\n  max_checkpoint_history: {history}\n"
    )
    met = True
    async with AsyncExitStack() as stack:
        server = EmbeddedTemporal(data_dir=folder / "data", port=free_port(), ui_port=free_port())
        await stack.enter_async_context(server)
        client = await connect(server.address, "default")
        host = await stack.enter_async_context(
            running_host(load_config(folder / "agentvisor.yaml", environ={}), client)
        )
        http = await stack.enter_async_context(httpx.AsyncClient(timeout=600))
        print(f"\nmax_checkpoint_history: {history}" + (" (the default)" if history else " (all are kept)"))
        print("".join(["", *(f"{name:>13s}" for name in COLUMNS)]))
        for kind, (aim, reached) in AIMS.items():
            thread = (await http.post(f"{host.url}/threads", json={})).json()["thread_id"]
            body = {"assistant_id": "growth", "input": {"kind": kind, "thread": thread}}
            output = (await http.post(f"{host.url}/threads/{thread}/runs/wait", json=body)).json()
            if "state" not in output:
                raise SystemExit(f"the run failed: {output}")
            stored = (await http.get(f"{host.url}/threads/{thread}/storage")).json()
            info = (await ThreadReader(client).describe(ThreadId(thread))).workflow_execution_info
            peer = peers[kind]
            state, size = output["state"], stored["state_bytes"]
            row = (f"{state / 1e3:.0f}", f"{size / 1e3:.0f}", f"{size / state:.2f}",
                   f"{info.history_size_bytes / 1e3:.0f}", f"{peer / 1e3:.0f}", str(stored["checkpoints"]))  # fmt: skip
            print("".join(f"{one:>13s}" for one in (kind, *row)))
            ok = reached(size, state)
            met = met and (ok or not history)
            print(f"{'':15s}aim: at most {aim}: {'met' if ok else 'MISSED'}")
    return met


def main() -> None:
    folder = Path(tempfile.mkdtemp(prefix="agentvisor-growth-"))
    try:
        print(f"{platform.platform()}, Python {platform.python_version()}; bytes in thousands")
        peers = {kind: sqlite(kind, folder) for kind in AIMS}
        results = [asyncio.run(measure(folder, history, peers)) for history in (100, 0)]
        if not all(results):
            raise SystemExit("MISSED")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
