"""Erases executions of shelves from Temporal, with all that they ever held; the activity that shelves ask for."""

from __future__ import annotations

from datetime import timedelta

from temporalio import activity
from temporalio.api.common.v1 import WorkflowExecution
from temporalio.api.workflowservice.v1 import DeleteWorkflowExecutionRequest
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from agentvisor.core.shelf import ShelfName
from agentvisor.host.shelves import ITEMS, Shelves
from agentvisor.host.workflow.shelf import ERASE_ACTIVITY
from agentvisor.protocol.v1 import items_pb2

_TIMEOUT = timedelta(seconds=10)


class Eraser:
    """What the workers of shelves run."""

    def __init__(self, client: Client, shelves: Shelves) -> None:
        self._client = client
        self._shelves = shelves

    @activity.defn(name=ERASE_ACTIVITY)
    async def erase(self, request: bytes) -> None:
        """Delete the executions that are named, the running one last: that ends it, and this activity with it.

        An open execution that is deleted is ended by Temporal itself, so that nothing is left where this host dies
        between the two; until then the shelf refuses changes, and none is lost.
        """
        task = items_pb2.EraseShelf.FromString(request)
        if task.ended and task.kind == ITEMS:
            await self._shelves.forget_news(ShelfName(task.kind, task.owner, tuple(task.namespace)))
        for run_id in task.run_ids:
            try:
                await self._client.workflow_service.delete_workflow_execution(
                    DeleteWorkflowExecutionRequest(
                        namespace=self._client.namespace,
                        workflow_execution=WorkflowExecution(workflow_id=task.workflow_id, run_id=run_id),
                    ),
                    retry=True,
                    timeout=_TIMEOUT,
                )
            except RPCError as error:
                if error.status is not RPCStatusCode.NOT_FOUND:
                    raise
        if task.ended:
            # There is nobody left to be told. (If there is, the activity times out, and does all of this again.)
            activity.raise_complete_async()
