"""Commands to a thread: start a run, answer what waits, show the tree of a run's graphs. Each has one reply.

A command that cannot be done is answered with an error of the protocol; only what is no command is an error of HTTP.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from pydantic import ValidationError

from agentvisor.core.errors import (
    AgentVisorError,
    Conflict,
    InvalidInput,
    NotFound,
    PermissionRefused,
    Unavailable,
    UnknownAgent,
    ValueTooLarge,
)
from agentvisor.core.ids import ThreadId
from agentvisor.core.runs import Run, RunStatus
from agentvisor.host.http.events.follow import applied_through
from agentvisor.host.http.events.translate import Translator
from agentvisor.host.http.interrupts import AnswerRun, answering
from agentvisor.host.http.json import decode
from agentvisor.host.http.open_interrupts import look
from agentvisor.host.http.run_create import Command, JsonObject, RunCreate
from agentvisor.host.http.run_start import start
from agentvisor.host.http.services import Services
from agentvisor.host.render_typed import Json
from agentvisor.host.streams import TapeId

Object = dict[str, Json]

MODES = ("values", "updates", "messages-tuple", "custom", "tasks", "checkpoints")
ALSO = ("tools", "content-blocks")
"""What an agent sends for the protocol's channels beside those: the tools' events, and messages' content blocks."""

_FIELDS = (
    "assistant_id", "input", "command", "config", "context", "metadata", "multitask_strategy", "durability", "webhook",
    "interrupt_before", "interrupt_after", "checkpoint", "checkpoint_id", "after_seconds", "feedback_keys",
    "langsmith_tracer", "on_interrupt", "strict_resume",
)  # fmt: skip
"""Of a run's body: the others say how its own stream is read, and here that is the subscription's."""
_CAMEL = {"multitaskStrategy": "multitask_strategy"}
_ANSWER_FIELDS = (
    "interrupt_id", "response", "namespace", "responses", "update", "goto", "config", "metadata", "strict_resume",
)  # fmt: skip
_ENTRY_FIELDS = ("interrupt_id", "response", "namespace")

_CODES: dict[type[AgentVisorError], str] = {
    InvalidInput: "invalid_argument",
    UnknownAgent: "invalid_argument",
    ValueTooLarge: "invalid_argument",
    PermissionRefused: "permission_denied",
}


class Malformed(Exception):
    """It is no command; the reply says why."""

    def __init__(self, command_id: Json, message: str) -> None:
        super().__init__(message)
        self.reply = failed(command_id, "invalid_argument", message)


@dataclass(frozen=True, slots=True)
class Asked:
    """A command."""

    id: int
    method: str
    params: Object


def parsed(data: bytes | str) -> Asked:
    """The command in a message; `Malformed` where there is none."""
    try:
        body = decode(data.encode("utf-8", "backslashreplace") if isinstance(data, str) else data, "the command")
    except ValueError as error:
        raise Malformed(None, str(error)) from None
    if not isinstance(body, dict):
        raise Malformed(None, "a command is an object with an integer id and a text method")
    command_id, method, params = body.get("id"), body.get("method"), body.get("params")
    if not isinstance(command_id, int) or isinstance(command_id, bool) or not isinstance(method, str):
        raise Malformed(command_id, "a command must have an integer id and a text method")
    if params is not None and not isinstance(params, dict):
        raise Malformed(command_id, "params must be an object")
    return Asked(command_id, method, params or {})


def done(command: Asked, result: Object, applied: int) -> Object:
    """The reply to a command that was done. `applied`: number of the last event that was before it."""
    return {"type": "success", "id": command.id, "result": result, "meta": {"applied_through_seq": applied}}


def failed(command_id: Json, code: str, message: str, **more: Json) -> Object:
    """The reply to a command that was not done."""
    return {"type": "error", "id": command_id, "error": code, "message": message, **more}


async def answered(services: Services, thread_id: ThreadId, command: Asked, applied: int | None = None) -> Object:
    """The reply to a command.

    Args:
        services: to do it with.
        thread_id: the thread; `run.start` creates it.
        command: what to do.
        applied: number of the last event that the client has got on this connection; None: it gets no events here, and
            is told the last of the runs that have ended.
    """
    do = _COMMANDS.get(command.method)
    if do is None:
        return failed(command.id, "unknown_command", f"Unknown protocol command: {command.method[:80]}")
    try:
        # Before it is done: what follows from it comes after that.
        through = await _applied(services, thread_id) if applied is None else applied
        return done(command, await do(services, thread_id, command.params), through)
    except Unavailable:
        raise  # worth another try, which no error of the protocol says
    except AgentVisorError as error:
        return failed(command.id, _code(command, error), error.message)


async def _applied(services: Services, thread_id: ThreadId) -> int:
    try:
        return applied_through(await services.threads.get(thread_id))
    except NotFound:
        return 0


def _code(command: Asked, error: AgentVisorError) -> str:
    if isinstance(error, NotFound) and "checkpoint_id" in error.details:
        return "no_such_checkpoint"
    if isinstance(error, NotFound):
        return "no_such_run"
    if isinstance(error, Conflict) and (command.method == "input.respond" or "interrupts" in error.details):
        return "no_such_interrupt"
    return _CODES.get(type(error), "unknown_error")


# --- run.start --------------------------------------------------------------------------------------------------------


async def _run_start(services: Services, thread_id: ThreadId, params: Object) -> Object:
    given = _spelled(params)
    if not isinstance(given.get("assistant_id"), str) or not given["assistant_id"]:
        raise InvalidInput("run.start requires an assistant_id.", field="assistant_id")
    _require_known(given, _FIELDS)
    body = _checked({name: value for name, value in given.items() if value is not None})
    if await _answers(services, thread_id, body):
        # What comes while a question waits is its answer.
        command = Command(resume=body.input)
        body = body.model_copy(update={"input": None, "command": command})
    started = await start(services, body, thread_id, also_stream=ALSO)
    return {"run_id": started.run.run_id}


def _spelled(params: Object) -> Object:
    given = dict(params)
    for camel, snake in _CAMEL.items():
        if camel in given:
            value = given.pop(camel)
            if given.setdefault(snake, value) != value:
                raise InvalidInput(f"{camel} and {snake} are one field: give one value", field=snake)
    return given


def _checked(given: Mapping[str, Json]) -> RunCreate:
    try:
        body = RunCreate.model_validate({**given, "stream_mode": list(MODES), "stream_subgraphs": True})
    except ValidationError as error:
        raise InvalidInput(_problems(error)) from None
    return body.model_copy(update={"if_not_exists": "create"})


async def _answers(services: Services, thread_id: ThreadId, body: RunCreate) -> bool:
    """Whether its input is an answer: as LangGraph's server takes one while something waits."""
    if body.input is None or body.command is not None or body.on_interrupt is not None:
        return False
    try:
        return bool((await look(services, thread_id)).open)
    except NotFound:
        return False


# --- input.respond ----------------------------------------------------------------------------------------------------


async def _respond(services: Services, thread_id: ThreadId, params: Object) -> Object:
    _require_known(params, _ANSWER_FIELDS)
    answers = _responses(params)
    try:
        run = AnswerRun.model_validate({name: params[name] for name in ("config", "metadata") if params.get(name)})
        steering = {name: params[name] for name in ("update", "goto") if params.get(name) is not None}
        command = Command.model_validate({"resume": answers, **steering})
    except ValidationError as error:
        raise InvalidInput(_problems(error)) from None
    body, assistant = await answering(services, thread_id, run, command)
    body = body.model_copy(update={"stream_mode": list(MODES), "stream_subgraphs": True})
    started = await start(services, body, thread_id, also_stream=ALSO, assistant=assistant)
    return {"run_id": started.run.run_id}


def _responses(params: Object) -> JsonObject:
    """The answers, by the interrupts' ids."""
    several = params.get("responses")
    if several is None:
        return dict([_response(params)])
    if "interrupt_id" in params:
        raise InvalidInput("give interrupt_id with response, or responses, and not both", field="responses")
    if not isinstance(several, list) or not several:
        raise InvalidInput("input.respond requires at least one response.", field="responses")
    found = dict[str, Json]()
    for one in several:
        if not isinstance(one, dict):
            raise InvalidInput("input.respond responses entries must be objects.", field="responses")
        _require_known(one, _ENTRY_FIELDS)
        interrupt_id, answer = _response(one)
        if interrupt_id in found:
            raise InvalidInput(f"interrupt {interrupt_id[:200]} has two responses: give one", field="responses")
        found[interrupt_id] = answer
    return cast("JsonObject", found)


def _response(given: Object) -> tuple[str, Json]:
    interrupt_id, namespace = given.get("interrupt_id"), given.get("namespace", [])
    if not isinstance(interrupt_id, str):
        raise InvalidInput("input.respond requires an interrupt_id.", field="interrupt_id")
    if not isinstance(namespace, list) or not all(isinstance(one, str) for one in namespace):
        raise InvalidInput("input.respond requires namespace to be a list of strings.", field="namespace")
    return interrupt_id, given.get("response")


# --- agent.getTree ----------------------------------------------------------------------------------------------------


async def _tree(services: Services, thread_id: ThreadId, params: Object) -> Object:
    _require_known(params, ("run_id",))
    named = params.get("run_id")
    if not isinstance(named, str | None):
        raise InvalidInput("run_id must be a text", field="run_id")
    thread = await services.threads.get(thread_id)
    runs = [run for run in thread.runs.values() if run.is_agent and named in (None, run.run_id)]
    if not runs:
        which = f"thread {thread_id} has no runs" if named is None else f"thread {thread_id} has no run {named[:80]}"
        raise NotFound(which)
    run = runs[-1]
    translator = Translator(run.spec.agent)
    for event in services.streams.kept(TapeId(thread_id, run.run_id)):
        if event.mode in ("tasks", "metadata"):
            for _ in translator.event(event.mode, event.namespace, decode(event.data, "an event")):
                pass
    status = _tree_status(run, asks=bool(translator.asked))
    if run.status.terminal:
        for _ in translator.end(status):
            pass
    return {"tree": translator.graphs.tree(run.spec.agent, status)}


def _tree_status(run: Run, *, asks: bool) -> str:
    match run.status:
        case RunStatus.PENDING:
            return "started"
        case RunStatus.RUNNING:
            return "running"
        case RunStatus.SUCCESS:
            return "interrupted" if asks or run.paused else "completed"
        case RunStatus.INTERRUPTED:
            return "interrupted"
        case _:
            return "failed"


# --- what is not for this place ---------------------------------------------------------------------------------------


async def _elsewhere(_services: Services, thread_id: ThreadId, _params: Object) -> Object:
    raise _NotHere(
        "a subscription lives as long as its connection: open a WebSocket to, or post the subscription to, "
        f"/threads/{thread_id}/stream/events"
    )


class _NotHere(InvalidInput):
    """The command is known, and needs another connection."""


_CODES[_NotHere] = "not_supported"

_COMMANDS = {
    "run.start": _run_start,
    "input.respond": _respond,
    "agent.getTree": _tree,
    "subscription.subscribe": _elsewhere,
    "subscription.unsubscribe": _elsewhere,
    "subscription.reconnect": _elsewhere,
}


def _require_known(given: Mapping[str, Json], known: Sequence[str]) -> None:
    for name in given:
        if name not in known:
            raise InvalidInput(f"{name[:80]}: unknown field; there are {', '.join(known)}", field=name[:80])


def _problems(error: ValidationError) -> str:
    return "; ".join(
        f"{'.'.join(map(str, one['loc']))}: {one['msg'].removeprefix('Value error, ')}" for one in error.errors()
    )
