"""What waits for an answer: listed over all threads and of one, answered by id, given up."""

from __future__ import annotations

from typing import Annotated, cast

from fastapi import APIRouter, Query
from pydantic import Field, JsonValue

from agentvisor.core.deadlines import asking_run
from agentvisor.core.errors import InvalidInput
from agentvisor.core.ids import ThreadId
from agentvisor.host.http.answers import not_waiting
from agentvisor.host.http.bodies_threads import Body
from agentvisor.host.http.interrupt_pages import page, place_from
from agentvisor.host.http.json import JsonResponse, JsonRoute, decode
from agentvisor.host.http.open_interrupts import Look, Open, agent_of, interrupt_json, look
from agentvisor.host.http.paths import ThreadInPath
from agentvisor.host.http.run_create import Command, JsonObject, RunCreate
from agentvisor.host.http.run_start import start
from agentvisor.host.http.services import Served, Services
from agentvisor.host.http.shapes import run_json
from agentvisor.host.render_typed import Json
from agentvisor.protocol.run_config import without_checkpoint
from agentvisor.protocol.v1 import run_pb2

router = APIRouter(tags=["interrupts"], route_class=JsonRoute)


class AnswerRun(Body):
    """The run that brings answers; what is left out is as in the run that asked."""

    assistant_id: str | None = None
    config: JsonObject | None = None
    context: JsonValue = None
    metadata: JsonObject | None = None


class OneAnswer(AnswerRun):
    """The answer to one interrupt."""

    answer: JsonValue = Field(description="Any JSON; its schema, where it is known, is in the interrupt.")


class Answers(AnswerRun):
    """Answers to several interrupts of a thread, with one run."""

    answers: JsonObject = Field(min_length=1, description="By the interrupts' ids; the others go on waiting.")


@router.get("/interrupts")
async def list_interrupts(
    services: Served,
    limit: Annotated[
        int, Query(ge=1, le=1000, description="A page ends with the thread that brings it to so many.")
    ] = 100,
    after: Annotated[str | None, Query(description="`X-Pagination-Next` of the page before.")] = None,
    agent: Annotated[str | None, Query(description="Only what this agent asks.")] = None,
    kind: Annotated[str | None, Query(description="Only of this kind.")] = None,
) -> JsonResponse:
    """All that waits, over all threads that are interrupted; those of the newest threads first.

    A page without the header `X-Pagination-Next` is the last one; another may be short, where few are wanted.
    """

    def wanted(seen: Look, one: Open) -> bool:
        return kind in (None, one.interrupt.kind) and (agent is None or agent_of(seen.thread, one) == agent)

    found = await page(services, wanted, limit, place_from(after) if after else None)
    shown = [interrupt_json(seen.thread, one) for seen, one in found.found]
    return JsonResponse(shown, headers={"X-Pagination-Next": str(found.next)} if found.next is not None else None)


@router.get("/threads/{thread_id}/interrupts")
async def list_interrupts_of_thread(thread_id: ThreadInPath, services: Served) -> JsonResponse:
    """What waits on a thread for an answer, and has none yet; exact."""
    found = await look(services, thread_id)
    return JsonResponse([interrupt_json(found.thread, one) for one in found.open.values()])


@router.post("/threads/{thread_id}/interrupts")
async def answer_interrupts(thread_id: ThreadInPath, body: Answers, services: Served) -> JsonResponse:
    """Answer some of what waits: starts the run that brings the answers. 409 where one of them does not wait."""
    return await _answer(services, thread_id, body, body.answers)


@router.post("/threads/{thread_id}/interrupts/{interrupt_id:path}")
async def answer_interrupt(
    thread_id: ThreadInPath, interrupt_id: str, body: OneAnswer, services: Served
) -> JsonResponse:
    """Answer one interrupt: starts the run that brings the answer. 409 where it does not wait (any more)."""
    return await _answer(services, thread_id, body, {interrupt_id: body.answer})


@router.delete("/threads/{thread_id}/interrupts")
async def abandon_interrupts(thread_id: ThreadInPath, services: Served) -> JsonResponse:
    """Give up all that waits on a thread. The framework forgets it with the next run."""
    found = await look(services, thread_id)
    if found.open:
        await services.threads.close_interrupts(thread_id)
    return JsonResponse({"abandoned": list[Json](found.open)})


async def _answer(
    services: Services, thread_id: ThreadId, body: AnswerRun, answers: dict[str, JsonValue]
) -> JsonResponse:
    """Start the run, as the one that asked."""
    started = await start(services, await answering(services, thread_id, body, Command(resume=answers)), thread_id)
    return JsonResponse(run_json(thread_id, started.run), headers=started.headers())


async def answering(services: Services, thread_id: ThreadId, body: AnswerRun, command: Command) -> RunCreate:
    """The run that brings answers, by id, as the run that asked: with its agent, config and context.

    `Conflict` where one of them is for what does not wait.
    """
    found = await look(services, thread_id)
    answers = cast("JsonObject", command.resume)
    for one in answers:
        if one not in found.open:
            raise not_waiting(found, one)
    asker = asking_run(found.thread, found.open[next(iter(answers))].interrupt)
    if asker is None and body.assistant_id is None:
        raise InvalidInput(
            f"no run of thread {thread_id}, a copy perhaps, tells which agent goes on: name it (assistant_id; "
            "agent= in Python, --agent on the command line)",
            field="assistant_id",
        )
    config, context = body.config, body.context
    if asker is not None:
        asked = run_pb2.RunSpec.FromString((await services.threads.get_run(thread_id, asker.run_id)).spec.body)
        if config is None and asked.config:
            config = cast("JsonObject | None", decode(without_checkpoint(asked.config), "config"))
        context = context if context is not None else decode(asked.context, "context") if asked.context else None
    return RunCreate(
        assistant_id=body.assistant_id or agent_of(found.thread, found.open[next(iter(answers))]) or "",
        command=command,
        config=config,
        context=context,
        metadata=body.metadata,
    )
