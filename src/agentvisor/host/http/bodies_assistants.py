"""Bodies of requests about assistants: every field of LangGraph's clients, and no other."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from agentvisor.core.assistants import CONFIGURABLE
from agentvisor.core.errors import InvalidInput
from agentvisor.host.http.run_config import check_config, check_unbound
from agentvisor.host.http.run_create import JsonObject

AssistantField = Literal[
    "assistant_id", "graph_id", "name", "description", "config", "context", "created_at", "updated_at", "metadata",
    "version",
]  # fmt: skip
Name = Field(default=None, max_length=1000)


class AssistantCreate(BaseModel):
    """An assistant to create."""

    model_config = ConfigDict(extra="forbid")

    graph_id: str = Field(description="Name of an agent.")
    assistant_id: str | None = Field(default=None, description="A UUID; one is made where none is given.")
    config: JsonObject | None = None
    context: JsonObject | None = None
    metadata: JsonObject | None = None
    if_exists: Literal["raise", "do_nothing"] | None = None
    name: str | None = Name
    description: str | None = None


class AssistantPatch(BaseModel):
    """What of an assistant is to be another; what is absent, null or empty stays."""

    model_config = ConfigDict(extra="forbid")

    graph_id: str | None = None
    config: JsonObject | None = None
    context: JsonObject | None = None
    metadata: JsonObject | None = Field(default=None, description="Keys to set; others stay.")
    name: str | None = Name
    description: str | None = None


class AssistantFilter(BaseModel):
    """Which assistants are meant."""

    model_config = ConfigDict(extra="forbid")

    metadata: JsonObject | None = None
    graph_id: str | None = None
    name: str | None = Field(default=None, description="A part of the name, capitals or not.")


class AssistantSearch(AssistantFilter):
    """Which assistants to list, and how."""

    limit: int = Field(default=10, ge=1, le=1000, strict=True)
    offset: int = Field(default=0, ge=0, le=2**31, strict=True)
    sort_by: Literal["assistant_id", "graph_id", "name", "created_at", "updated_at"] | None = None
    sort_order: Literal["asc", "desc"] | None = None
    select: list[AssistantField] | None = None


class VersionSearch(BaseModel):
    """Which versions to list."""

    model_config = ConfigDict(extra="forbid")

    metadata: JsonObject | None = None
    limit: int = Field(default=10, ge=1, le=1000, strict=True)
    offset: int = Field(default=0, ge=0, le=2**31, strict=True)


class LatestVersion(BaseModel):
    """Which version is to be the current one."""

    model_config = ConfigDict(extra="forbid")

    version: int = Field(ge=1, le=2**31, strict=True)


def check(body: AssistantCreate | AssistantPatch) -> None:
    """Refuse what no run could be started with."""
    config = body.config or {}
    check_config(config, None)
    check_unbound(config)
    if body.context and config.get(CONFIGURABLE):
        raise InvalidInput(
            "context and config.configurable say the same to an assistant: give context alone", field="context"
        )
