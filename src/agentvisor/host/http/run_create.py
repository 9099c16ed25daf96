"""The body that starts a run: every field of LangGraph's clients is honoured, or refused by name; none is ignored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Annotated, Literal
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from agentvisor.core.assistants import Assistant, merged_config
from agentvisor.core.errors import InvalidInput, ValueTooLarge
from agentvisor.core.ids import Namespace
from agentvisor.host.assistants import system_assistant
from agentvisor.host.config import Config
from agentvisor.host.http.json import encode
from agentvisor.host.http.run_config import check_command, check_config, configured_checkpoint
from agentvisor.protocol.metadata import metadata_to_struct
from agentvisor.protocol.v1 import run_pb2

StreamMode = Literal[
    "values", "messages", "messages-tuple", "updates", "events", "tasks", "checkpoints", "debug", "custom", "tools",
    "lifecycle",
]  # fmt: skip
JsonObject = dict[str, JsonValue]


class Command(BaseModel):
    """What resumes a run or steers it."""

    model_config = ConfigDict(extra="forbid")

    resume: JsonValue = None
    update: JsonValue = None
    goto: JsonValue = None


class CheckpointAddress(BaseModel):
    """Where to go on from."""

    model_config = ConfigDict(extra="forbid")

    thread_id: str | None = None
    checkpoint_ns: str = ""
    checkpoint_id: str | None = None
    checkpoint_map: dict[str, JsonValue] | None = None

    @property
    def namespace(self) -> Namespace:
        """Which graph of the thread."""
        return Namespace(self.checkpoint_ns)


_LONGEST_WAIT = 366 * 24 * 3600.0
"""Seconds."""


class RunCreate(BaseModel):
    """A run to start."""

    model_config = ConfigDict(extra="forbid")

    assistant_id: str = Field(description="Name of an agent, or the id of its assistant.")
    input: JsonValue = None
    command: Command | None = None
    config: JsonObject | None = Field(default=None, description="tags, recursion_limit, max_concurrency, configurable")
    context: JsonValue = None
    metadata: JsonObject | None = None
    stream_mode: StreamMode | Annotated[list[StreamMode], Field(min_length=1)] = "values"
    stream_subgraphs: bool = False
    stream_resumable: bool = Field(default=False, description="Every stream can be resumed here.")
    checkpoint: CheckpointAddress | None = None
    checkpoint_id: str | None = None
    checkpoint_during: bool | None = Field(default=None, json_schema_extra={"deprecated": True})
    durability: Literal["sync", "async", "exit"] | None = None
    interrupt_before: list[str] | Literal["*"] | None = None
    interrupt_after: list[str] | Literal["*"] | None = None
    multitask_strategy: Literal["enqueue", "reject", "interrupt", "rollback"] | None = None
    if_not_exists: Literal["create", "reject"] | None = None
    on_disconnect: Literal["cancel", "continue"] | None = None
    on_completion: Literal["delete", "keep"] | None = Field(default=None, description="Of runs without a thread.")
    after_seconds: Annotated[float, Field(ge=0, le=_LONGEST_WAIT, allow_inf_nan=False, strict=True)] | None = Field(
        default=None, description="The run waits so long before its turn comes; the thread is busy meanwhile."
    )
    webhook: str | None = Field(default=None, description="URL that is told of the run's end.")
    feedback_keys: list[str] | None = Field(default=None, description="Of LangSmith: refused.")
    strict_resume: bool | None = Field(default=None, description="Always so: an answer to nothing is refused.")
    raise_error: bool | None = Field(
        default=None, description="The caller's own: LangGraph's client before 0.4 sends what only it acts on."
    )
    on_interrupt: Literal["abandon"] | None = Field(
        default=None, description="`abandon`: questions that wait on the thread are given up with this new input."
    )
    langsmith_tracer: JsonObject | None = Field(default=None, description="Of LangSmith: refused.")

    @cached_property
    def encoded_input(self) -> bytes:
        """The input as the thread keeps it."""
        return b"" if self.input is None or self.command is not None else encode(self.input)

    @property
    def modes(self) -> list[StreamMode]:
        """The stream modes that were asked for, each once."""
        return list(dict.fromkeys([self.stream_mode] if isinstance(self.stream_mode, str) else self.stream_mode))


_NOT_YET: dict[str, Callable[[RunCreate], bool]] = {
    "feedback_keys": lambda run: bool(run.feedback_keys),
    "langsmith_tracer": lambda run: bool(run.langsmith_tracer),
}
"""Fields whose value this version cannot honour."""

_WHY = {
    "feedback_keys": "it asks for links to give feedback in LangSmith, which no run here is known to",
    "langsmith_tracer": "it names a project of LangSmith that the server traces to, and this one traces to none: give "
    "the agent LANGSMITH_TRACING and LANGSMITH_PROJECT in its env",
}
"""Of those that no version will."""

_NO_MODES = {"tools", "lifecycle"}
"""LangGraph's client names them for the event protocol; its server refuses them here, too."""


def check(run: RunCreate, thread_id: str | None) -> None:
    """Refuse what cannot be honoured; `InvalidInput` names the field and its value. No thread id: a stateless run."""
    for field, carries in _NOT_YET.items():
        if carries(run):
            value = getattr(run, field.partition(".")[0])
            why = _WHY.get(field)
            not_here = f"is not supported: {why}" if why else "is not supported by this version"
            raise InvalidInput(f"{field} {str(value)[:80]!r} {not_here}", field=field)
    for mode in _NO_MODES.intersection(run.modes):
        raise InvalidInput(
            f"stream_mode {mode!r} is a channel of the event protocol: subscribe to it with "
            "POST /threads/{thread_id}/stream/events, or use `updates` and `tasks`",
            field="stream_mode",
        )
    if run.on_completion is not None and thread_id is not None:
        raise InvalidInput("on_completion is for runs without a thread", field="on_completion")
    if run.checkpoint is not None and run.checkpoint.thread_id not in (None, thread_id):
        raise InvalidInput("checkpoint.thread_id is another thread", field="checkpoint.thread_id")
    # agent-chat-ui sends `{}` with its answers: there is nothing in it that a command could do without.
    if run.command is not None and run.input not in (None, {}):
        raise InvalidInput("input and command exclude each other: give one of them", field="command")
    if run.on_interrupt is not None and run.command is not None:
        raise InvalidInput(
            "on_interrupt gives up what waits, and command goes on with it: give one of them", field="on_interrupt"
        )
    if run.checkpoint_during is not None and run.durability is not None:
        raise InvalidInput("checkpoint_during is the old name of durability: give one of them", field="durability")
    check_config(run.config or {}, thread_id)
    if run.command is not None:
        check_command(run.command.model_dump(exclude_unset=True))
    if len(_named_checkpoints(run)) > 1:
        raise InvalidInput(
            "checkpoint_id, checkpoint and config.configurable.checkpoint_id exclude each other: give one of them",
            field="checkpoint_id",
        )


def named_checkpoint(run: RunCreate) -> CheckpointAddress | None:
    """The checkpoint that a checked run goes on from, wherever its body names it."""
    return next(iter(_named_checkpoints(run)), None)


def _named_checkpoints(run: RunCreate) -> list[CheckpointAddress]:
    configured = configured_checkpoint(run.config)
    named = (
        CheckpointAddress(checkpoint_id=run.checkpoint_id),
        run.checkpoint,
        None if configured is None else CheckpointAddress.model_validate(configured),
    )
    return [one for one in named if one is not None and (one.checkpoint_id or one.checkpoint_ns)]


def spec_of(run: RunCreate, agent: str, config: Config, assistant: Assistant | None = None) -> run_pb2.RunSpec:
    """The specification that the thread records. `ValueTooLarge` where the input is over `storage.max_input`.

    What the assistant brings is written into it: another version of it changes nothing for a run that was accepted.
    """
    assistant = assistant or system_assistant(agent)
    run_config, context = merged_config(assistant, run.config, run.context)
    metadata = {name: value for name, value in assistant.metadata.items() if name != "created_by"}
    temporal, named = config.temporal, named_checkpoint(run)
    spec = run_pb2.RunSpec(
        run_id=str(uuid4()),
        agent=agent,
        assistant_id=assistant.assistant_id,
        kind=run_pb2.RUN_KIND_AGENT,
        input=run.encoded_input,
        command=_json(run.command.model_dump(exclude_unset=True) if run.command else None),
        config=_json(run_config),
        context=_json(context),
        metadata=metadata_to_struct({**metadata, **(run.metadata or {})}),
        stream_modes=sorted({"messages" if mode == "messages-tuple" else mode for mode in run.modes}),
        stream_subgraphs=run.stream_subgraphs,
        durability=_durability(run),
        interrupt_before=_nodes(run.interrupt_before),
        interrupt_after=_nodes(run.interrupt_after),
        multitask_strategy=_STRATEGIES[run.multitask_strategy or "enqueue"],
        after_ms=round((run.after_seconds or 0) * 1000),
        webhook=run.webhook or "",
        checkpoint_id=(named.checkpoint_id if named is not None else None) or "",
        restart=restart_policy(config),
        timeout_ms=int(temporal.run_timeout.total_seconds() * 1000),
        heartbeat_timeout_ms=int(temporal.heartbeat_timeout.total_seconds() * 1000),
        abandons=run.on_interrupt == "abandon",
        kwargs=encode(
            {
                "stream_mode": [*run.modes],
                "stream_resumable": run.stream_resumable,
                "assistant_version": assistant.version,
                **{name: value for name in ("webhook", "after_seconds") if (value := getattr(run, name)) is not None},
            }
        ),
    )
    _check_size(spec, config.storage.max_input)
    _check_metadata(spec.metadata.ByteSize(), config.storage.max_metadata)
    return spec


_STRATEGIES = {
    "enqueue": run_pb2.MULTITASK_STRATEGY_ENQUEUE,
    "reject": run_pb2.MULTITASK_STRATEGY_REJECT,
    "interrupt": run_pb2.MULTITASK_STRATEGY_INTERRUPT,
    "rollback": run_pb2.MULTITASK_STRATEGY_ROLLBACK,
}


def restart_policy(config: Config) -> run_pb2.RestartPolicy:
    """What becomes of a run whose process, guest or host is lost."""
    restart = config.temporal.run_restart
    return run_pb2.RestartPolicy(
        max_attempts=restart.max_attempts,
        initial_backoff_ms=int(restart.initial_backoff.total_seconds() * 1000),
        max_backoff_ms=int(restart.max_backoff.total_seconds() * 1000),
        max_elapsed_ms=int(restart.max_elapsed.total_seconds() * 1000),
        reset_on_progress=restart.reset_on_progress,
    )


def check_input(run: RunCreate, limit: int) -> None:
    """Refuse an input over `storage.max_input`, before anything is asked of anybody."""
    _check_sizes({"input": len(run.encoded_input)}, limit)


def _check_size(spec: run_pb2.RunSpec, limit: int) -> None:
    sizes = {name: len(getattr(spec, name)) for name in ("input", "command", "config", "context")}
    sizes["metadata"] = spec.metadata.ByteSize()
    _check_sizes(sizes, limit)


def _check_metadata(size: int, limit: int) -> None:
    """Each checkpoint of the run repeats its metadata: the first one would be the run's error."""
    if size > limit:
        raise ValueTooLarge(
            f"the run's metadata has {size} bytes, and the limit is {limit} (storage.max_metadata): each checkpoint "
            "repeats it, so keep large data in the input, or in the store",
            field="metadata",
            limit=str(limit),
        )


def _check_sizes(sizes: Mapping[str, int], limit: int) -> None:
    largest = max(sizes, key=sizes.__getitem__)
    total = sum(sizes.values())
    if total > limit:
        raise ValueTooLarge(
            f"the run's {largest} has {sizes[largest]} bytes ({total} with the run's other fields), and the limit is "
            f"{limit} (storage.max_input): send a reference to large data, or raise the limit",
            field=largest,
            limit=str(limit),
        )


def _json(value: object) -> bytes:
    return b"" if value is None else encode(value)


def _durability(run: RunCreate) -> str:
    if run.checkpoint_during is not None:
        return "async" if run.checkpoint_during else "exit"
    return run.durability or "sync"


def _nodes(nodes: list[str] | Literal["*"] | None) -> list[str]:
    return ["*"] if nodes == "*" else list(nodes or ())
