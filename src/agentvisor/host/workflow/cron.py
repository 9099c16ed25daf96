"""One firing of a cron: a run is started, once however often that is tried; its id comes of when it was due."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID, uuid5

from temporalio import workflow
from temporalio.common import RetryPolicy

with workflow.unsafe.imports_passed_through():
    from agentvisor.host.workflow.details_beside import cron_details
    from agentvisor.protocol.v1 import run_pb2

CRON_WORKFLOW = "agentvisor.cron"
FIRE_ACTIVITY = "agentvisor.fire_cron"
RELEASE_ACTIVITY = "agentvisor.release_cron_run"

STARTED_BRIEFLY = "started, and its thread goes after it"
"""An outcome of firing. Only once it is known may the thread go: firing again would make it, and run, anew."""

RETRIES = RetryPolicy(
    initial_interval=timedelta(seconds=1),
    backoff_coefficient=2.0,
    maximum_interval=timedelta(minutes=10),
    maximum_attempts=24,
)
"""About two and a half hours."""

_NAMESPACE = UUID("0d0e3f0c-6a35-5f1e-9a53-4d6f2c1b7a90")
_ONE_TRY = timedelta(seconds=60)
_SILENCE = timedelta(seconds=10)
"""After which a host that was at it is given up."""


def run_id_of(workflow_id: str) -> str:
    """Of the run that a firing starts: Temporal names its workflow by the cron and the time at which it was due."""
    return str(uuid5(_NAMESPACE, workflow_id))


@workflow.defn(name=CRON_WORKFLOW)
class CronWorkflow:
    """Ends with what has become of it, in words."""

    @workflow.run
    async def run(self, encoded: bytes) -> str:
        told = run_pb2.FireCron.FromString(encoded)
        told.run_id = run_id_of(workflow.info().workflow_id)
        workflow.set_current_details(cron_details(told))
        outcome = await self._do(FIRE_ACTIVITY, told)
        if outcome == STARTED_BRIEFLY:
            await self._do(RELEASE_ACTIVITY, told)
        return outcome

    async def _do(self, activity: str, told: run_pb2.FireCron) -> str:
        return await workflow.execute_activity(
            activity,
            told.SerializeToString(),
            result_type=str,
            start_to_close_timeout=_ONE_TRY,
            heartbeat_timeout=_SILENCE,
            retry_policy=RETRIES,
            summary=f"cron {told.cron_id}",
        )
