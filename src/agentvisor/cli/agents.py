"""`agentvisor agents`: what a host runs, and what each agent takes and gives."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Annotated
from urllib.parse import quote

import typer

from agentvisor.cli import complete
from agentvisor.cli.exits import told
from agentvisor.cli.facts import fields, objects, text
from agentvisor.cli.http import Host, Key, Url, connected
from agentvisor.cli.options import AsJson
from agentvisor.cli.show import as_json, cell, print_json, print_table
from agentvisor.core.errors import AgentBroken, AgentVisorError
from agentvisor.host.render_typed import Json

app = typer.Typer(help="Agents of a host.", no_args_is_help=True)

_SCHEMAS = ("input_schema", "output_schema", "state_schema", "config_schema", "context_schema")


class GraphForm(Enum):
    """How a graph is drawn."""

    TEXT = "text"
    MERMAID = "mermaid"


@app.command("list")
@told
def list_agents(*, url: Url = None, key: Key = None, json: AsJson = False) -> None:
    """List the agents of the host, with the assistants that were made of them.

    Example: agentvisor agents list
    """
    with connected(url, key) as host:
        names, assistants = _names(host), _assistants(host, {})
        listed = [_listed(host, name, assistants) for name in names]
    if json:
        print_json(list[Json](listed))
        return
    rows = [(text(one, "name"), text(one, "framework"), str(one["assistants"]), text(one, "problem")) for one in listed]
    print_table(("agent", "framework", "assistants", "problem"), rows)


@app.command("show")
@told
def show_agent(
    agent: Annotated[
        str,
        typer.Argument(
            metavar="AGENT", help="Name of the agent, or id of an assistant.", autocompletion=complete.agents
        ),
    ],
    *,
    graph: Annotated[
        GraphForm | None, typer.Option("--graph", help="Print the graph alone: as text, or for Mermaid.")
    ] = None,
    xray: Annotated[bool, typer.Option("--xray", help="Draw subgraphs too.")] = False,
    url: Url = None,
    key: Key = None,
    json: AsJson = False,
) -> None:
    """Show an agent: its framework, its graph, the JSON Schemas of what it takes and gives, its assistants.

    Example: agentvisor agents show refunds --graph mermaid
    """
    place = f"/assistants/{quote(agent, safe='')}"
    with connected(url, key) as host:
        assistant = fields(host.get(place))
        name = text(assistant, "graph_id")
        drawn = fields(host.get(f"{place}/graph", xray="true" if xray else "false"))
        if graph is not None and not json:
            print("\n".join(_mermaid(drawn) if graph is GraphForm.MERMAID else _drawn(drawn)))
            return
        schemas = fields(host.get(f"{place}/schemas"))
        assistants = _assistants(host, {"graph_id": name})
    found: dict[str, Json] = {
        "name": name,
        "assistant_id": assistant.get("assistant_id"),
        "framework": _framework(schemas),
        "graph": drawn,
        "schemas": {one: schemas.get(one) for one in _SCHEMAS},
        "assistants": list[Json](assistants),
    }
    if json:
        print_json(found)
        return
    print_table(("agent", "framework", "assistant"), [(name, _framework(schemas), text(assistant, "assistant_id"))])
    print("\ngraph")
    print("\n".join(f"  {line}" for line in _drawn(drawn)))
    for one in _SCHEMAS:
        if schemas.get(one):
            print(f"\n{one.removesuffix('_schema')}")
            print("\n".join(f"  {line}" for line in _schema(fields(schemas.get(one)))))
    print()
    rows = [(text(one, "assistant_id"), text(one, "name"), text(one, "version")) for one in assistants]
    print_table(("assistant", "name", "version"), rows)


def _names(host: Host) -> list[str]:
    named = fields(host.get("/info")).get("agents")
    return [str(one) for one in named] if isinstance(named, list) else []


def _assistants(host: Host, asked: dict[str, Json]) -> list[dict[str, Json]]:
    return [one for page in host.searched("/assistants/search", asked, None) for one in page.found]


def _listed(host: Host, name: str, assistants: list[dict[str, Json]]) -> dict[str, Json]:
    """An agent; one whose code does not load is listed all the same."""
    own = [one for one in assistants if one.get("graph_id") == name]
    framework, problem = "", ""
    try:
        framework = _framework(fields(host.get(f"/assistants/{quote(name, safe='')}/schemas")))
    except AgentBroken as error:
        problem = error.message.partition("\n")[0]
    except AgentVisorError as error:
        problem = error.message
    return {"name": name, "framework": framework or None, "assistants": len(own), "problem": problem or None}


def _framework(schemas: Mapping[str, Json]) -> str:
    """What is no LangGraph graph says what it is."""
    return text(schemas, "framework") or "langgraph"


def _edges(graph: Mapping[str, Json]) -> Iterator[tuple[str, str, bool, str]]:
    for one in objects(graph.get("edges")):
        data = one.get("data")
        yield text(one, "source"), text(one, "target"), bool(one.get("conditional")), "" if data is None else str(data)


def _drawn(graph: Mapping[str, Json]) -> Iterator[str]:
    """One line for each edge; a conditional one is dotted."""
    for source, target, conditional, label in _edges(graph):
        arrow = "..>" if conditional else "-->"
        yield cell(f"{source} {arrow} {target}{f'  ({label})' if label else ''}")


def _mermaid(graph: Mapping[str, Json]) -> Iterator[str]:
    numbers = {text(one, "id"): f"n{number}" for number, one in enumerate(objects(graph.get("nodes")))}
    yield "graph TD;"
    for name, number in numbers.items():
        yield f'  {number}["{cell(name).replace(chr(34), "#quot;")}"]'
    for source, target, conditional, label in _edges(graph):
        arrow = "-.->" if conditional else "-->"
        said = f'|"{cell(label).replace(chr(34), "#quot;")}"|' if label else ""
        yield f"  {numbers.get(source, source)} {arrow}{said} {numbers.get(target, target)}"


def _schema(schema: Mapping[str, Json]) -> Iterator[str]:
    """Its properties, a line each; of another kind of schema all of it."""
    properties = fields(schema.get("properties"))
    required = schema.get("required")
    for name, one in properties.items():
        kind = fields(one)
        told = text(kind, "type") or as_json({key: value for key, value in kind.items() if key != "title"})
        must = "  required" if isinstance(required, list) and name in required else ""
        yield cell(f"{name}: {told}{must}")
    if not properties:
        yield as_json(dict(schema))
