"""One measurement with a peer's saver in a process of its own: `peer.py postgres|sqlite ADDRESS STEPS` prints JSON."""

import json
import sys
import uuid
from pathlib import Path

import psycopg
from conversation import measure
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver

TABLES = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")


def main(kind: str, address: str, steps: int) -> None:
    thread_id = str(uuid.uuid4())
    config = {"configurable": {"thread_id": thread_id}}
    if kind == "postgres":
        with PostgresSaver.from_conn_string(address) as saver:
            saver.setup()
            milliseconds = measure(saver, steps, config)
        with psycopg.connect(address) as connection:
            stored = sum(
                int(row[0] or 0)
                for table in TABLES
                for row in connection.execute(
                    f"SELECT sum(pg_column_size(t.*)) FROM {table} t WHERE thread_id = %s",
                    (thread_id,),
                )
            )
    else:
        with SqliteSaver.from_conn_string(address) as saver:
            saver.setup()
            before = _file_bytes(address)
            milliseconds = measure(saver, steps, config)
            stored = _file_bytes(address) - before
    print(json.dumps({"milliseconds": milliseconds, "bytes": stored}))


def _file_bytes(address: str) -> int:
    return sum(Path(name).stat().st_size for name in (address, f"{address}-wal") if Path(name).exists())


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
