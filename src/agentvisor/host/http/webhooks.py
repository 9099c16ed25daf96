"""What a webhook is told of a run's end: the run as the API shows it, with the values that it ended with."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from time import time

import structlog

from agentvisor.core.errors import NotFound
from agentvisor.core.ids import ROOT, ThreadId
from agentvisor.core.notices import Notice
from agentvisor.core.runs import Run
from agentvisor.host.config_http import signing_key
from agentvisor.host.http.json import encode
from agentvisor.host.http.reading import state_at
from agentvisor.host.http.services import Services
from agentvisor.host.http.shapes import output_json, run_error, run_json
from agentvisor.host.http.times import iso
from agentvisor.host.metrics import WEBHOOKS
from agentvisor.host.render_typed import Json
from agentvisor.host.tracing.place import asked_at
from agentvisor.host.tracing.spans import AGENT, NO_TRACING, RUN, THREAD, Kind
from agentvisor.host.webhook_address import WebhookAddresses
from agentvisor.host.webhook_sender import Answer, Heard, Webhook, send
from agentvisor.protocol.v1 import run_pb2

log: structlog.typing.FilteringBoundLogger = structlog.get_logger("agentvisor.webhook")

TOO_LARGE = "too_large"


class Webhooks:
    """Tells webhooks, on this host."""

    def __init__(self, services: Services) -> None:
        secret = services.config.http.webhook_secret
        self._services = services
        self._key = None if secret is None else signing_key(secret.get_secret_value())
        self._addresses = WebhookAddresses(services.config.http.webhook_allow_private)

    async def tell(self, thread_id: ThreadId, notice: Notice) -> Answer:
        """Send it once. `Unavailable` and the like where what is to be told cannot be read now."""
        try:
            body = await self._body(thread_id, notice)
        except NotFound:
            return Answer(Heard.NEVER, "the thread was deleted, and what was to be told of it with it")
        run, asked = notice.run, asked_at(run_pb2.RunSpec.FromString(notice.run.spec.body))
        tracing = self._services.tracing if asked is not None else NO_TRACING
        what = {THREAD: thread_id, RUN: run.run_id, AGENT: run.spec.agent}
        with tracing.span("webhook", Kind.CLIENT, asked and asked.of_run(run.run_id), what) as span:
            headers = span.place.headers if span.place is not None else {}
            webhook = Webhook(run.spec.webhook, run.run_id, body, headers)
            answer = await send(webhook, addresses=self._addresses, key=self._key, now_s=int(time()))
            span.note({"agentvisor.webhook.outcome": answer.heard.value})
            if answer.heard is not Heard.YES:
                span.fail(answer.heard.value)
        WEBHOOKS.labels(answer.heard.value).inc()
        log.info("webhook_tried", thread=thread_id, run=notice.run.run_id, outcome=answer.heard.value, says=answer.says)
        return answer

    async def _body(self, thread_id: ThreadId, notice: Notice) -> bytes:
        run = await self._whole(thread_id, notice.run)
        told: dict[str, Json] = {
            **run_json(thread_id, run),
            "status": "rollback" if notice.at is None and notice.run.rolled_back else _status(run),
            "run_started_at": _started_at(run),
            "run_ended_at": iso(notice.ended_at_ms),
            "webhook_sent_at": datetime.now(UTC).isoformat(),
            "values": await self._values(thread_id, run, notice),
            "error": run_error(run),
        }
        body = encode(told)
        if len(body) <= self._services.config.http.webhook_max_body:
            return body
        # The largest that a caller can do without: the run says where they are to be had.
        left_out: dict[str, Json] = {"__type__": TOO_LARGE, "size": len(body)}
        small = encode({**told, "values": left_out})
        if len(small) > self._services.config.http.webhook_max_body:
            small = encode({**told, "values": left_out, "kwargs": left_out})
        return small

    async def _whole(self, thread_id: ThreadId, known: Run) -> Run:
        """With its input and output; as the notice knows it, where the run is gone."""
        try:
            found = await self._services.threads.get_run(thread_id, known.run_id)
        except NotFound:
            await self._services.threads.get(thread_id)  # or is it the thread?
            return known
        return replace(found, status=known.status) if found.status.terminal else known

    async def _values(self, thread_id: ThreadId, run: Run, notice: Notice) -> Json:
        """What the thread held when the run ended; None where it is not kept any more."""
        if run.output or notice.at is None:
            return output_json(run)
        namespace, checkpoint_id = notice.at
        thread = await self._services.threads.read(thread_id, namespace=namespace, checkpoint_id=checkpoint_id)
        if thread.store.get(namespace, checkpoint_id) is None:
            return None
        state = await state_at(self._services, thread_id, ROOT, checkpoint_id, subgraphs=False)
        return state["values"]


def _status(run: Run) -> str:
    return run.status.name.lower()


def _started_at(run: Run) -> Json:
    started = [one.started_at_ms or one.scheduled_at_ms for one in run.attempts[:1]]
    return iso(started[0]) if started else None
