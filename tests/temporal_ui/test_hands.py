"""What becomes of a thread that somebody cancels, resets, terminates or signals by hand, in Temporal itself."""

import asyncio
import threading
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx
import pytest
import pytest_asyncio
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import ResetWorkflowExecutionRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode
from tests.support.waiting import until
from tests.temporal_ui.conftest import Served

from agentvisor.host.temporal_client import connect

pytestmark = [pytest.mark.flow, pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(180)]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def temporal_client(served: Served) -> AsyncGenerator[Client]:
    yield await connect(served.temporal, "default")


class Held:
    """A run that goes on until it is let go, and its caller, who waits."""

    def __init__(self, served: Served, thread_id: str) -> None:
        self.ledger, self.gate = served.folder / f"{thread_id}.ledger", served.folder / f"{thread_id}.gate"
        given = {"ledger": str(self.ledger), "until": str(self.gate)}
        self._body = {"assistant_id": "holding", "input": given, "if_not_exists": "create"}
        self._url = f"{served.dev.url}/threads/{thread_id}/runs/wait"
        self.answer: httpx.Response | None = None
        self._waiting = threading.Thread(target=self._wait, daemon=True)
        self._waiting.start()

    def _wait(self) -> None:
        self.answer = httpx.post(self._url, json=self._body, timeout=90)

    async def began(self, times: int = 1) -> None:
        await until(lambda: self.ledger.exists() and len(self.ledger.read_text().split()) >= times, seconds=60)

    async def answered(self) -> tuple[int, Any]:
        await until(lambda: self.answer is not None, seconds=60)
        assert self.answer is not None
        return self.answer.status_code, self.answer.json()

    @property
    def process(self) -> Path:
        """Of the agent, where Linux shows it."""
        return Path("/proc") / self.ledger.read_text().split()[-1]


async def _is_forgotten(client: Client, thread_id: str) -> bool:
    try:
        await client.get_workflow_handle(thread_id).describe()
    except RPCError as error:
        return error.status is RPCStatusCode.NOT_FOUND
    return False


@pytest.mark.slow
async def test_a_thread_that_is_terminated_is_gone_at_once_for_everybody(
    served: Served, temporal_client: Client
) -> None:
    held = Held(served, "doomed")
    await held.began()

    await temporal_client.get_workflow_handle("doomed").terminate(reason="by hand")

    status, body = await held.answered()
    assert body["__error__"]["message"] == "thread doomed does not exist", (status, body)
    await until(lambda: not held.process.exists(), seconds=60)  # its agent has ended
    for path in ("", "/state", "/history", "/runs"):
        answer = await asyncio.to_thread(served.http.get, f"/threads/doomed{path}")
        assert (answer.status_code, answer.json()["message"]) == (404, "thread doomed does not exist"), path
    run = {"assistant_id": "desk", "input": {}}
    refused = await asyncio.to_thread(served.http.post, "/threads/doomed/runs/wait", json=run)
    assert refused.status_code == 404
    assert (await asyncio.to_thread(served.http.delete, "/threads/doomed")).status_code == 404
    await until(lambda: _is_forgotten(temporal_client, "doomed"), seconds=60)  # it is cleaned up all the same
    again = await asyncio.to_thread(served.http.post, "/threads", json={"thread_id": "doomed"})
    assert (again.status_code, again.json()["status"]) == (200, "idle")


async def test_a_cancel_of_the_workflow_ends_the_run_and_leaves_the_thread(
    served: Served, temporal_client: Client
) -> None:
    held = Held(served, "cancelled")
    await held.began()

    await temporal_client.get_workflow_handle("cancelled").cancel()

    await held.answered()
    (run,) = (await asyncio.to_thread(served.http.get, "/threads/cancelled/runs")).json()
    assert run["status"] == "interrupted"
    shown = await asyncio.to_thread(served.run, "cancelled", "desk", {"question": "Go on?"})
    assert shown["__interrupt__"][0]["value"] == "Go on?"


async def test_a_reset_runs_the_agent_again_and_the_thread_goes_on(served: Served, temporal_client: Client) -> None:
    held = Held(served, "reset")
    held.gate.touch()
    await held.answered()
    handle = temporal_client.get_workflow_handle("reset")
    request = ResetWorkflowExecutionRequest(
        namespace="default",
        workflow_execution=WorkflowExecution(workflow_id="reset", run_id=(await handle.describe()).run_id),
        reason="by hand",
        workflow_task_finish_event_id=4,
        request_id="1",
    )

    await temporal_client.workflow_service.reset_workflow_execution(request)

    await held.began(times=2)  # what the agent does, it has done twice
    shown = await asyncio.to_thread(served.run, "reset", "desk", {"question": "Go on?"})
    assert shown["__interrupt__"][0]["value"] == "Go on?"


@pytest.mark.parametrize("argument", [b"\xff\xfe no log", "text", {"a": 1}], ids=["bytes", "text", "json"])
async def test_a_signal_by_hand_changes_nothing(served: Served, temporal_client: Client, argument: object) -> None:
    thread_id = f"signalled-{type(argument).__name__}"
    served.run(thread_id, "refunds", {"order": "1"})
    before = served.http.get(f"/threads/{thread_id}/state").json()
    handle = temporal_client.get_workflow_handle(thread_id)

    await handle.signal("fold", argument)
    await handle.signal("unheard of", argument)

    assert served.http.get(f"/threads/{thread_id}/state").json() == before
    answer = {"assistant_id": "refunds", "command": {"resume": "yes"}}
    assert served.http.post(f"/threads/{thread_id}/runs/wait", json=answer).json()["answer"] == "yes"
