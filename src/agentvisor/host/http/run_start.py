"""Starts runs, and answers with what the caller asked to see of them: the run, its end, or its events."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from dataclasses import dataclass, replace

from pydantic import JsonValue

from agentvisor.core.answering import CHANGED
from agentvisor.core.assistants import Assistant
from agentvisor.core.errors import Conflict, NotFound
from agentvisor.core.ids import RunId, ThreadId
from agentvisor.core.lifetimes import Lifetime
from agentvisor.core.runs import Run
from agentvisor.host.http.agents import require_agent, runnable_assistant
from agentvisor.host.http.answers import answered_by, resume_of
from agentvisor.host.http.checkpoint_address import addressed
from agentvisor.host.http.json import encode
from agentvisor.host.http.live import LiveResponse
from agentvisor.host.http.open_interrupts import Look, look
from agentvisor.host.http.outcome import keeping_alive, outcome
from agentvisor.host.http.run_create import RunCreate, check, check_input, named_checkpoint, spec_of
from agentvisor.host.http.run_stream import RunReader
from agentvisor.host.http.services import Services
from agentvisor.host.http.sse import HEADERS, wire
from agentvisor.host.render_typed import Json
from agentvisor.host.webhook_address import WebhookAddresses
from agentvisor.protocol.v1 import run_pb2

_LOOKS = 5
"""At a thread that changes between the look and the update."""


@dataclass(frozen=True, slots=True)
class Started:
    """A run that is recorded, durably."""

    thread_id: ThreadId
    run: Run
    on_disconnect: Callable[[], object] | None
    """What follows when the client leaves before the end."""

    def headers(self, way_back: str | None = None) -> dict[str, str]:
        """Where the run is, and where a client that was cut off goes on: LangGraph's client reads both."""
        return where(self.thread_id, self.run.run_id, way_back)


def where(thread_id: ThreadId, run_id: RunId, way_back: str | None = None) -> dict[str, str]:
    """The headers that say where a run is, and where its end or its events are to be had again."""
    place = f"/threads/{thread_id}/runs/{run_id}"
    return {"Content-Location": place, **({"Location": f"{place}/{way_back}"} if way_back else {})}


@dataclass(frozen=True, slots=True)
class Prepared:
    """A run that would be accepted, as far as can be told before its thread is asked."""

    services: Services
    body: RunCreate
    thread_id: ThreadId
    spec: run_pb2.RunSpec
    create: bool
    lifetime: Lifetime | None
    """Of a thread that is made for it."""

    async def start(self) -> Started:
        """Record it."""
        spec = self.spec
        # As on the LangGraph server: of a thread that is there already, a run's metadata changes nothing.
        named = {"graph_id": spec.agent, "assistant_id": spec.assistant_id}
        thread_metadata = {**named, **(self.body.metadata or {})}
        recorded = await _recorded(
            self.services,
            self.body,
            self.thread_id,
            spec,
            create=self.create,
            thread_metadata=thread_metadata,
            lifetime=self.lifetime,
        )
        self.services.news.tell(self.thread_id)
        # The thread answers without the run's input: the caller is shown the run as it was asked for.
        run = replace(recorded, spec=replace(recorded.spec, body=spec.SerializeToString()))
        leaving = self.body.on_disconnect == "cancel"
        canceling = canceller(self.services, self.thread_id, run.run_id) if leaving else None
        return Started(self.thread_id, run, canceling)


async def start(
    services: Services,
    body: RunCreate,
    thread_id: ThreadId,
    *,
    also_stream: Collection[str] = (),
    assistant: Assistant | None = None,
) -> Started:
    """Record the run. Nothing is created where the request is refused.

    `also_stream`: what its agent sends beside the modes that the body names. `assistant`: the one to run as, where that
    is not the current version of the one that the body names.
    """
    prepared_run = await prepared(services, body, thread_id, assistant=assistant)
    spec = prepared_run.spec
    spec.stream_modes[:] = sorted({*spec.stream_modes, *also_stream})
    return await prepared_run.start()


async def prepared(
    services: Services,
    body: RunCreate,
    thread_id: ThreadId,
    *,
    assistant: Assistant | None = None,
    stateless: bool = False,
    run_id: RunId | None = None,
    lifetime: Lifetime | None = None,
) -> Prepared:
    """Check all of a run but what its thread alone can tell.

    `run_id`: what it is called, where its caller may start it twice. `lifetime`: of its thread, where that is made.
    """
    check(body, None if stateless else thread_id)
    if stateless and _brought(body)[0]:
        raise Conflict(
            "the run brings an answer (command.resume), and nothing waits for one: a run without a thread has a new one"
        )
    check_input(body, services.config.storage.max_input)
    if assistant is None:
        assistant = await runnable_assistant(services, body.assistant_id)
    else:
        require_agent(services, assistant)
    if body.webhook is not None:
        await WebhookAddresses(services.config.http.webhook_allow_private).check(body.webhook)
    spec = spec_of(body, assistant.graph_id, services.config, assistant)
    spec.run_id = run_id or spec.run_id
    await _go_on_from(services, thread_id, body, spec, stateless=stateless)
    return Prepared(services, body, thread_id, spec, stateless or body.if_not_exists == "create", lifetime)


async def _recorded(
    services: Services,
    body: RunCreate,
    thread_id: ThreadId,
    spec: run_pb2.RunSpec,
    *,
    create: bool,
    thread_metadata: Mapping[str, object],
    lifetime: Lifetime | None,
) -> Run:
    """The run, with what it answers; where the thread changes between the look at it and the update, looked at anew."""
    brings, resume = _brought(body)
    for last in (*(False,) * _LOOKS, True):
        found = None
        # From an older checkpoint, what waited there is answered, which only the graph knows.
        if brings and not spec.checkpoint_id:
            found = await _look(services, thread_id, create=create)
            spec.answers[:] = answered_by(found, resume)
            spec.answers_graph = any(found.open[one].in_graph for one in spec.answers)
        try:
            return await services.threads.start_run(
                thread_id,
                spec,
                create=create,
                thread_metadata=thread_metadata,
                seen=found.seen if found is not None else None,
                lifetime=lifetime,
            )
        except Conflict as error:
            if CHANGED not in error.details or last:
                raise
    raise AssertionError


def _brought(body: RunCreate) -> tuple[bool, JsonValue]:
    return resume_of(body.command.model_dump(exclude_unset=True) if body.command else None)


async def _look(services: Services, thread_id: ThreadId, *, create: bool) -> Look:
    try:
        return await look(services, thread_id)
    except NotFound as error:
        if not create:
            raise
        raise Conflict(
            f"the run brings an answer (command.resume), and nothing waits for one: thread {thread_id} does not exist"
        ) from error


async def _go_on_from(
    services: Services, thread_id: ThreadId, body: RunCreate, spec: run_pb2.RunSpec, *, stateless: bool
) -> None:
    """Put into the specification which checkpoint the run goes on from, if the body names one; `NotFound`."""
    named = named_checkpoint(body)
    if named is None:
        return
    if stateless:
        shown = (named.checkpoint_id or "")[:80]
        raise NotFound(f"checkpoint {shown!r} does not exist: a run without a thread has no checkpoints yet")
    where = await addressed(services, thread_id, named)
    spec.checkpoint_ns, spec.checkpoint_id = where.namespace, where.checkpoint_id
    spec.checkpoint_map = encode(where.map) if where.map else b""


def canceller(services: Services, thread_id: ThreadId, run_id: RunId) -> Callable[[], object]:
    """Cancels the run in the background; that it has ended meanwhile is fine."""

    async def cancel() -> None:
        try:
            await services.threads.cancel_run(thread_id, run_id)
        except NotFound:
            return

    return lambda: services.afterwards.begin(f"cancel run {run_id}", cancel())


def waiting(services: Services, started: Started, then: Callable[[], object] | None = None) -> LiveResponse:
    """The values that the run ends with, once it has."""

    async def answer() -> Json:
        run = await services.threads.wait_run(started.thread_id, started.run.run_id)
        return await outcome(services, started.thread_id, run)

    pieces = keeping_alive(answer(), services.heartbeat)
    return LiveResponse(
        pieces if then is None else _then(pieces, then),
        "application/json",
        started.headers("join"),
        started.on_disconnect,
    )


def streaming(
    services: Services, body: RunCreate, started: Started, then: Callable[[], object] | None = None
) -> LiveResponse:
    """The run's events as they come."""
    reader = RunReader(services, started.thread_id, started.run.run_id, body.modes)
    pieces = wire(reader.events(), services.heartbeat)
    return LiveResponse(
        pieces if then is None else _then(pieces, then),
        "text/event-stream",
        {**HEADERS, **started.headers("stream")},
        started.on_disconnect,
    )


async def _then(pieces: AsyncGenerator[bytes], then: Callable[[], object]) -> AsyncGenerator[bytes]:
    """The pieces; after the last one, or when nobody reads them any more, something follows."""
    try:
        async for piece in pieces:
            yield piece
    finally:
        then()
        await pieces.aclose()
