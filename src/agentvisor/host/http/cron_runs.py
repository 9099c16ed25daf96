"""Starts the runs of crons, as a caller would who sends what the cron keeps."""

from __future__ import annotations

from agentvisor.core.crons import Cron
from agentvisor.core.errors import NotFound
from agentvisor.core.ids import RunId, ThreadId
from agentvisor.core.owners import Owner
from agentvisor.host.http.run_create import RunCreate
from agentvisor.host.http.run_start import prepared
from agentvisor.host.http.services import Services
from agentvisor.host.http.stateless import brief
from agentvisor.host.workflow.cron import STARTED_BRIEFLY


class CronRuns:
    """On this host."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def start(self, cron: Cron, run_id: RunId) -> str:
        """Start the run; the same id again changes nothing. What has become of it, in words."""
        services = self._services.of(Owner(cron.owner))
        body = RunCreate.model_validate(
            {**cron.payload, "metadata": {**(cron.payload.get("metadata") or {}), "cron_id": cron.cron_id}}
        )
        if cron.thread_id is None:
            # The thread has the run's id, so that starting it again finds it.
            await (await prepared(services, body, ThreadId(run_id), stateless=True, run_id=run_id)).start()
            return "started" if cron.on_run_completed == "keep" else STARTED_BRIEFLY
        thread_id = ThreadId(cron.thread_id)
        try:
            await services.threads.get(thread_id)
        except NotFound:
            await services.crons.forget(cron)
            return "not started: the thread was deleted"
        await (await prepared(services, body, thread_id, run_id=run_id)).start()
        return "started"

    async def release(self, owner: Owner, run_id: RunId) -> None:
        """Have the thread of such a run go after it; `NotFound` where it is gone."""
        services = self._services.of(owner)
        await services.threads.set_lifetime(ThreadId(run_id), brief(services.config), {})
