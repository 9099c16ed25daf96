"""What the API answers with, as models: /openapi.json and the reference show them, tests hold every answer to them.

Answers are made by hand (shapes.py and others), which is faster by far; nothing here runs while a request is answered.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from agentvisor.host.http.run_create import JsonObject

Time = Annotated[str, Field(json_schema_extra={"format": "date-time"})]


class Reply(BaseModel):
    """Has these fields and no others."""

    model_config = ConfigDict(extra="forbid")


# --- the host ---------------------------------------------------------------------------------------------------------


class Well(Reply):
    """All is well."""

    ok: Literal[True] = Field(description="Otherwise the status is 503.")


class Limits(Reply):
    """What a host takes."""

    max_value: int = Field(description="Bytes of one value (`storage.max_value`).")
    max_stored_value: int = Field(
        description="Bytes of one value as it is stored here, with or without external storage."
    )


class Info(Reply):
    """What a host is, and can do."""

    version: str = Field(description="Of AgentVisor; where LangGraph's clients look for it.")
    agentvisor: str = Field(description="The same.")
    grpc: str | None = Field(description="Address of the gRPC end.")
    limits: Limits = Field(description="What it takes.")
    agents: list[str] = Field(description="Names of the agents that are configured.")
    flags: dict[str, bool] = Field(description="What this host can do, for LangGraph's clients.")


class Decrypted(Reply):
    """What Temporal's UI shows."""

    payloads: list[JsonObject] = Field(default_factory=list, description="As Temporal's own codecs answer.")


# --- threads ----------------------------------------------------------------------------------------------------------


class Asked(Reply):
    """An interrupt where it is part of a state."""

    value: JsonValue = Field(description="What was asked.")
    id: str = Field(description="By which it is answered.")
    created_at: Time | None = Field(default=None, description="When it was asked, where the thread has noted that.")
    belongs_to: JsonObject | None = Field(default=None, description="What it is about: a call of a tool, for example.")
    kind: str | None = Field(default=None, description="`input`, `approval` and the like.")
    schema_: JsonValue = Field(default=None, alias="schema", description="JSON Schema of answers, where one is known.")
    deadline: Time | None = Field(default=None, description="Until when it waits.")


class RunError(Reply):
    """Why a run has failed."""

    error: str = Field(description="The exception's class.")
    message: str = Field(description="What it said.")


class Lifetime(Reply):
    """A thread's time to live."""

    strategy: Literal["delete", "keep_latest"] = Field(description="What is done once it is over.")
    ttl_minutes: float = Field(description="After the last use.")
    while_waiting: bool = Field(description="Whether it is counted while a question waits.")
    expires_at: Time | None = Field(description="null while it is not counted.")


class Thread(Reply):
    """A thread with what it holds."""

    thread_id: str = Field(description="Its id.")
    created_at: Time | None = Field(description="When it was created; null: it cannot be read now, `error` says why.")
    updated_at: Time | None = Field(description="When anything of it was changed last.")
    state_updated_at: Time | None = Field(description="When its state was changed last.")
    metadata: JsonObject = Field(
        description="JSON of its creator's; also `graph_id` and `assistant_id`, once it has run."
    )
    status: Literal["idle", "busy", "interrupted", "error"] = Field(
        description="`interrupted`: it waits for an answer."
    )
    config: JsonObject = Field(description="Empty: the config is a run's.")
    values: JsonValue = Field(description="Those of its state; of a plain agent, what it returned last.")
    interrupts: dict[str, list[Asked]] = Field(description="What waits for an answer, by the id of its task.")
    error: RunError | None = Field(
        description="Why the status is `error`; in a list, also why this host cannot read it (`Sealed`, `Corrupt`)."
    )
    ttl: Lifetime | None = Field(default=None, description="With `include=ttl`.")
    extracted: JsonObject | None = Field(
        default=None, description="Of a search with `extract`: what stands at its paths."
    )
    warnings: list[str] | None = Field(default=None, description="Of a copy: what has stayed behind.")


class Pruned(Reply):
    """What has come of pruning."""

    pruned_count: int = Field(description="How many threads there were.")


class Counted(Reply):
    """How many there are, and how large."""

    count: int = Field(description="How many.")
    bytes: int = Field(description="Their size together.")


class CountedEffects(Counted):
    """Effects (`agentvisor.once`)."""

    intended: int = Field(description="Those that are happening, or of unknown outcome.")


class CountedEntries(Reply):
    """Thread state."""

    entries: int = Field(description="How many.")
    items: int = Field(description="Of the entries that are lists.")
    bytes: int = Field(description="Their size together.")


class CountedHistory(Reply):
    """A workflow's history in Temporal."""

    events: int = Field(description="Temporal allows 51,200.")
    bytes: int = Field(description="Temporal allows 50 MB.")


class Storage(Reply):
    """How much a thread holds; sizes in bytes."""

    thread_id: str = Field(description="Whose.")
    state_bytes: int = Field(description="All that Temporal holds of it.")
    unsheddable_bytes: int = Field(description="What no compaction can leave out.")
    limit_bytes: int = Field(description="`storage.max_state`.")
    used: float | None = Field(description="The share of the limit; at 1, writes are refused.")
    checkpoints: int = Field(description="In all namespaces.")
    saves: int = Field(description="Checkpoints that `agentvisor.checkpoint` has made.")
    namespaces: int = Field(description="That have checkpoints.")
    blobs: Counted = Field(description="Values of channels.")
    external: Counted = Field(description="Those of them that are in external storage.")
    pending_writes: Counted = Field(description="Of tasks that have ended.")
    effects: CountedEffects = Field(description="`agentvisor.once`.")
    thread_state: CountedEntries = Field(description="Entries of thread state.")
    runs: int = Field(description="That it remembers.")
    history: CountedHistory = Field(description="That of the workflow's current execution.")
    compactions: int = Field(description="How often it has continued as new.")
    left_out: dict[str, int] = Field(description="What compactions have left out, by step.")


# --- states -----------------------------------------------------------------------------------------------------------


class Checkpoint(Reply):
    """Where a checkpoint is."""

    thread_id: str = Field(description="The thread.")
    checkpoint_ns: str = Field(description="The namespace; empty is the root.")
    checkpoint_id: str | None = Field(default=None, description="Its id; the namespace's latest where there is none.")
    checkpoint_map: dict[str, str] | None = Field(
        default=None, description="Below the root: the checkpoints of the graphs around it, by namespace."
    )


class Task(Reply):
    """A task of a checkpoint's next super-step."""

    id: str = Field(description="Its id.")
    name: str = Field(description="The node.")
    path: JsonValue = Field(description="Its place in the super-step.")
    error: JsonValue = Field(description="Why it has failed.")
    interrupts: list[Asked] = Field(description="What it asks.")
    checkpoint: Checkpoint | None = Field(description="Of the subgraph that it is.")
    state: ThreadState | None = Field(description="That subgraph's state, with `subgraphs`.")
    result: JsonValue = Field(description="What it wrote, once it has ended.")


class ThreadState(Reply):
    """The state of a thread at a checkpoint."""

    values: JsonValue = Field(description="By channel; of a plain agent, what it returned.")
    next: list[str] = Field(description="The nodes that come next.")
    tasks: list[Task] = Field(description="Their tasks.")
    metadata: JsonObject | None = Field(description="The checkpoint's: `source`, `step`, `run_id`, `parents`.")
    created_at: str | None = Field(description="The checkpoint's time.")
    checkpoint: Checkpoint | None = Field(description="null: there is none.")
    parent_checkpoint: Checkpoint | None = Field(description="The one that it was made from.")
    interrupts: list[Asked] = Field(description="What waits for an answer.")
    checkpoint_id: str | None = Field(description="The id alone.")
    parent_checkpoint_id: str | None = Field(description="The parent's id alone.")


class Updated(Reply):
    """The checkpoint that an update has led to."""

    checkpoint: Checkpoint = Field(description="Where it is.")
    configurable: Checkpoint = Field(description="The same; where LangGraph's clients look for it.")
    checkpoint_id: str = Field(description="Its id alone.")


class Entry(Reply):
    """An entry of thread state."""

    scope: str = Field(description="The name space of its key.")
    key: str = Field(description="Its key.")
    revision: int = Field(description="Grows with each change.")
    updated_at: Time = Field(description="When it was changed last.")
    items: int | None = Field(description="Of a list: how many it has.")


class EntryWithValue(Entry):
    """An entry of thread state with its value."""

    value: JsonValue = Field(description="Of a list, the items that were asked for.")
    next: int | None = Field(description="Of a list: the `start` of the next page.")


class Entries(Reply):
    """A page of entries."""

    entries: list[Entry] = Field(description="By their keys.")
    next: str | None = Field(description="The `after` of the next page.")


class Changed(Reply):
    """A change of an entry."""

    scope: str = Field(description="The name space of the key.")
    key: str = Field(description="The key.")
    revision: int = Field(description="The entry's now.")


# --- runs -------------------------------------------------------------------------------------------------------------


class Attempt(Reply):
    """One try to do a run."""

    attempt: int = Field(description="From 1.")
    scheduled_at: Time | None = Field(description="When it could begin.")
    started_at: Time | None = Field(description="When its host was heard of first.")
    ended_at: Time | None = Field(description="null: it is at work.")
    ending: str | None = Field(description="How it has ended.")
    reason: str | None = Field(description="Why, in words.")
    host_id: str | None = Field(description="The host.")


class Run(Reply):
    """A run with its attempts."""

    run_id: str = Field(description="Its id.")
    thread_id: str = Field(description="The thread.")
    assistant_id: str = Field(description="The assistant.")
    created_at: Time = Field(description="When it was accepted.")
    updated_at: Time = Field(description="When it was changed last.")
    status: Literal["pending", "running", "success", "error", "timeout", "interrupted"] = Field(
        description="A run that has ended with a question is a `success`; its thread is interrupted."
    )
    metadata: JsonObject = Field(description="JSON of the caller's.")
    kwargs: JsonObject = Field(description="The run as it was asked for; lists leave large fields out.")
    multitask_strategy: Literal["reject", "enqueue", "interrupt", "rollback"] = Field(
        description="What it does about another run."
    )
    error: RunError | None = Field(description="Why it has failed.")
    attempts: list[Attempt] = Field(description="In order.")


class Cron(Reply):
    """A run that is started by the clock."""

    cron_id: str = Field(description="Its id.")
    assistant_id: str = Field(description="The assistant.")
    thread_id: str | None = Field(description="null: each run has a thread of its own.")
    on_run_completed: Literal["delete", "keep"] | None = Field(description="What becomes of such threads.")
    end_time: Time | None = Field(description="After it nothing is started.")
    schedule: str = Field(description="Five fields of cron.")
    timezone: str | None = Field(description="null: UTC.")
    created_at: Time = Field(description="When it was created.")
    updated_at: Time = Field(description="When it was changed last.")
    user_id: str | None = Field(description="Its owner.")
    payload: JsonObject = Field(description="The fields of the runs that it starts.")
    next_run_date: Time | None = Field(description="When it is due next.")
    metadata: JsonObject = Field(description="JSON of its creator's.")
    enabled: bool = Field(description="Whether it is due at all.")
    now: Time | None = Field(default=None, description="The host's time, where `select` asks for it.")


# --- assistants -------------------------------------------------------------------------------------------------------


class AssistantVersion(Reply):
    """One version of an assistant."""

    assistant_id: str = Field(description="Its id.")
    graph_id: str = Field(description="Name of the agent.")
    name: str = Field(description="For people.")
    description: str | None = Field(description="In words.")
    config: JsonObject = Field(description="What its runs begin with.")
    context: JsonObject = Field(description="The same for the runtime's context.")
    metadata: JsonObject = Field(description="JSON of its creator's.")
    version: int = Field(description="From 1.")
    created_at: Time = Field(description="When the version was made.")


class Assistant(AssistantVersion):
    """An assistant: its current version."""

    created_at: Time = Field(description="When the assistant was created.")
    updated_at: Time = Field(description="When it was changed last.")


class Graph(Reply):
    """The picture of a graph, as LangChain draws it."""

    nodes: list[JsonObject] = Field(description="With `id`, `type` and `data`.")
    edges: list[JsonObject] = Field(description="With `source` and `target`.")


class Schemas(Reply):
    """JSON Schemas of a graph; null where one of its types has none."""

    input_schema: JsonObject | None = Field(description="Of what it takes.")
    output_schema: JsonObject | None = Field(description="Of what it gives.")
    state_schema: JsonObject | None = Field(description="Of what it holds.")
    config_schema: JsonObject | None = Field(description="Empty: `context_schema` has taken its place.")
    context_schema: JsonObject | None = Field(description="Of the runtime's context.")


class AgentSchemas(Schemas):
    """JSON Schemas of an agent."""

    graph_id: str = Field(description="Name of the agent.")
    framework: str | None = Field(default=None, description="Of an agent that is no graph, whose schemas nobody knows.")


class Agent(Reply):
    """An agent, as Agent Protocol shows it."""

    agent_id: str = Field(description="The assistant's id.")
    name: str = Field(description="For people.")
    description: str = Field(description="In words.")
    metadata: JsonObject = Field(description="JSON of its creator's.")
    capabilities: dict[str, bool] = Field(description="Agent Protocol's names of what it can do.")


# --- what waits, the event protocol, the store ------------------------------------------------------------------------


class Interrupt(Reply):
    """What waits for an answer, of whichever framework."""

    id: str = Field(description="By which it is answered.")
    thread_id: str = Field(description="The thread.")
    run_id: str | None = Field(description="The run that asks.")
    agent: str | None = Field(description="The agent that asks.")
    kind: str = Field(description="`input`, `approval` and the like.")
    value: JsonValue = Field(description="What is asked.")
    belongs_to: JsonObject = Field(description="What it is about: a call of a tool, for example.")
    schema_: JsonValue = Field(alias="schema", description="JSON Schema of answers; null: anything.")
    created_at: Time = Field(description="When it was asked.")
    deadline: Time | None = Field(description="Until when it waits.")
    on_deadline: Literal["cancel", "answer"] | None = Field(description="What happens then.")
    default_answer: JsonValue = Field(default=None, description="That is given then.")


class Abandoned(Reply):
    """What was given up."""

    abandoned: list[str] = Field(description="Ids of interrupts.")


class Applied(Reply):
    """Up to where a client has to read."""

    applied_through_seq: int = Field(description="Number of the last event before the command.")


class CommandDone(Reply):
    """A command that was done."""

    type: Literal["success"] = Field(description="That it was done.")
    id: int = Field(description="The command's.")
    result: JsonObject = Field(description="`run_id`, or what was asked for.")
    meta: Applied = Field(description="About the thread's events.")


class CommandRefused(Reply):
    """A command that was not done."""

    model_config = ConfigDict(extra="allow")

    type: Literal["error"] = Field(description="That it was not done.")
    id: int | None = Field(description="The command's.")
    error: str = Field(description="The kind of failure, for programs.")
    message: str = Field(description="What happened.")


class Item(Reply):
    """An item of the store."""

    namespace: list[str] = Field(description="A list of labels.")
    key: str = Field(description="Its key in the namespace.")
    value: JsonObject = Field(description="What is stored.")
    created_at: Time = Field(description="When it was stored first.")
    updated_at: Time = Field(description="When it was stored last.")


class FoundItem(Item):
    """An item that a search has found."""

    score: None = Field(description="Always null: there is no index of meanings.")


class FoundItems(Reply):
    """A page of items."""

    items: list[FoundItem] = Field(description="By namespace.")


class Namespaces(Reply):
    """A page of namespaces."""

    namespaces: list[list[str]] = Field(description="Sorted.")
