"""What assistants are made of: their graph, their schemas, and their subgraphs, as the agent's code says."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import TypeAdapter, ValidationError
from starlette.responses import Response

from agentvisor.core.errors import InvalidInput
from agentvisor.host.http.agents import assistant, require_agent
from agentvisor.host.http.json import JsonRoute
from agentvisor.host.http.services import Served, Services
from agentvisor.protocol.v1.guest_pb2 import Description

router = APIRouter(prefix="/assistants/{assistant_id}", tags=["assistants"], route_class=JsonRoute)

XRAY_ALL = -1
_MOST_DEPTH = 100

Xray = Annotated[
    str,
    Query(description="Whether subgraphs are drawn too, or down to which depth (1 and more).", examples=["true", "1"]),
]


@router.get("/graph")
async def get_graph(assistant_id: str, services: Served, xray: Xray = "false") -> Response:
    """The graph: its nodes and edges."""
    return await _described(services, assistant_id, Description(part=Description.PART_GRAPH, xray=_depth(xray)))


@router.get("/schemas")
async def get_schemas(assistant_id: str, services: Served) -> Response:
    """JSON Schemas of its input, output, state, config and context; null for one that pydantic cannot make."""
    return await _described(services, assistant_id, Description(part=Description.PART_SCHEMAS))


@router.get("/subgraphs")
async def get_subgraphs(assistant_id: str, services: Served, *, recurse: bool = False) -> Response:
    """Its subgraphs with their schemas, by namespace."""
    return await _described(services, assistant_id, Description(part=Description.PART_SUBGRAPHS, recurse=recurse))


@router.get("/subgraphs/{namespace}")
async def get_subgraph(assistant_id: str, namespace: str, services: Served, *, recurse: bool = False) -> Response:
    """One subgraph with its schemas; nothing where there is none of that namespace."""
    asked = Description(part=Description.PART_SUBGRAPHS, recurse=recurse, namespace=namespace)
    return await _described(services, assistant_id, asked)


async def _described(services: Services, named: str, asked: Description) -> Response:
    found = await assistant(services, named)
    require_agent(services, found)
    return Response(await services.describe(found.graph_id, asked), media_type="application/json")


_BOOLEAN = TypeAdapter(bool)


def _depth(xray: str) -> int:
    """0 draws no subgraph, -1 all of them."""
    if xray.isascii() and xray.isdigit() and 1 <= int(xray[:9]) <= _MOST_DEPTH:
        return int(xray)
    try:
        if xray.isdigit():
            raise ValueError(xray)
        return XRAY_ALL if _BOOLEAN.validate_python(xray) else 0
    except (ValidationError, ValueError):
        raise InvalidInput(
            f"xray must be true, false, or a depth from 1 to {_MOST_DEPTH}, not {xray[:80]!r}", field="xray"
        ) from None
