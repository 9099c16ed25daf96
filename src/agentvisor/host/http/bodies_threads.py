"""Bodies of requests about threads and their states."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from agentvisor.core.errors import InvalidInput
from agentvisor.core.ids import CheckpointId, Namespace
from agentvisor.core.lifetimes import Lifetime, Strategy
from agentvisor.host.http.run_create import CheckpointAddress, Command, JsonObject


class Body(BaseModel):
    """A body with nothing in it that is not known."""

    model_config = ConfigDict(extra="forbid")


class HistoricUpdate(Body):
    """What one node has written, once."""

    values: JsonObject | list[JsonValue] | None = None
    command: Command | None = None
    as_node: str


class Superstep(Body):
    """What nodes have written side by side."""

    updates: list[HistoricUpdate] = Field(min_length=1)


_LONGEST_TTL = 10 * 366 * 24 * 60.0
"""Minutes."""
Minutes = Annotated[float, Field(gt=0, le=_LONGEST_TTL, allow_inf_nan=False, strict=True)]


class TimeToLive(Body):
    """How long a thread lives after its last use."""

    ttl: Minutes = Field(description="Minutes.")
    strategy: Literal["delete", "keep_latest"] = Field(
        default="delete", description="`keep_latest`: only the older checkpoints go."
    )
    while_waiting: bool = Field(default=False, description="Also while a question waits for an answer.")


def lifetime(ttl: TimeToLive | float | None) -> Lifetime | None:
    """What a caller says of a thread's time to live; minutes alone: it is deleted then."""
    if ttl is None:
        return None
    said = ttl if isinstance(ttl, TimeToLive) else TimeToLive(ttl=ttl)
    return Lifetime(max(1, round(said.ttl * 60_000)), Strategy[said.strategy.upper()], said.while_waiting)


class ThreadCreate(Body):
    """A thread to create."""

    thread_id: str | None = Field(
        default=None, description="1 to 255 of A-Z a-z 0-9 . _ : -, not . or ..; a UUID when left out."
    )
    metadata: JsonObject | None = None
    if_exists: Literal["raise", "do_nothing"] | None = None
    ttl: TimeToLive | Minutes | None = Field(default=None, description="Minutes, or an object.")
    supersteps: list[Superstep] | None = Field(
        default=None, description="The history that it begins with, made by the graph that metadata.graph_id names."
    )


class ThreadPatch(Body):
    """What to change of a thread."""

    metadata: JsonObject | None = None
    ttl: TimeToLive | Minutes | None = Field(default=None, description="As at creation; null: it has none any more.")


SortBy = Literal["thread_id", "status", "created_at", "updated_at", "state_updated_at"]
THREAD_FIELDS = (
    "thread_id", "created_at", "updated_at", "state_updated_at", "metadata", "status", "config", "values", "interrupts",
    "error",
)  # fmt: skip


class ThreadFilter(Body):
    """Which threads are meant."""

    metadata: JsonObject | None = None
    values: JsonObject | None = None
    status: Literal["idle", "busy", "interrupted", "error"] | None = None


class ThreadSearch(ThreadFilter):
    """Which threads to list, and how."""

    ids: list[str] | None = Field(default=None, max_length=1000)
    limit: int = Field(default=10, ge=1, le=1000, strict=True)
    offset: int = Field(default=0, ge=0, strict=True)
    sort_by: SortBy | None = None
    sort_order: Literal["asc", "desc"] | None = None
    select: list[str] | None = None
    extract: dict[str, str] | None = Field(
        default=None, description="Name to path, e.g. values.messages[-1]; ten at most. Shown as `extracted`."
    )


class ThreadCopy(Body):
    """Nothing: a copy is always of the current state."""


class ThreadPrune(Body):
    """Which threads to prune, and what stays of them."""

    thread_ids: list[str] = Field(max_length=1000, description="1000 at most; an id that comes twice counts once.")
    strategy: Literal["keep_latest", "delete"] = Field(
        default="delete", description="`delete`, which is LangGraph's default, removes the threads themselves."
    )


class StateAt(Body):
    """Which state to show."""

    checkpoint: CheckpointAddress
    subgraphs: bool = False
    select: list[str] | None = None


class HistorySearch(Body):
    """Which states to list."""

    limit: int = Field(default=1, ge=1, le=1000, strict=True)
    before: str | dict[str, JsonValue] | None = None
    metadata: JsonObject | None = None
    checkpoint: CheckpointAddress | None = None
    select: list[str] | None = None

    @property
    def namespace(self) -> Namespace:
        """Whose history."""
        return Namespace(self.checkpoint.checkpoint_ns if self.checkpoint else "")

    @property
    def checkpoint_id(self) -> CheckpointId | None:
        """The one checkpoint that is asked for."""
        asked = self.checkpoint.checkpoint_id if self.checkpoint else None
        return CheckpointId(asked) if asked else None

    @property
    def before_id(self) -> CheckpointId | None:
        """The checkpoint id that all must be older than."""
        return None if self.before is None else checkpoint_id_in(self.before)


def checkpoint_id_in(before: str | dict[str, JsonValue]) -> CheckpointId:
    """The id in any form that clients send: itself, a Checkpoint, or {"configurable": a Checkpoint}."""
    address: JsonValue = before
    if isinstance(address, dict) and "configurable" in address:
        address = address["configurable"]
    if isinstance(address, dict):
        address = address.get("checkpoint_id")
    if not isinstance(address, str) or not address:
        raise InvalidInput("before must be a checkpoint id, or an object with checkpoint_id", field="before")
    return CheckpointId(address)
