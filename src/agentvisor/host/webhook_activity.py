"""The activity that tells a webhook of a run's end; what went wrong for now is tried again by Temporal."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from temporalio import activity
from temporalio.exceptions import ApplicationError

from agentvisor.core.ids import ThreadId
from agentvisor.core.notices import Notice
from agentvisor.host.beating import beating
from agentvisor.host.webhook_sender import Answer, Heard
from agentvisor.host.workflow.telling import WEBHOOK_ACTIVITY
from agentvisor.protocol.threads import notice_from_message
from agentvisor.protocol.v1 import run_pb2

_TEXT_CHARS = 500

Tell = Callable[[ThreadId, Notice], Awaitable[Answer]]


class WebhookActivity:
    """What a host's worker runs for each try."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell

    @activity.defn(name=WEBHOOK_ACTIVITY)
    async def run(self, encoded: bytes) -> None:
        """One try to tell one notice."""
        message = run_pb2.Notice.FromString(encoded)
        async with beating():
            answer = await self._tell(ThreadId(message.thread_id), notice_from_message(message))
        if answer.heard is not Heard.YES:
            never = answer.heard is Heard.NEVER
            raise ApplicationError(answer.says[:_TEXT_CHARS], type="Webhook", non_retryable=never)
