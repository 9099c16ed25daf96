"""What each route answers with where it succeeds, for /openapi.json: every route that answers with JSON has its row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel, JsonValue, TypeAdapter
from pydantic.json_schema import models_json_schema

from agentvisor.host.http import reply_models as shown

PART = "x-part-of"
"""In the schema of what `select` makes of a model: that model's name."""
_REF = "#/components/schemas/{model}"


@dataclass(frozen=True, slots=True)
class SomeOf:
    """An answer, or a list of answers, with the fields that `select` names; all of them by default."""

    model: type[BaseModel]
    listed: bool = False

    @property
    def name(self) -> str:
        """Of the schema."""
        return f"{self.model.__name__}Selected"

    def schema(self) -> dict[str, Any]:
        """A reference to it."""
        one = {"$ref": _REF.format(model=self.name)}
        return {"type": "array", "items": one} if self.listed else one


@dataclass(frozen=True, slots=True)
class Nothing:
    """An empty object."""


ANY: Any = JsonValue
"""What an agent gives: any JSON."""

_STATE = SomeOf(shown.ThreadState)
_RUN = shown.Run

REPLIES: Mapping[str, Any] = MappingProxyType(
    {
        "GET /ok": shown.Well,
        "GET /livez": shown.Well,
        "GET /readyz": shown.Well,
        "GET /info": shown.Info,
        "POST /codec/decode": shown.Decrypted,
        # assistants
        "POST /assistants": shown.Assistant,
        "POST /assistants/search": SomeOf(shown.Assistant, listed=True),
        "POST /assistants/count": int,
        "GET /assistants/{assistant_id}": shown.Assistant,
        "PATCH /assistants/{assistant_id}": shown.Assistant,
        "POST /assistants/{assistant_id}/versions": list[shown.AssistantVersion],
        "POST /assistants/{assistant_id}/latest": shown.Assistant,
        "GET /assistants/{assistant_id}/graph": shown.Graph,
        "GET /assistants/{assistant_id}/schemas": shown.AgentSchemas,
        "GET /assistants/{assistant_id}/subgraphs": dict[str, shown.Schemas],
        "GET /assistants/{assistant_id}/subgraphs/{namespace}": dict[str, shown.Schemas],
        "POST /agents/search": list[shown.Agent],
        "GET /agents/{agent_id}": shown.Agent,
        "GET /agents/{agent_id}/schemas": shown.AgentSchemas,
        # threads
        "POST /threads": shown.Thread,
        "POST /threads/search": SomeOf(shown.Thread, listed=True),
        "POST /threads/count": int,
        "GET /threads/{thread_id}": shown.Thread,
        "PATCH /threads/{thread_id}": shown.Thread,
        "POST /threads/{thread_id}/copy": shown.Thread,
        "POST /threads/import": shown.Thread,
        "POST /threads/prune": shown.Pruned,
        "GET /threads/{thread_id}/storage": shown.Storage,
        # their states
        "GET /threads/{thread_id}/state": _STATE,
        "POST /threads/{thread_id}/state": shown.Updated,
        "GET /threads/{thread_id}/state/{checkpoint_id}": _STATE,
        "POST /threads/{thread_id}/state/checkpoint": _STATE,
        "GET /threads/{thread_id}/history": list[shown.ThreadState],
        "POST /threads/{thread_id}/history": SomeOf(shown.ThreadState, listed=True),
        "GET /threads/{thread_id}/thread-state": shown.Entries,
        "GET /threads/{thread_id}/thread-state/{key}": shown.EntryWithValue,
        "PUT /threads/{thread_id}/thread-state/{key}": shown.Changed,
        "PATCH /threads/{thread_id}/thread-state/{key}": shown.Changed,
        "POST /threads/{thread_id}/thread-state/{key}/append": shown.Changed,
        # runs; what is waited for is what the agent gives
        "POST /threads/{thread_id}/runs": _RUN,
        "GET /threads/{thread_id}/runs": SomeOf(_RUN, listed=True),
        "GET /threads/{thread_id}/runs/{run_id}": _RUN,
        "POST /threads/{thread_id}/runs/wait": ANY,
        "GET /threads/{thread_id}/runs/{run_id}/join": ANY,
        "POST /threads/{thread_id}/runs/{run_id}/cancel": Nothing,
        "POST /runs": _RUN,
        "POST /runs/batch": list[_RUN],
        "POST /runs/wait": ANY,
        "POST /runs/search": list[_RUN],
        "GET /runs/{run_id}": _RUN,
        "GET /runs/{run_id}/wait": ANY,
        "POST /runs/{run_id}/cancel": Nothing,
        # crons
        "POST /threads/{thread_id}/runs/crons": shown.Cron,
        "POST /runs/crons": shown.Cron,
        "POST /runs/crons/search": SomeOf(shown.Cron, listed=True),
        "POST /runs/crons/count": int,
        "GET /runs/crons/{cron_id}": shown.Cron,
        "PATCH /runs/crons/{cron_id}": shown.Cron,
        # what waits
        "GET /interrupts": list[shown.Interrupt],
        "GET /threads/{thread_id}/interrupts": list[shown.Interrupt],
        "POST /threads/{thread_id}/interrupts": _RUN,
        "POST /threads/{thread_id}/interrupts/{interrupt_id}": _RUN,
        "DELETE /threads/{thread_id}/interrupts": shown.Abandoned,
        # the event protocol and the store
        "POST /threads/{thread_id}/commands": shown.CommandDone | shown.CommandRefused,
        "GET /store/items": shown.Item | None,
        "POST /store/items/search": shown.FoundItems,
        "POST /store/namespaces": shown.Namespaces,
    }
)
"""By method and path, as /openapi.json has it: a model, a type, or part of a model."""


def add_replies(described: dict[str, Any]) -> None:
    """Declare the answer of each route, and the schemas that they are made of."""
    schemas: dict[str, Any] = described["components"]["schemas"]
    for one in models():
        _, made = models_json_schema([(one, "validation")], ref_template=_REF)
        schemas |= made.get("$defs", {})
    for one in _parts():
        whole: dict[str, Any] = schemas[one.model.__name__]
        schemas[one.name] = {
            **{name: value for name, value in whole.items() if name != "required"},
            "title": one.name,
            "description": f"The fields of a {one.model.__name__} that `select` names; all of them by default.",
            PART: one.model.__name__,
        }
    for route, reply in REPLIES.items():
        method, path = route.split(" ")
        answer = described["paths"][path][method.lower()]["responses"]["200"]
        answer["content"] = {"application/json": {"schema": _schema(reply)}}
        if reply is Nothing:
            responses: dict[str, Any] = described["paths"][path][method.lower()]["responses"]
            responses["202"] = {"description": "It was asked to end; with `wait`, 200 once it has."}


def _schema(reply: Any) -> dict[str, Any]:
    if reply is Nothing:
        return {"type": "object", "additionalProperties": False}
    if isinstance(reply, SomeOf):
        return reply.schema()
    schema = TypeAdapter(reply).json_schema(ref_template=_REF)
    schema.pop("$defs", None)
    if isinstance(reply, type) and issubclass(reply, BaseModel):
        return {"$ref": _REF.format(model=reply.__name__)}
    return schema


def models() -> list[type[shown.Reply]]:
    """All of them."""
    found = [one for one in vars(shown).values() if isinstance(one, type) and issubclass(one, shown.Reply)]
    return [one for one in found if one is not shown.Reply]


def _parts() -> list[SomeOf]:
    return [one for one in REPLIES.values() if isinstance(one, SomeOf)]
