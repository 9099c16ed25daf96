"""Record histories of workflows for tests/histories: `python scripts/record_histories.py [--replace] [NAME...]`.

A history that was recorded stays: a release may have threads that look like it. Run this after a change of the
workflow that makes new commands, and commit the files that it adds. `--replace` is for workflows that no release has
run yet.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
import tempfile
from pathlib import Path

from temporalio.client import Client, WorkflowHandle

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "tests" / "histories" / "recorded"
IDENTITY = re.compile(r'"identity": "[^"]*"')

sys.path.insert(0, str(ROOT))

from tests.histories.scenarios import SCENARIOS  # noqa: E402
from tests.histories.shelf_scenarios import SHELF_SCENARIOS, place  # noqa: E402
from tests.histories.upkeep_scenarios import CRON_SCENARIOS  # noqa: E402
from tests.support.temporal import temporal_server  # noqa: E402

from agentvisor.core.ids import ThreadId  # noqa: E402 - after the path

ALL = [*SCENARIOS, *SHELF_SCENARIOS, *CRON_SCENARIOS]


async def record(address: str, name: str) -> list[str]:
    """Live through a scenario; the histories of its workflow's executions, the oldest first."""
    workflow_id = f"recorded-{name.replace('_', '-')}"
    if name in SHELF_SCENARIOS:
        await SHELF_SCENARIOS[name](address, workflow_id)
        workflow_id = place(workflow_id)
    elif name in CRON_SCENARIOS:
        await CRON_SCENARIOS[name](address, workflow_id)
    else:
        await SCENARIOS[name](address, ThreadId(workflow_id))
    client = await Client.connect(address)
    found: list[str] = []
    run_id = (await client.get_workflow_handle(workflow_id).describe()).run_id
    while run_id:
        handle: WorkflowHandle[object, object] = client.get_workflow_handle(workflow_id, run_id=run_id)
        history = await handle.fetch_history()
        found.append(IDENTITY.sub('"identity": "host"', history.to_json()))
        run_id = history.events[0].workflow_execution_started_event_attributes.continued_execution_run_id
    return found[::-1]


def save(name: str, histories: list[str], *, replace: bool) -> None:
    """One file for each execution, numbered; a recording of the same scenario that is there stays."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    if replace:
        for old in FOLDER.glob(f"{name}.*.json"):
            old.unlink()
    takes = {int(path.name.split(".")[1]) for path in FOLDER.glob(f"{name}.*.json")}
    take = max(takes, default=0) + 1
    for number, history in enumerate(histories, 1):
        path = FOLDER / f"{name}.{take}.{number}.json"
        path.write_text(history + "\n")
        print(path.relative_to(ROOT), len(history))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replace", action="store_true", help="remove earlier recordings of the same scenarios")
    parser.add_argument("names", nargs="*", help=f"of {', '.join(ALL)}; all by default")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, temporal_server(Path(folder)) as server:
        for name in options.names or ALL:
            save(name, asyncio.run(record(server.address, name)), replace=options.replace)


if __name__ == "__main__":
    main()
